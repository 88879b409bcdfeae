// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/inventory/kubelet_config.hpp"

#include <algorithm>

namespace kmm::kubernetes {
namespace {

/// `file`, with what the kubelet reads over it.
value::Node with_drop_ins(value::Node file, const value::Node& facts) {
    if (const auto* files = facts.find_path({"kubelet", "dropIns"}); files != nullptr) {
        for (const auto& each : files->items()) {
            if (const auto* patch = each.find("config"); patch != nullptr) { merge_over(file, *patch); }
        }
    }
    return file;
}

}  // namespace

void merge_over(value::Node& base, const value::Node& patch) {
    if (!patch.is_mapping()) {
        base = patch;
        return;
    }
    if (!base.is_mapping()) { base = value::Node::mapping(); }
    for (const auto& each : patch.members()) {
        if (each.value.is_null()) {
            base.erase(each.key);
        } else if (auto* own = base.find(each.key); own != nullptr) {
            merge_over(*own, each.value);
        } else {
            merge_over(base.set(each.key, value::Node()), each.value);
        }
    }
}

value::Node kubelet_configuration_of(const value::Node& facts) {
    const auto* config = facts.find_path({"kubelet", "config"});
    return config == nullptr || !config->is_mapping() ? value::Node() : with_drop_ins(*config, facts);
}

std::string kubelet_file_of(const value::Node& facts) {
    std::vector<std::string> arguments;
    if (const auto* words = facts.find_path({"kubelet", "arguments"}); words != nullptr) {
        for (const auto& word : words->items()) { arguments.push_back(word.text()); }
    }
    auto file = kubelet_flag(arguments, "--config");
    return file.empty() ? std::string(k_kubeadm_kubelet_file) : file;
}

value::Node coming_kubelet_configuration(const value::Node& facts, const value::Node& map) {
    return kubelet_file_of(facts) == k_kubeadm_kubelet_file ? with_drop_ins(map, facts)
                                                            : kubelet_configuration_of(facts);
}

std::string drop_in_with_gate(const value::Node& facts, std::string_view gate) {
    std::string last;
    if (const auto* files = facts.find_path({"kubelet", "dropIns"}); files != nullptr) {
        for (const auto& file : files->items()) {
            if (file.find_path({"config", "featureGates", gate}) != nullptr) { last = file.get_string({"file"}); }
        }
    }
    return last;
}

std::string kubelet_flag(const std::vector<std::string>& arguments, std::string_view flag) {
    std::string value;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view word = arguments[i];
        const auto equals = word.find('=');
        std::string name(word.substr(0, equals));
        std::replace(name.begin(), name.end(), '_', '-');  // kubelets take both
        if (name != flag) { continue; }
        if (equals != std::string_view::npos) { value = word.substr(equals + 1); }
        else if (i + 1 < arguments.size()) { value = arguments[i + 1]; }
    }
    return value;
}

}  // namespace kmm::kubernetes
