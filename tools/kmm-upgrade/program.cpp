// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/program.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

#include "cli/explain.hpp"
#include "kmm-upgrade/codes.hpp"
#include "kmm-upgrade/kubernetes_source.hpp"
#include "kmm-upgrade/reach.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/codes.hpp"

namespace kmm::tool_upgrade {
namespace {

cli::Option option(std::string name, std::string value_name, std::string help) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

cli::Option required(cli::Option made) {
    made.required = true;
    return made;
}

/// Options of every verb. Those of the cluster and the runner are taken by verbs that have no use for them as well, so that
/// one set of options (an alias) fits all; such verbs hide them (without_use).
std::vector<cli::Option> shared() {
    return state_options() + runner_options() + std::vector<cli::Option>{trust_option()} + cli::cluster_options() + cli::common_options();
}

cli::Positional node_argument(std::string help) {
    cli::Positional positional;
    positional.name = "NODE";
    positional.help = std::move(help);
    return positional;
}

cli::Verb verb(std::string name, std::string summary, std::string description, std::vector<cli::Example> examples,
               std::vector<cli::Option> own, decltype(cli::Verb::run) run) {
    cli::Verb made;
    made.name = std::move(name);
    made.summary = std::move(summary);
    made.description = std::move(description);
    made.examples = std::move(examples);
    made.options = std::move(own) + shared();
    made.run = std::move(run);
    return made;
}

/// Leaves options out of --help, manual page and completion that the verb takes and has no use for.
cli::Verb without_use(cli::Verb made, const std::vector<cli::Option>& useless, std::initializer_list<std::string_view> used = {}) {
    for (auto& each : made.options) {
        const auto is_same = [&](const cli::Option& other) { return other.name == each.name; };
        if (std::find(used.begin(), used.end(), each.name) == used.end() && std::any_of(useless.begin(), useless.end(), is_same)) each.hidden = true;
    }
    return made;
}

/// A verb whose nodes nobody chooses: --selector is refused, since to go on with all nodes is not what was asked for. In a
/// configuration file it is for other verbs.
cli::Verb without_selector(cli::Verb made, const std::string& why) {
    for (auto& each : made.options) each.hidden = each.hidden || each.name == "selector";
    made.run = [why, name = made.name, run = std::move(made.run)](const cli::Args& args, cli::Context& context) {
        if (args.source("selector") == "option")
            throw Error(Exit::usage, "bad-value", fmt::format("{} does not accept --selector: {}", name, why)).hint("leave --selector out");
        return run(args, context);
    };
    return made;
}

/// A verb that goes on with the recorded run.
cli::Verb about_run(cli::Verb made) { return without_selector(std::move(made), "the nodes were fixed at start"); }

/// A verb that reads the record, and asks neither cluster nor node.
cli::Verb about_record(cli::Verb made) {
    auto useless = cli::cluster_options();
    std::erase_if(useless, [](const cli::Option& each) { return each.name == "namespace"; });
    return about_run(without_use(std::move(made), useless + runner_options() + std::vector<cli::Option>{trust_option()}));
}

/// What start and apply walk by.
std::vector<cli::Option> walk_options() {
    auto node = option("node", "NODE", "only this node");
    node.repeatable = true;
    auto order = option("order", "ORDER", "name, zone, or a file with one node name per line");
    order.default_text = "name";
    auto unavailable = option("max-unavailable", "N|P%", "maximum number of nodes that may be unavailable at a time");
    unavailable.default_text = "1";
    auto resource = option("resource", "NAME", "with --evict-users: resource of the module's device plugin");
    resource.repeatable = true;
    auto timeout = option("node-timeout", "DURATION", "time limit for one step on one node");
    timeout.default_text = "10m";
    return {node, order,
            option("canary", "N", "stop after the first N nodes if more follow, exit 11"),
            option("pause-after", "N", "stop after every N nodes if more follow, exit 11"), unavailable, timeout,
            option("failure-budget", "N", "tolerate up to N failed nodes"),
            option("soak", "DURATION", "watch each node for this time before it counts as done"),
            option("between", "HH:MM-HH:MM", "begin nodes only in this time of day"),
            option("tz", "ZONE", "with --between: its time zone (default: the host's)"),
            option("check", "COMMAND", "run COMMAND for each upgraded node (JSON on stdin); non-zero fails the node"),
            option("on-event", "COMMAND", "run COMMAND for each event (a JSON line on stdin)"),
            option("drain", "", "cordon and empty each node before its module is unloaded"),
            option("evict-users", "", "as --drain, but evict only users of the module's devices"), resource,
            option("force", "", "with --drain: also evict Pods without a controller"),
            option("delete-emptydir-data", "", "with --drain: also evict Pods with an emptyDir"),
            option("grace-period", "SECONDS", "with --drain: grace period of evicted Pods; -1: their own, 0 (with --force): at once"),
            option("or-resume", "", "resume this upgrade if it is already recorded"),
            option("dry-run", "", "print every action, change nothing")};
}

cli::Verb start_module() {
    auto made = verb("start module", "check every node, then upgrade one after the other",
                     "The Module must already contain the new version and image. First every node reports its kernel, pulls the new version "
                     "and checks it against that kernel. If a node could not load it, nothing is changed and the exit code is 10. Then each "
                     "node in turn gets the labels of KMM's ordered upgrade, unloads the old module, loads the new one, and compares the "
                     "loaded module with the checked file.\n\n"
                     "With --via operator KMM's operator does the work: kmm-upgrade sets the version label of each node and waits for the "
                     "result.\n\n"
                     "With --drain each node is cordoned and drained first, as kubectl drain does, and uncordoned at the end. Cordons of "
                     "someone else are kept.\n\n"
                     "A failure pauses the run (exit 11) and leaves the other nodes untouched. A module that is not on any node is installed "
                     "in the same way.",
                     {{"kmm-upgrade start module drivers/kmm-hello --to v2", "upgrade every node that the Module selects"},
                      {"kmm-upgrade start module kmm-hello --to v2 --canary 1", "stop after the first node"},
                      {"kmm-upgrade start module kmm-hello --to v2 --dry-run", "print every action, change nothing"}},
                     std::vector<cli::Option>{required(option("to", "VERSION", "version to upgrade to"))} + walk_options() +
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
    auto made = verb("apply", "bring nodes to the state of the Modules, without versions",
                     "Carries out what kmm-plan show prints: loads missing modules, reloads modules whose build or configuration differs, and "
                     "unloads modules whose Module was deleted or does not select the node. Nodes that are up to date are not touched. If "
                     "all are, nothing is recorded and the exit code is 0.\n\n"
                     "Each Module is a run with the same record, steps and checks as start module: it can be killed, resumed, aborted and "
                     "rolled back, and a node pulls and checks the image before it unloads anything. Modules that others need "
                     "(kmmtools.dev/needs) come first. If a run stops, the following Modules wait; resume continues with them.\n\n"
                     "start module decides the version of a Module with versions on each node. Of such a Module apply only removes what is "
                     "not wanted. The exit code is 12 if a node cannot get what it should have.",
                     {{"kmm-upgrade apply", "bring every node to the state of the Modules"},
                      {"kmm-upgrade apply drivers/kmm-hello --canary 1", "one Module; stop after the first node"},
                      {"kmm-upgrade apply --dry-run", "print every action, change nothing"}},
                     walk_options(), run_apply);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique (default: all)";
    module.required = false;
    module.repeatable = true;
    made.positionals = {module};
    return made;
}

cli::Verb doctor_verb() {
    auto uncordon = option("uncordon", "NODE", "with --fix: also lift the cordon of this node");
    uncordon.repeatable = true;
    auto made = verb("doctor", "find and repair leftovers of interrupted upgrades",
                "Finds abandoned cordons, version labels in a combination that KMM never leaves, labels of deleted Modules, deletions that wait for "
                "finalizers, and an unfinished upgrade without a process; on an API server also abandoned worker Pods, Leases and "
                "DaemonSets. Prints the command that repairs each finding. Takes no lock, changes nothing. The exit code is 10 if there is "
                "a finding.\n\n"
                "--fix repairs findings that have a safe fix and asks before each change. It removes labels with the value that was found, "
                "and ended Pods, duplicate DaemonSets and expired Leases that are the objects that were found. Cordons are lifted only with "
                "--uncordon. Refuses (exit 75) while another kmm-upgrade works on this record or holds the Lease of a Module. The exit code "
                "is 10 if a finding is left.",
                {{"kmm-upgrade doctor --cluster fleet", "examine a directory cluster"},
                 {"kmm-upgrade doctor --context prod -o json", "for a script"},
                 {"kmm-upgrade doctor --fix", "repair what can be repaired, ask each time"},
                 {"kmm-upgrade doctor --fix --yes --uncordon node-a", "do not ask; also lift the cordon of node-a"}},
                {option("fix", "", "repair findings that have a safe fix; ask before each change"), option("yes", "", "with --fix: do not ask"),
                 uncordon},
                run_doctor);
    return without_selector(without_use(std::move(made), runner_options(), {"lease-namespace", "api-timeout"}),
                            "most findings do not belong to a single node");
}

cli::Verb adopt_verb() {
    auto walking = walk_options();
    // What was a canary is past, and a dry run does nothing here anyhow.
    std::erase_if(walking, [](const cli::Option& each) { return each.name == "canary" || each.name == "dry-run" || each.name == "or-resume"; });
    auto made = verb("adopt", "rebuild a lost record from the cluster",
                     "For a lost state directory: reads labels, NodeModulesConfigs and cordons, and on an API server the Lease and worker Pods. "
                     "Finds the upgrade that was under way and the progress of each node, and writes the record of start. The run is then "
                     "paused: resume continues it, abort --rollback reverts it. No node is contacted. Nothing in the cluster is changed; only the "
                     "Lease is held during the command.\n\n"
                     "MODULE is optional if only one Module has an unfinished upgrade. --to is optional if it is the version of the Module. "
                     "The cluster does not show how nodes were chosen, drained and reached: give the options of start again.",
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
    auto node = option("node", "NODE", "only this node");
    node.repeatable = true;
    auto made = verb("migrate", "take over modules of KMM up to v2.6.0 or of a DaemonSet",
                     "KMM up to v2.6.0 uses the label version-device-plugin, later releases use version-schedule-pod, and no release renames it. migrate "
                     "renames it with one write per node, if both labels have the values that were read. Nothing is unloaded. A node whose two "
                     "labels contain different versions is not changed.\n\n"
                     "Stop KMM up to v2.6.0 first: it would write its label again. Pods of its DaemonSets end when the old label is removed; those of "
                     "the new KMM, or of kmm-upgrade, replace them. The exit code is 12 if a node was not changed.\n\n"
                     "--from-daemonset takes over a module that a DaemonSet has loaded by insmod or modprobe. Each node that MODULE selects reports "
                     "the loaded build and checks the image of the Module. Where they are the same, labels and NodeModulesConfig are written, by a run "
                     "like that of start that loads and unloads nothing. Other nodes are not changed, and are named. --remove-daemonset deletes the "
                     "DaemonSet once every node with a Pod of it has the module from the Module. Its Pods are kept, as many of them unload the module "
                     "when they end.",
                     {{"kmm-upgrade migrate --dry-run", "which labels would be renamed"},
                      {"kmm-upgrade migrate drivers/kmm-hello --node node-a", "one Module on one node"},
                      {"kmm-upgrade migrate drivers/kmm-hello --from-daemonset old/hello-loader", "take over the module that a DaemonSet has loaded"}},
                     {option("dry-run", "", "print what would be done"), node,
                      option("from-daemonset", "NS/NAME", "DaemonSet that has loaded the module of MODULE"),
                      option("remove-daemonset", "", "with --from-daemonset: delete the DaemonSet afterwards, keep its Pods")}, run_migrate);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique (default: all)";
    module.required = false;
    made.positionals = {module};
    return made;
}

/// A verb about the Kubernetes of a cluster, which is read and never changed: --filename in place of the cluster is as good.
cli::Verb about_kubernetes(cli::Verb made) {
    auto useless = runner_options();
    for (auto& each : cli::cluster_options())
        if (each.name == "namespace") useless.push_back(std::move(each));
    return without_selector(without_use(std::move(made), useless, {"api-timeout"}), "versions and checks are those of all nodes");
}

std::vector<cli::Verb> kubernetes_verbs() {
    cli::Positional version;
    version.name = "VERSION";
    version.help = "MAJOR.MINOR.PATCH, with or without v";
    version.required = false;
    auto versions = verb("versions", "Kubernetes versions and their states",
                         "Lists the known versions of Kubernetes with their state, which is computed from what runs: a control-plane node runs the "
                         "lowest version of its API server, controller manager and scheduler, every node that of its kubelet. active: the only "
                         "version that runs. partial: one of several that run. available: higher than the active one. unavailable: any other; "
                         "while several run, every version that does not.\n\n"
                         "With VERSION: its metadata, the path that leads there, and what it brings and removes.\n\n"
                         "Dumps for -f are what kubectl get nodes,pods,configmaps -A -o json prints. Exit 66 if the control plane or a kubelet "
                         "was not found, 65 if a version cannot be read: then nothing is said of the states.",
                         {{"kmm-upgrade versions", "of the current cluster"},
                          {"kmm-upgrade versions -f dump.json --stx", "of a dump, in a frame"},
                          {"kmm-upgrade versions v1.35.4", "one version, and the path to it"}},
                         kubernetes_options() + std::vector<cli::Option>{option("stx", "", "draw the frame of StarlingX's system command")}, run_versions);
    versions.positionals = {version};

    cli::Positional requirement;
    requirement.name = "REQUIREMENT";
    requirement.help = "as 'apiserver >= v1.16.4', joined with and";
    requirement.repeatable = true;
    auto require = verb("require", "test versions that run, for scripts",
                        "Exit 0 if every instance of each named component satisfies the condition, 10 if one does not, cannot be read, or none is "
                        "found; offenders are named. Components: apiserver, controller-manager, scheduler, control-plane (all three), kubelet, "
                        "kube-proxy, etcd. Operators: >= > <= < == !=.",
                        {{"kmm-upgrade require 'apiserver >= v1.16.4'", "before a patch is applied"},
                         {"kmm-upgrade require 'control-plane == v1.35.4 and kubelet >= v1.34.0'", "several conditions"}},
                        kubernetes_options(), run_require);
    require.positionals = {requirement};

    auto ignore = option("ignore-checks", "ID,...", "checks whose failure is a warning");
    ignore.repeatable = true;
    auto health = verb("health", "check the health of a Kubernetes cluster",
                       "Runs the checks of health on the objects of the API server, or of a dump, and prints each as OK, WARN, FAIL or SKIP. What "
                       "cannot be observed is skipped, with the reason, and never called OK. Changes nothing. Exit 17 if a check fails.",
                       {{"kmm-upgrade health", "the current cluster"}, {"kmm-upgrade health -f dump.json -o json", "a dump, for a script"}},
                       kubernetes_options() + std::vector<cli::Option>{ignore}, run_health);
    auto check = verb("check kubernetes", "run all checks before a Kubernetes upgrade",
                      "Runs every check before an upgrade to VERSION and prints all results at once. What needs a command on a node, or metrics, is "
                      "skipped with the reason. Changes nothing. Exit 10 if a check fails.",
                      {{"kmm-upgrade check kubernetes v1.35.4", "the current cluster"},
                       {"kmm-upgrade check kubernetes v1.35.4 --ignore-checks drain-local-data", "accept one failure"}},
                      kubernetes_options() + std::vector<cli::Option>{ignore}, run_check_kubernetes);
    version.required = true;
    check.positionals = {version};
    return {about_kubernetes(std::move(versions)), about_kubernetes(std::move(require)), about_kubernetes(std::move(health)), about_kubernetes(std::move(check))};
}

}  // namespace

cli::Program program() {
    cli::Program program;
    program.name = "kmm-upgrade";
    program.summary = "upgrades a kernel module on the nodes of a cluster";
    program.description =
        "Upgrades a kernel module node by node and records each step before and after it is done. It can be killed at any moment: "
        "resume examines the cluster and continues.";
    program.examples = {{"kmm-upgrade start module drivers/kmm-hello --to v2", "start an upgrade"},
                        {"kmm-upgrade show", "show progress and the next command"},
                        {"kmm-upgrade resume", "continue after a pause, a failure or a crash"},
                        {"kmm-upgrade abort --rollback current", "abort, and roll the failed node back"}};
    program.verbs.push_back(start_module());
    program.verbs.push_back(apply());
    program.verbs.push_back(about_run(verb("resume", "continue an interrupted or paused upgrade",
                                 "Continues after a failure, a pause, a kill or a reboot. Failed nodes are tried again. After an interrupted step the node is "
                                 "examined first. Resuming an upgrade that has ended changes nothing. The exit code is 0, or 12 if nodes were "
                                 "skipped or left out.",
                                 {{"kmm-upgrade resume", "continue the recorded upgrade"}}, {}, run_resume)));
    program.verbs.push_back(about_record(verb("show", "show progress and the next command",
                                 "Reads the record only: takes no lock, writes nothing, needs no cluster. Times are UTC.\n\n"
                                 "The exit code is 0 in every state of the upgrade. Scripts read state and summary of -o json.",
                                 {{"kmm-upgrade show", "the state of the upgrade"},
                                  {"kmm-upgrade show --watch", "refresh until the upgrade ends"}},
                                 {option("watch", "", "refresh until the upgrade ends")}, run_show)));
    program.verbs.push_back(about_record(verb("nodes", "list the nodes of the upgrade", "CURRENT is the version that was last seen on the node: \"-\" for none, \"?\" during a "
                                 "step or if the node did not answer.",
                                 {{"kmm-upgrade nodes -o wide", "with full messages"}}, {}, run_nodes)));
    program.verbs.push_back(about_run(verb("step", "do one step",
                                 "Does the next step of one node and stops. --node chooses the node; it is refused if more than --max-unavailable nodes would "
                                 "then be in progress. The exit code is 0 if the step was done, 11 if it failed.",
                                 {{"kmm-upgrade step", "do the next step"}, {"kmm-upgrade step --node node-b", "do the next step of node-b"}},
                                 {option("node", "NODE", "the node to step")}, run_step)));
    auto rollback = option("rollback", "WHICH", "nodes to roll back to their previous version");
    rollback.choices = {"none", "current", "all"};
    rollback.default_text = "none";
    program.verbs.push_back(about_run(verb("abort", "abort the upgrade, optionally rolling nodes back",
                                 "--rollback current returns nodes that failed or are unfinished to their recorded version. --rollback all also returns nodes "
                                 "that are done, the last one first. An interrupted abort can be resumed. Aborting twice is not an error.",
                                 {{"kmm-upgrade abort", "abort, leave every node as it is"},
                                  {"kmm-upgrade abort --rollback current", "abort, roll failed nodes back"}},
                                 {rollback}, run_abort)));
    auto skip = verb("skip", "leave a failed node out of the upgrade",
                     "The node stays as it is. resume continues with the others. The exit code of the run is then 12.",
                     {{"kmm-upgrade skip node-c --reason \"broken card\"", "leave node-c out"}},
                     {required(option("reason", "TEXT", "reason; it is kept in the history"))}, run_skip);
    skip.positionals = {node_argument("a node that failed")};
    program.verbs.push_back(about_run(std::move(skip)));
    auto retry = verb("retry", "try a failed node again, then continue",
                      "Checks the node again, with the current image and Module, and does its remaining steps.",
                      {{"kmm-upgrade retry node-c", "try node-c again"}}, {}, run_retry);
    retry.positionals = {node_argument("a node that failed")};
    program.verbs.push_back(about_run(std::move(retry)));
    program.verbs.push_back(about_record(verb("delete", "remove an ended record", "Removes the record of a complete or aborted upgrade, so that another one can start. It stays "
                                 "in the history.",
                                 {{"kmm-upgrade delete", "make room for the next upgrade"}}, {}, run_delete)));
    program.verbs.push_back(doctor_verb());
    program.verbs.push_back(adopt_verb());
    program.verbs.push_back(migrate_verb());
    auto history = verb("history", "list past runs and their events", "Lists the runs in the record, newest first; with RUN, every "
                        "event of that run.",
                        {{"kmm-upgrade history", "list all runs"}, {"kmm-upgrade history current", "list the events of the current run"}}, {},
                        run_history);
    cli::Positional run;
    run.name = "RUN";
    run.help = "name of a run in the list";
    run.required = false;
    history.positionals = {run};
    program.verbs.push_back(about_record(std::move(history)));
    auto report = verb("report", "write a run as an HTML page",
                       "Writes one HTML page with the request, the result, each node with its versions and the time of each step, and every event. The "
                       "page loads nothing and has no script. Takes no lock, needs no cluster.",
                       {{"kmm-upgrade report --html upgrade.html", "the recorded run, or the last one of the history"},
                        {"kmm-upgrade report 00001-kmm-hello-v1 --html -", "a run of the history, to standard output"}},
                       {required(option("html", "FILE", "the page to write; - for standard output"))}, run_report);
    report.positionals = {run};
    program.verbs.push_back(about_record(std::move(report)));
    for (auto& each : kubernetes_verbs()) program.verbs.push_back(std::move(each));
    auto explain = verb("explain", "describe an error or finding code",
                        "Without CODE: list all codes of this command. Codes of Modules, nodes and clusters that kmm-plan prints too are described, but not listed.",
                        {{"kmm-upgrade explain identity-mismatch", "describe one code"}, {"kmm-upgrade explain", "list all codes"}}, {}, {});
    explain = cli::explain_verb(without_use(std::move(explain), state_options() + runner_options() + cli::cluster_options()), codes(), plan::codes(),
                                "kmm-plan explain and kmm-worker explain know their own");
    program.verbs.push_back(without_selector(std::move(explain), "nothing in a cluster is looked at"));
    program.topics = {cli::codes_topic("ERRORS AND FINDINGS", codes())};
    program.planned = {{"start kubernetes", "start module upgrades a kernel module"},
                       {"guard", "run the command when kmm-upgrade show -o json says upgrade-complete"},
                       {"state", "kmm-upgrade show verifies the record; its last five snapshots are in backup/ of --state-dir"}};
    program.environment = {{"SSL_CERT_FILE", "authorities for TLS besides the system's; looked at where no authority is named for the server alone"},
                           {"XDG_STATE_HOME", "of other users than root: the record is kept in kmm-upgrade below it; default: ~/.local/state"},
                           {"TZ", "time zone of --between without --tz; times that are shown are UTC"},
                           {"https_proxy, all_proxy, no_proxy", "proxy to an API server that is not on this host"}};
    program.files = {{"/var/lib/kmm-upgrade, ~/.local/state/kmm-upgrade", "the record of root, and of other users: journal.ndjson, and history/ with those that ended"},
                     {"/etc/kmm-tools/kubernetes-versions.yaml", "metadata of Kubernetes versions; one of this name in the state directory comes first"}};
    return program;
}

}  // namespace kmm::tool_upgrade
