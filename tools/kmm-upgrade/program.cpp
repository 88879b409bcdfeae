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
    return state_options() + runner_options() + cli::cluster_options() + cli::common_options();
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
            throw Error(Exit::usage, "bad-value", fmt::format("--selector is not for {}: {}", name, why)).hint("leave --selector out");
        return run(args, context);
    };
    return made;
}

/// A verb that goes on with the recorded run.
cli::Verb about_run(cli::Verb made) { return without_selector(std::move(made), "an upgrade has the nodes it was started with"); }

/// A verb that reads the record, and asks neither cluster nor node.
cli::Verb about_record(cli::Verb made) {
    auto useless = cli::cluster_options();
    std::erase_if(useless, [](const cli::Option& each) { return each.name == "namespace"; });
    return about_run(without_use(std::move(made), useless + runner_options()));
}

/// What start and apply walk by.
std::vector<cli::Option> walk_options() {
    auto node = option("node", "NODE", "only this node");
    node.repeatable = true;
    auto order = option("order", "ORDER", "name, zone, or a file with one node name a line");
    order.default_text = "name";
    auto unavailable = option("max-unavailable", "N|P%", "nodes in flight, not ready or cordoned at once");
    unavailable.default_text = "1";
    auto resource = option("resource", "NAME", "with --evict-users: what its device plugin offers");
    resource.repeatable = true;
    auto timeout = option("node-timeout", "DURATION", "for one step on one node");
    timeout.default_text = "10m";
    return {node, order,
            option("canary", "N", "stop after the first N nodes if more follow, exit 11"),
            option("pause-after", "N", "stop after every N nodes if more follow, exit 11"), unavailable, timeout,
            option("failure-budget", "N", "go on until more than N nodes have failed"),
            option("soak", "DURATION", "watch each node that long before it is done"),
            option("between", "HH:MM-HH:MM", "begin nodes only at that time of day"),
            option("tz", "ZONE", "with --between: its time zone, else the host's"),
            option("check", "COMMAND", "must agree with each upgraded node; facts on its stdin"),
            option("on-event", "COMMAND", "gets each event as a JSON line on its stdin"),
            option("drain", "", "cordon and empty each node before its module is unloaded"),
            option("evict-users", "", "as --drain, but evict only users of the module's devices"), resource,
            option("force", "", "with --drain: also evict Pods without a controller"),
            option("delete-emptydir-data", "", "with --drain: also evict Pods with an emptyDir"),
            option("grace-period", "SECONDS", "with --drain: of evicted Pods; -1: their own, 0: at once, with --force"),
            option("or-resume", "", "resume this upgrade instead, if it is recorded already"),
            option("dry-run", "", "print every action and do none")};
}

cli::Verb start_module() {
    auto made = verb("start module", "check every node, then upgrade one after the other",
                     "The Module must already say the new version and image. First every node is asked for its kernel, pulls "
                     "the new version and checks it against that kernel: if one of them could not load it, nothing is "
                     "changed and the exit code is 10. Then, node by node: the labels of an ordered upgrade are set as KMM "
                     "sets them, the old module is unloaded, the new one is loaded, and what is live is compared with what "
                     "was checked.\n\n"
                     "With --via operator KMM's operator does all that: only the administrator's version label is set, and what the "
                     "operator makes of it is waited for.\n\n"
                     "With --drain each node is cordoned and its Pods are evicted before that, as kubectl drain does it, and it is "
                     "uncordoned at the end; a cordon of somebody else is never lifted.\n\n"
                     "A failure pauses the run (exit 11) with the other nodes untouched. A module that no node has yet is "
                     "installed in the same way.",
                     {{"kmm-upgrade start module drivers/kmm-hello --to v2", "upgrade every node the Module selects"},
                      {"kmm-upgrade start module kmm-hello --to v2 --canary 1", "stop after the first node"},
                      {"kmm-upgrade start module kmm-hello --to v2 --dry-run", "print every action, do none"}},
                     std::vector<cli::Option>{required(option("to", "VERSION", "version to upgrade to"))} + walk_options() +
                         std::vector<cli::Option>{option("plan", "FILE", "a plan file; refuse if the cluster is no longer as it says"),
                                                  option("manual", "", "record the upgrade and stop; go on with step")},
                     run_start_module);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique";
    made.positionals = {module};
    return made;
}

