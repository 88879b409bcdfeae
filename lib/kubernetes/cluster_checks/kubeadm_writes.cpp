// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/kubeadm_writes.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/address.hpp"
#include "kubernetes/cluster_checks/component_flags.hpp"
#include "kubernetes/finding/configuration.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr const char* k_servers = "etcd-servers";
constexpr const char* k_services = "10.96.0.0/12";
constexpr unsigned k_dns_index = 10;  // of its address in the range of Services
constexpr const char* k_local_etcd = "https://127.0.0.1:2379";

/// Kept data is read by these: a change of one loses it, or what was made by it.
constexpr const char* k_apiserver_flags[] = {k_servers, "encryption-provider-config", "service-cluster-ip-range",
                                             "service-account-issuer"};
constexpr const char* k_manager_flags[] = {"cluster-cidr", "service-cluster-ip-range"};

std::string text_or(const Node& configuration, std::initializer_list<std::string_view> path, std::string other) {
    auto text = configuration.get_string(path);
    return text.empty() ? other : text;
}

const Node* mapping_at(const Node& configuration, std::initializer_list<std::string_view> path) {
    const auto* found = configuration.find_path(path);
    return found == nullptr || !found->is_mapping() ? nullptr : found;
}

void override_by(ComponentFlags& flags, const Node* component) {
    if (component == nullptr) { return; }
    for (auto& [name, text] : extra_flags(*component)) { flags[name] = text; }
}

/// Source: getAPIServerCommand of kubeadm. Without etcd-servers where etcd is the Pod of the node.
ComponentFlags written_for_apiserver(const Node& configuration) {
    ComponentFlags flags{
        {"service-cluster-ip-range", text_or(configuration, {"networking", "serviceSubnet"}, k_services)},
        {"service-account-issuer", "https://kubernetes.default.svc." +
                                       text_or(configuration, {"networking", "dnsDomain"}, "cluster.local")}};
    if (const auto* external = mapping_at(configuration, {"etcd", "external"})) {
        flags[k_servers] = base::join(external->get_texts({"endpoints"}), ",");
    } else if (const auto* local = mapping_at(configuration, {"etcd", "local"})) {
        const auto own = extra_flags(*local);
        if (const auto urls = own.find("advertise-client-urls"); urls != own.end()) { flags[k_servers] = urls->second; }
    }
    override_by(flags, mapping_at(configuration, {"apiServer"}));
    return flags;
}

/// Source: getControllerManagerCommand of kubeadm.
ComponentFlags written_for_manager(const Node& configuration) {
    ComponentFlags flags;
    if (auto pods = configuration.get_string({"networking", "podSubnet"}); !pods.empty()) {
        flags["cluster-cidr"] = std::move(pods);
        flags["service-cluster-ip-range"] = text_or(configuration, {"networking", "serviceSubnet"}, k_services);
    }
    override_by(flags, mapping_at(configuration, {"controllerManager"}));
    return flags;
}

/// The parts of a list with commas, without blanks around them and without a "/" at the end of a URL.
std::vector<std::string> parts_of(std::string_view text) {
    std::vector<std::string> parts;
    for (auto part : base::split(text, ',')) {
        part = base::trim(part);
        if (part.find("://") != std::string_view::npos && part.ends_with('/')) { part.remove_suffix(1); }
        if (!part.empty()) { parts.emplace_back(part); }
    }
    return parts;
}

/// Members of one etcd share its data: one that both name is enough.
bool are_of_one_etcd(const std::vector<std::string>& running, const std::vector<std::string>& written) {
    return std::find_first_of(running.begin(), running.end(), written.begin(), written.end()) != running.end();
}

bool is_loopback(std::string_view url) {
    return url.find("//127.") != std::string_view::npos || url.find("//localhost:") != std::string_view::npos ||
           url.find("//[::1]") != std::string_view::npos;
}

