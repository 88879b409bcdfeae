// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/kubeadm_writes.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

#include <fmt/format.h>

#include "base/clean_path.hpp"
#include "base/text.hpp"
#include "kubernetes/cluster_checks/address.hpp"
#include "kubernetes/cluster_checks/component_flags.hpp"
#include "kubernetes/cluster_checks/kubeadm_reads.hpp"
#include "kubernetes/finding/configuration.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr const char* k_servers = "etcd-servers";
constexpr const char* k_services = "10.96.0.0/12";
constexpr unsigned k_dns_index = 10;  // of its address in the range of Services
constexpr const char* k_local_etcd = "https://127.0.0.1:2379";

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

/// A file of the directory that kubeadm keeps certificates in.
std::string pki_file(const Node& configuration, std::string_view name) {
    return fmt::format("{}/{}", text_or(configuration, {"certificatesDir"}, "/etc/kubernetes/pki"), name);
}

/// Source: getAPIServerCommand of kubeadm. Without etcd-servers where etcd is the Pod of the node.
ComponentFlags written_for_apiserver(const Node& configuration) {
    ComponentFlags flags{
        {"service-cluster-ip-range", text_or(configuration, {"networking", "serviceSubnet"}, k_services)},
        {"service-account-issuer", "https://kubernetes.default.svc." +
                                       text_or(configuration, {"networking", "dnsDomain"}, "cluster.local")},
        {"etcd-prefix", "/registry"},  // the default of the API server
        {"service-account-key-file", pki_file(configuration, "sa.pub")},
        {"service-account-signing-key-file", pki_file(configuration, "sa.key")}};
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
    ComponentFlags flags{{"service-account-private-key-file", pki_file(configuration, "sa.key")}};
    if (auto pods = configuration.get_string({"networking", "podSubnet"}); !pods.empty()) {
        flags["cluster-cidr"] = std::move(pods);
        flags["service-cluster-ip-range"] = text_or(configuration, {"networking", "serviceSubnet"}, k_services);
    }
    override_by(flags, mapping_at(configuration, {"controllerManager"}));
    return flags;
}

/// A flag whose data is kept, and what its text is made of.
struct KeptFlag {
    enum class Form { urls, ranges, issuers, texts, text } form;  ///< `texts`: in any order
    const char* name;
};

/// Kept data is read by these: a change of one loses it, or what was made by it.
constexpr KeptFlag k_apiserver_flags[] = {{KeptFlag::Form::urls, k_servers},
                                          {KeptFlag::Form::text, "encryption-provider-config"},
                                          {KeptFlag::Form::text, "etcd-prefix"},
                                          {KeptFlag::Form::ranges, "service-cluster-ip-range"},
                                          {KeptFlag::Form::texts, "service-account-key-file"},
                                          {KeptFlag::Form::text, "service-account-signing-key-file"},
                                          {KeptFlag::Form::issuers, "service-account-issuer"}};
constexpr KeptFlag k_manager_flags[] = {{KeptFlag::Form::text, "service-account-private-key-file"},
                                        {KeptFlag::Form::ranges, "cluster-cidr"},
                                        {KeptFlag::Form::ranges, "service-cluster-ip-range"}};

/// The parts of a list with commas, each in the one form that equal ones have. Of an issuer every byte counts: it
/// stands so in each token.
std::vector<std::string> parts_of(std::string_view text, KeptFlag::Form form) {
    std::vector<std::string> parts;
    for (const auto piece : base::split(text, ',')) {
        const auto part = base::trim(piece);
        if (part.empty()) { continue; }
        parts.push_back(form == KeptFlag::Form::urls     ? plain_url(part)
                        : form == KeptFlag::Form::ranges ? plain_range(part)
                        : part.starts_with('/')          ? base::clean_path(part)
                                                         : std::string(part));
    }
    return parts;
}

/// Whether one that is written stands for each that runs, or all are the same.
bool are_kept(const std::string& running, const std::string& written, KeptFlag::Form form) {
    const auto runs = parts_of(running, form), coming = parts_of(written, form);
    if (form != KeptFlag::Form::texts) { return runs == coming; }
    return std::all_of(runs.begin(), runs.end(), [&](const auto& each) {
        return std::find(coming.begin(), coming.end(), each) != coming.end();
    });
}

