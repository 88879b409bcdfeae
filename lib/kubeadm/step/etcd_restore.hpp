// SPDX-License-Identifier: Apache-2.0
// The way back of etcd's data on one member: every member restores the same snapshot, under new names of cluster and
// members. What can fail is done while everything runs. Then, each on all members before the next: stop, swap, etcd,
// servers. The old data stays beside the new.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubeadm/node/node.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/steps.hpp"
#include "net/http.hpp"

namespace kmm::kubeadm {

/// How far a restore is on this node, in this order. From `stopping` to `started` the control plane of the node is not
/// whole on purpose, and nobody else may put manifests back.
enum class RestorePhase { none, prepared, stopping, stopped, swapped, started, done };
[[nodiscard]] std::string_view to_string(RestorePhase phase) noexcept;

/// One restore of a whole cluster.
struct EtcdRestore {
    std::string id;               ///< the same on every member: one file name
    std::string backup;           ///< of this node, with its manifests
    std::string sha256;           ///< of the snapshot that all members restore
    std::string initial_cluster;  ///< "cp1=https://10.0.0.1:2380,cp2=..."
};

/// What a manifest of etcd says of its member.
struct EtcdMemberPlace {
    std::string name, peer_url, data, image, tag;
};
/// Errors: checks_failed "etcd-not-found" where one of them is missing.
[[nodiscard]] EtcdMemberPlace member_place(const std::string& manifest);

/// "/var/lib/kmm-node/etcd-restore/ID". Errors: usage "bad-value".
[[nodiscard]] std::string restore_directory(const std::string& id);
[[nodiscard]] RestorePhase restore_phase(const Place& place, const std::string& id);
/// Errors: locked "etcd-restore-under-way" while the data of etcd is exchanged on this node.
void require_no_etcd_restore(const Place& place);

/// Words with which etcd of that tag restores `snapshot` into `data`.
[[nodiscard]] std::vector<std::string> restore_words(const EtcdMemberPlace& member, const EtcdRestore& restore,
                                                     const std::string& snapshot, const std::string& data);
/// The static Pod that runs them once; its container has the name `container`.
[[nodiscard]] std::string restore_pod(const EtcdMemberPlace& member, const std::vector<std::string>& words,
                                      const std::string& snapshot, const std::string& container);

/// Changes nothing: backup, snapshot, member, what runs now, space, phase. Errors: those of verify_backup;
/// backup-without-etcd, other-node, no-space, crictl-missing.
[[nodiscard]] StepResult look_at_restore(const Node& node, net::HttpClient& client, const EtcdRestore& restore);
/// A piece of the snapshot of `backup`, from `offset`, as base64. Errors: those of verify_backup.
[[nodiscard]] StepResult give_snapshot(const Node& node, const std::string& backup, std::uint64_t offset);
/// Takes a piece; the last one, with which `size` is reached, is proven with all. Says at which offset it goes on.
/// Errors: integrity "snapshot-damaged"; usage "bad-value"; those of JobSlot; from_errno.
[[nodiscard]] StepResult take_snapshot(const Node& node, const EtcdRestore& restore, std::uint64_t offset,
                                       std::uint64_t size, std::string_view base64);
/// Restores the snapshot beside the data that is in use, with the etcd of the backup. Errors: checks_failed
/// "snapshot-missing"; integrity "snapshot-damaged"; io "etcd-restore-failed"; timeout "timeout".
[[nodiscard]] StepResult prepare_restore(const Node& node, const EtcdRestore& restore);
/// Takes the manifests of the control plane away and waits until nothing of it runs. Errors: checks_failed
/// "etcd-restore-order"; timeout "timeout".
[[nodiscard]] StepResult stop_for_restore(const Node& node, const EtcdRestore& restore);
/// Puts the restored data in the place of the old, which is kept. Errors: checks_failed "etcd-restore-order" unless
/// nothing runs; io "restored-data-missing".
[[nodiscard]] StepResult swap_restored(const Node& node, const EtcdRestore& restore);
/// Puts the manifest of etcd back and waits for its container. Errors: as swap_restored; timeout "timeout".
[[nodiscard]] StepResult start_restored_etcd(const Node& node, const EtcdRestore& restore);
/// Waits until this member has a leader and all members, started. Errors: checks_failed "etcd-restore-order";
/// unhealthy "etcd-not-healthy" at the deadline, or after five minutes.
[[nodiscard]] StepResult prove_restored_etcd(const Node& node, net::HttpClient& client, const EtcdRestore& restore);
/// Writes the files of the backup, manifests last, and waits for the API server's container. Errors: as
/// start_restored_etcd, and those of restore_backup.
[[nodiscard]] StepResult start_restored_servers(const Node& node, const EtcdRestore& restore);

}  // namespace kmm::kubeadm
