// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/codes.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kubernetes/check_list.hpp"
#include "plan/codes.hpp"

namespace kmm::tool_upgrade {

namespace {

/// Sorted.
constexpr CodeText k_errors[] = {
    {"aborting", "error", "the upgrade is being aborted, and nothing else can be done with it", "", "kmm-upgrade resume goes on with the abort"},
    {"address-refused", "error", "a server leads to an address further inside the network than its own", "It would be asked in the name of this host.", "correct the address, or ask that server by its own name"},
    {"adopt-ambiguous", "error", "what is in the cluster fits more than one upgrade", "", "see the message: name the Module, the run with --run, or the version before with --from"},
    {"backup-not-found", "error", "the record names no backup of a node that was changed", "", "kmm-worker kubernetes restore on the node, with a backup that is there"},
    {"bad-cluster-lock", "error", "the lock of the cluster directory is no regular file", "", "remove it"},
    {"bad-gate", "error", "the annotation wait-for-logs of an object cannot be obeyed", "Without it the state would look ready.", "correct the regular expression, or put it on an object with Pods"},
    {"bad-manifest", "error", "a manifest of the image breaks the format", "", "push the image again"},
    {"bad-object", "error", "an object of a dump has another form than its kind", "Nothing is said of a cluster that is not understood.", "give documents as kubectl get -o json or -o yaml prints them"},
    {"bad-requirement", "error", "a requirement is not COMPONENT OPERATOR VERSION", "", "write it as 'apiserver >= v1.16.4'"},
    {"bad-url", "error", "an address that should be asked is no http or https URL", "", "correct it where the message says it is from"},
    {"bad-version", "error", "a text is not a version MAJOR.MINOR.PATCH", "Of an image the tag is read: a digest or latest has no version.", "give the version, or the image its tag"},
    {"cannot-edit", "error", "a document cannot be changed in place", "It is written in a way, such as an alias or several documents, that a change would reach further than it should.", "write that part out, as the message says"},
    {"check-failed", "error", "the command of --check does not agree with an upgraded node", "", "look at what it printed; kmm-upgrade retry NODE, or abort --rollback current"},
    {"checks-failed", "error", "checks before an upgrade of Kubernetes fail", "Nothing was changed.", "repair what each line names, then the same command again; --ignore-checks ID for those that may be ignored"},
    {"cluster-locked", "error", "another record's run is at work on this cluster", "", "kmm-upgrade show in the state directory that the message names"},
    {"command-not-found", "error", "a command that is to be run is not there", "", "install its package, or add its directory to PATH"},
    {"conflict", "error", "an object was changed by somebody else between reading and writing", "", "the same command again; if it stays, see who else writes to the object"},
    {"daemonset-in-use", "error", "the DaemonSet is still what loads the module somewhere", "It would be missing there without it.", "bring these nodes to the Module first"},
    {"daemonset-not-found", "error", "there is no such DaemonSet", "", "kubectl get daemonsets -A"},
    {"definition-in-use", "error", "the definition of a kind has objects that would be deleted with it", "The recipe did not create them.", "delete them, then kmm-upgrade resume"},
    {"dra-not-served", "error", "the Module has a DRA driver, and the API server does not serve its kinds", "", "DRA needs Kubernetes 1.34; upgrade, or remove the driver from the Module"},
    {"drain-timeout", "error", "Pods of the node have not ended in time", "", "see which Pods and why; then kmm-upgrade retry NODE"},
    {"driver-missing", "error", "a kernel module that the node needs is not live", "", "see the node's kernel log; then kmm-upgrade retry NODE"},
    {"duplicate-object", "error", "dumps contain an object twice", "Which of them holds is not known.", "give one dump of one cluster"},
    {"duplicate-version", "error", "metadata lists a version or minor twice", "", "remove one of them"},
    {"entry-still-there", "error", "somebody writes the node's NodeModulesConfig entry again", "An operator is at work on the same Module.", "stop it, or let it do the work"},
    {"freeze-without-effect", "error", "the API server has the policy of the freeze and does not apply it", "It refuses nothing, so that applications could change during the upgrade.", "see the status of the policy, then kmm-upgrade resume; abort and start again with --no-freeze goes without"},
    {"gate-failed", "error", "an object that a rollout waits for has failed, and will not become ready", "", "see why with kubectl describe and its logs; correct it, then kmm-upgrade resume"},
    {"goal-changed", "error", "the Module asks for something else than when the run was started", "", "kmm-upgrade abort, then apply again"},
    {"history-not-found", "error", "there is no such run in the history", "", "kmm-upgrade history lists them"},
    {"hook-failed", "error", "a program of --hook-dir failed or did not end in time", "What it was to come before was not begun.", "repair what it looks at; kmm-upgrade retry NODE, or resume where no node is named"},
    {"identity-mismatch", "error", "what the kernel runs is not the file that was loaded", "The image changed after it was checked, or another build was quicker.", "see the message; kmm-upgrade retry NODE once the image is settled"},
    {"image-changed", "error", "an image is another one than other nodes of this run got", "", "let it be the former image again, then kmm-upgrade retry NODE; or abort, then start again"},
    {"image-not-found-by-kmm", "error", "KMM has not found an image that the upgrade needs", "It would unload the old version and load nothing.", "push the image, or wait until KMM has built it"},
    {"kernel-not-booted", "error", "a node runs another kernel after its reboot than the update installed", "", "see whether the release is installed and is the default of the boot loader; then kmm-upgrade retry NODE"},
    {"kernel-not-ready", "error", "drivers are not ready for the kernel; nothing was changed", "Nodes would come back without them.", "mend what each line names; kmm-plan preflight --kernel RELEASE prints all of it"},
    {"kind-not-served", "error", "the API server has a kind's definition, and does not serve it", "Definitions are served some seconds after they are made.", "the same command again; else see the conditions of the definition"},
    {"kind-unknown", "error", "an object of a recipe has a kind that the API server does not serve", "The recipe does not bring its definition.", "install what brings the kind, or leave the object out"},
    {"kmm-other-version", "error", "the cluster has KMM's definitions in a version that this program does not know", "", "install a KMM that has the expected version, or remove the old one with all that it manages"},
    {"kubelet-newer", "error", "a kubelet would be newer than a control plane", "", "bring every control plane to that version first"},
    {"label-changed", "error", "somebody has changed a version label while this run was at work on the node", "", "find out who; then kmm-upgrade retry NODE"},
    {"lease-held", "error", "another kmm-upgrade holds the Lease of this Module", "", "wait for it; kmm-upgrade doctor tells of Leases that are left behind, --break-lock frees one"},
    {"lease-lost", "error", "the Lease was not renewed in time, or somebody took it", "Nothing more is changed without it.", "kmm-upgrade resume"},
    {"loader-hung", "error", "a module load or unload is stuck in the kernel", "It is not attempted a second time.", "examine the kernel log of the node, reboot it, then kmm-upgrade retry NODE"},
    {"locked", "error", "another kmm-upgrade is at work on this record", "", "wait for it; kmm-upgrade show works meanwhile"},
    {"module-ambiguous", "error", "Modules of several namespaces have this name", "", "name it as NAMESPACE/NAME, or use -n"},
    {"module-differs", "error", "the live module is neither the old nor the new build", "", "find out on the node what loaded it: kmm-worker status; then kmm-upgrade retry NODE"},
    {"module-gone", "error", "the module is not live any more", "", "look at the node's kernel log and for who unloads it; then kmm-upgrade retry NODE"},
    {"module-moved-on", "error", "the Module says another version than this run upgrades to", "KMM loads what the Module says.", "put the version and its image into the Module again, then kmm-upgrade resume"},
    {"module-renamed", "error", "the Module has loaded a kernel module of another name", "", "delete the Module and apply that first"},
    {"module-shared", "error", "another Module loads the same kernel module on the node", "", "remove the entry of one of them from the NodeModulesConfig of the node"},
    {"module-still-live", "error", "the module was unloaded and is live again", "", "something on the node loads it: look for a udev rule or a unit"},
    {"module-unmanaged", "error", "the module is live, and the cluster says nothing of it", "", "unload it on the node, or let adopt and apply note it"},
    {"modules-lost", "error", "the kind Module is gone, and nodes still have what Modules loaded", "", "bring the definition back (manifests/crd/module.yaml), then the Modules that are to stay"},
    {"namespace-in-use", "error", "a Namespace of the recipe holds Pods or volumes of others", "They would be deleted with it.", "move or delete them, then kmm-upgrade resume"},
    {"networking-needs-server", "error", "--networking applies manifests, and the cluster is a directory", "", "name the server with --context, or leave --networking out"},
    {"networking-not-found", "error", "there are no manifests of networking for that version", "", "write them into DIR/VERSION"},
    {"no-cluster", "error", "nothing says which cluster to upgrade", "", "give --cluster DIR, --context or --kubeconfig"},
    {"no-control-plane", "error", "no Node is labelled as control plane", "", "kubeadm sets the label node-role.kubernetes.io/control-plane; set it again"},
    {"no-mapping", "error", "no kernel mapping of the Module matches a node's kernel", "", "add a mapping, or leave the node out"},
    {"no-nodes", "error", "there is no Node", "", "dump everything: kubectl get nodes,pods,configmaps -A -o json"},
    {"no-path", "error", "no way leads to the version of Kubernetes", "kubeadm upgrades one minor at a time, and goes back within a minor only.", "kmm-upgrade versions VERSION shows the way and what is missing"},
    {"no-run", "error", "no upgrade is recorded there", "", "kmm-upgrade start module MODULE --to VERSION, or name the record with --state-dir"},
    {"no-state-dir", "error", "nothing says where to keep the record", "Other users than root keep it below HOME.", "say it with --state-dir"},
    {"no-version", "error", "the Module has no version, so that there is nothing to upgrade", "", "kmm-upgrade apply goes on without a record; --to records it as it stands"},
    {"node-differs", "error", "the host that answers is not the one that the Node describes", "Kernel or boot id differ: the kubelet does not run, or another host was reached.", "start the kubelet, or correct the name in the ssh configuration or /etc/hosts"},
    {"node-name-differs", "error", "another node was reached than was asked for", "The kubelet there has the certificate of another name.", "correct the name in the ssh configuration or /etc/hosts"},
    {"node-not-back", "error", "a node does not answer after its reboot", "", "look at its console; once it is up: kmm-upgrade retry NODE"},
    {"node-not-cordoned", "error", "the node has no cordon that was left behind", "", "kmm-upgrade doctor lists them; resume, skip and abort lift those of the recorded upgrade"},
    {"node-not-eligible", "error", "the Module does not select the node, or does not tolerate its taints", "", "change the node or the Module, or leave the node out"},
    {"node-not-ready", "error", "a node is not Ready after its upgrade", "", "kubectl describe node NODE; then kmm-upgrade retry NODE"},
    {"node-not-rebooted", "error", "a node was asked to reboot and still runs the same boot", "", "systemctl list-jobs on the node names what holds the shutdown up; then kmm-upgrade retry NODE"},
    {"node-rebooted", "error", "a node rebooted while its drivers were loaded", "", "see its kernel log: a module may have brought it down; then kmm-upgrade retry NODE"},
    {"node-unreachable", "error", "the node could not be asked, or the connection was lost", "What was under way is settled by looking at the node first.", "kmm-upgrade resume once it can be reached"},
    {"nodes-not-ready", "error", "checks found nodes that cannot be upgraded; nothing was changed", "", "see the reason of each; mend it, or leave it out with --node"},
    {"not-a-program", "error", "a directory of programs has none, or other files, too", "", "chmod +x, or move the file out of the directory"},
    {"not-abortable", "error", "the upgrade is complete", "", "kmm-upgrade delete makes room for the next one"},
    {"not-failed", "error", "skip and retry are for a node that failed", "", "kmm-upgrade resume"},
    {"not-seen", "error", "a part of the control plane was not found", "Versions are not computed from a part of a cluster.", "dump everything: kubectl get nodes,pods,configmaps -A -o json; on a live cluster see kubectl get pods -n kube-system"},
    {"not-skippable", "error", "the node cannot be left out of the upgrade", "", "kmm-upgrade retry NODE, or abort"},
    {"not-verified", "error", "a step was carried out, and the API server does not say that it took effect", "", "see what the message names; kmm-upgrade retry NODE once it is so"},
    {"nothing-to-adopt", "error", "nothing in the cluster tells of an upgrade that is under way", "", "kmm-upgrade start module"},
    {"nothing-to-apply", "error", "the recipe renders no object", "", "see kmm-plan render recipe"},
    {"object-shared", "error", "two recipes have the same object in different forms", "", "give both the same values for what they share"},
    {"operator-missing", "error", "no operator of KMM is at work, and --via operator needs one", "", "--via self loads and unloads by worker Pods; --operator present if it is there all the same"},
    {"operator-present", "error", "KMM's operator is at work on this cluster", "Two would load and unload the same module.", "let it do the work with --via operator; --operator absent if it leaves this Module alone"},
    {"operator-timeout", "error", "KMM's operator has not done its part in time", "", "see what is missing in the message; then kmm-upgrade retry NODE"},
    {"order-incomplete", "error", "the file of --order leaves nodes out", "", "name every node, or choose nodes with --node"},
    {"other-cluster", "error", "this is not the cluster that the upgrade was started on", "", "name that cluster, or another --state-dir"},
    {"patch-query-failed", "error", "which patches are applied is not known", "", "the command of --patch-query must print what sw-patch query prints, or its JSON"},
    {"patches-missing", "error", "patches that a step needs are not applied or not uploaded", "", "apply them, then kmm-upgrade retry NODE"},
    {"plan-drifted", "error", "the cluster is no longer as the file of --plan says; nothing was changed", "", "look at it with kmm-plan show, save the new plan with -o json, and start with that"},
    {"plugin-not-ready", "error", "the device plugin or DRA driver did not become ready in time", "", "see its Pods; then kmm-upgrade retry NODE"},
    {"plugin-still-there", "error", "Pods of the previous device plugin or DRA driver have not ended in time", "", "see what holds them; then kmm-upgrade retry NODE"},
    {"pods-not-evictable", "error", "Pods of the node cannot be evicted by these options", "", "see each refusal; add the option it names, or move the Pods"},
    {"policy-too-large", "error", "the policy and its keys are larger than what nodes can be sent", "They go into an annotation of worker Pods.", "leave scopes out that no Module uses"},
    {"previous-unknown", "error", "nobody knows which image the node had before", "The record was rebuilt from the cluster.", "put the old version back into the Module and upgrade to it"},
    {"recipe-needs-server", "error", "recipes are applied to an API server, and the cluster is a directory", "", "name the server with --context or --kubeconfig"},
    {"record-untrusted", "error", "a record has commands to run and was not made by this user on this machine", "Its seal, a keyed hash, is missing or another one: the directory was copied, or made by an earlier version.",
     "read the commands in the message or in kmm-upgrade show; --trust-record if you want them to run"},
    {"release-not-found", "error", "the Secret with a release of the recipe is not in the cluster", "", "name its namespace with --release-namespace; kmm-upgrade start recipe makes a new release"},
    {"release-too-large", "error", "the objects of a recipe are larger than what a Secret holds", "", "split the recipe into several SpecialResources"},
    {"role-differs", "error", "the node and the cluster say different things of its control plane", "", "correct the label node-role.kubernetes.io/control-plane, or repair the node"},
    {"run-active", "error", "the upgrade has not ended", "", "kmm-upgrade resume or abort first"},
    {"run-ended", "error", "the upgrade has ended", "", "the command that the message names: kmm-upgrade delete makes room for the next upgrade"},
    {"run-exists", "error", "an upgrade is recorded that has not ended", "", "kmm-upgrade resume, or abort it"},
    {"secret-not-found", "error", "the pull Secret of the Module is not in the cluster", "", "create it, or remove spec.imageRepoSecret"},
    {"several-budgets", "error", "a Pod is under several PodDisruptionBudgets, and so cannot be evicted", "", "leave one of them"},
    {"several-nodes", "error", "--via local reaches this host only", "", "name the Node that is this host with --node, or reach them all with --via self or ssh"},
    {"stage-not-found", "error", "the upgrade has no stage of that name", "", "the hint names those that it has"},
    {"state-changed", "error", "somebody has changed the record while this run was using it", "Nothing more was written.", "kmm-upgrade show, then resume"},
    {"state-damaged", "error", "the record cannot be trusted", "It is never guessed at.", "keep a copy of the directory, restore it from a backup (backup/ has the last snapshots), or move it away and adopt"},
    {"state-in-cluster", "error", "the record would be kept inside of the cluster directory", "Its files would be read as objects.", "name another --state-dir"},
    {"state-newer", "error", "the record was written by a newer program", "", "use that program"},
    {"step-not-allowed", "error", "no step of that node can be taken now", "", "see which node is in flight"},
    {"step-timeout", "error", "a step on the node is still under way after the time limit", "It is not ended.", "kmm-upgrade resume waits for it; --node-timeout gives it more time"},
    {"timeout", "error", "--timeout was over while something was waited for", "What was done so far is recorded.", "see what the message names; give it more time, then kmm-upgrade resume"},
    {"tls", "error", "the server's certificate or key is not to be trusted, or it does not speak TLS", "", "see the message; --kubeconfig names the authority"},
    {"unknown-hook", "error", "a program of --hook-dir has a name that is of no state and no node", "It would never run.", "rename it as the message says"},
    {"unknown-variable", "error", "a manifest has a variable that is not known", "", "${KUBERNETES_VERSION} and ${FROM_VERSION} are"},
    {"unsafe-state-dir", "error", "others could change the directory of the record", "", "chmod 0700 it, or choose another --state-dir"},
    {"unsafe-state-file", "error", "a file of the record is a link, belongs to somebody else, or may be written by others", "", "look who made it; a record that only you can write is safe"},
    {"unversioned-loaded", "error", "the module is loaded without a version, and KMM does not go on from there to one", "", "delete the Module and create it with its version, as the message says"},
    {"upgrade-under-way", "error", "an upgrade is under way, and guard does not run its command", "", "wait for it; kmm-upgrade unfreeze where its record is lost"},
    {"version-changed", "error", "a node runs another version than the upgrade has brought it", "", "find out who changed it; kmm-upgrade retry NODE"},
    {"version-differs", "error", "the chart has another version than --to names", "", "give that version of the chart with --chart, or another --to"},
    {"version-not-found", "error", "a version is neither in the metadata nor runs", "", "kmm-upgrade versions lists them; --versions FILE names others"},
    {"version-order", "error", "metadata lets a version follow one that it cannot follow", "kubeadm upgrades one minor at a time, and goes back within a minor only.", "correct upgrade_from or downgrade_to"},
    {"version-unknown", "error", "the version of Kubernetes is not in the metadata", "", "kmm-upgrade versions lists those that are; add it with --versions FILE"},
    {"versioned-module", "error", "the Module has a version, so that apply does not decide which node runs it", "", "kmm-upgrade start module"},
    {"worker-failed", "error", "kmm-worker on the node ended without an answer that can be used", "It was killed, sudo asked for a password, or its version is another one.", "see the message and its hint"},
    {"worker-name-taken", "error", "a Pod of somebody else has the name of the worker Pod", "", "delete it if nobody needs it"},
    {"worker-not-found", "error", "kmm-worker cannot be run on the node", "", "install it there, or name it with --worker"},
    {"worker-not-started", "error", "the worker Pod did not start", "", "see the reason in the message; kubectl describe shows its events"},
    {"worker-refused", "error", "the API server did not let the worker Pod be made", "", "see the message: rights, an admission rule or a quota"},
};

/// What doctor finds; kmm-plan explains it as well.
constexpr std::array k_findings{"cordon-foreign", "cordon-left", "daemonset-twice", "deletion-stuck", "label-key-leftover",
                                "label-left",     "lease-left",  "run-open",        "version-labels-stuck", "worker-pod-left"};

}  // namespace

const std::vector<Code>& codes() {
    static const std::vector<Code> all = [] {
        std::vector<Code> made;
        for (const auto& row : k_errors) made.push_back({std::string(row.code), std::string(row.kind), std::string(row.verdict), std::string(row.meaning), std::string(row.remedy)});
        for (const auto& check : kubernetes::check_list()) {
            made.push_back({std::string(check.id), "finding", std::string(check.meaning), check.needs.empty() ? "The check passes if this holds." : fmt::format("It {}, and is skipped without.", check.needs), std::string(check.fix)});
        }
        for (const auto* name : k_findings) {
            const auto* found = plan::find_code(name);
            if (found == nullptr) throw bug(std::string("kmm-plan does not explain ") + name);
            made.push_back(*found);
        }
        std::sort(made.begin(), made.end(), [](const Code& left, const Code& right) { return left.code < right.code; });
        return made;
    }();
    return all;
}

}  // namespace kmm::tool_upgrade
