// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/module/verbs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "kmm-upgrade/verbs.hpp"

namespace kmm::tool_upgrade {
namespace {

cli::Verb start_module() {
    auto made = verb(
        "start module", "check every node, then upgrade one after the other",
        "The Module must already contain the new version and image. First every node reports its kernel, pulls the "
        "new version and checks it against that kernel. If a node could not load it, nothing is changed and the exit "
        "code is 10. Then each node in turn gets the labels of KMM's ordered upgrade, unloads the old module, loads "
        "the new one, and compares the loaded module with the checked file.\n\n"
        "With --via operator KMM's operator does the work: kmm-upgrade sets the version label of each node and waits "
        "for the result.\n\n"
        "With --drain each node is cordoned and drained first, as kubectl drain does, and uncordoned at the end. "
        "Cordons of someone else are kept.\n\n"
        "A failure pauses the run (exit 11) and leaves the other nodes untouched. A module that is not on any node "
        "is installed in the same way.",
        {{"kmm-upgrade start module drivers/kmm-hello --to v2", "upgrade every node that the Module selects"},
         {"kmm-upgrade start module kmm-hello --to v2 --canary 1", "stop after the first node"},
         {"kmm-upgrade start module kmm-hello --to v2 --dry-run", "print every action, change nothing"}},
        std::vector<cli::Option>{cli::required(option("to", "VERSION", "version to upgrade to"))} +
            walk_options("10m") +
            std::vector<cli::Option>{option("plan", "FILE", "a saved plan; refuse if the cluster differs from it"),
                                     option("manual", "", "record the upgrade and stop; continue with step")},
        run_start_module);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique";
    made.positionals = {module};
    return made;
}

cli::Verb apply() {
    auto made = verb(
        "apply", "bring nodes to the state of the Modules, without versions",
        "Carries out what kmm-plan show prints: loads missing modules, reloads modules whose build or configuration "
        "differs, and unloads modules whose Module was deleted or does not select the node. Nodes that are up to "
        "date are not touched. If all are, nothing is recorded and the exit code is 0.\n\n"
        "Each Module is a run with the same record, steps and checks as start module: it can be killed, resumed, "
        "aborted and rolled back, and a node pulls and checks the image before it unloads anything. Modules that "
        "others need (kmmtools.dev/needs) come first. If a run stops, the following Modules wait; resume continues "
        "with them.\n\n"
        "start module decides the version of a Module with versions on each node. Of such a Module apply only "
        "removes what is not wanted. The exit code is 12 if a node cannot get what it should have.",
        {{"kmm-upgrade apply", "bring every node to the state of the Modules"},
         {"kmm-upgrade apply drivers/kmm-hello --canary 1", "one Module; stop after the first node"},
         {"kmm-upgrade apply --dry-run", "print every action, change nothing"}},
        walk_options("10m"), run_apply);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique (default: all)";
    module.required = false;
    module.repeatable = true;
    made.positionals = {module};
    return made;
}

cli::Verb doctor_verb() {
    auto uncordon = cli::repeatable(cli::option("uncordon", "NODE", "with --fix: also lift the cordon of this node"));
    auto made =
        verb("doctor", "find and repair leftovers of interrupted upgrades",
             "Finds abandoned cordons, version labels in a combination that KMM never leaves, labels of deleted "
             "Modules, deletions that wait for finalizers, and an unfinished upgrade without a process; on an API "
             "server also abandoned worker Pods, Leases and DaemonSets. Prints the command that repairs each "
             "finding. Takes no lock, changes nothing. The exit code is 10 if there is a finding.\n\n"
             "--fix repairs findings that have a safe fix and asks before each change. It removes labels with the "
             "value that was found, and ended Pods, duplicate DaemonSets and expired Leases that are the objects "
             "that were found. Cordons are lifted only with --uncordon. Refuses (exit 75) while another kmm-upgrade "
             "works on this record or holds the Lease of a Module. The exit code is 10 if a finding is left.",
             {{"kmm-upgrade doctor --cluster fleet", "examine a directory cluster"},
              {"kmm-upgrade doctor --context prod -o json", "for a script"},
              {"kmm-upgrade doctor --fix", "repair what can be repaired, ask each time"},
              {"kmm-upgrade doctor --fix --yes --uncordon node-a", "do not ask; also lift the cordon of node-a"}},
             {option("fix", "", "repair findings that have a safe fix; ask before each change"),
              option("yes", "", "with --fix: do not ask"), uncordon},
             run_doctor);
    return without_selector(without_use(std::move(made), runner_options(), {"lease-namespace", "api-timeout"}),
                            "most findings do not belong to a single node");
}

cli::Verb adopt_verb() {
    auto walking = walk_options("10m");
    // What was a canary is past, and a dry run does nothing here anyhow.
    std::erase_if(walking, [](const cli::Option& each) {
        return each.name == "canary" || each.name == "dry-run" || each.name == "or-resume";
    });
    auto made = verb(
        "adopt", "rebuild a lost record from the cluster",
        "For a lost state directory: reads labels, NodeModulesConfigs and cordons, and on an API server the Lease "
        "and worker Pods. Finds the upgrade that was under way and the progress of each node, and writes the record "
        "of start. The run is then paused: resume continues it, abort --rollback reverts it. No node is contacted. "
        "Nothing in the cluster is changed; only the Lease is held during the command.\n\n"
        "MODULE is optional if only one Module has an unfinished upgrade. --to is optional if it is the version of "
        "the Module. The cluster does not show how nodes were chosen, drained and reached: give the options of start "
        "again.",
        {{"kmm-upgrade adopt --dry-run", "what would be recorded"},
         {"kmm-upgrade adopt drivers/kmm-hello --to v2 --from v1", "name what the cluster does not show"}},
        std::vector<cli::Option>{option("to", "VERSION", "version to upgrade to (default: the Module's)"),
                                 option("from", "VERSION", "version before the upgrade; none if nothing was loaded"),
                                 option("run", "LINEAGE", "id of the run; none for a new one"),
                                 option("dry-run", "", "print what would be recorded")} +
            walking,
        run_adopt);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique";
    module.required = false;
    made.positionals = {module};
    return made;
}

cli::Verb migrate_verb() {
    auto node = cli::repeatable(cli::option("node", "NODE", "only this node"));
    auto made =
        verb("migrate", "take over modules of KMM up to v2.6.0 or of a DaemonSet",
             "KMM up to v2.6.0 uses the label version-device-plugin, later releases use version-schedule-pod, and no "
             "release renames it. migrate renames it with one write per node, if both labels have the values that "
             "were read. Nothing is unloaded. A node whose two labels contain different versions is not changed.\n\n"
             "Stop KMM up to v2.6.0 first: it would write its label again. Pods of its DaemonSets end when the old "
             "label is removed; those of the new KMM, or of kmm-upgrade, replace them. The exit code is 12 if a node "
             "was not changed.\n\n"
             "--from-daemonset takes over a module that a DaemonSet has loaded by insmod or modprobe. Each node that "
             "MODULE selects reports the loaded build and checks the image of the Module. Where they are the same, "
             "labels and NodeModulesConfig are written, by a run like that of start that loads and unloads nothing. "
             "Other nodes are not changed, and are named. --remove-daemonset deletes the DaemonSet once every node "
             "with a Pod of it has the module from the Module. Its Pods are kept, as many of them unload the module "
             "when they end.",
             {{"kmm-upgrade migrate --dry-run", "which labels would be renamed"},
              {"kmm-upgrade migrate drivers/kmm-hello --node node-a", "one Module on one node"},
              {"kmm-upgrade migrate drivers/kmm-hello --from-daemonset old/hello-loader",
               "take over the module that a DaemonSet has loaded"}},
             {option("dry-run", "", "print what would be done"), node,
              option("from-daemonset", "NS/NAME", "DaemonSet that has loaded the module of MODULE"),
              option("remove-daemonset", "", "with --from-daemonset: delete the DaemonSet afterwards, keep its Pods")},
             run_migrate);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique (default: all)";
    module.required = false;
    made.positionals = {module};
    return made;
}

}  // namespace

OwnVerbs module_verbs() { return {{start_module(), apply()}, {doctor_verb(), adopt_verb(), migrate_verb()}}; }

}  // namespace kmm::tool_upgrade
