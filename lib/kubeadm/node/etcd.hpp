// SPDX-License-Identifier: Apache-2.0
// The etcd of this node, by its HTTP gateway and as kubeadm's client.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubeadm/node/node.hpp"
#include "net/http.hpp"
#include "value/node.hpp"

namespace kmm::kubeadm {

struct EtcdMember {
    std::string id, name;  ///< id: decimal; name "": it was added and has never started
    bool is_learner = false;
    std::vector<std::string> client_urls;
};

/// What the member of this node says.
struct EtcdFacts {
    std::string member, leader;      ///< ids, decimal; leader "" while there is none
    std::string cluster;             ///< id, decimal
    std::string version;             ///< "3.6.5"
    std::uint64_t revision = 0;      ///< of its data, 0 if it does not tell
    std::vector<std::string> listen_urls;            ///< for clients, of its manifest
    std::uint64_t size = 0, used = 0, quota = 0;     ///< bytes of its database; quota: at which it takes no more writes
    std::vector<EtcdMember> members;
    std::vector<std::string> alarms;  ///< "NOSPACE of 123", of any member
    std::vector<std::string> errors;  ///< in its own words
};

/// URLs for clients that a manifest declares; empty if it names none.
[[nodiscard]] std::vector<std::string> etcd_urls(const std::string& manifest);
/// The one to ask from this node: on loopback if it listens there, or on all addresses. Errors: checks_failed
/// "etcd-not-found" if the manifest names none.
[[nodiscard]] std::string etcd_url(const std::string& manifest);
/// A request with a JSON body to `path` of the gateway at `url`, with the certificate that kubeadm itself asks with.
[[nodiscard]] net::Request etcd_request(const Place& place, const std::string& url, std::string_view path,
                                        std::string body, std::chrono::milliseconds timeout);
/// A number, which the gateway writes as a string; nullopt for anything else.
[[nodiscard]] std::optional<std::uint64_t> etcd_number(const value::Node* node);

/// `manifest` is the text of etcd's; where it names no address only that is known. Three requests of 2 s at most.
/// Errors: unavailable "etcd-unreachable"; io "etcd-refused".
[[nodiscard]] EtcdFacts read_etcd(const Place& place, net::HttpClient& client, const std::string& manifest);
/// The revision of its data now; nullopt if it does not tell. Errors: checks_failed "etcd-learner" if its member does
/// not vote.
[[nodiscard]] std::optional<std::uint64_t> etcd_revision(const Place& place, net::HttpClient& client,
                                                         const std::string& manifest);
[[nodiscard]] value::Node etcd_document(const EtcdFacts& facts);

}  // namespace kmm::kubeadm
