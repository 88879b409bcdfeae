// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/verbs.hpp"

#include <utility>

#include "base/text.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "report/formats.hpp"

namespace kmm::tool_upgrade {
namespace {

/// KMM's operator upgrades no Kubernetes.
cli::Verb without_operator(cli::Verb made, const char* help) {
    made = reworded(std::move(made), "lease-namespace", "namespace of the Lease (default: kube-system)");
    made = reworded(std::move(made), "worker-namespace", "namespace of worker Pods (default: kube-system)");
    return reworded(std::move(made), "via", help, {"ssh", "self", "local"});
}

/// A verb about the Kubernetes of a cluster, which is read and never changed: --filename in place of the cluster is as
/// good. `reaches`: --via asks nodes, too.
cli::Verb about_kubernetes(cli::Verb made, bool reaches) {
    auto useless = runner_options();
    for (auto& each : cli::cluster_options())
        if (each.name == "namespace") useless.push_back(std::move(each));
    if (!reaches)
        return without_selector(without_use(std::move(made), useless, {"api-timeout"}),
                                "versions and checks are those of all nodes");
    const char* help = made.name == "versions"
                           ? "with --scan: ask nodes by ssh, by worker Pods (self), or this host"
                           : "ask nodes, too: by ssh, by worker Pods (self), or this host alone";
    made = without_use(std::move(made), useless,
                       {"api-timeout", "via", "ssh-config", "worker", "worker-image", "worker-namespace"});
    return without_operator(without_selector(std::move(made), "versions and checks are those of all nodes"), help);
}

/// A version of Kubernetes as an argument.
cli::Positional version_argument(bool is_required) {
    cli::Positional version;
    version.name = "VERSION";
    version.help = "MAJOR.MINOR.PATCH, with or without v";
    version.required = is_required;
    return version;
}

cli::Option ignore_option() {
    return cli::repeatable(cli::option("ignore-checks", "ID,...", "checks whose failure is a warning"));
}

cli::Option report_option() {
    return cli::repeatable(
        cli::option("report", "FORMAT=FILE,...", "write reports: " + base::join(report::format_names(), ", ")));
}

cli::Option kubeadm_errors_option() {
    return option("ignore-preflight-errors", "NAMES", "checks of kubeadm on the nodes whose failure is a warning");
}

cli::Verb versions_verb() {
    auto versions =
        verb("versions", "Kubernetes versions and their states",
             "Lists the known versions of Kubernetes with their state, which is computed from what runs: a "
             "control-plane node runs the lowest version of its API server, controller manager and scheduler, every "
             "node that of its kubelet. active: the only version that runs. partial: one of several that run. "
             "available: higher than the active one. unavailable: any other; while several run, every version that "
             "does not. TARGET is the active one; while an upgrade on record is under way, the one that it leads to. "
             "Nodes that run what the record does not say of them are noted.\n\n"
             "With VERSION: its metadata, the path that leads there, and what it brings and removes.\n\n"
             "With --scan every node is asked by kmm-worker, over ssh or in worker Pods, which versions lie in its "
             "directory of binaries and which its package source offers as of its last update. A version of which "
             "every node has kubeadm and kubelet by one of the two ways is proposed: -o yaml prints metadata for "
             "--versions. Exit 69 if a node does not answer; then no version is proposed.\n\n"
             "Dumps for -f are what kubectl get nodes,pods,configmaps -A -o json prints. Exit 66 if the control "
             "plane or a kubelet was not found, 65 if a version cannot be read: then nothing is said of the states.",
             {{"kmm-upgrade versions", "of the current cluster"},
              {"kmm-upgrade versions -f dump.json --stx", "of a dump, in a frame"},
              {"kmm-upgrade versions --scan -o yaml > kubernetes-versions.yaml", "what the nodes hold"},
              {"kmm-upgrade versions v1.35.4", "one version, and the path to it"}},
             kubernetes_options() +
                 std::vector<cli::Option>{
                     option("stx", "", "draw the frame of StarlingX's system command"),
                     option("scan", "", "ask nodes which versions they hold, and propose metadata"),
                     option("from", "DIR", "with --scan: directory of binaries (default: /usr/local/kubernetes)")},
             run_versions);
    versions.positionals = {version_argument(false)};
    return about_kubernetes(std::move(versions), true);
}

cli::Verb require_verb() {
    cli::Positional requirement;
    requirement.name = "REQUIREMENT";
    requirement.help = "as 'apiserver >= v1.16.4', joined with and";
    requirement.repeatable = true;
    auto require =
        verb("require", "test versions that run, for scripts",
             "Exit 0 if every instance of each named component satisfies the condition, 10 if one does not, cannot "
             "be read, or none is found; offenders are named. Components: apiserver, controller-manager, scheduler, "
             "control-plane (all three), kubelet, kube-proxy, etcd. Operators: >= > <= < == !=.",
             {{"kmm-upgrade require 'apiserver >= v1.16.4'", "before a patch is applied"},
              {"kmm-upgrade require 'control-plane == v1.35.4 and kubelet >= v1.34.0'", "several conditions"}},
             kubernetes_options(), run_require);
    require.positionals = {requirement};
    return about_kubernetes(std::move(require), false);
}

cli::Verb health_verb() {
    auto health =
        verb("health", "check the health of a Kubernetes cluster",
             "Runs the checks of health on the objects of the API server, or of a dump, and prints each as OK, WARN, "
             "FAIL or SKIP. What cannot be observed is skipped, with the reason, and never called OK. With --via ssh "
             "or self every node is asked, too. Changes nothing. Exit 17 if a check fails.",
             {{"kmm-upgrade health", "the current cluster"},
              {"kmm-upgrade health -f dump.json -o json", "a dump, for a script"}},
             kubernetes_options() + std::vector<cli::Option>{ignore_option(), report_option()}, run_health);
    return about_kubernetes(std::move(health), true);
}

cli::Verb check_verb() {
    const auto from = option("from", "DIR", "with --switch binaries: their directory on the nodes");
    auto check = verb(
        "check kubernetes", "run all checks before a Kubernetes upgrade",
        "Runs every check before an upgrade to VERSION and prints all results at once. With --via ssh or self every "
        "node is asked by kmm-worker, too; without it, what needs a command on a node is skipped with the reason. "
        "Changes nothing. Exit 10 if a check fails.",
        {{"kmm-upgrade check kubernetes v1.35.4", "the current cluster"},
         {"kmm-upgrade check kubernetes v1.35.4 --via ssh --switch packages", "ask every node, too"},
         {"kmm-upgrade check kubernetes v1.35.4 --ignore-checks drain-local-data", "accept one failure"}},
        kubernetes_options() + prerequisite_options() + std::vector<cli::Option>{ignore_option(), report_option()} +
            switch_options("with --via: check that programs can get onto nodes this way") +
            std::vector<cli::Option>{from, kubeadm_errors_option(), leave_out_option()},
        run_check_kubernetes);
    check.positionals = {version_argument(true)};
    return about_kubernetes(std::move(check), true);
}

}  // namespace

std::vector<cli::Verb> kubernetes_reading_verbs() {
    return {versions_verb(), require_verb(), health_verb(), check_verb()};
}

std::vector<cli::Verb> guarding_verbs() {
    cli::Positional command;
    command.name = "COMMAND";
    command.help = "the command and its arguments, after --";
    command.is_command = true;
    command.repeatable = true;
    const std::initializer_list<std::string_view> used{"api-timeout", "break-lock"};
    auto useless = runner_options() + std::vector<cli::Option>{trust_option()};
    for (auto& each : cli::cluster_options())
        if (each.name == "namespace") useless.push_back(std::move(each));
    auto guard =
        verb("guard", "run a command only while no upgrade is under way",
             "Runs COMMAND if no Kubernetes upgrade of the cluster is under way, on whichever host, and no upgrade "
             "of any kind is recorded in --state-dir. While it runs, none can start: guard holds the Lease of "
             "Kubernetes upgrades and the lock of the record. The exit code is that of COMMAND, 128 plus the signal "
             "that ended it, or 75 if an upgrade is under way; who runs it and where is printed.",
             {{"kmm-upgrade guard -- helm upgrade web ./chart", "not during an upgrade"}}, {}, run_guard);
    guard.positionals = {command};
    auto unfreeze = verb("unfreeze", "allow changes of applications during a Kubernetes upgrade",
                         "Removes the freeze that start kubernetes has set in the cluster. The upgrade goes on "
                         "without it, and resume does not set it again. Without an upgrade in the local record, what "
                         "is left of one that is lost is removed, too. The exit code is also 0 if nothing is frozen.",
                         {{"kmm-upgrade unfreeze", "the cluster of the record, or the current one"}}, {}, run_unfreeze);
    return {without_selector(without_use(std::move(guard), useless, used), "no nodes are chosen"),
            without_selector(without_use(std::move(unfreeze), useless, {"api-timeout"}), "no nodes are chosen")};
}

cli::Verb start_kubernetes_verb() {
    auto unavailable = cli::with_default(
        option("max-unavailable", "N|P%",
               "maximum number of nodes that may be unavailable at a time, control planes one at a time"),
        "1");
    auto timeout = cli::with_default(option("node-timeout", "DURATION", "time limit for one step on one node"), "30m");
    auto skipped = option("skip-phases", "NAMES", "phases of kubeadm to leave out, as addon/kube-proxy");
    auto made = verb(
        "start kubernetes", "upgrade the Kubernetes of a kubeadm cluster",
        "Runs every check first, on the objects of the cluster and on each node by kmm-worker; if one fails, nothing "
        "is changed and the exit code is 10. Then every node makes a backup, control planes with a snapshot of etcd, "
        "and control planes pull images; the first control plane is upgraded by kubeadm upgrade apply, the others "
        "one at a time by kubeadm upgrade node; then each node in turn, control planes first, is cordoned, drained, "
        "gets the kubelet of the version, and is uncordoned.\n\n"
        "A step counts as done when the node and the API server both say so: versions, Ready, and a Lease that was "
        "renewed after the restart. kubeadm's own success is not believed. Steps run on the nodes as detached jobs: "
        "a lost connection or a killed kmm-upgrade ends none of them, and resume goes on with it.\n\n"
        "A way over several minors is walked by one run for each minor. Nodes are reached by ssh and need "
        "kmm-worker, as root; or, with --via self, by Pods of its image, in the node's own namespaces where they "
        "change something.",
        {{"kmm-upgrade start kubernetes v1.35.4 --switch packages", "with the packages of the nodes' repository"},
         {"kmm-upgrade start kubernetes v1.35.4 --switch packages --via self --worker-image "
          "REGISTRY/kmm-worker@sha256:...",
          "without ssh"},
         {"kmm-upgrade start kubernetes v1.35.4 --switch binaries --dry-run", "print every step, change nothing"},
         {"kmm-upgrade start kubernetes v1.35.4 --switch binaries --until upgraded-first-master",
          "stop after the first control plane"}},
        switch_options("how kubeadm and kubelet of the version get onto each node") +
            std::vector<cli::Option>{
                option("from", "DIR",
                       "with --switch binaries: their directory on the nodes (default: /usr/local/kubernetes)"),
                option("command", "PROGRAM",
                       "with --switch command: program on the nodes that installs COMPONENT of VERSION"),
                ignore_option(),
                option("networking", "DIR", "apply the manifests of DIR/VERSION after the first control plane"),
                option("networking-first", "", "with --networking: apply them before the first control plane"),
                option("canary-image", "IMAGE",
                       "with --networking: try Pods and DNS with this image (sh, nc, nslookup, grep)"),
                kubeadm_errors_option(),
                skipped,
                option("patches", "DIR", "directory of kubeadm's patches on the nodes"),
                option("no-etcd-snapshot", "", "back up control planes without the data of etcd"),
                cli::with_default(option("keep-backups", "N", "backups of upgrades kept on each node at the end"), "2"),
                option("no-drain", "", "switch kubelets without emptying nodes"),
                option("force", "", "also evict Pods without a controller"),
                option("delete-emptydir-data", "", "also evict Pods with an emptyDir"),
                option("grace-period", "SECONDS",
                       "grace period of evicted Pods; -1: their own, 0 (with --force): at once"),
                leave_out_option(),
                unavailable,
                timeout,
                option("soak", "DURATION", "watch each node for this time before it counts as done"),
                option("between", "HH:MM-HH:MM", "begin nodes only in this time of day"),
                option("tz", "ZONE", "with --between: its time zone (default: the host's)"),
                option("check", "COMMAND",
                       "run COMMAND for each upgraded node (JSON on stdin); non-zero fails the node"),
                option("on-event", "COMMAND", "run COMMAND for each event (a JSON line on stdin)"),
                option("until", "STATE", "stop in this state, exit 11"),
                option("manual", "", "record the upgrade and stop; continue with step"),
                option("or-resume", "", "resume this upgrade if it is already recorded"),
                option("dry-run", "", "print every step, change nothing"),
                option("hook-dir", "DIR", "run the programs in DIR before and after states and nodes")} +
            freeze_options() + prerequisite_options() + kubernetes_options(),
        run_start_kubernetes);
    made.positionals = {version_argument(true)};
    made = without_use(std::move(made), runner_options(),
                       {"via", "ssh-config", "worker", "worker-image", "worker-namespace", "lease-namespace",
                        "api-timeout", "break-lock"});
    made = without_selector(std::move(made), "all nodes of a cluster are upgraded");
    return without_operator(std::move(made), "how nodes are reached; ssh if not given, self makes worker Pods");
}

}  // namespace kmm::tool_upgrade
