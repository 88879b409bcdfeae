// SPDX-License-Identifier: Apache-2.0
#include "report/tree_diff.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "value/writer.hpp"

namespace kmm::report {

namespace {

using value::Node;

std::string joined(const std::string& parent, const std::string& field) {
    if (parent.empty() || field.starts_with('[')) { return parent + field; }
    return fmt::format("{}.{}", parent, field);
}

/// A key of labels or annotations has dots of its own.
std::string field_name(const std::string& key) {
    return key.find_first_of("./[]") == std::string::npos ? key : fmt::format("[{}]", key);
}

std::string identity(const Node& item) {
    const std::string name = item.get_string({"name"});
    if (name.empty()) { return item.get_string({"key"}); }
    const std::string ns = item.get_string({"namespace"});
    return ns.empty() ? name : fmt::format("{}/{}", ns, name);
}

/// The items by identity; nullopt unless every item has one and no two the same.
std::optional<std::map<std::string, const Node*>> by_identity(const Node& list) {
    std::map<std::string, const Node*> result;
    for (const auto& item : list.items()) {
        const std::string name = identity(item);
        if (name.empty() || !result.emplace(name, &item).second) { return std::nullopt; }
    }
    return result;
}

class Comparison {
public:
    std::vector<Change> changes;

    void compare(const std::string& parent, const std::string& field, const Node& observed, const Node& wanted) {
        if (observed.same_value(wanted)) { return; }
        const std::string path = joined(parent, field);
        if (observed.is_mapping() && wanted.is_mapping()) {
            mappings(path, observed, wanted);
            return;
        }
        if (observed.is_sequence() && wanted.is_sequence()) {
            const auto left = by_identity(observed);
            const auto right = by_identity(wanted);
            if (left && right && !(left->empty() && right->empty())) {
                lists(path, *left, *right);
                return;
            }
        }
        changes.push_back({parent, field, observed, wanted});
    }

    void either(const std::string& parent, const std::string& field, const Node* observed, const Node* wanted) {
        if (observed == nullptr && wanted == nullptr) { return; }
        if (observed != nullptr && wanted != nullptr) {
            compare(parent, field, *observed, *wanted);
            return;
        }
        Change change{parent, field, std::nullopt, std::nullopt};
        if (observed != nullptr) { change.observed = *observed; }
        if (wanted != nullptr) { change.wanted = *wanted; }
        changes.push_back(std::move(change));
    }

private:
    void mappings(const std::string& path, const Node& observed, const Node& wanted) {
        std::set<std::string> keys;
        for (const Node* node : {&observed, &wanted}) {
            for (const auto& member : node->members()) { keys.insert(member.key); }
        }
        for (const auto& key : keys) { either(path, field_name(key), observed.find(key), wanted.find(key)); }
    }

    void lists(const std::string& path, const std::map<std::string, const Node*>& observed,
               const std::map<std::string, const Node*>& wanted) {
        std::set<std::string> names;
        for (const auto* side : {&observed, &wanted}) {
            for (const auto& [name, item] : *side) { names.insert(name); }
        }
        for (const auto& name : names) {
            const auto left = observed.find(name);
            const auto right = wanted.find(name);
            either(path, fmt::format("[{}]", name), left == observed.end() ? nullptr : left->second,
                   right == wanted.end() ? nullptr : right->second);
        }
    }
};

/// A field as YAML lines, each with `sign` in front.
std::string signed_lines(char sign, const Change& change, const Node& value) {
    const bool item =
        change.field.starts_with('[') && !change.parent.ends_with("labels") && !change.parent.ends_with("annotations");
    const std::string key =
        change.field.starts_with('[') ? change.field.substr(1, change.field.size() - 2) : change.field;
    const Node field = item ? Node::sequence({value}) : Node::mapping({{key, value}});
    const std::string yaml = value::to_yaml(change.field.empty() ? value : field);
    std::string text;
    for (const auto line : base::split(yaml, '\n')) {
        if (!line.empty()) { text += fmt::format("{}{}\n", sign, line); }
    }
    return text;
}

}  // namespace

std::string Change::path() const { return joined(parent, field); }

std::vector<Change> tree_changes(const Node& observed, const Node& wanted) {
    Comparison comparison;
    const auto present = [](const Node& root) { return root.is_null() ? nullptr : &root; };
    comparison.either("", "", present(observed), present(wanted));
    return std::move(comparison.changes);
}

std::string unified(const std::string& observed_name, const std::string& wanted_name,
                    const std::vector<Change>& changes) {
    if (changes.empty()) { return ""; }
    std::string text = fmt::format("--- {}\n+++ {}\n", base::printable(observed_name), base::printable(wanted_name));
    std::optional<std::string> hunk;
    for (const auto& change : changes) {
        if (hunk != change.parent) {
            hunk = change.parent;
            text += fmt::format("@@ {} @@\n", change.parent.empty() ? "." : base::printable(change.parent));
        }
        if (change.observed) { text += signed_lines('-', change, *change.observed); }
        if (change.wanted) { text += signed_lines('+', change, *change.wanted); }
    }
    return text;
}

std::string shown(const std::optional<Node>& value) {
    constexpr std::size_t k_shown_max = 60;
    if (!value) { return "nothing"; }
    if (value->is_mapping()) { return "a mapping"; }
    if (value->is_sequence()) { return "a list"; }
    std::string text = value->is_null() ? "null" : base::escape(value->text());
    if (text.size() > k_shown_max) { text = text.substr(0, k_shown_max) + "..."; }
    return text.empty() ? "\"\"" : text;
}

}  // namespace kmm::report
