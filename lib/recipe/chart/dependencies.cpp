// SPDX-License-Identifier: Apache-2.0
// Which sub-charts of a chart count, under which names, and what of their values the parent takes over.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "recipe/chart/values.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"

namespace kmm::recipe::chart {

using tmpl::Map;
using tmpl::Value;

namespace {

/// The value at a path that is no mapping; nullptr if there is none.
const Value* path_value(const Value& values, std::string_view path) {
    const std::size_t dot = path.rfind('.');
    const Value* table = dot == std::string_view::npos ? &values : find_table(values, path.substr(0, dot));
    if (table == nullptr) { return nullptr; }
    const auto found = table->members().find(dot == std::string_view::npos ? path : path.substr(dot + 1));
    return found == table->members().end() || found->second.is_map() ? nullptr : &found->second;
}

/// Chart.yaml of a node. Its entries are shared with each copy of it.
struct Listed {
    std::string name;
    bool lists_dependencies = false;
    std::vector<Dependency*> dependencies;
};

/// A chart as Helm has it in memory: each entry of a list of dependencies makes a copy of the chart that it names, but
/// the copies share what is below it, entries and sub-charts alike. What is done to one shows in the others, and a
/// shared sub-chart knows as its parent the chart that took it last.
struct Node {
    const Chart* source = nullptr;
    Listed* listed = nullptr;
    Value values;
    std::vector<Node*> children;
    const Node* parent = nullptr;
    [[nodiscard]] const std::string& name() const { return listed->name; }
    [[nodiscard]] std::string path() const {
        return parent == nullptr ? name() : parent->path() + "/charts/" + name();
    }
    void take(std::vector<Node*> taken) {
        children = std::move(taken);
        for (auto* child : children) { child->parent = this; }
    }
};

/// Keeps nodes and what they share at their addresses.
struct Graph {
    std::deque<Node> nodes;
    std::deque<Listed> lists;
    std::deque<Dependency> entries;

