// SPDX-License-Identifier: Apache-2.0
// A snapshot of the data of this node's etcd, through the HTTP gateway of etcd itself. The file is what `etcdctl
// snapshot save` writes: the pages of the database, then the SHA-256 of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "digest/digest.hpp"
#include "kubeadm/node/node.hpp"
#include "net/http.hpp"

namespace kmm::kubeadm {

struct EtcdSnapshot {
    std::string file;    ///< name in the directory of the backup
    std::string sha256;  ///< of the whole file
    std::uint64_t size = 0;
    std::string etcd;    ///< tag of the image whose data this is
    std::uint64_t revision = 0;  ///< of etcd just before it was taken, which it has at least; 0 if that is not known
};

/// Takes the answer of the gateway, a JSON document a line, apart and proves it.
class SnapshotReader {
public:
    /// `write` gets the bytes of the snapshot in order; `expect` what is still to come, each time that etcd tells.
    SnapshotReader(std::function<void(std::string_view)> write, std::function<void(std::uint64_t)> expect)
        : write_(std::move(write)), expect_(std::move(expect)) {}
    /// Errors: integrity "snapshot-damaged" for what is no answer of etcd; io "etcd-refused" with etcd's own words.
    void add(std::string_view piece);
    /// Size and hash of a snapshot that is whole. Errors: integrity "snapshot-damaged" if it ends early, or its hash is
    /// not that of its bytes.
    [[nodiscard]] EtcdSnapshot finish();

private:
    void take_line(std::string_view line);
    void take_bytes(std::string_view bytes);

    std::function<void(std::string_view)> write_;
    std::function<void(std::uint64_t)> expect_;
    std::string line_, tail_, head_;  // tail_: the last bytes, which may be the hash
    digest::Hasher pages_, all_;
    std::uint64_t size_ = 0;
    std::optional<std::uint64_t> remaining_;
};

/// Writes the snapshot to `path` of the node, whose directory is ours. `manifest` is the text of etcd's. Errors: those
/// of SnapshotReader; unavailable "etcd-unreachable"; io "no-space" before it is written; from_errno.
[[nodiscard]] EtcdSnapshot save_etcd_snapshot(const Node& node, net::HttpClient& client, const std::string& manifest,
                                              const std::string& path);

/// SHA-256 of a file of the node, in pieces.
[[nodiscard]] std::string file_sha256(const Place& place, const std::string& path);

}  // namespace kmm::kubeadm
