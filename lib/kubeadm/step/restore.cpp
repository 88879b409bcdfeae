// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/etcd_restore.hpp"
#include "kubeadm/step/etcd_restore_parts.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

bool is_manifest(const BackupFile& file) {
    return file.path.starts_with(std::string(k_manifest_directory) + "/");
}

/// Data that a newer etcd has written is not for an older one. Without a snapshot only the same etcd can be gone back
/// to.
void require_same_etcd(const Node& node, const std::string& directory, const Backup& backup) {
    const ManifestSet now = read_manifests(node.place);
    const Manifest* etcd = now.find("etcd");
    const auto saved = std::find_if(backup.files.begin(), backup.files.end(),
                                    [&](const BackupFile& file) { return file.path == etcd->path; });
    if (saved == backup.files.end()) return;
    const Manifest then = judge_manifest("etcd", etcd->path, node.place.read(copy_of(directory, etcd->path)));
    std::string tag = etcd->tag;
    if (!etcd->whole) {
        // What ran last is what kubeadm has taken away. A damaged manifest without that does not tell which etcd has
        // written the data.
        const auto taken = newest_kubeadm_backup(node.place, "etcd");
        if (!taken && etcd->present)
            throw Error(Exit::checks_failed, "manifests-damaged",
                        "the manifest of etcd is damaged: the version that wrote its data cannot be determined")
                .hint("kubeadm init phase etcd local writes the manifest again");
        if (!taken) return;
        tag = taken->manifest.tag;
    }
    if (then.whole && then.tag == tag) return;
    throw Error(
        Exit::checks_failed, "etcd-differs",
        fmt::format("this node runs etcd {}, the backup is of etcd {}", tag, then.whole ? then.tag : "without version"))
        .hint(
            "an older etcd cannot read what a newer one has written: restore a snapshot of etcd on every member first");
}

}  // namespace

StepResult restore_backup(const Node& node, const std::string& name) {
    static_cast<void>(backup_directory(name));
    auto slot = node.slot();
    const auto hold = slot.hold("restore of a backup");
    require_no_etcd_restore(node.place);
    return restore_files(node, name);
}

StepResult restore_files(const Node& node, const std::string& name) {
    StepResult result;
    result.step = "restore";
    const std::string directory = backup_directory(name);
    require_no_kubeadm(node.place);
    const Backup backup = read_backup(node.place, name);
    if (const std::string self = node_name(node.place); self != backup.node) {
        throw Error(Exit::checks_failed, "other-node",
                    fmt::format("the backup {} is of node {}, this is {}", name, base::escape(backup.node),
                                base::escape(self)));
    }
    require_same_etcd(node, directory, backup);
    std::vector<BackupFile> files = backup.files;
    // The kubelet acts on a manifest at once: by then the files that it names are there.
    std::stable_partition(files.begin(), files.end(), [](const BackupFile& file) { return !is_manifest(file); });
    std::size_t written = 0;
    bool kubelet_changed = false;
    for (const BackupFile& file : files) {
        const auto now = node.place.read_if_there(file.path);
        const std::string saved = node.place.read(copy_of(directory, file.path));
        if (digest::sha256_hex(saved) != file.sha256)
            throw Error(Exit::integrity, "backup-damaged",
                        fmt::format("the backup {} changed while it was restored: {}", name, file.path));
        if (now && *now == saved) continue;
        sys::make_directories(node.place.here(sys::parent_of(file.path)), 0755);
        place_file(node, file.path, saved, file.owner);
        if (node.place.read(file.path) != saved)
            throw Error(Exit::io, "file-changed", fmt::format("{} is not what was written to it", file.path));
        ++written;
        kubelet_changed = kubelet_changed || file.path.starts_with("/var/lib/kubelet/") ||
                          file.path == "/etc/default/kubelet" || file.path == "/etc/sysconfig/kubelet" ||
                          file.path.find("/kubelet.service.d/") != std::string::npos;
    }
    const ManifestSet manifests = read_manifests(node.place);
    if (manifests.control_plane) require_whole(manifests);
    result.already = written == 0;
    result.facts = {{"name", name},
                    {"files", std::to_string(files.size())},
                    {"written", std::to_string(written)},
                    {"kubeletFilesChanged", kubelet_changed ? "true" : "false"}};
    result.message = written == 0 ? fmt::format("all {} files are those of backup {}", files.size(), name)
                                  : fmt::format("{} of {} restored from backup {}", written,
                                                base::counted(files.size(), "file"), name);
    if (kubelet_changed)
        result.warnings.emplace_back(
            "kubelet-restart-needed: files of the kubelet were restored: systemctl daemon-reload && systemctl "
            "restart kubelet");
    return result;
}

}  // namespace kmm::kubeadm