/// Members of one etcd share its data: one that both name is enough.
bool are_of_one_etcd(const std::vector<std::string>& running, const std::vector<std::string>& written) {
    return std::find_first_of(running.begin(), running.end(), written.begin(), written.end()) != running.end();
}

/// Whether kubeadm writes an API server that asks another etcd. `written`: nullptr for the Pod of the node.
bool is_other_etcd(const CheckInput& input, const std::string& node, const std::string& running,
                   const std::string* written) {
    const auto servers = parts_of(running, KeptFlag::Form::urls);
    if (written != nullptr) { return !are_of_one_etcd(servers, parts_of(*written, KeptFlag::Form::urls)); }
    const bool has_pod = std::any_of(input.seen.etcd.begin(), input.seen.etcd.end(),
                                     [&](const auto& each) { return each.node == node; });
    return !has_pod && std::none_of(servers.begin(), servers.end(), is_loopback_url);
}

/// Whether that kubeadm sorts the values of a flag that extraArgs give several times (kubeadm#3261).
bool sorts_values(const Version& kubeadm) {
    constexpr std::pair<MinorVersion, std::uint32_t> k_keeping[] = {
        {{1, 32}, 12}, {{1, 33}, 8}, {{1, 34}, 4}, {{1, 35}, 1}};
    for (const auto& [minor, patch] : k_keeping) {
        if (kubeadm.line() == minor) { return kubeadm.patch < patch; }
    }
    return kubeadm.line() < MinorVersion{1, 32};
}

/// How kubeadm of the versions on the way changes the issuers, "" for `by` if none does.
struct IssuerChange {
    std::string by, written;
    bool is_order = false, is_sorted = false;
};

IssuerChange issuer_change(const CheckInput& input, const std::string& running, const std::string& written) {
    const auto runs = parts_of(running, KeptFlag::Form::issuers), kept = parts_of(written, KeptFlag::Form::issuers);
    auto sorted = kept, sorted_runs = runs;
    std::sort(sorted.begin(), sorted.end());
    std::sort(sorted_runs.begin(), sorted_runs.end());
    for (const auto& kubeadm : versions_on_way(input)) {
        const bool is_sorted = sorts_values(kubeadm);
        const auto& coming = is_sorted ? sorted : kept;
        if (coming == runs) { continue; }
        return {kubeadm.text(), base::join(coming, ","), sorted == sorted_runs, is_sorted && sorted != kept};
    }
    return {};
}

/// What differs, and what to do about it.
struct Changes {
    std::vector<std::string> texts;
    bool is_any_sorted = false, is_any_configured = false;
};

/// `is_order_only`: of the issuers alone, where nothing but their order changes.
void look_at_component(const CheckInput& input, const Running& running, std::span<const KeptFlag> kept,
                       const ComponentFlags& written, bool is_order_only, Changes& changes) {
    for (const auto& container : running.pod->containers) {
        if (container.name != running.component) { continue; }
        const auto flags = flags_of(container.arguments);
        for (const auto& flag : kept) {
            const auto runs = flags.find(flag.name);
            if (runs == flags.end() || runs->second.empty()) { continue; }
            const auto at = written.find(flag.name);
            const auto* other = at == written.end() ? nullptr : &at->second;
            const auto place = fmt::format("{} on {} runs with --{}={}", running.component, base::escape(running.node),
                                           flag.name, base::escape(runs->second));
            if (flag.form == KeptFlag::Form::issuers && other != nullptr) {
                const auto change = issuer_change(input, runs->second, *other);
                if (change.by.empty() || (is_order_only && !change.is_order)) { continue; }
                const std::string by = change.is_order ? " " + change.by : "";
                const auto* order = !change.is_order ? "" : change.is_sorted ? ", sorted" : ", as kubeadm-config";
                changes.texts.push_back(
                    fmt::format("{}, kubeadm{} writes {}{}", place, by, base::escape(change.written), order));
                (change.is_sorted ? changes.is_any_sorted : changes.is_any_configured) = true;
                continue;
            }
            const bool is_etcd = flag.form == KeptFlag::Form::urls;
            const bool differs = is_etcd ? is_other_etcd(input, running.node, runs->second, other)
                                         : other == nullptr || !are_kept(runs->second, *other, flag.form);
            if (!differs || is_order_only) { continue; }
            const auto coming = other != nullptr ? (other->empty() ? "none" : base::escape(*other))
                                                 : std::string(is_etcd ? k_local_etcd : "none");
            changes.texts.push_back(fmt::format("{}, kubeadm writes {}", place, coming));
            changes.is_any_configured = true;
        }
    }
}

