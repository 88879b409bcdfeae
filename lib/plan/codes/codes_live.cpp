// SPDX-License-Identifier: Apache-2.0
// What kubeconfigs are found to have, and what API servers answer.
#include <array>

#include "plan/codes/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_live_texts{
    CodeText{"already-exists", "error", "the cluster has an object of that name already", "", ""},
    CodeText{"api-error", "error", "the API server failed, again and again", "It answered 429 or 5xx ten times.",
             "try again later"},
    CodeText{"api-unreachable", "error", "the API server does not answer",
             "Connections were refused, broken off or led nowhere for as long as --api-timeout says.",
             "look whether the server is up, and the address in the kubeconfig right"},
    CodeText{"bad-answer", "error", "the API server said something that is not an answer", "",
             "look whether cluster.server is an API server, and not a proxy's login page"},
    CodeText{"bad-kubeconfig", "error", "a kubeconfig cannot be used",
             "It is read as kubectl reads it; the place is that of the fault.", "correct the file"},
    CodeText{"context-not-found", "error", "the kubeconfig has no such context", "",
             "kubectl config get-contexts lists them"},
    CodeText{"cordon-foreign", "finding", "a node is cordoned, and not by kmm-upgrade", "", "ask who did it"},
    CodeText{"cordon-left", "finding", "a node has the cordon of a kmm-upgrade that is not running",
             "The annotation kmmtools.dev/cordoned-by says which run it was; it may have a record on another host.",
             "resume that run, or uncordon the node"},
    CodeText{"daemonset-twice", "finding", "a Module has DaemonSets from before and after KMM renamed its label",
             "KMM after v2.6.0 leaves alone what earlier ones have made.",
             "delete the older one, or kmm-upgrade doctor --fix"},
    CodeText{"deletion-stuck", "finding", "an object is being deleted, and nobody takes its finalizers away",
             "KMM's operator does it while it runs.",
             "the hint has the command"},
    CodeText{"dry-run-forbidden", "finding", "the API server does not let us ask what would change",
             "diff compares what it has read instead; admission and defaults of the server are not seen.",
             "let an admin grant the rule of the hint"},
    CodeText{"exec-plugin", "error", "the login program of the kubeconfig failed",
             "It is run without a shell and without a terminal, for 60 seconds at most.",
             "run it by hand, it may want a login"},
    CodeText{"expired", "error", "the API server has forgotten the version that was asked for", "", "try again"},
    CodeText{"field-conflict", "error", "another manager owns fields that would change", "",
             "agree with who owns them, or take them over"},
    CodeText{"forbidden", "error", "the API server does not allow it",
             "The hint holds the RBAC objects that grant what is missing.", "let an admin of the cluster apply them"},
    CodeText{"kmm-not-installed", "error", "the cluster does not have the kind Module", "",
             "install KMM, or its CRDs alone, or give Modules with -f"},
    CodeText{"kubeconfig-not-found", "error", "there is no such kubeconfig", "", "correct --kubeconfig or KUBECONFIG"},
    CodeText{"label-left", "finding", "nodes have labels of a Module that is gone",
             "They would count again for a new Module of that name.", "remove the label"},
    CodeText{"lease-left", "finding", "a Lease of kmm-upgrade that nobody renews",
             "Who held it was killed; the next one waits until its time is over.",
             "make sure that the holder is gone, then --break-lock, or kmm-upgrade doctor --fix"},
    CodeText{"left-unloaded", "finding", "a node is labelled for a version that is not loaded there",
             "An upgrade was given up in the middle, or KMM's operator does not load it: no worker Pod is under way.",
             "wait for KMM's operator if it runs; without it kmm-upgrade adopt, then resume or abort"},
    CodeText{"network-timeout", "error", "the time of --timeout was over before the API server had answered", "",
             "give more time, or less to read"},
    CodeText{"no-users", "error", "the users of the module are not known",
             "--evict-users wants a device plugin or a DRA driver in the Module.",
             "name resources with --resource, or use --drain"},
    CodeText{"object-not-found", "error", "the cluster has no such object", "", ""},
    CodeText{"one-context", "error", "the verb takes one cluster", "", "give --context once"},
    CodeText{"redirect-refused", "error", "the API server sends us elsewhere", "A token must not follow a redirect.",
             "name the API server itself as cluster.server"},
    CodeText{"rejected", "error, finding", "the API server refused an object", "The message is the server's.",
             "correct the object"},
    CodeText{"resources-unknown", "error", "which resources a device plugin offers is written in no object", "",
             "name them: --resource example.com/device"},
    CodeText{"run-open", "finding", "an upgrade is recorded that has not ended, and nobody is working on it", "",
             "kmm-upgrade resume, or kmm-upgrade abort"},
    CodeText{"several-sources", "error", "a directory and an API server are both named", "",
             "give one of --cluster and --kubeconfig"},
    CodeText{"unauthorized", "error", "the API server does not accept the token or certificate",
             "A token file was read again, and a login program run again, before.",
             "log in again"},
    CodeText{"worker-pod-left", "finding", "a worker Pod of which nobody waits for the result",
             "Its node is gone, or the kmm-upgrade that made it.", "delete it"},
};

}  // namespace

std::span<const CodeText> live_texts() noexcept { return k_live_texts; }

}  // namespace kmm::plan
