// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/what_if.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

constexpr const char* k_boot_id = "what-if";

template <typename Change>
void change_nodes(api::Objects& objects, const std::optional<std::string>& name, const Change& change) {
    for (auto& node : objects.nodes) {
        if (!name || node.meta.name == *name) { change(node); }
    }
}

Error bad_change(const char* code, const std::string& expected, const std::string& text) {
    return Error(Exit::usage, code, fmt::format("expected {}, found \"{}\"", expected, base::escape(text)));
}

/// A label or taint key that stands on a node, or that a Module selects or tolerates.
bool is_known_key(const api::Objects& objects, const std::string& key) {
    const auto has_key = [&](const auto& item) { return item.key == key; };
    return std::any_of(objects.nodes.begin(), objects.nodes.end(),
                       [&](const api::Node& node) {
                           return node.meta.labels.contains(key) ||
                                  std::any_of(node.taints.begin(), node.taints.end(), has_key);
                       }) ||
           std::any_of(objects.modules.begin(), objects.modules.end(), [&](const api::Module& module) {
               return module.selector.contains(key) ||
                      std::any_of(module.tolerations.begin(), module.tolerations.end(), has_key);
           });
}

bool is_effect(std::string_view text) {
    return text == "NoSchedule" || text == "PreferNoSchedule" || text == "NoExecute";
}

}  // namespace

NodeChange split_node(const api::Objects& objects, const std::string& text) {
    std::size_t end = text.find_first_of("=:");
    // KEY:EFFECT is a taint of all nodes, even if a node is called KEY.
    if (end != std::string::npos && text[end] == ':' && text.find(':', end + 1) == std::string::npos) {
        end = text.find('=');
    }
    std::string name = text.substr(0, end);
    if (name == "*" && end != std::string::npos) { return NodeChange{std::nullopt, text.substr(end + 1), true}; }
    const auto is_known = [&](const std::string& word) {
        return std::any_of(objects.nodes.begin(), objects.nodes.end(),
                           [&](const api::Node& node) { return node.meta.name == word; });
    };
    constexpr std::string_view k_kind = "node/";  // as kubectl get -o name prints it
    if (name.starts_with(k_kind) && is_known(name.substr(k_kind.size()))) { name.erase(0, k_kind.size()); }
    if (!is_known(name)) { return NodeChange{std::nullopt, text}; }
    return NodeChange{name, end == std::string::npos ? "" : text.substr(end + 1)};
}

void check_node_name(const api::Objects& objects, const NodeChange& change) {
    const std::size_t end = change.text.find_first_of("=:");
    const std::string word = change.text.substr(0, end);
    if (change.node || change.says_all || end == std::string::npos || word.find('/') != std::string::npos) { return; }
    const bool is_node = std::count(change.text.begin(), change.text.end(), '=') > 1;
    std::vector<std::string> names;
    for (const auto& node : objects.nodes) { names.push_back(node.meta.name); }
    const auto near = base::nearest(word, names);
    if (!is_node && (!near || is_known_key(objects, word))) { return; }
    const std::string all = "*=" + change.text + " applies to all nodes";
    throw Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", base::escape(word)))
        .hint(is_node
                  ? near ? fmt::format("did you mean {}?", *near) : "write NODE=KEY..., or leave NODE out for all nodes"
                  : fmt::format("did you mean {}? {}", *near, base::escape(all)));
}

void reboot(api::Objects& objects, const std::optional<std::string>& node, const std::string& kernel) {
    change_nodes(objects, node, [&](api::Node& target) {
        if (!kernel.empty()) { target.kernel_version = kernel; }
        target.boot_id = k_boot_id;
    });
}

bool set_label(api::Objects& objects, const NodeChange& change) {
    const std::string& text = change.text;
    const bool remove = text.ends_with('-') && text.find('=') == std::string::npos;
    const std::size_t equals = text.find('=');
    const std::string key = remove ? text.substr(0, text.size() - 1) : text.substr(0, equals);
    if ((!remove && equals == std::string::npos) || !api::is_qualified_name(key)) {
        throw bad_change("bad-label", "[NODE=]KEY=VALUE or [NODE=]KEY-", text)
            .hint("--label node-a=pool=gpu, or --label pool=gpu for all");
    }
    const std::string value = remove ? "" : text.substr(equals + 1);
    if (!api::is_label_value(value)) {
        throw bad_change("bad-label", "a label value", value)
            .hint("letters, digits, '-', '_' and '.', at most 63; is the first part the name of a node?");
    }
    bool applies = !remove;
    change_nodes(objects, change.node, [&](api::Node& node) {
        if (remove) {
            applies = node.meta.labels.contains(key) || applies;
            node.meta.labels.erase(key);
        } else {
            node.meta.labels[key] = value;
        }
    });
    return applies;
}

bool set_taint(api::Objects& objects, const NodeChange& change) {
    std::string text = change.text;
    const bool remove = text.ends_with('-');
    if (remove) { text.pop_back(); }
    const std::size_t colon = text.rfind(':');
    const std::string effect = colon == std::string::npos ? "" : text.substr(colon + 1);
    const std::string front = text.substr(0, colon);
    const std::size_t equals = front.find('=');
    const api::Taint taint{front.substr(0, equals), equals == std::string::npos ? "" : front.substr(equals + 1),
                           effect};
    const bool effect_fits = is_effect(effect) || (remove && effect.empty());
    if (!effect_fits || !api::is_qualified_name(taint.key) || !api::is_label_value(taint.value)) {
        throw bad_change("bad-taint", "[NODE=]KEY[=VALUE]:EFFECT or [NODE=]KEY[:EFFECT]-", change.text)
            .hint("effects are NoSchedule, PreferNoSchedule and NoExecute");
    }
    bool applies = !remove;
    change_nodes(objects, change.node, [&](api::Node& node) {
        const auto gone = std::erase_if(node.taints, [&](const api::Taint& there) {
            return there.key == taint.key && (effect.empty() || there.effect == effect);
        });
        applies = applies || gone > 0;
        if (!remove) { node.taints.push_back(taint); }
    });
    return applies;
}

}  // namespace kmm::plan