/// Whether kubeadm writes an API server that asks another etcd. `written`: nullptr for the Pod of the node.
bool is_other_etcd(const CheckInput& input, const std::string& node, const std::string& running,
                   const std::string* written) {
    const auto servers = parts_of(running);
    if (written != nullptr) { return !are_of_one_etcd(servers, parts_of(*written)); }
    const bool has_pod = std::any_of(input.seen.etcd.begin(), input.seen.etcd.end(),
                                     [&](const auto& each) { return each.node == node; });
    return !has_pod && std::none_of(servers.begin(), servers.end(), is_loopback);
}

void look_at_component(const CheckInput& input, const Running& running, std::span<const char* const> names,
                       const ComponentFlags& written, std::vector<std::string>& found) {
    for (const auto& container : running.pod->containers) {
        if (container.name != running.component) { continue; }
        const auto flags = flags_of(container.arguments);
        for (const auto* name : names) {
            const auto runs = flags.find(name);
            if (runs == flags.end() || runs->second.empty()) { continue; }
            const auto at = written.find(name);
            const auto* other = at == written.end() ? nullptr : &at->second;
            const bool is_etcd = std::string_view(name) == k_servers;
            const bool differs = is_etcd ? is_other_etcd(input, running.node, runs->second, other)
                                         : other == nullptr || parts_of(*other) != parts_of(runs->second);
            if (!differs) { continue; }
            const auto coming = other != nullptr ? (other->empty() ? "none" : base::escape(*other))
                                                 : std::string(is_etcd ? k_local_etcd : "none");
            found.push_back(fmt::format("{} on {} runs with --{}={}, kubeadm writes {}", running.component,
                                        base::escape(running.node), name, base::escape(runs->second), coming));
        }
    }
}

}  // namespace

Finding kubeadm_writes(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    std::vector<std::string> found;
    if (configuration.root && !input.intent.has_patches) {
        const auto server = written_for_apiserver(*configuration.root);
        const auto manager = written_for_manager(*configuration.root);
        for (const auto& running : input.seen.control_plane) {
            if (running.pod == nullptr) { continue; }
            if (running.component == "kube-apiserver") {
                look_at_component(input, running, k_apiserver_flags, server, found);
            } else if (running.component == "kube-controller-manager") {
                look_at_component(input, running, k_manager_flags, manager, found);
            }
        }
    }
    auto finding = fail_if_any(found, "");
    if (!found.empty()) {
        finding.fix = "kubectl edit configmap -n kube-system kubeadm-config: set what the control plane runs with in "
                      "networking, etcd, or extraArgs of the component";
    }
    return finding;
}

Finding dns_service_written(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    const bool is_left = !skipped_phase(input.intent.skipped_phases, "coredns").empty();
    if (!configuration.root || is_left) { return {Outcome::ok, ""}; }
    const std::string fix = "set networking.serviceSubnet of kubeadm-config to what the API servers run with; or start "
                            "with --skip-phases addon/coredns, which kubeadm knows from v1.32 on";
    const auto subnets = text_or(*configuration.root, {"networking", "serviceSubnet"}, k_services);
    std::optional<Address> written;
    for (const auto part : base::split(subnets, ',')) {
        const auto range = parse_range(part);
        if (!range) {
            return {Outcome::fail,
                    fmt::format("networking.serviceSubnet of kubeadm-config: expected ranges as {}, found '{}'",
                                k_services, base::escape(subnets)),
                    fix};
        }
        if (written) { continue; }
        written = range->at(k_dns_index);
        if (!written) {
            return {Outcome::fail,
                    fmt::format("networking.serviceSubnet of kubeadm-config: {} has no address {} for kube-dns",
                                base::escape(part), k_dns_index),
                    fix};
        }
    }
    for (const auto& service : input.inventory.dns_services) {
        if (service.address.empty() || parse_address(service.address) == written) { continue; }
        return {Outcome::fail,
                fmt::format("Service {} has clusterIP {}; kubeadm writes {}, of serviceSubnet {}, which the API server "
                            "refuses after the first control plane is upgraded",
                            base::escape(service.meta.full_name()), base::escape(service.address), written->text(),
                            base::escape(subnets)),
                fix};
    }
    return {Outcome::ok, ""};
}

}  // namespace kmm::kubernetes
