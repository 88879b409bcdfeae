// SPDX-License-Identifier: Apache-2.0
// Checks of what kubeadm deploys besides the control plane: kube-proxy, CoreDNS.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/cluster_checks/kubeadm_reads.hpp"
#include "kubernetes/cluster_checks/kubeadm_writes.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

/// Releases that kubeadm can migrate from, and plugins that it knows. Source: coredns/corefile-migration.
constexpr std::string_view k_released[] = {
    "1.6.7",  "1.6.9",  "1.7.0",  "1.7.1",  "1.8.0",  "1.8.3",  "1.8.4",  "1.8.5",  "1.8.6",  "1.8.7",  "1.9.0",
    "1.9.1",  "1.9.2",  "1.9.3",  "1.9.4",  "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.3", "1.11.4", "1.12.0",
    "1.12.1", "1.12.2", "1.12.3", "1.12.4", "1.13.0", "1.13.1", "1.13.2", "1.14.0", "1.14.1", "1.14.2"};
constexpr std::string_view k_plugins[] = {"errors",       "log",        "health",  "ready",   "autopath", "kubernetes",
                                          "k8s_external", "prometheus", "forward", "cache",   "loop",     "reload",
                                          "loadbalance",  "hosts",      "rewrite", "transfer"};

/// Options that it knows of them, in any release; of the other plugins none.
struct PluginOptions {
    std::string_view plugin;
    std::string_view options;  ///< with blanks between
};
constexpr PluginOptions k_options[] = {
    {"kubernetes", "endpoint endpoint_pod_names fallthrough ignore kubeconfig labels namespaces noendpoints pods "
                   "resyncperiod tls transfer ttl upstream"},
    {"errors", "consolidate stacktrace"},
    {"health", "lameduck"},
    {"hosts", "fallthrough no_reverse reload ttl"},
    {"rewrite", "class cname_target edns0 name ttl type"},
    {"log", "class"},
    {"cache", "denial disable keepttl prefetch serve_stale servfail success"},
    {"forward", "except expire fail_fast failfast_all_unhealthy_upstreams force_tcp health_check max_concurrent "
                "max_fails next policy prefer_udp tls tls_servername"},
    {"k8s_external", "apex fallthrough ttl"},
    {"transfer", "to"},
};

template <typename Range>
bool has(const Range& range, std::string_view wanted) {
    return std::find(std::begin(range), std::end(range), wanted) != std::end(range);
}

/// Whether kubeadm-config says that kubeadm leaves an addon out.
bool is_disabled(const CheckInput& input, std::string_view addon) {
    const auto configuration = cluster_configuration(input.inventory);
    const auto* disabled = configuration.root ? configuration.root->find_path({addon, "disabled"}) : nullptr;
    return disabled != nullptr && disabled->as_bool() == true;
}

/// Whether that kubeadm heeds it. Of v1.32 the first patch does not, v1.32.13 does; what is between is not relied on.
bool heeds_disabled(const Version& kubeadm) {
    constexpr MinorVersion k_first{1, 33};
    constexpr std::uint32_t k_patch = 13;
    return kubeadm.line() >= k_first || (kubeadm.line() == MinorVersion{1, 32} && kubeadm.patch >= k_patch);
}

/// kubeadm has phases of upgrade apply, and installs kube-proxy also where its ConfigMap is missing.
bool has_phases(const Version& kubeadm) { return kubeadm.line() >= MinorVersion{1, 32}; }

