// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/etcd.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::chrono::seconds k_answer_patience{2};
constexpr std::size_t k_answer_max = 4U << 20U;
/// What etcd takes without --quota-backend-bytes.
constexpr std::uint64_t k_quota = 2ULL << 30U;

net::TlsSettings etcd_identity(const Place& place) {
    net::TlsSettings tls;
    const auto pki = pki_directory(place) + "/";
    tls.ca_pem = place.read(pki + "etcd/ca.crt");
    // What kubeadm itself asks etcd with.
    for (const char* name : {"etcd/healthcheck-client", "apiserver-etcd-client"}) {
        const auto certificate = place.read_if_there(pki + name + ".crt");
        if (!certificate) continue;
        tls.client_certificate_pem = *certificate;
        tls.client_key_pem = place.read(pki + name + ".key");
        break;
    }
    return tls;
}

std::string id_of(const value::Node* node) {
    const auto number = etcd_number(node);
    return number && *number != 0 ? std::to_string(*number) : std::string();
}

std::vector<std::string> urls_in(const std::string& manifest, const std::string& option) {
    std::vector<std::string> urls;
    const auto text = manifest_option(manifest, option);
    if (text.empty()) return urls;
    for (const auto url : base::split(text, ',')) urls.emplace_back(base::trim(url));
    return urls;
}

class Gateway {
public:
    Gateway(const Place& place, net::HttpClient& client, std::string url)
        : place_(place), client_(client), url_(std::move(url)) {}

    value::Node ask(std::string_view path, std::string body) {
        const auto request = etcd_request(place_, url_, path, std::move(body), k_answer_patience);
        std::string text;
        int status = 0;
        try {
            const auto response = client_.send(request, [&](const net::Response&, std::string_view piece) {
                text.append(piece.substr(0, k_answer_max - std::min(text.size(), k_answer_max)));
                return true;
            });
            status = response.status;
        } catch (const Error& error) {
            if (error.code() != "network" && error.code() != "tls" && error.code() != "network-timeout") throw;
            throw Error(Exit::unavailable, "etcd-unreachable",
                        fmt::format("etcd does not answer at {}: {}", request.url, error.message()));
        }
        Diagnostics faults;
        auto documents = value::read_json(text, "etcd", faults);
        if (status != 200 || !faults.empty() || documents.size() != 1 || !documents.front().root.is_mapping())
            throw Error(Exit::io, "etcd-refused",
                        fmt::format("etcd answered {} to {}: {}", status, path,
                                    base::escape(std::string_view(text).substr(0, 400))));
        return std::move(documents.front().root);
    }

private:
    const Place& place_;
    net::HttpClient& client_;
    std::string url_;
};

}  // namespace

std::optional<std::uint64_t> etcd_number(const value::Node* node) {
    if (node == nullptr) return std::nullopt;
    return node->is_string() ? base::parse_number<std::uint64_t>(node->text()) : node->as_uint();
}

std::vector<std::string> etcd_urls(const std::string& manifest) { return urls_in(manifest, "--listen-client-urls"); }

std::string etcd_url(const std::string& manifest) {
    // With them the others answer gRPC only.
    auto urls = urls_in(manifest, "--listen-client-http-urls");
    if (urls.empty()) urls = etcd_urls(manifest);
    for (const auto& url : urls) {
        for (const auto* host : {"://127.0.0.1:", "://localhost:", "://[::1]:"})
            if (base::to_lower(url).find(host) != std::string::npos) return url;
    }
    // No certificate is for the address that stands for all.
    for (const auto& url : urls) {
        for (const auto& [all, loopback] :
             {std::pair("://0.0.0.0:", "://127.0.0.1:"), std::pair("://[::]:", "://[::1]:")})
            if (const auto at = url.find(all); at != std::string::npos)
                return url.substr(0, at) + loopback + url.substr(at + std::string_view(all).size());
    }
    if (!urls.empty()) return urls.front();
    throw Error(Exit::checks_failed, "etcd-not-found",
                "the manifest of etcd names no address: expected --listen-client-urls=URL")
        .hint("leave the snapshot out, and take one with etcdctl snapshot save");
}

net::Request etcd_request(const Place& place, const std::string& url, std::string_view path, std::string body,
                          std::chrono::milliseconds timeout) {
    net::Request request;
    request.method = "POST";
    request.url = url + std::string(path);
    request.headers = {{"Content-Type", "application/json"}};
    request.body = std::move(body);
    request.timeout = timeout;
    request.proxy_rule = net::Request::ProxyRule::direct;
    if (request.url.starts_with("https:")) request.tls = etcd_identity(place);
    else request.tls.insecure = true;
    return request;
}

