// SPDX-License-Identifier: Apache-2.0
// What the upgrade of a Kubernetes cluster keeps in the record beside the members of the engine, as typed views of its
// trees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade::kubernetes {

inline constexpr std::uint64_t k_keep_backups = 2;

/// What a run is about. A way over several minors is walked by several runs, one after the other.
struct Subject {
    std::string target;         ///< the version that the person asked for
    std::string control_plane;  ///< version that this run brings every control plane to, "" for none
    std::string kubelet;        ///< version that this run brings every kubelet to, "" for none
    std::vector<std::string> rest;  ///< steps that later runs do, for people
    std::string way;  ///< how programs get onto nodes: "packages", "binaries", "command", or "" if they are there
    std::string directory;      ///< with binaries: where they are, "" for the default of the worker
    std::string command;        ///< with command: the program
    std::vector<std::string> worker_options;   ///< further options of `kubernetes control-plane`
    std::string ignored_preflight;  ///< checks of kubeadm on nodes whose failure is a warning, separated by commas
    bool is_without_snapshot = false;          ///< backups of control planes have no snapshot of etcd
    std::vector<std::string> ignored_checks;
    std::string networking;     ///< directory of manifests on the administrator's host, "" for none
    std::string versions_file;  ///< metadata that the way was found with, "" for the usual one
    std::string patch_query;    ///< command that lists patches, "" for none
    std::vector<std::string> applied_patches,
        available_patches;      ///< that `control_plane`, or else `kubelet`, needs; looked at with `patch_query` only
    std::string freeze;         ///< for how long applications are frozen, as "24h"; "" for not at all
    std::vector<std::string> freeze_except;  ///< namespaces, or "user:NAME", that the freeze leaves out
    std::string app_check;      ///< directory of programs that say whether applications support a version, "" for none
    std::string canary_image;   ///< of Pods that try the network after the manifests of networking, "" for none
    std::string hooks;          ///< directory of programs that run before and after states and nodes, "" for none
    std::uint64_t keep_backups = k_keep_backups;  ///< on each node at the end, that of this run included
    friend bool operator==(const Subject&, const Subject&) = default;
};

[[nodiscard]] Subject subject_of(const Header& run);
void set_subject(Header& run, const Subject& subject);

/// A node of the run.
struct Node : NodeRecord {
    bool is_control_plane = false;
    std::string control_plane;       ///< version of its control plane at the last look, "" if it has none
    std::string from_control_plane;  ///< the same before the run
    std::string kept_kubelet;        ///< version of its kubelet where the run upgrades control planes alone, else ""
    std::string backup;              ///< name of the backup on the node, "" before there is one
    std::string etcd;                ///< version of the etcd that the backup is of, "" where there is none, or unknown
    std::string etcd_now;                ///< version of its etcd at the last look, "" where that is not known
    std::string etcd_restore;            ///< how far a restore of etcd's data is on it, "" where none was begun
    std::string cluster_configuration;  ///< of kubeadm-config before the run; only of the first control plane
};
[[nodiscard]] Node read(const NodeRecord& record);
/// read(record).is_control_plane, for less.
[[nodiscard]] bool is_control_plane(const NodeRecord& record);
/// A kubelet may run another version than before the run: an API server must never be older than that.
[[nodiscard]] bool has_changed_kubelet(const Run& run);
/// The command that brings control planes back while a run is not complete, or that there is none, for people. With
/// `etcd_before` and `etcd_now`, where both are known and differ, etcd's data cannot stay; with `has_kubelets`, of
/// has_changed_kubelet, it cannot be restored either.
[[nodiscard]] std::string way_back(const std::string& etcd_before, const std::string& etcd_now,
                                   bool is_without_snapshot, bool has_kubelets);
/// Whether `nodes` can go back and leave etcd's data and the other nodes as they are, as far as the record says: no
/// etcd of theirs has become newer, and no API server of theirs would be of a lower minor than a kubelet of another
/// node.
[[nodiscard]] bool has_way_back(const Run& run, const std::vector<std::string>& nodes);
/// A restore of etcd's data has stopped, or is about to stop, a member, or is done and the run does not go back yet:
/// there is no way but on with it.
[[nodiscard]] bool is_restoring_etcd(const Run& run);
/// The version before the run, for programs and manifests: where nodes ran several, the highest, as control planes are
/// never older than kubelets.
[[nodiscard]] std::string version_before(const Header& run);
/// Inverse of read.
[[nodiscard]] NodeRecord record_of(Node node);

/// Everything there is: the order with networking after the first control plane, and that with networking first.
[[nodiscard]] const Procedure& procedure_kubernetes();
[[nodiscard]] const Procedure& procedure_networking_first();
[[nodiscard]] const Procedures& procedures();

/// Stages and steps, as the table names them, beside those that empty a node.
inline constexpr std::string_view k_stage_networking = "networking";
inline constexpr std::string_view k_step_prepare = "prepare", k_step_control_plane = "control-plane",
                                  k_step_kubelet = "kubelet", k_step_validate = "validate";

/// The control plane that is upgraded first; nullptr if the run has none. Quick where control planes come first in the
/// run.
[[nodiscard]] const NodeRecord* first_control_plane(const Run& run);

}  // namespace kmm::upgrade::kubernetes