    Node* add(const Chart& chart) {
        auto& listed = lists.emplace_back(Listed{chart.name(), chart.metadata.lists_dependencies, {}});
        for (const auto& one : chart.metadata.dependencies) {
            listed.dependencies.push_back(&entries.emplace_back(one));
        }
        auto& node = nodes.emplace_back(Node{&chart, &listed, chart.values, {}, nullptr});
        std::vector<Node*> children;
        for (const auto& child : chart.children) { children.push_back(add(child)); }
        node.take(std::move(children));
        return &node;
    }
    Node* copy(const Node& of, const std::string& alias) {
        auto& listed = lists.emplace_back(*of.listed);
        if (!alias.empty()) { listed.name = alias; }
        auto& node = nodes.emplace_back(of);
        node.listed = &listed;
        return &node;
    }
};

/// What the values of a chart are merged by.
Chart outline(const Node& node) {
    Chart made;
    made.metadata.name = node.name();
    made.place = node.source->place;
    made.values = node.values;
    made.values_text = node.source->values_text;
    for (const auto* child : node.children) { made.children.push_back(outline(*child)); }
    return made;
}

Chart whole(const Node& node) {
    Chart made;
    made.path = node.path();
    made.place = node.source->place;
    made.metadata = node.source->metadata;
    made.metadata.name = node.name();
    made.metadata.lists_dependencies = node.listed->lists_dependencies;
    made.metadata.dependencies.clear();
    for (const auto* one : node.listed->dependencies) { made.metadata.dependencies.push_back(*one); }
    made.values = node.values;
    made.values_text = node.source->values_text;
    made.schema = node.source->schema;
    made.templates = node.source->templates;
    made.files = node.source->files;
    made.notices = node.source->notices;
    for (const auto* child : node.children) { made.children.push_back(whole(*child)); }
    return made;
}

void apply_conditions(const std::vector<Dependency*>& dependencies, const Value& values, const std::string& path) {
    for (auto* entry : dependencies) {
        auto& dependency = *entry;
        for (const auto& condition : tmpl::split_text(tmpl::trim_space(dependency.condition), ",")) {
            if (condition.empty()) { continue; }
            const Value* value = path_value(values, path + condition);
            if (value != nullptr && value->type() == tmpl::Type::boolean) {
                dependency.enabled = value->as_bool();
                break;
            }
        }
    }
}

void apply_tags(const std::vector<Dependency*>& dependencies, const Value& values) {
    const Value* tags = find_table(values, "tags");
    if (tags == nullptr) { return; }
    for (auto* entry : dependencies) {
        auto& dependency = *entry;
        bool on = false, off = false;
        for (const auto& tag : dependency.tags) {
            const auto found = tags->members().find(tag);
            if (found != tags->members().end() && found->second.type() == tmpl::Type::boolean) {
                (found->second.as_bool() ? on : off) = true;
            }
        }
        dependency.enabled = on || !off;
    }
}

bool names(const Dependency& entry, const Node& child) {
    return child.name() == entry.name && tmpl::is_compatible(entry.version, child.source->metadata.version);
}

void enable(Graph& graph, Node& node, const Value& values, const std::string& path, Nulls nulls) {
    if (!node.listed->lists_dependencies) { return; }
    const auto wanted = node.listed->dependencies;
    std::vector<Node*> children;
    for (auto* child : node.children) {
        const bool is_named =
            std::any_of(wanted.begin(), wanted.end(), [&](const Dependency* one) { return names(*one, *child); });
        if (!is_named) { children.push_back(child); }
    }
    for (auto* dependency : wanted) {
        const auto child = std::find_if(node.children.begin(), node.children.end(),
                                        [&](const Node* one) { return names(*dependency, *one); });
        if (child != node.children.end()) { children.push_back(graph.copy(**child, dependency->alias)); }
        if (!dependency->alias.empty()) { dependency->name = dependency->alias; }
    }
    node.take(std::move(children));
    for (auto* dependency : wanted) { dependency->enabled = true; }
    const Value all = coalesce_values(outline(node), values, nulls);
    apply_tags(wanted, all);
    apply_conditions(wanted, all, path);
    std::set<std::string> removed;
    for (const auto* dependency : wanted) {
        if (!dependency->enabled) { removed.insert(dependency->name); }
    }
    auto left = node.children;
    std::erase_if(left, [&](const Node* one) { return removed.contains(one->name()); });
    auto entries = wanted;
    std::erase_if(entries, [&](const Dependency* one) { return removed.contains(one->name); });
    for (auto* child : left) { enable(graph, *child, all, path + child->name() + '.', nulls); }
    node.listed->lists_dependencies = !entries.empty();
    node.listed->dependencies = std::move(entries);
    node.take(std::move(left));
}

/// `value` below the keys of a path.
Value nested(std::string_view path, const Value& value) {
    if (path == ".") { return value; }
    const auto keys = tmpl::split_text(path, ".");
    Value at = value;
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) { at = Value::map({{*key, at}}); }
    return at;
}

std::string member_text(const Value& mapping, std::string_view key) {
    const auto found = mapping.members().find(key);
    return found == mapping.members().end() ? "<nil>" : tmpl::print_value(found->second);
}

void import_values(Node& node, bool is_helm_3_7) {
    for (auto* child : node.children) { import_values(*child, is_helm_3_7); }
    if (node.listed->dependencies.empty()) { return; }
    const Value all = coalesce_values(outline(node), Value::map({}), is_helm_3_7 ? Nulls::helm_3_7 : Nulls::kept);
    Value imported = Value::map({});
    for (auto* entry : node.listed->dependencies) {
        auto& dependency = *entry;
        // The first copy that comes here uses the imports up: what is written back is of a type that is not read again.
        const auto imports = std::exchange(dependency.import_values, {});
        for (const auto& import : imports) {
            std::string from, to = ".";
            const bool is_named = import.is_map() && import.type() != tmpl::Type::string_map;
            if (is_named) {
                from = member_text(import, "child");
                to = member_text(import, "parent");
            } else if (import.is_text()) {
                from = "exports." + import.text();
            } else {
                continue;
            }
            dependency.import_values.push_back(
                Value::map({{"child", Value::string(from)}, {"parent", Value::string(to)}}, tmpl::Type::string_map));
            const Value* table = find_table(all, dependency.name + '.' + from);
            if (table == nullptr) { continue; }
            if (is_helm_3_7 && is_named) { imported = all; }
            // An empty table is a new one for each import; what another import adds to it is not the child's.
            coalesce_tables(imported, nested(to, table->members().empty() ? Value::map({}) : *table),
                            is_helm_3_7 ? Nulls::helm_3_7 : Nulls::kept);
        }
    }
    if (is_helm_3_7) {
        // What is imported by a list alone wins over the chart's own values.
        coalesce_tables(imported, all, Nulls::helm_3_7);
        node.values = imported;
        return;
    }
    const Value own = tmpl::deep_copy(all);
    coalesce_tables(own, imported, Nulls::kept);
    node.values = own;
}

}  // namespace

void process_dependencies(Chart& chart, const Value& values, bool is_helm_3_7) {
    Graph graph;
    auto* root = graph.add(chart);
    enable(graph, *root, values, "", is_helm_3_7 ? Nulls::helm_3_7 : Nulls::removed);
    import_values(*root, is_helm_3_7);
    Chart made = whole(*root);
    chart = std::move(made);
}

std::vector<std::string> missing_dependencies(const Chart& chart) {
    std::vector<std::string> missing;
    for (const auto& dependency : chart.metadata.dependencies) {
        if (std::none_of(chart.children.begin(), chart.children.end(),
                         [&](const Chart& c) { return c.name() == dependency.name; })) {
            missing.push_back(dependency.name);
        }
    }
    return missing;
}

}  // namespace kmm::recipe::chart
