// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/step/etcd_snapshot.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/node/facts.hpp"
#include "sys/directory.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::size_t k_hash_size = 32;
constexpr std::size_t k_page_unit = 512;
/// Of the first page of a bbolt database, behind the head of the page.
constexpr std::size_t k_magic_at = 16;
constexpr std::string_view k_magic{"\xED\xDA\x0C\xED", 4};
/// etcd sends 32 KiB a message.
constexpr std::size_t k_line_max = 8U << 20U;
constexpr std::uint64_t k_spare_bytes = 256U << 20U;
constexpr std::chrono::minutes k_patience{60};

Error damaged(const std::string& what) {
    return Error(Exit::integrity, "snapshot-damaged", "the snapshot of etcd is not whole: " + what)
        .hint("see etcdctl endpoint health; then run the same command again");
}

}  // namespace

void SnapshotReader::add(std::string_view piece) {
    while (!piece.empty()) {
        const auto end = piece.find('\n');
        line_ += piece.substr(0, end);
        if (line_.size() > k_line_max) throw damaged("etcd sent a line of more than 8 MiB");
        if (end == std::string_view::npos) return;
        take_line(std::exchange(line_, {}));
        piece.remove_prefix(end + 1);
    }
}

void SnapshotReader::take_line(std::string_view line) {
    if (base::trim(line).empty()) return;
    Diagnostics faults;
    const auto documents = value::read_json(std::string(line), "etcd", faults);
    if (!faults.empty() || documents.size() != 1 || !documents.front().root.is_mapping())
        throw damaged("expected JSON documents of etcd, found something else");
    const auto& root = documents.front().root;
    if (const auto* error = root.find("error")) {
        const auto text = error->is_mapping() ? error->get_string({"message"}) : error->text();
        throw Error(Exit::io, "etcd-refused", fmt::format("etcd refused a snapshot: {}", base::escape(text)));
    }
    const auto* result = root.find("result");
    if (result == nullptr) throw damaged("expected a result of etcd, found none");
    remaining_ = etcd_number(result->find("remaining_bytes")).value_or(0);
    if (expect_) expect_(*remaining_);
    if (const auto* blob = result->find("blob")) {
        const auto bytes = base::from_base64(blob->text());
        if (!bytes) throw damaged("expected base64, found something else");
        take_bytes(*bytes);
    }
}

void SnapshotReader::take_bytes(std::string_view bytes) {
    write_(bytes);
    all_.add(bytes);
    size_ += bytes.size();
    if (head_.size() < k_magic_at + k_magic.size())
        head_ += bytes.substr(0, k_magic_at + k_magic.size() - head_.size());
    tail_ += bytes;
    if (tail_.size() <= k_hash_size) return;
    pages_.add(std::string_view(tail_).substr(0, tail_.size() - k_hash_size));
    tail_.erase(0, tail_.size() - k_hash_size);
}

EtcdSnapshot SnapshotReader::finish() {
    if (!line_.empty()) take_line(std::exchange(line_, {}));
    if (!remaining_ || *remaining_ != 0)
        throw damaged(fmt::format("{} bytes are missing", remaining_ ? std::to_string(*remaining_) : "all"));
    if (size_ <= k_hash_size || size_ % k_page_unit != k_hash_size)
        throw damaged(fmt::format("{} bytes are not pages and their hash", size_));
    if (head_.size() < k_magic_at + k_magic.size() || head_.substr(k_magic_at) != k_magic)
        throw damaged("it does not begin as a database of etcd");
    const auto told = base::to_hex({reinterpret_cast<const std::uint8_t*>(tail_.data()), tail_.size()});
    if (pages_.hex() != told) throw damaged("its hash is not that of its bytes");
    return {{}, all_.hex(), size_, {}};
}

EtcdSnapshot save_etcd_snapshot(const Node& node, net::HttpClient& client, const std::string& manifest,
                                const std::string& path) {
    const auto request = etcd_request(node.place, etcd_url(manifest), "/v3/maintenance/snapshot", "{}", k_patience);

    const std::string here = node.place.here(path);
    const sys::Fd fd(node.ops.create(here, 0600));
    bool is_first = true;
    SnapshotReader reader([&](std::string_view bytes) { node.ops.write(fd.get(), bytes); },
                          [&](std::uint64_t remaining) {
                              if (!std::exchange(is_first, false)) return;
                              const auto space = disk_space(node.place, sys::parent_of(path));
                              if (space.free > remaining + k_spare_bytes) return;
                              throw Error(Exit::io, "no-space",
                                          fmt::format("the snapshot of etcd needs {} bytes, {} has {} free", remaining,
                                                      space.path, space.free))
                                  .hint("remove old backups from " + std::string(k_state_directory) + "/backups");
                          });
    std::string refusal;
    int status = 0;
    try {
        const auto response = client.send(request, [&](const net::Response& answer, std::string_view piece) {
            if (answer.status == 200) reader.add(piece);
            else refusal.append(piece.substr(0, 400));
            return true;
        });
        status = response.status;
    } catch (Error& error) {
        if (error.code() != "network" && error.code() != "tls" && error.code() != "network-timeout") throw;
        throw Error(Exit::unavailable, "etcd-unreachable",
                    fmt::format("etcd does not answer at {}: {}", request.url, error.message()))
            .hint("see whether the Pod of etcd is Running; without a snapshot: --no-etcd-snapshot of kmm-upgrade")
            .retryable();
    }
    if (status != 200)
        throw Error(Exit::io, "etcd-refused",
                    fmt::format("etcd answered {} to the request for a snapshot: {}", status, base::escape(refusal)));
    auto snapshot = reader.finish();
    node.ops.sync(fd.get());
    snapshot.file = sys::name_of(path);
    if (file_sha256(node.place, path) != snapshot.sha256) throw damaged("what was read again is not what was written");
    return snapshot;
}

std::string file_sha256(const Place& place, const std::string& path) {
    const sys::Fd fd = place.open(path, O_RDONLY);
    digest::Hasher hash;
    std::vector<char> piece(1U << 18U);
    for (;;) {
        const auto count = ::read(fd.get(), piece.data(), piece.size());
        if (count < 0) {
            const int saved = errno;
            if (saved == EINTR) continue;
            throw from_errno(saved, "cannot read " + path);
        }
        if (count == 0) return hash.hex();
        hash.add({piece.data(), static_cast<std::size_t>(count)});
    }
}

}  // namespace kmm::kubeadm