cli::Verb apply() {
    auto made = verb("apply", "bring nodes to what the Modules say, without versions",
                     "Does what kmm-plan show says: loads modules where they are wanted and missing, loads them anew where another "
                     "build or configuration is wanted, and unloads them where the Module was deleted or does not select the node any "
                     "more. Nodes that are right are not touched; if all are, the exit code is 0 and nothing is recorded.\n\n"
                     "Each Module is a run of its own with the same record, steps and checks as start module: it can be killed, "
                     "resumed, aborted and rolled back, and the image is pulled and checked on a node before anything is unloaded there. "
                     "Several Modules follow each other, what others need first (kmmtools.dev/needs); a run that stops stops those "
                     "after it, and resume goes on with them.\n\n"
                     "Which node has which version of a Module with versions is a matter of start module; of such a Module apply only "
                     "removes what is not wanted any more. The exit code is 12 if some node cannot get what it should have.",
                     {{"kmm-upgrade apply", "bring every node to what the Modules say"},
                      {"kmm-upgrade apply drivers/kmm-hello --canary 1", "one Module; stop after the first node"},
                      {"kmm-upgrade apply --dry-run", "print every action, do none"}},
                     walk_options(), run_apply);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique; without it: all";
    module.required = false;
    module.repeatable = true;
    made.positionals = {module};
    return made;
}

cli::Verb doctor_verb() {
    auto uncordon = option("uncordon", "NODE", "with --fix: also lift this node's cordon");
    uncordon.repeatable = true;
    auto made = verb("doctor", "what is left behind, and how to mend it",
                "Looks for cordons nobody lifts, version labels KMM never leaves, labels of Modules that are gone, deletions "
                "that wait for finalizers, an upgrade nobody is at work on; on an API server also for worker Pods, Leases and "
                "DaemonSets that are left. Each finding comes with the command that mends it. Takes no lock, changes nothing. "
                "Exit 10 if something is to be mended.\n\n"
                "With --fix each finding that has a safe fix is mended once you agree: labels are taken away if they are still what they "
                "were, Pods that have ended, second DaemonSets and Leases nobody renews if they are still the same. Cordons are lifted only "
                "on nodes you name. Refuses (exit 75) while another kmm-upgrade may be at work on this record or holds the Lease of a Module. "
                "Exit 10 if something is still to be mended.",
                {{"kmm-upgrade doctor --cluster fleet", "look at a directory cluster"},
                 {"kmm-upgrade doctor --context prod -o json", "for a script"},
                 {"kmm-upgrade doctor --fix", "mend what can be mended, asking each time"},
                 {"kmm-upgrade doctor --fix --yes --uncordon node-a", "do not ask, and lift the cordon of node-a as well"}},
                {option("fix", "", "mend what has a safe fix, asking before each change"), option("yes", "", "with --fix: do not ask"),
                 uncordon},
                run_doctor);
    return without_selector(without_use(std::move(made), runner_options(), {"lease-namespace", "api-timeout"}),
                            "most of what is left behind is on no single node");
}

