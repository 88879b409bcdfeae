// SPDX-License-Identifier: Apache-2.0
// What the steps of a restore of etcd share.
#pragma once

#include <string>

#include "kubeadm/step/etcd_restore.hpp"

namespace kmm::kubeadm {

inline constexpr const char* k_restore_pod = "kmm-etcd-restore";

/// Where a restore stands on this node.
struct RestoreGround {
    std::string directory;  ///< of this restore
    Backup backup;
    EtcdMemberPlace member;
    std::string snapshot;   ///< that is restored; may be absent yet
    std::string fresh;      ///< where the restored data is before it is used
    std::string aside;      ///< where the old data is kept
    RestorePhase phase = RestorePhase::none;
};
/// Errors: those of read_backup; checks_failed "other-node", "backup-without-etcd", "etcd-not-found".
[[nodiscard]] RestoreGround ground_of(const Node& node, const EtcdRestore& restore);
/// restore_backup by a caller that holds the slot.
[[nodiscard]] StepResult restore_files(const Node& node, const std::string& name);
void set_restore_phase(const Node& node, const std::string& id, RestorePhase phase);

}  // namespace kmm::kubeadm
