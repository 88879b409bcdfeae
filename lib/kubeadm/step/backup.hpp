// SPDX-License-Identifier: Apache-2.0
// The list of files in a backup.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubeadm/step/etcd_snapshot.hpp"
#include "kubeadm/step/steps.hpp"

namespace kmm::kubeadm {

struct BackupFile {
    std::string path;  ///< on the node
    std::string sha256;
    std::uint64_t size = 0;
    FileOwner owner;
};

struct Backup {
    std::string name, created, node;
    std::vector<BackupFile> files;  ///< sorted by path
    std::optional<EtcdSnapshot> etcd;
};

/// "/var/lib/kmm-node/backups/NAME". Errors: usage "bad-value" for a name that is not one file name.
[[nodiscard]] std::string backup_directory(const std::string& name);
/// Reads the list and every file, and compares. Errors: those of verify_backup.
[[nodiscard]] Backup read_backup(const Place& place, const std::string& name);
/// The node's path of a file's copy.
[[nodiscard]] std::string copy_of(const std::string& directory, const std::string& path);

}  // namespace kmm::kubeadm
