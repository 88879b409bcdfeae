// SPDX-License-Identifier: Apache-2.0
// The way back of etcd: all members restore one snapshot, while no API server runs. Needs nothing but the record and
// the control planes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"

namespace kmm::drive {

/// What a control plane says of its member before it is restored.
struct EtcdMemberSight {
    std::string node, backup, created, sha256, etcd, member, peer_url;
    std::string running;  ///< version of etcd now, "none" where it is stopped
    std::string members;  ///< names of all that it knows, separated by commas; "" if it does not answer
    std::string phase;    ///< of the restore on this node
    std::uint64_t size = 0;
    std::optional<std::uint64_t> revision, running_revision;
};

struct EtcdRestorePlan {
    std::string id, source, created, sha256, initial_cluster;
    std::uint64_t size = 0;
    std::optional<std::uint64_t> revision;  ///< that the snapshot has at least
    std::optional<std::uint64_t> newest;    ///< of what runs
    std::vector<EtcdMemberSight> members;   ///< in the order of the run

    /// A restore that has stopped a member goes on: there is no other way.
    [[nodiscard]] bool is_under_way() const;
    /// Whether a member runs another etcd than its backup is of.
    [[nodiscard]] bool is_needed() const;
    /// The words that a person must give.
    [[nodiscard]] std::string confirmation() const;
    /// What is lost, for people.
    [[nodiscard]] std::string loss() const;
};

class EtcdRestorer {
public:
    EtcdRestorer(cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted);
    /// Asks every control plane; changes nothing. The snapshot is the newest of their backups. Errors: those of
    /// restore-etcd look; unavailable "node-unreachable"; checks_failed "kubelet-newer", "backup-not-found",
    /// "etcd-differs", "etcd-member-unknown".
    [[nodiscard]] EtcdRestorePlan look(const Deadline& deadline);
    /// Restores, or goes on with it: each step on all members before the next. Until all have prepared nothing is
    /// stopped. On return etcd has its quorum of restored members and API servers have been started. Errors: those of
    /// the steps; unhealthy "etcd-members-differ"; integrity "snapshot-cut".
    void carry_out(const EtcdRestorePlan& plan, const std::function<Deadline()>& deadline);

private:
    [[nodiscard]] EtcdMemberSight look_at(const std::string& node, const std::string& backup, const std::string& id,
                                          const Deadline& deadline);
    /// The version of a kubelet that the record calls changed, as its node says now; "" if nobody knows it. What is
    /// news goes on record.
    [[nodiscard]] std::string kubelet_now(const upgrade::NodeRecord& node, const Deadline& deadline);
    void bring_snapshot(const EtcdRestorePlan& plan, const EtcdMemberSight& to,
                        const std::function<Deadline()>& deadline);
    void record(const std::string& node, const std::string& phase, const std::string& text);

    Recorder& recorder_;
    NodeAgent agent_;
};

}  // namespace kmm::drive
