// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/etcd_restore.hpp"
#include "kubeadm/step/steps.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

constexpr const char* k_backup_prefix = "kubeadm-backup-manifests";

/// An old backup of another upgrade is not what was lost: the components of a node are at most one minor apart.
bool fits(const KubeadmBackup& candidate, const ManifestSet& set) {
    if (candidate.manifest.component == "etcd") return true;
    return std::all_of(set.pods.begin(), set.pods.end(), [&](const Manifest& pod) {
        if (pod.component == "etcd" || !pod.whole) return true;
        const auto apart = kubernetes::minors_behind(*candidate.manifest.version, *pod.version);
        return apart >= -1 && apart <= 1;
    });
}

}  // namespace

std::optional<KubeadmBackup> newest_kubeadm_backup(const Place& place, const std::string& component) {
    std::vector<std::string> names = place.list(k_kubeadm_copies);
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(k_backup_prefix); });
    // Their names end with the time.
    std::reverse(names.begin(), names.end());
    for (const std::string& name : names) {
        const std::string path = fmt::format("{}/{}/{}.yaml", k_kubeadm_copies, name, component);
        const auto text = place.read_if_there(path);
        if (!text) continue;
        KubeadmBackup backup{path, *text, judge_manifest(component, path, *text)};
        if (backup.manifest.whole) return backup;
    }
    return std::nullopt;
}

StepResult repair_manifests(const Node& node) {
    StepResult result;
    result.step = "repair";
    auto slot = node.slot();
    // While kubeadm swaps a manifest, it is missing for a moment.
    const auto hold = slot.hold("repair of manifests");
    require_no_kubeadm(node.place);
    require_no_etcd_restore(node.place);
    const ManifestSet before = read_manifests(node.place);
    require_control_plane(before);
    std::vector<KubeadmBackup> found;
    std::vector<std::string> without;
    for (const Manifest& pod : before.pods) {
        if (!pod.expected || pod.whole) continue;
        auto candidate = newest_kubeadm_backup(node.place, pod.component);
        if (candidate && fits(*candidate, before)) {
            found.push_back(std::move(*candidate));
        } else {
            without.push_back(candidate ? fmt::format("{} ({} is {}, more than a minor away)", pod.component,
                                                      candidate->path, candidate->manifest.version->text())
                                        : pod.component);
        }
    }
    if (!without.empty()) {
        throw Error(Exit::checks_failed, "no-backup",
                    fmt::format("expected a whole manifest in {}/{}-*, found none for {}; nothing was changed",
                                k_kubeadm_copies, k_backup_prefix, base::join(without, ", ")))
            .hint(
                "kmm-worker kubernetes restore, if there is a backup; else kubeadm init phase control-plane (or etcd "
                "local) writes the manifest again");
    }
    std::vector<std::string> repaired;
    for (const KubeadmBackup& candidate : found) {
        const Manifest& pod = *before.find(candidate.manifest.component);
        if (pod.present) {
            const std::string kept = fmt::format("{}/damaged/{}.yaml", k_state_directory, pod.component);
            sys::make_directories(node.place.here(sys::parent_of(kept)), 0700);
            try {
                place_file(node, kept, node.place.read(pod.path), owner_of(node.place, pod.path));
            } catch (const Error& error) {
                result.warnings.push_back(
                    fmt::format("not-kept: the damaged {} could not be kept: {}", pod.path, error.what()));
            }
        }
        place_file(node, pod.path, candidate.text, owner_of(node.place, candidate.path));
        result.facts.emplace_back(pod.component, candidate.manifest.tag);
        repaired.push_back(fmt::format("{} {} from {}", pod.component, candidate.manifest.tag, candidate.path));
    }
    require_whole(read_manifests(node.place));
    result.already = repaired.empty();
    result.message = repaired.empty() ? "the manifests of the control plane are whole"
                                      : fmt::format("put back: {}", base::join(repaired, ", "));
    return result;
}

}  // namespace kmm::kubeadm