/// Of a cluster without kube-proxy: which kubeadm on the way installs it. `map_unknown`: why it is not known whether
/// its ConfigMap is there.
Finding installed_proxy(const CheckInput& input, const std::string& map_unknown) {
    const auto& maps = input.inventory.config_maps;
    const bool has_map = std::any_of(maps.begin(), maps.end(), [](const auto& map) {
        return map.meta.ns == "kube-system" && map.meta.name == "kube-proxy";
    });
    const bool is_set = is_disabled(input, "proxy");
    std::optional<Version> last_old;
    std::vector<std::string> by_map, by_phase;
    for (const auto& version : versions_on_way(input)) {
        if (!has_phases(version)) {
            last_old = version;
            if (has_map || !map_unknown.empty()) { by_map.push_back(version.text()); }
        } else if (!is_set || !heeds_disabled(version)) {
            by_phase.push_back(version.text());
        }
    }
    if (by_map.empty() && by_phase.empty()) {
        return {Outcome::ok, is_set ? "kubeadm-config has proxy.disabled: true"
                                    : "there is neither kube-proxy nor its ConfigMap: kubeadm leaves it out"};
    }
    // Nothing is known against these.
    if (by_phase.empty() && !map_unknown.empty()) { return {Outcome::skip, map_unknown}; }
    auto installing = by_map;
    installing.insert(installing.end(), by_phase.begin(), by_phase.end());
    Finding found{Outcome::fail, fmt::format("no Pod of kube-proxy runs in kube-system, and kubeadm of {} installs it",
                                             name_some(installing))};
    if (is_set) { found.detail += "; only later ones heed proxy.disabled of kubeadm-config"; }
    if (!by_map.empty()) {
        found.fix = "kubectl delete configmap -n kube-system kube-proxy: without it kubeadm before v1.32 leaves "
                    "kube-proxy out";
    }
    if (last_old && !by_phase.empty()) {
        found.fix += fmt::format("{}upgrade to {} first; then start again with --skip-phases addon/kube-proxy, which "
                                 "kubeadm knows from v1.32 on",
                                 found.fix.empty() ? "" : "; ", last_old->text());
    }
    return found;
}