namespace {

/// What it says of itself from 3.6 on, else what it was started with: a flag wins over its variable.
std::uint64_t quota_of(const std::string& manifest, const value::Node& status) {
    auto given = manifest_option(manifest, "--quota-backend-bytes");
    if (given.empty()) given = manifest_variable(manifest, "ETCD_QUOTA_BACKEND_BYTES");
    const auto told = etcd_number(status.find("dbSizeQuota")).value_or(0);
    const auto quota = told != 0 ? told : base::parse_number<std::uint64_t>(given).value_or(0);
    return quota == 0 ? k_quota : quota;
}

}  // namespace

EtcdFacts read_etcd(const Place& place, net::HttpClient& client, const std::string& manifest) {
    EtcdFacts facts;
    facts.listen_urls = etcd_urls(manifest);
    if (facts.listen_urls.empty()) return facts;
    Gateway gateway(place, client, etcd_url(manifest));
    const auto status = gateway.ask("/v3/maintenance/status", "{}");
    facts.quota = quota_of(manifest, status);
    facts.member = id_of(status.find_path({"header", "member_id"}));
    facts.leader = id_of(status.find("leader"));
    facts.cluster = id_of(status.find_path({"header", "cluster_id"}));
    facts.version = status.get_string({"version"});
    facts.revision = etcd_number(status.find_path({"header", "revision"})).value_or(0);
    facts.size = etcd_number(status.find("dbSize")).value_or(0);
    facts.used = etcd_number(status.find("dbSizeInUse")).value_or(0);
    facts.errors = status.get_texts({"errors"});
    // Not by way of the leader: members are told also while there is none.
    const auto list = gateway.ask("/v3/cluster/member/list", R"({"linearizable":false})");
    if (const auto* members = list.find("members")) {
        for (const auto& member : members->items()) {
            const auto* learner = member.find("isLearner");
            facts.members.push_back({id_of(member.find("ID")), member.get_string({"name"}),
                                     learner != nullptr && learner->as_bool().value_or(false),
                                     member.get_texts({"clientURLs"})});
        }
    }
    const auto alarms = gateway.ask("/v3/maintenance/alarm", R"({"action":"GET"})");
    if (const auto* found = alarms.find("alarms")) {
        for (const auto& alarm : found->items())
            facts.alarms.push_back(fmt::format("{} of {}", alarm.get_string({"alarm"}), id_of(alarm.find("memberID"))));
    }
    return facts;
}

std::optional<std::uint64_t> etcd_revision(const Place& place, net::HttpClient& client, const std::string& manifest) {
    value::Node status;
    try {
        status = Gateway(place, client, etcd_url(manifest)).ask("/v3/maintenance/status", "{}");
    } catch (const Error&) {
        return std::nullopt;
    }
    if (const auto* learner = status.find("isLearner"); learner != nullptr && learner->as_bool() == true) {
        const auto member = etcd_number(status.find_path({"header", "member_id"}));
        throw Error(Exit::checks_failed, "etcd-learner",
                    "the member of etcd on this node is a learner, which may lack what was written")
            .hint(fmt::format("etcdctl member promote {}, then kmm-upgrade retry NODE; or --no-etcd-snapshot",
                              member ? fmt::format("{:x}", *member) : "ID"));  // etcdctl reads it in hexadecimal
    }
    return etcd_number(status.find_path({"header", "revision"}));
}

value::Node etcd_document(const EtcdFacts& facts) {
    value::Node made =
        value::Node::mapping({{"memberID", facts.member.empty() ? value::Node() : value::Node(facts.member)},
                              {"leaderID", facts.leader.empty() ? value::Node() : value::Node(facts.leader)},
                              {"version", facts.version}});
    made.set("listenClientURLs", value::Node::strings(facts.listen_urls));
    made.set("sizeBytes", facts.size);
    made.set("usedBytes", facts.used);
    made.set("quotaBytes", facts.quota);
    value::Node members = value::Node::sequence();
    for (const auto& member : facts.members) {
        members.push_back(value::Node::mapping({{"id", member.id},
                                                {"name", member.name},
                                                {"learner", member.is_learner},
                                                {"started", !member.name.empty()},
                                                {"clientURLs", value::Node::strings(member.client_urls)}}));
    }
    made.set("members", std::move(members));
    made.set("alarms", value::Node::strings(facts.alarms));
    made.set("errors", value::Node::strings(facts.errors));
    return made;
}

}  // namespace kmm::kubeadm