Finding look_at_flags(const CheckInput& input, bool is_order_only) {
    const auto configuration = cluster_configuration(input.inventory);
    Changes changes;
    if (configuration.root && !input.intent.has_patches) {
        const auto server = written_for_apiserver(*configuration.root);
        const auto manager = written_for_manager(*configuration.root);
        for (const auto& running : input.seen.control_plane) {
            if (running.pod == nullptr) { continue; }
            if (running.component == "kube-apiserver") {
                look_at_component(input, running, k_apiserver_flags, server, is_order_only, changes);
            } else if (running.component == "kube-controller-manager") {
                look_at_component(input, running, k_manager_flags, manager, is_order_only, changes);
            }
        }
    }
    auto finding = fail_if_any(changes.texts, "");
    std::vector<std::string> fixes;
    if (changes.is_any_configured) {
        fixes.emplace_back("kubectl edit configmap -n kube-system kubeadm-config: set what the control plane runs with "
                           "in networking, etcd, or extraArgs of the component");
    }
    if (changes.is_any_sorted) {
        fixes.emplace_back("upgrade to a version whose kubeadm keeps the order of extraArgs (v1.32.12, v1.33.8, "
                           "v1.34.4, v1.35.1 or later), or give the order by --patches");
    }
    finding.fix = base::join(fixes, "; ");
    return finding;
}

}  // namespace

Finding kubeadm_writes(const CheckInput& input) { return look_at_flags(input, false); }

Finding kubeadm_reorders(const CheckInput& input) { return look_at_flags(input, true); }

Finding dns_service_written(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    const bool is_left = !skipped_phase(input.intent.skipped_phases, "coredns").empty();
    if (!configuration.root || is_left) { return {Outcome::ok, ""}; }
    const std::string skipping = "start with --skip-phases addon/coredns, which kubeadm knows from v1.32 on";
    const auto fix =
        fmt::format("set networking.serviceSubnet of kubeadm-config to what the API servers run with; or {}", skipping);
    const auto subnets = text_or(*configuration.root, {"networking", "serviceSubnet"}, k_services);
    std::optional<Address> written;
    std::optional<AddressRange> own_range;
    for (const auto part : base::split(subnets, ',')) {
        const auto range = parse_range(part);
        if (!range) {
            return {Outcome::fail,
                    fmt::format("networking.serviceSubnet of kubeadm-config: expected ranges as {}, found '{}'",
                                k_services, base::escape(subnets)),
                    fix};
        }
        if (written) { continue; }
        own_range = range;
        written = range->at(k_dns_index);
        if (!written) {
            return {Outcome::fail,
                    fmt::format("networking.serviceSubnet of kubeadm-config: {} has no address {} for kube-dns",
                                base::escape(part), k_dns_index),
                    fix};
        }
    }
    for (const auto& service : input.inventory.dns_services) {
        const auto address = parse_address(service.address);
        if (service.address.empty() || address == written) { continue; }
        const auto name = base::escape(service.meta.full_name());
        Finding refused{
            Outcome::fail,
            fmt::format("Service {} has clusterIP {}; kubeadm writes {}, of serviceSubnet {}, which the API server "
                        "refuses once all control planes are upgraded",
                        name, base::escape(service.address), written->text(), base::escape(subnets)),
            fix};
        if (!address || own_range->holds(*address)) {
            refused.fix = fmt::format("make Service {} again at {}: kubectl get -o yaml, delete it, and create it with "
                                      "that clusterIP, which no other Service may have; let clusterDNS of all "
                                      "kubelets and of ConfigMap kubelet-config name it; or {}",
                                      name, written->text(), skipping);
        }
        return refused;
    }
    if (auto reason = input.inventory.unknown_reason("Service", "services"); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    // Documents may be those of other namespaces.
    if (!input.inventory.is_live && input.inventory.dns_services.empty()) {
        return {Outcome::skip, "the documents contain no Service kube-system/kube-dns"};
    }
    return {Outcome::ok, ""};
}

}  // namespace kmm::kubernetes
