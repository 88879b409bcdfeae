// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/finding/configuration.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/versions/observe.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

Configuration configuration_of(const Inventory& inventory, std::string_view map, std::string_view key,
                               std::string_view kind) {
    const auto fail = [](std::string detail) {
        return Configuration{std::nullopt, {Outcome::fail, std::move(detail)}};
    };
    const auto fail_in_text = [&](std::string detail) {
        auto problem = fail(std::move(detail));
        problem.problem.fix = fmt::format("kubectl edit configmap -n kube-system {}", map);
        return problem;
    };
    const auto& maps = inventory.config_maps;
    const auto found = std::find_if(maps.begin(), maps.end(), [&](const auto& each) {
        return each.meta.ns == "kube-system" && each.meta.name == map;
    });
    if (found == maps.end()) {
        auto reason = system_maps_unknown(inventory);
        if (!reason.empty()) { return {std::nullopt, {Outcome::skip, std::move(reason)}}; }
        const auto versioned = std::find_if(maps.begin(), maps.end(), [&](const auto& each) {
            return each.meta.ns == "kube-system" && each.meta.name.starts_with(fmt::format("{}-1.", map));
        });
        if (versioned != maps.end()) {
            return fail(fmt::format("ConfigMap kube-system/{} does not exist, only {} as before v1.24 does", map,
                                    base::escape(versioned->meta.name)));
        }
        auto problem = fail(fmt::format("ConfigMap kube-system/{} does not exist", map));
        problem.problem.fix = distribution_hint(inventory);
        return problem;
    }
    const auto text = found->data.find(key);
    if (text == found->data.end()) { return fail(fmt::format("ConfigMap kube-system/{} has no key {}", map, key)); }
    Diagnostics faults;
    std::vector<std::string> repeated;
    auto documents = read_as_kubeadm(text->second, fmt::format("{}/{}", map, key), faults, repeated);
    if (!faults.empty()) {
        return fail_in_text(
            fmt::format("{}: {}", faults.front().position ? faults.front().position->to_string() : std::string(map),
                        faults.front().message));
    }
    if (documents.size() != 1 || !documents.front().root.is_mapping()) {
        return fail_in_text(fmt::format("{} of ConfigMap kube-system/{}: expected one mapping", key, map));
    }
    const auto found_kind = documents.front().root.get_string({"kind"});
    if (found_kind != kind) {
        return fail_in_text(fmt::format("{} of ConfigMap kube-system/{}: expected kind {}, found '{}'", key, map, kind,
                                        base::escape(found_kind)));
    }
    return {std::move(documents.front().root), {}, std::move(repeated)};
}

}  // namespace

std::vector<value::Document> read_as_kubeadm(std::string_view text, std::string_view file, Diagnostics& faults,
                                             std::vector<std::string>& repeated) {
    value::ReadLimits limits;
    limits.is_last_taken = true;
    Diagnostics found;
    auto documents = value::read_yaml(text, file, found, limits);
    const auto is_repeat = [](const Diagnostic& each) { return each.code == "duplicate-key"; };
    if (!std::all_of(found.begin(), found.end(), is_repeat)) {
        faults.insert(faults.end(), found.begin(), found.end());
        return documents;
    }
    for (const auto& each : found) {
        repeated.push_back(fmt::format("{}: {}", each.position->to_string(), each.message));
    }
    return documents;
}

Finding repeated_keys(std::string_view map, const std::vector<std::string>& repeated) {
    return {Outcome::warn, fmt::format("kubeadm takes the last one: {}", name_some(repeated)),
            fmt::format("kubectl edit configmap -n kube-system {}: remove the one that is not meant", map)};
}

std::optional<Version> configured_version(const Inventory& inventory) {
    const auto configuration = cluster_configuration(inventory);
    return configuration.root ? Version::parse(configuration.root->get_string({"kubernetesVersion"})) : std::nullopt;
}

Configuration cluster_configuration(const Inventory& inventory) {
    return configuration_of(inventory, "kubeadm-config", "ClusterConfiguration", "ClusterConfiguration");
}

Configuration proxy_config_map(const Inventory& inventory) {
    return configuration_of(inventory, "kube-proxy", "config.conf", "KubeProxyConfiguration");
}

std::string configured_etcd(const Inventory& inventory) {
    const auto configuration = cluster_configuration(inventory);
    return configuration.root ? configuration.root->get_string({"etcd", "local", "imageTag"}) : std::string();
}

std::optional<Version> fixed_etcd(const Inventory& inventory) {
    auto tag = configured_etcd(inventory);
    // As kubeadm reads it: a tag has no '+'.
    if (const auto at = tag.find('_'); at != std::string::npos) { tag[at] = '+'; }
    return Version::parse(tag);
}

ImageSources configured_images(const Inventory& inventory) {
    const auto configuration = cluster_configuration(inventory);
    if (!configuration.root) { return {}; }
    const auto image = [&](std::initializer_list<std::string_view> path) {
        const auto* part = configuration.root->find_path(path);
        if (part == nullptr) { return std::string(); }
        const auto tag = part->get_string({"imageTag"});
        return part->get_string({"imageRepository"}) + (tag.empty() ? "" : ":" + tag);
    };
    return {image_repository(*configuration.root), image({"etcd", "local"}), image({"dns"})};
}

Configuration kubelet_config_map(const Inventory& inventory) {
    return configuration_of(inventory, "kubelet-config", "kubelet", "KubeletConfiguration");
}

std::string image_repository(const value::Node& configuration) {
    auto named = configuration.get_string({"imageRepository"});
    // kubeadm takes its default for none, and for the old one.
    return named.empty() || named == "k8s.gcr.io" ? "registry.k8s.io" : named;
}

std::string skipped_phase(std::string_view phases, std::string_view addon) {
    for (const auto phase : base::split(phases, ',')) {
        if (phase == "addon" || phase == fmt::format("addon/{}", addon)) { return std::string(phase); }
    }
    return {};
}

}  // namespace kmm::kubernetes
