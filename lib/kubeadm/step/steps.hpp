// SPDX-License-Identifier: Apache-2.0
// The steps of a Kubernetes upgrade on a node but those of etcd_restore.hpp: each looks first, acts, and proves what it
// did. Each is idempotent; control plane, images and kubelet are detached jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/node.hpp"
#include "kubeadm/node/placing.hpp"
#include "net/http.hpp"

namespace kmm::kubeadm {

/// What "[ERROR NAME]: text" lines of kubeadm's preflight name, each once.
[[nodiscard]] std::vector<std::string> failed_checks(const std::string& output);

struct ControlPlaneOptions {
    kubernetes::Version target;
    bool first = false;               ///< kubeadm upgrade apply, else kubeadm upgrade node
    std::vector<std::string> extra;   ///< further options of kubeadm
    Switch kubeadm;                   ///< how kubeadm gets there if it is not of `target`
};
/// Errors: not-control-plane, manifests-damaged, stray-manifest, kubeadm-version, preflight-failed (10), kubeadm-failed
/// (1), not-upgraded (17), job-lost (11), job-running, kubeadm-running (75).
[[nodiscard]] StepResult upgrade_control_plane(const Node& node, const ControlPlaneOptions& options);

struct ImageOptions {
    kubernetes::Version target;
    std::string config;      ///< of kubeadm, "" for none
    std::string repository;  ///< "": where the API server's image is from, if this node has one
    Switch kubeadm;          ///< how kubeadm gets there if it is not of `target`
    std::string etcd, dns;   ///< their images where they are not kubeadm's: REPOSITORY:TAG, or one of the two
};
/// Errors: kubeadm-version, images-other (10), images-failed (69), images-missing (17), job-lost, job-running.
[[nodiscard]] StepResult pull_images(const Node& node, const ImageOptions& options);

struct KubeletOptions {
    kubernetes::Version target;
    Switch how;
    std::string ignored_preflight;    ///< checks of kubeadm whose failure is a warning, separated by commas
    std::string skipped_phases;       ///< of kubeadm upgrade node, separated by commas
    /// Directory of kubeadm's patches, "" for none; a worker may lack it: a warning "no-patches".
    std::string patches;
};
/// On a worker `kubeadm upgrade node` runs before the kubelet changes. Errors: preflight-failed, manifests-damaged,
/// kubelet-newer (10), kubelet-failed (1), kubelet-not-switched (17), job-lost, job-running, kubeadm-running, and those
/// of placing_commands.
[[nodiscard]] StepResult switch_kubelet(const Node& node, const KubeletOptions& options);

/// Copies manifests, certificates, kubeconfigs and files of the kubelet below k_state_directory/backups/NAME, each with
/// its digest, and reads them again. With `etcd` a snapshot of the data of etcd is taken through it, where etcd is one
/// of the static Pods. A backup of that name that is there is verified and kept. Errors: integrity "backup-damaged";
/// checks_failed "backup-without-etcd", "etcd-learner"; those of save_etcd_snapshot; io.
[[nodiscard]] StepResult make_backup(const Node& node, const std::string& name, net::HttpClient* etcd = nullptr);
/// Only verifies. Errors: not_found "backup-not-found"; integrity "backup-damaged".
[[nodiscard]] StepResult verify_backup(const Node& node, const std::string& name);
/// Puts the files of a verified backup back, manifests last. Errors: those of verify_backup; checks_failed
/// "etcd-differs"; job-running, kubeadm-running.
[[nodiscard]] StepResult restore_backup(const Node& node, const std::string& name);

/// Removes what earlier upgrades have left: backups that they made, but for `backup`, the newest whole ones up to
/// `keep` in all, and at least one that is whole and one with a whole snapshot of etcd, if there are any; in
/// k_kubeadm_copies what is older than `backup`, but for the newest of each kind and the newest manifest of each
/// component, from which repair_manifests restores. Backups made by hand stay. What cannot be removed is a warning
/// "not-pruned". Errors: not_found "backup-not-found"; job-running; locked "etcd-restore-under-way".
[[nodiscard]] StepResult prune_node(const Node& node, const std::string& backup, std::size_t keep);

/// The newest of kubeadm's own backups that has a whole manifest of the component.
struct KubeadmBackup {
    std::string path, text;
    Manifest manifest;
};
[[nodiscard]] std::optional<KubeadmBackup> newest_kubeadm_backup(const Place& place, const std::string& component);

/// Puts manifests that are missing or damaged back from kubeadm's newest backup that has them. Errors:
/// not-control-plane, no-backup (10), job-running, kubeadm-running.
[[nodiscard]] StepResult repair_manifests(const Node& node);

/// Writes `text` under the node's `path` as a whole or not at all, with this mode and owner. Errors: from_errno.
struct FileOwner {
    unsigned mode = 0600;
    unsigned uid = 0, gid = 0;
};
void place_file(const Node& node, const std::string& path, const std::string& text, const FileOwner& owner);
/// Mode and owner of a file. Errors: from_errno.
[[nodiscard]] FileOwner owner_of(const Place& place, const std::string& path);

}  // namespace kmm::kubeadm
