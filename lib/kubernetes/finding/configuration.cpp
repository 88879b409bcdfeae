// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/finding/configuration.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/versions/observe.hpp"
#include "value/reader.hpp"
#include "value/text_index.hpp"

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

/// Keys that were given another first character to tell them from the same key before, by their place.
using Renamed = std::map<std::pair<std::uint32_t, std::uint32_t>, char>;

/// Gives keys their names back: the last of equal ones takes the place of those before it.
void restore(value::Node& node, const Renamed& renamed) {
    std::vector<value::Member> kept;
    for (auto& member : node.members()) {
        restore(member.value, renamed);
        const auto found = renamed.find({member.key_mark.line, member.key_mark.column});
        if (found != renamed.end()) { member.key.front() = found->second; }
        const auto before =
            std::find_if(kept.begin(), kept.end(), [&](const auto& each) { return each.key == member.key; });
        if (before == kept.end()) { kept.push_back(std::move(member)); }
        else { *before = std::move(member); }
    }
    node.members() = std::move(kept);
    for (auto& item : node.items()) { restore(item, renamed); }
}

}  // namespace

std::vector<value::Document> read_as_kubeadm(std::string_view text, std::string_view file, Diagnostics& faults,
                                             std::vector<std::string>& repeated) {
    // No key of kubeadm's begins with one of them; a key that is there again and again takes one after the other.
    constexpr std::string_view k_marks = "$^+;=_";
    std::string changed(value::without_bom(text));
    Diagnostics found;
    auto documents = value::read_yaml(changed, file, found);
    const auto original = found;
    Renamed renamed;
    std::vector<std::string> places;
    for (std::size_t at = 0; !found.empty() && at <= k_marks.size(); ++at) {
        const bool are_all_repeats =
            std::all_of(found.begin(), found.end(), [](const auto& each) { return each.code == "duplicate-key"; });
        if (!are_all_repeats || at == k_marks.size()) {
            faults.insert(faults.end(), original.begin(), original.end());
            return documents;
        }
        const value::TextIndex index(changed);
        std::vector<std::size_t> offsets;
        for (const auto& fault : found) {
            const auto line = static_cast<std::uint32_t>(fault.position->line);
            const auto column = static_cast<std::uint32_t>(fault.position->column);
            auto offset = index.offset({line, column});
            if (changed[offset] == '"' || changed[offset] == '\'') { ++offset; }
            offsets.push_back(offset);
            if (renamed.emplace(std::pair(line, column), changed[offset]).second) {
                places.push_back(fmt::format("{}: {}", fault.position->to_string(), fault.message));
            }
        }
        for (const auto offset : offsets) { changed[offset] = k_marks[at]; }
        found.clear();
        documents = value::read_yaml(changed, file, found);
    }
    for (auto& document : documents) { restore(document.root, renamed); }
    repeated.insert(repeated.end(), places.begin(), places.end());
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
