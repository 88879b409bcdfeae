// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/etcd_snapshot.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/facts.hpp"
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
constexpr const char* k_pki = "/etc/kubernetes/pki/";

Error damaged(const std::string& what) {
    return Error(Exit::integrity, "snapshot-damaged", "the snapshot of etcd is not whole: " + what)
        .hint("see etcdctl endpoint health; then run the same command again");
}

std::optional<std::uint64_t> number_of(const value::Node* node) {
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) return node->as_uint();
    const auto text = node->text();
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// The words of the first container.
std::vector<std::string> words_of(const std::string& manifest) {
    Diagnostics faults;
    std::vector<std::string> words;
    for (const auto& document : value::read_any(manifest, "etcd.yaml", faults)) {
        const auto* containers = document.root.find_path({"spec", "containers"});
        if (containers == nullptr || containers->items().empty()) continue;
        for (const char* member : {"command", "args"}) {
            const auto* found = containers->items().front().find(member);
            if (found == nullptr) continue;
            for (const auto& word : found->items()) words.push_back(word.text());
        }
    }
    return words;
}

net::TlsSettings identity(const Place& place) {
    net::TlsSettings tls;
    tls.ca_pem = place.read(std::string(k_pki) + "etcd/ca.crt");
    // What kubeadm itself asks etcd with.
    for (const char* name : {"etcd/healthcheck-client", "apiserver-etcd-client"}) {
        const auto certificate = place.read_if_there(std::string(k_pki) + name + ".crt");
        if (!certificate) continue;
        tls.client_certificate_pem = *certificate;
        tls.client_key_pem = place.read(std::string(k_pki) + name + ".key");
        break;
    }
    return tls;
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
    remaining_ = number_of(result->find("remaining_bytes")).value_or(0);
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
    if (head_.size() < k_magic_at + k_magic.size()) head_ += bytes.substr(0, k_magic_at + k_magic.size() - head_.size());
    tail_ += bytes;
    if (tail_.size() <= k_hash_size) return;
    pages_.add(std::string_view(tail_).substr(0, tail_.size() - k_hash_size));
    tail_.erase(0, tail_.size() - k_hash_size);
}

EtcdSnapshot SnapshotReader::finish() {
    if (!line_.empty()) take_line(std::exchange(line_, {}));
    if (!remaining_ || *remaining_ != 0) throw damaged(fmt::format("{} bytes are missing", remaining_ ? std::to_string(*remaining_) : "all"));
    if (size_ <= k_hash_size || size_ % k_page_unit != k_hash_size) throw damaged(fmt::format("{} bytes are not pages and their hash", size_));
    if (head_.size() < k_magic_at + k_magic.size() || head_.substr(k_magic_at) != k_magic) throw damaged("it does not begin as a database of etcd");
    const auto told = base::to_hex({reinterpret_cast<const std::uint8_t*>(tail_.data()), tail_.size()});
    if (pages_.hex() != told) throw damaged("its hash is not that of its bytes");
    return {{}, all_.hex(), size_, {}};
}

std::string etcd_url(const std::string& manifest) {
    constexpr std::string_view k_option = "--listen-client-urls=";
    std::string first;
    for (const auto& word : words_of(manifest)) {
        if (!word.starts_with(k_option)) continue;
        for (const auto url : base::split(std::string_view(word).substr(k_option.size()), ',')) {
            if (url.find("://127.0.0.1:") != std::string_view::npos || url.find("://localhost:") != std::string_view::npos) return std::string(url);
            if (first.empty()) first = url;
        }
    }
    if (first.empty())
        throw Error(Exit::checks_failed, "etcd-not-found", "the manifest of etcd names no address: expected --listen-client-urls=URL")
            .hint("leave the snapshot out, and take one with etcdctl snapshot save");
    return first;
}

EtcdSnapshot save_etcd_snapshot(const Node& node, net::HttpClient& client, const std::string& manifest, const std::string& path) {
    net::Request request;
    request.method = "POST";
    request.url = etcd_url(manifest) + "/v3/maintenance/snapshot";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = "{}";
    request.timeout = k_patience;
    request.proxy_rule = net::Request::ProxyRule::direct;
    if (request.url.starts_with("https:")) request.tls = identity(node.place);
    else request.tls.insecure = true;

    const std::string here = node.place.here(path);
    const sys::Fd fd(node.ops.create(here, 0600));
    bool is_first = true;
    SnapshotReader reader([&](std::string_view bytes) { node.ops.write(fd.get(), bytes); },
                          [&](std::uint64_t remaining) {
                              if (!std::exchange(is_first, false)) return;
                              const auto space = disk_space(node.place, sys::parent_of(path));
                              if (space.free > remaining + k_spare_bytes) return;
                              throw Error(Exit::io, "no-space", fmt::format("the snapshot of etcd needs {} bytes, {} has {} free", remaining, space.path, space.free))
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
        throw Error(Exit::unavailable, "etcd-unreachable", fmt::format("etcd does not answer at {}: {}", request.url, error.message()))
            .hint("see whether the Pod of etcd is Running; without a snapshot: --no-etcd-snapshot of kmm-upgrade")
            .retryable();
    }
    if (status != 200)
        throw Error(Exit::io, "etcd-refused", fmt::format("etcd answered {} to the request for a snapshot: {}", status, base::escape(refusal)));
    auto snapshot = reader.finish();
    node.ops.sync(fd.get());
    snapshot.file = sys::name_of(path);
    if (file_sha256(node.place, path) != snapshot.sha256) throw damaged("what was read again is not what was written");
    return snapshot;
}

std::string file_sha256(const Place& place, const std::string& path) {
    const sys::Fd fd = place.open(path, O_RDONLY);
    record::Sha256 hash;
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
