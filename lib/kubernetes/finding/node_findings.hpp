// SPDX-License-Identifier: Apache-2.0
// What checks share: members of the facts that nodes have answered with, times, findings node by node.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// The text there, "" if it is none.
[[nodiscard]] inline std::string text_of(const value::Node& facts, std::initializer_list<std::string_view> path) {
    const auto* found = facts.find_path(path);
    return found == nullptr || !found->is_string() ? std::string() : found->text();
}

[[nodiscard]] inline std::optional<bool> flag_of(const value::Node& facts,
                                                 std::initializer_list<std::string_view> path) {
    const auto* found = facts.find_path(path);
    return found == nullptr ? std::nullopt : found->as_bool();
}

/// Why a node could not read that field of its facts, "" if it does not say.
[[nodiscard]] inline std::string unread_reason(const value::Node& facts, std::string_view field) {
    if (const auto* list = facts.find("unread")) {
        for (const auto& item : list->items()) {
            if (item.get_string({"field"}) == field) { return base::escape(item.get_string({"reason"})); }
        }
    }
    return {};
}

/// unread_reason, or that it is not known.
[[nodiscard]] inline std::string unread(const value::Node& facts, std::string_view field) {
    auto reason = unread_reason(facts, field);
    return reason.empty() ? "unknown" : reason;
}

/// The time by the clock of the node that has answered with `facts`: that of certificates there and of its processes.
/// `now` where it says nothing.
[[nodiscard]] inline std::int64_t time_on(const value::Node& facts, std::int64_t now) {
    return base::parse_rfc3339(text_of(facts, {"time"})).value_or(now);
}

/// The time by the clocks of the nodes, whose median counts; where none was asked, that of this machine. Objects of the
/// API have times of the nodes.
[[nodiscard]] inline std::int64_t time_of_nodes(const CheckInput& input) {
    std::vector<std::int64_t> ahead;
    if (input.nodes != nullptr) {
        for (const auto& [name, answer] : *input.nodes) {
            if (answer.facts.is_null()) { continue; }
            if (const auto time = base::parse_rfc3339(text_of(answer.facts, {"time"})); time)
                ahead.push_back(*time - answer.answered);
        }
    }
    if (ahead.empty()) { return input.now; }
    std::sort(ahead.begin(), ahead.end());
    return input.now + ahead[ahead.size() / 2];
}

/// FAIL with what `problem` says of each node that has answered; OK only if every node has. Why one has not is said by
/// node-reach.
template <typename Problem>
[[nodiscard]] Finding each_node(const CheckInput& input, std::string fine, Problem&& problem) {
    std::vector<std::string> problems, silent;
    for (const auto& [name, answer] : *input.nodes) {
        if (answer.facts.is_null()) {
            silent.push_back(base::escape(name));
            continue;
        }
        if (auto found = problem(name, answer.facts); !found.empty()) {
            problems.push_back(fmt::format("{}: {}", base::escape(name), found));
        }
    }
    if (problems.empty() && !silent.empty()) {
        return {Outcome::skip, fmt::format("no answer from {}", name_some(silent))};
    }
    return fail_if_any(problems, std::move(fine));
}

/// What is fine as far as it is known is not said of what is not.
[[nodiscard]] inline Finding known_or_skipped(Finding found, const std::vector<std::string>& unknown) {
    return found.outcome == Outcome::ok && !unknown.empty()
               ? Finding{Outcome::skip, fmt::format("not known: {}", name_some(unknown))}
               : found;
}

/// Why it is not known which ConfigMaps kube-system has, "" if it is.
[[nodiscard]] inline std::string system_maps_unknown(const Inventory& inventory) {
    auto reason = inventory.unknown_reason("ConfigMap", "configmaps");
    const auto& maps = inventory.config_maps;
    // Every namespace has ConfigMaps of Kubernetes itself.
    const bool has_any =
        std::any_of(maps.begin(), maps.end(), [](const auto& map) { return map.meta.ns == "kube-system"; });
    if (reason.empty() && !inventory.is_live && !has_any) {
        reason = "the documents contain no ConfigMap of kube-system";
    }
    return reason;
}

/// Whether kubeadm is to leave that phase out.
[[nodiscard]] inline bool skips_phase(const CheckInput& input, std::string_view phase) {
    const auto phases = base::split(input.intent.skipped_phases, ',');
    return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

/// What a Node is instead of a machine with Linux, "" if it is one.
[[nodiscard]] inline std::string foreign_system(const NodeObject& node) {
    const auto* type = find_label(node.meta.labels, "type");
    if (type != nullptr && *type == "virtual-kubelet") { return "a virtual kubelet"; }
    if (find_label(node.meta.annotations, "kwok.x-k8s.io/node") != nullptr) { return "played by KWOK"; }
    return node.system.empty() || node.system == "linux" ? std::string() : base::escape(node.system);
}

/// Has the label of a control plane.
[[nodiscard]] inline bool is_control_plane_node(const CheckInput& input, const std::string& name) {
    const auto& all = input.seen.control_plane_nodes;
    return std::find(all.begin(), all.end(), name) != all.end();
}

/// The strings of a list there, escaped for people.
[[nodiscard]] inline std::vector<std::string> texts_of(const value::Node& facts,
                                                       std::initializer_list<std::string_view> path) {
    std::vector<std::string> texts;
    if (const auto* list = facts.find_path(path)) {
        for (const auto& item : list->items()) { texts.push_back(base::escape(item.text())); }
    }
    return texts;
}

}  // namespace kmm::kubernetes