Finding kube_proxy_absent(const CheckInput& input) {
    if (!input.seen.proxies.empty()) {
        return {Outcome::ok, fmt::format("Pods of kube-proxy: {}", input.seen.proxies.size())};
    }
    if (auto reason = input.inventory.unknown_reason("Pod", "pods"); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    if (const auto phase = skipped_phase(input.intent.skipped_phases, "kube-proxy"); !phase.empty()) {
        return {Outcome::ok, fmt::format("kubeadm's phase {} is left out", phase)};
    }
    return installed_proxy(input, system_maps_unknown(input.inventory));
}

/// The one that kubeadm writes; nullptr if there is none.
const CoreDnsObject* named_core_dns(const Inventory& inventory) {
    const auto& all = inventory.core_dns;
    const auto found = std::find_if(all.begin(), all.end(), [](const auto& one) { return one.meta.name == "coredns"; });
    return found == all.end() ? nullptr : &*found;
}

/// Why it is not known which Deployments kube-system has, "" if it is.
std::string system_deployments_unknown(const Inventory& inventory) {
    auto reason = inventory.unknown_reason("Deployment", "deployments");
    if (reason.empty() && !inventory.is_live && !inventory.has_system_deployments) {
        reason = "the documents contain no Deployment of kube-system";
    }
    return reason;
}

constexpr std::string_view k_no_version =
    "and the preflight of kubeadm refuses a CoreDNS whose version it does not find";
constexpr std::string_view k_unasked = "start with --ignore-checks coredns-migratable and --ignore-preflight-errors "
                                       "CoreDNSMigration,CoreDNSUnsupportedPlugins";

/// Of Deployments, the one that kubeadm takes for the DNS that runs; nullptr with `problem` if its preflight refuses
/// what there is: it asks for the version also where there is nothing to migrate.
const CoreDnsObject* running_dns(const Inventory& inventory, bool has_map, Finding& problem) {
    std::vector<std::string> names;
    const CoreDnsObject* found = nullptr;
    for (const auto& one : inventory.core_dns) {
        if (!one.is_dns) { continue; }
        found = &one;
        names.push_back(base::escape(one.meta.full_name()));
    }
    if (!has_map) {
        problem = {Outcome::fail, fmt::format("there is no ConfigMap kube-system/coredns, {}", k_no_version),
                   fmt::format("make it, with the Corefile that CoreDNS runs with; or {}", k_unasked)};
        return nullptr;
    }
    if (names.empty()) {
        const auto* named = named_core_dns(inventory);
        problem = {Outcome::fail,
                   fmt::format("no Deployment of kube-system has the label k8s-app=kube-dns, {}", k_no_version),
                   named != nullptr ? "kubectl label deployment -n kube-system coredns --overwrite k8s-app=kube-dns"
                                    : fmt::format("{}: kubeadm makes Deployment kube-system/coredns", k_unasked)};
        return nullptr;
    }
    if (names.size() > 1) {
        problem = {Outcome::fail,
                   fmt::format("several Deployments have the label k8s-app=kube-dns, which kubeadm refuses: {}",
                               name_some(names)),
                   "leave it to one of them: kubectl label deployment -n kube-system NAME k8s-app- takes it from a "
                   "Deployment, its Pods keep theirs"};
        return nullptr;
    }
    return found;
}

Finding coredns_customised(const CheckInput& input) {
    if (auto reason = system_deployments_unknown(input.inventory); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    if (const auto phase = skipped_phase(input.intent.skipped_phases, "coredns"); !phase.empty()) {
        return {Outcome::ok, fmt::format("kubeadm's phase {} is left out", phase)};
    }
    const auto versions = versions_on_way(input);
    if (is_disabled(input, "dns") && std::all_of(versions.begin(), versions.end(), heeds_disabled)) {
        return {Outcome::ok, "kubeadm-config has dns.disabled: true"};
    }
    const auto* named = named_core_dns(input.inventory);
    if (named == nullptr) {
        return {Outcome::warn, "there is no Deployment kube-system/coredns, kubeadm makes one"};
    }
    const auto& found = *named;
    if (found.differing.empty()) { return {Outcome::ok, "Deployment kube-system/coredns is as kubeadm writes it"}; }
    return {Outcome::warn, fmt::format("kubeadm overwrites these members of Deployment kube-system/coredns: {}",
                                       base::join(found.differing, ", "))};
}

bool knows_option(std::string_view plugin, std::string_view option) {
    // Lines of hosts begin with an address.
    if (plugin == "hosts" && option.find_first_of(".:") != std::string_view::npos) { return true; }
    const auto found = std::find_if(std::begin(k_options), std::end(k_options),
                                    [&](const auto& each) { return each.plugin == plugin; });
    return found != std::end(k_options) && has(base::split(found->options, ' '), option);
}

/// What a Corefile has that kubeadm does not know, in its order.
struct UnknownParts {
    std::vector<std::string> plugins, options;
};

UnknownParts unknown_parts(std::string_view corefile) {
    UnknownParts unknown;
    std::string_view plugin;
    int depth = 0;
    for (auto line : base::split(corefile, '\n')) {
        if (const auto comment = line.find('#'); comment != std::string_view::npos) { line = line.substr(0, comment); }
        line = base::trim(line);
        const auto word = line.substr(0, line.find_first_of(" \t{}"));
        if (depth == 1 && !word.empty()) {
            plugin = word;
            if (!has(k_plugins, word) && !has(unknown.plugins, word)) { unknown.plugins.push_back(base::escape(word)); }
        }
        if (depth == 2 && !word.empty() && has(k_plugins, plugin) && !knows_option(plugin, word)) {
            unknown.options.push_back(fmt::format("{} of {}", base::escape(word), plugin));
        }
        depth += static_cast<int>(std::count(line.begin(), line.end(), '{')) -
                 static_cast<int>(std::count(line.begin(), line.end(), '}'));
    }
    return unknown;
}

/// The first version on the way whose kubeadm deploys an older CoreDNS than `running`; nullptr if none does.
const VersionEntry* deployer_of_older(const CheckInput& input, const Version& running) {
    auto versions = versions_on_way(input);
    versions.push_back(*input.target);
    for (const auto& version : versions) {
        const auto* entry = input.catalogue.find(version);
        const auto deployed = Version::parse(entry == nullptr ? "" : entry->coredns);
        if (deployed && running > *deployed) { return entry; }
    }
    return nullptr;
}

/// dns.imageTag of kubeadm-config where kubeadm deploys another CoreDNS for it than `usual`, to which it migrates the
/// Corefile all the same; "" where it does not.
std::string other_dns_tag(const Inventory& inventory, const std::optional<Version>& usual) {
    const auto configuration = cluster_configuration(inventory);
    auto tag = configuration.root ? configuration.root->get_string({"dns", "imageTag"}) : std::string();
    auto version = Version::parse(tag);
    if (version) { version->suffix.clear(); }  // a build of one's own
    return version && usual && *version == *usual ? std::string() : tag;
}

Finding corefile_migratable(const CheckInput& input) {
    if (auto reason = system_deployments_unknown(input.inventory); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    if (auto reason = system_maps_unknown(input.inventory); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    const auto& maps = input.inventory.config_maps;
    const auto map = std::find_if(maps.begin(), maps.end(), [](const auto& each) {
        return each.meta.ns == "kube-system" && each.meta.name == "coredns";
    });
    Finding problem;
    const auto* running_one = running_dns(input.inventory, map != maps.end(), problem);
    if (running_one == nullptr) { return problem; }
    const auto& image = running_one->image;
    const auto* entry = input.catalogue.find(*input.target);
    if (entry == nullptr || entry->coredns.empty()) {
        return {Outcome::skip, fmt::format("the metadata does not say which CoreDNS {} deploys", input.target->text())};
    }
    const auto running = Version::of_image(image);
    const auto target = Version::parse(entry->coredns);
    const auto corefile = map->data.find("Corefile");
    const auto other = other_dns_tag(input.inventory, target);
    std::vector<std::string> problems;
    if (!running || !running->suffix.empty() || !has(k_released, running->text().substr(1))) {
        problems.push_back(
            fmt::format("image {} has no tag of a released CoreDNS that kubeadm migrates from", base::escape(image)));
    } else if (const auto* older = deployer_of_older(input, *running)) {
        problems.push_back(fmt::format("CoreDNS {} is newer than {}, which {} deploys", running->text(),
                                       Version::parse(older->coredns)->text(), older->version.text()));
    } else if (other.empty() && target && *running == *target && corefile != map->data.end()) {
        return {Outcome::ok, fmt::format("CoreDNS {} stays, and with it the Corefile", running->text())};
    }
    if (corefile == map->data.end()) {
        problems.emplace_back("ConfigMap kube-system/coredns has no Corefile");
    } else {
        const auto [plugins, options] = unknown_parts(corefile->second);
        for (const auto& [what, names] : {std::pair("plugins", &plugins), std::pair("options", &options)}) {
            if (names->empty()) { continue; }
            problems.push_back(
                fmt::format("the Corefile uses {} that kubeadm does not know: {}", what, name_some(*names)));
        }
    }
    if (problems.empty() && !other.empty()) {
        return {Outcome::warn,
                fmt::format("dns.imageTag of kubeadm-config is {}: kubeadm deploys that, and migrates the Corefile to "
                            "CoreDNS {}",
                            base::escape(other), entry->coredns),
                "leave dns.imageTag out of kubeadm-config, or see that its CoreDNS takes the migrated Corefile"};
    }
    return fail_if_any(
        problems, fmt::format("kubeadm migrates CoreDNS {} to {}", running ? running->text() : image, entry->coredns));
}

Finding coredns_migratable(const CheckInput& input) {
    const auto versions = versions_on_way(input);
    const bool is_off = is_disabled(input, "dns") && std::all_of(versions.begin(), versions.end(), heeds_disabled);
    auto service = is_off ? Finding{Outcome::ok, ""} : dns_service_written(input);
    if (service.outcome == Outcome::fail) { return service; }
    auto found = corefile_migratable(input);
    return found.outcome == Outcome::ok && service.outcome != Outcome::ok ? service : found;
}

constexpr CheckRow k_addon_rows[] = {
    {"kube-proxy-absent", kube_proxy_absent},
    {"coredns-customised", coredns_customised},
    {"coredns-migratable", coredns_migratable},
};

}  // namespace

std::span<const CheckRow> addon_checks() noexcept { return k_addon_rows; }

}  // namespace kmm::kubernetes
