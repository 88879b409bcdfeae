// SPDX-License-Identifier: Apache-2.0
#include "plan/codes/codes.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "plan/codes/reasons.hpp"

namespace kmm::plan {

namespace {

/// Meanings of reasons whose phrase alone does not tell the whole story.
constexpr std::array k_reason_texts{
    CodeText{"config-changed", "reason", "",
             "The entry of spec.modules differs from what status.modules says was loaded, and the node runs the same "
             "kernel since. KMM unloads with the old configuration and loads with the new one.",
             ""},
    CodeText{"entry-for-other-kernel", "reason", "",
             "A version label holds the node's entry as it is, and the entry was made for the kernel before a "
             "reboot. KMM would start a worker that cannot succeed.",
             ""},
    CodeText{"image-missing", "reason", "",
             "KMM writes an entry only when the image is known to exist; until then the old entry stays. Version "
             "labels do not wait for it: they take the old version out first. Images are taken to exist unless "
             "--missing names them or a ModuleImagesConfig that was read says otherwise.",
             ""},
    CodeText{"image-not-verified", "reason", "",
             "The Module's ModuleImagesConfig has no state of the image. KMM makes a pull Pod and writes the entry "
             "once that has succeeded.",
             ""},
    CodeText{"kernel-changed", "reason", "",
             "The node was booted into another kernel, so nothing of the old build is live any more. The module is "
             "loaded again, from the image of the new kernel.",
             ""},
    CodeText{"module-deleting", "reason", "",
             "metadata.deletionTimestamp is set: the entry leaves every node and what is loaded is unloaded.", ""},
    CodeText{"module-unknown", "reason", "",
             "KMM keeps what stands in spec.modules and unloads what stands in status.modules alone.", ""},
    CodeText{"no-kernel-mapping", "reason", "",
             "Kernel mappings are tried in list order: a literal must be equal to the kernel version, a regexp must "
             "be found somewhere in it. Without a match KMM removes what the node's entry has of the Module.",
             ""},
    CodeText{"no-module-loader", "reason", "",
             "Such a Module only deploys a device plugin or a DRA driver on the nodes it selects.", ""},
    CodeText{"node-rebooted", "reason", "",
             "The boot id of the node differs from that of status.modules: whatever was loaded is gone.", ""},
    CodeText{"not-loaded", "reason", "", "The node is eligible and has no record of the module.", ""},
    CodeText{"selector-mismatch", "reason", "",
             "Every pair of spec.selector must be among the node's labels. What is loaded there is unloaded.", ""},
    CodeText{"taint-not-tolerated", "reason", "",
             "KMM looks at taints on every pass, not only when it schedules: a cordon is a taint, so it unloads the "
             "module.",
             ""},
    CodeText{"up-to-date", "reason", "", "Configuration, kernel and boot id of spec.modules and status.modules agree.",
             ""},
    CodeText{"version-changed", "reason", "",
             "The label kmm.node.kubernetes.io/version-module names a version that is not loaded yet: KMM takes the "
             "old one off and loads the new one.",
             ""},
    CodeText{"version-held", "reason", "",
             "An ordered upgrade waits for the administrator: the Module has moved on, the node's label "
             "kmm.node.kubernetes.io/version-module has not.",
             ""},
    CodeText{"version-label-differs", "reason", "",
             "With a version in the Module, a node gets the module only if its label "
             "beta.kmm.node.kubernetes.io/version-worker-pod has the same value. KMM moves that label, over several "
             "passes, to the value of kmm.node.kubernetes.io/version-module, which the administrator sets.",
             ""},
    CodeText{"version-label-missing", "reason", "",
             "With a version in the Module, a node gets the module only if it has the label "
             "beta.kmm.node.kubernetes.io/version-worker-pod. KMM adds it where the administrator has set "
             "kmm.node.kubernetes.io/version-module, which is the one to set.",
             ""},
    CodeText{"version-labels-stuck", "reason", "",
             "Five of the thirteen combinations of the three version labels have no way out in KMM's table; changing "
             "version-module does not help there.",
             ""},
    CodeText{"version-relabelled", "reason", "",
             "The worker label was missing or of another version on the way, so the entry leaves the node and comes "
             "back with the same version.",
             ""},
    CodeText{"version-labels-misread", "reason", "",
             "KMM splits the label keys at dots and takes the last two parts as namespace and name.", ""},
    CodeText{"unload-policy", "reason", "",
             "With on-delete a module leaves a node only when its Module is deleted or another version or "
             "configuration replaces it; with never it stays until the node reboots. KMM itself does not read the "
             "annotation.",
             ""},
    CodeText{"worker-running", "reason", "",
             "KMM waits for a worker Pod that it has made and never cancels an unloader, even if the module is "
             "wanted again.",
             ""},
    CodeText{"worker-stale", "reason", "",
             "KMM deletes a failing worker Pod whose template has changed, and a loader of a module that is no "
             "longer configured.",
             ""},
};

/// Failures of the command itself.
constexpr std::array k_error_texts{
    CodeText{"ambiguous-module", "error", "several Modules have that name", "",
             "write NAMESPACE/NAME, or give -n NAMESPACE"},
    CodeText{"bad-baseline", "error", "the file of --baseline is not an earlier result", "",
             "give what the command printed with -o json"},
    CodeText{"bad-cluster-id", "error", "the directory's identity file is damaged", "",
             "restore .kmm-cluster-id from a backup, or remove it if no upgrade is recorded for it"},
    CodeText{"bad-configuration", "error", "a configuration file cannot be used",
             "Keys are long option names; unknown ones are refused.", "correct the file that the message names"},
    CodeText{"bad-kmm-version", "error", "--kmm-version names no KMM version",
             "KMM has ordered upgrades since v2.0.0; up to v2.6.0 its schedule label is version-device-plugin, after "
             "that version-schedule-pod.",
             "give main, v2.6.0 or the like, or auto"},
    CodeText{"bad-label", "error", "--label cannot be read", "", "write NODE=KEY=VALUE, KEY=VALUE, or KEY- to remove"},
    CodeText{"bad-plan", "error", "the file of --plan is not a plan of this Module and one cluster", "",
             "make it with kmm-plan show -o json"},
    CodeText{"bad-taint", "error", "--taint cannot be read", "",
             "write NODE=KEY=VALUE:EFFECT, KEY:EFFECT, or KEY- to remove"},
    CodeText{"bug", "error", "something that cannot happen has happened", "", "report it with the command line"},
    CodeText{"cluster-not-found", "error", "there is no such cluster directory", "",
             "correct --cluster or KMM_CLUSTER"},
    CodeText{"firmware-host-path-missing", "error", "a Module has firmware and nobody said where the hosts look for it",
             "", "give --firmware-host-path"},
    CodeText{"io", "error", "a file could not be read or written", "",
             "look at the cause, usually space or permissions"},
    CodeText{"library-missing", "error", "the library for network requests cannot be loaded",
             "It is loaded with the first request to a server.", "install it: libcurl4 in Debian 12"},
    CodeText{"missing-argument", "error", "an argument is missing", "", "see --help of the verb"},
    CodeText{"module-not-found", "error", "no Module of that name was read", "",
             "correct the name, or read its document"},
    CodeText{"no-nodes", "error", "there is no node to look at",
             "-l matches none of the Nodes that were read, the Module selects none of those that were chosen, or "
             "diff read no Node at all.",
             "correct -l or the input; kmm-plan show lists the nodes, and the reasons"},
    CodeText{"no-source", "error", "nothing says which cluster or documents to read", "",
             "give --cluster DIR or -f FILE"},
    CodeText{"node-not-found", "error", "no Node of that name was read", "", "correct the name, or read its document"},
    CodeText{"not-found", "error", "there is no such thing", "", "see the message for what was looked for"},
    CodeText{"out-of-memory", "error", "the system gave no more memory", "",
             "read fewer documents, or raise the limit"},
    CodeText{"unknown-option", "error", "the verb has no such option", "", "see --help of the verb"},
    CodeText{"unknown-verb", "error", "there is no such verb", "", "see --help"},
    CodeText{"unsupported", "error", "this version cannot do what was asked, or kmm-worker not what a Module asks",
             "",
             "see the message for another way"},
    CodeText{"untrusted-file", "error",
             "run by root, a file or directory that somebody else owns or may write decides what is done",
             "Configuration, kubeconfigs and what they name, credentials, certificates, mirror files, ssh "
             "configuration, programs such as hooks, and what kmm-upgrade applies count for root only if root owns "
             "them, their directories and links, and nobody else may write them, by mode or access control list.",
             "chown root it, chmod go-w and setfacl -b it, or run the command as its owner"},
    CodeText{"warnings", "error", "there are warnings, and --fail-on warning was given", "",
             "correct them, or put them into a baseline"},
    CodeText{"version-mismatch", "error", "the Module has another version than --to or labels of nodes name",
             "An ordered upgrade brings nodes to the version that the Module has. An update of the kernel starts "
             "where nodes have that version already.",
             "change the Module's version first, or name its own; bring the nodes to it before their kernel"},
    CodeText{"usage", "error", "the command line is wrong", "", "see --help of the verb"},
};

void fill(std::string& target, std::string_view text) {
    if (target.empty()) { target = text; }
}

std::vector<Code> build_codes() {
    std::map<std::string, Code, std::less<>> all;
    for (const auto table : {std::span<const CodeText>(k_reason_texts), finding_texts(), image_texts(), live_texts(),
                             render_texts(), chart_texts(), recipe_texts(), std::span<const CodeText>(k_error_texts)}) {
        for (const auto& row : table) {
            Code& code = all[std::string(row.code)];
            code.code = row.code;
            fill(code.kind, row.kind);
            fill(code.verdict, row.verdict);
            fill(code.meaning, row.meaning);
            fill(code.remedy, row.remedy);
        }
    }
    for (const auto& reason : reasons()) {
        Code& code = all[std::string(reason.code)];
        code.code = reason.code;
        if (code.kind == "finding") { code.kind = "reason, finding"; }
        fill(code.kind, "reason");
        fill(code.verdict, reason.text);
        fill(code.remedy, reason.remedy);
    }
    std::vector<Code> result;
    result.reserve(all.size());
    for (auto& [name, code] : all) { result.push_back(std::move(code)); }
    return result;
}

}  // namespace

const std::vector<Code>& codes() {
    static const std::vector<Code> all = build_codes();
    return all;
}

const Code* find_code(std::string_view code) {
    const auto& all = codes();
    const auto found = std::lower_bound(all.begin(), all.end(), code,
                                        [](const Code& row, std::string_view name) { return row.code < name; });
    return found == all.end() || found->code != code ? nullptr : &*found;
}

}  // namespace kmm::plan