cli::Verb adopt_verb() {
    auto walking = walk_options();
    // What was a canary is past, and a dry run does nothing here anyhow.
    std::erase_if(walking, [](const cli::Option& each) { return each.name == "canary" || each.name == "dry-run" || each.name == "or-resume"; });
    auto made = verb("adopt", "rebuild a lost record from the cluster",
                     "Where the state directory is lost: finds out from labels, NodeModulesConfigs, cordons, and on an API server from Lease and "
                     "worker Pods, which upgrade was under way and how far each node has come, and writes the record that start would have "
                     "written. The run is paused then: resume goes on, abort --rollback goes back. No node is asked and nothing in the cluster is "
                     "changed, apart from the Lease, which is held meanwhile.\n\n"
                     "MODULE may be left out if only one Module is in the middle of an upgrade, --to if that is the version the Module says. How "
                     "nodes are chosen, drained and reached is in no cluster: the options are those of start.",
                     {{"kmm-upgrade adopt --dry-run", "what would be recorded"},
                      {"kmm-upgrade adopt drivers/kmm-hello --to v2 --from v1", "say what the cluster cannot say"}},
                     std::vector<cli::Option>{option("to", "VERSION", "version the upgrade leads to (default: the Module's)"),
                                              option("from", "VERSION", "version before; none if nothing was loaded"),
                                              option("run", "LINEAGE", "the run's id; none for a new one"),
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
    auto made = verb("migrate", "take over what KMM up to v2.6.0 or a DaemonSet has left",
                     "KMM up to v2.6.0 writes the label version-device-plugin, later versions version-schedule-pod, and none renames it. This "
                     "does, in one write a node, if both are still what was read: nothing is unloaded, and the node is in the same state "
                     "for the new KMM as it was for the old one. A node on which both labels are there and say different versions is "
                     "left as it is.\n\n"
                     "Run it when no KMM up to v2.6.0 is at work any more, which would write its label again. Pods of its DaemonSets end where the "
                     "old label goes: those of the new KMM, or of kmm-upgrade, take over. Exit 12 if a node was left.\n\n"
                     "With --from-daemonset it is about a module that a DaemonSet has loaded by insmod or modprobe. Each node that MODULE selects is "
                     "asked which build is live and checks the Module's image. Where they are the same, the node is recorded as having it: labels and "
                     "NodeModulesConfig, by a run like that of start, which loads and unloads nothing there. Other nodes are left as they are, and "
                     "named. The DaemonSet stays, unless --remove-daemonset asks for it and every node it has a Pod on has the module from the Module "
                     "by now; its Pods stay even then, as many of them unload the module when they end.",
                     {{"kmm-upgrade migrate --dry-run", "which labels would be renamed"},
                      {"kmm-upgrade migrate drivers/kmm-hello --node node-a", "one Module on one node"},
                      {"kmm-upgrade migrate drivers/kmm-hello --from-daemonset old/hello-loader", "take over what that DaemonSet has loaded"}},
                     {option("dry-run", "", "print what would be done"), node,
                      option("from-daemonset", "NS/NAME", "the DaemonSet that has loaded the module of MODULE"),
                      option("remove-daemonset", "", "with --from-daemonset: delete it afterwards, but not its Pods")}, run_migrate);
    cli::Positional module;
    module.name = "MODULE";
    module.help = "NAMESPACE/NAME, or NAME if it is unique; all if absent";
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
    program.summary = "walks the fleet from one version of a kernel module to the next";
    program.description =
        "Upgrades a kernel module node by node, one step at a time, and records each step before and after it is done. It can "
        "be killed at any moment: resume looks at the cluster and goes on.";
    program.examples = {{"kmm-upgrade start module drivers/kmm-hello --to v2", "start an upgrade"},
                        {"kmm-upgrade show", "how far it is, and what to do next"},
                        {"kmm-upgrade resume", "go on after a pause, a failure or a crash"},
                        {"kmm-upgrade abort --rollback current", "stop, and bring the failed node back"}};
    program.verbs.push_back(start_module());
    program.verbs.push_back(apply());
    program.verbs.push_back(about_run(verb("resume", "go on from any state",
                                 "Goes on after a failure, a pause, a kill or a reboot. Failed nodes are tried again. A step "
                                 "that was cut off is settled by looking at the node first. Resuming an upgrade that has "
                                 "ended changes nothing and exits 0.",
                                 {{"kmm-upgrade resume", "go on"}}, {}, run_resume)));
    program.verbs.push_back(about_record(verb("show", "the record and what to do next",
                                 "Reads the record only: takes no lock, writes nothing, needs no cluster. Times are UTC.\n\n"
                                 "The exit code is 0 in whatever state the upgrade is, also if it was aborted or has left nodes out: state and summary "
                                 "of -o json tell a script how it stands.",
                                 {{"kmm-upgrade show", "the state of the upgrade"},
                                  {"kmm-upgrade show --watch", "keep it on the screen until the upgrade ends"}},
                                 {option("watch", "", "show it until the upgrade ends")}, run_show)));
    program.verbs.push_back(about_record(verb("nodes", "one line per node", "CURRENT is what was last seen running: \"-\" for nothing, \"?\" while "
                                 "a step is under way or the node could not be asked.",
                                 {{"kmm-upgrade nodes -o wide", "uncut messages"}}, {}, run_nodes)));
    program.verbs.push_back(about_run(verb("step", "exactly one step",
                                 "Does the next step of one node and stops. With --node, the next step of that node, if no more "
                                 "than --max-unavailable nodes are then in flight. Exit 0 if the step was done, 11 if it failed.",
                                 {{"kmm-upgrade step", "the next step"}, {"kmm-upgrade step --node node-b", "of node-b"}},
                                 {option("node", "NODE", "the node to step")}, run_step)));
    auto rollback = option("rollback", "WHICH", "nodes to bring back to their previous version");
    rollback.choices = {"none", "current", "all"};
    rollback.default_text = "none";
    program.verbs.push_back(about_run(verb("abort", "stop for good, and say what each node runs",
                                 "With --rollback current the nodes that failed or are in the middle are brought back to the "
                                 "version recorded for them, with --rollback all also those that are done, last touched first. "
                                 "Aborting is recorded and can be resumed like everything else; aborting twice is no error.",
                                 {{"kmm-upgrade abort", "leave every node as it is"},
                                  {"kmm-upgrade abort --rollback current", "bring failed nodes back"}},
                                 {rollback}, run_abort)));
    auto skip = verb("skip", "give a failed node up",
                     "The node stays as it is, the rest of the run goes on with resume. The exit code of the run is then 12.",
                     {{"kmm-upgrade skip node-c --reason \"broken card\"", "leave node-c out"}},
                     {required(option("reason", "TEXT", "why; it is kept in the history"))}, run_skip);
    skip.positionals = {node_argument("a node that failed")};
    program.verbs.push_back(about_run(std::move(skip)));
    auto retry = verb("retry", "try a failed node again, then go on",
                      "Checks the node anew, so that a repaired image or Module is seen, and does what is left to do on it.",
                      {{"kmm-upgrade retry node-c", "try node-c again"}}, {}, run_retry);
    retry.positionals = {node_argument("a node that failed")};
    program.verbs.push_back(about_run(std::move(retry)));
    program.verbs.push_back(about_record(verb("delete", "remove an ended record", "A complete or aborted run leaves its place to the next one; it "
                                 "stays in the history.",
                                 {{"kmm-upgrade delete", "make room for the next upgrade"}}, {}, run_delete)));
    program.verbs.push_back(doctor_verb());
    program.verbs.push_back(adopt_verb());
    program.verbs.push_back(migrate_verb());
    auto history = verb("history", "what happened, when, how long", "Lists the runs in the record, newest first; with RUN, every "
                        "event of that run.",
                        {{"kmm-upgrade history", "all runs"}, {"kmm-upgrade history current", "each event of the present one"}}, {},
                        run_history);
    cli::Positional run;
    run.name = "RUN";
    run.help = "name of a run in the list";
    run.required = false;
    history.positionals = {run};
    program.verbs.push_back(about_record(std::move(history)));
    auto report = verb("report", "a run as a page to keep or to mail",
                       "Writes one HTML page: what was asked for, how far it came, each node with its versions and how long each step took, and every "
                       "event. The page stands alone and has no script. Takes no lock, needs no cluster.",
                       {{"kmm-upgrade report --html upgrade.html", "the run in the record, else the last one of the history"},
                        {"kmm-upgrade report 00001-kmm-hello-v1 --html -", "one of the history, on standard output"}},
                       {required(option("html", "FILE", "the page to write; - for standard output"))}, run_report);
    report.positionals = {run};
    program.verbs.push_back(about_record(std::move(report)));
    for (auto& each : kubernetes_verbs()) program.verbs.push_back(std::move(each));
    auto explain = verb("explain", "what an error or finding means, and what to do",
                        "Of this command; those of Modules, nodes and clusters, which kmm-plan says as well, are explained and not listed. Without CODE: all of them.",
                        {{"kmm-upgrade explain identity-mismatch", "one code"}, {"kmm-upgrade explain", "all codes"}}, {}, {});
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
