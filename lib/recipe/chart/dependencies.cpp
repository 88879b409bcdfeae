// SPDX-License-Identifier: Apache-2.0
// Which sub-charts of a chart count, under which names, and what of their values the parent takes over.
#include <algorithm>
#include <set>

#include "recipe/chart/values.hpp"
#include "recipe/template/format.hpp"
#include "recipe/template/text.hpp"
#include "recipe/template/version.hpp"

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

void apply_conditions(std::vector<Dependency>& dependencies, const Value& values, const std::string& path) {
    for (auto& dependency : dependencies) {
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

void apply_tags(std::vector<Dependency>& dependencies, const Value& values) {
    const Value* tags = find_table(values, "tags");
    if (tags == nullptr) { return; }
    for (auto& dependency : dependencies) {
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

void enable(Chart& chart, const Value& values, const std::string& path, Nulls nulls) {
    auto& wanted = chart.metadata.dependencies;
    if (!chart.metadata.lists_dependencies) { return; }
    std::vector<Chart> children;
    for (const auto& child : chart.children) {
        const bool named = std::any_of(wanted.begin(), wanted.end(), [&](const Dependency& d) {
            return d.name == child.name() && tmpl::is_compatible(d.version, child.metadata.version);
        });
        if (!named) { children.push_back(child); }
    }
    for (auto& dependency : wanted) {
        const auto child = std::find_if(chart.children.begin(), chart.children.end(), [&](const Chart& c) {
            return c.name() == dependency.name && tmpl::is_compatible(dependency.version, c.metadata.version);
        });
        if (child != chart.children.end()) {
            children.push_back(*child);
            children.back().is_listed = true;
            if (!dependency.alias.empty()) { children.back().metadata.name = dependency.alias; }
        }
        if (!dependency.alias.empty()) { dependency.name = dependency.alias; }
        dependency.enabled = true;
    }
    chart.children = std::move(children);
    const Value all = coalesce_values(chart, values, nulls);
    apply_tags(wanted, all);
    apply_conditions(wanted, all, path);
    std::set<std::string> removed;
    for (const auto& dependency : wanted) {
        if (!dependency.enabled) { removed.insert(dependency.name); }
    }
    std::erase_if(chart.children, [&](const Chart& c) { return removed.contains(c.name()); });
    std::erase_if(wanted, [&](const Dependency& d) { return removed.contains(d.name); });
    for (auto& child : chart.children) { enable(child, all, path + child.name() + '.', nulls); }
    // Copies of one chart under several names share the sub-charts that it does not list, which know the last of them
    // as their parent.
    for (auto& child : chart.children) {
        for (const auto& copy : chart.children) {
            if (copy.place != child.place || !copy.metadata.lists_dependencies) { continue; }
            for (auto& inner : child.children) {
                if (!inner.is_listed || &copy == &child) { inner.parent_name = copy.name(); }
            }
        }
    }
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

void import_values(Chart& chart, bool is_helm_3_7) {
    std::set<std::string> seen;
    for (auto& child : chart.children) {
        // Copies of one chart share their dependencies, whose imports are used up by the first of them.
        if (!seen.insert(child.place).second) {
            for (auto& dependency : child.metadata.dependencies) { dependency.import_values.clear(); }
        }
        import_values(child, is_helm_3_7);
    }
    if (chart.metadata.dependencies.empty()) { return; }
    const Value all = coalesce_values(chart, Value::map({}), is_helm_3_7 ? Nulls::helm_3_7 : Nulls::kept);
    Value imported = Value::map({});
    for (auto& dependency : chart.metadata.dependencies) {
        for (auto& import : dependency.import_values) {
            std::string from, to = ".";
            const bool is_named = import.is_map();
            if (import.is_map()) {
                from = member_text(import, "child");
                to = member_text(import, "parent");
            } else if (import.is_text()) {
                from = "exports." + import.text();
            } else {
                continue;
            }
            import =
                Value::map({{"child", Value::string(from)}, {"parent", Value::string(to)}}, tmpl::Type::string_map);
            const Value* table = find_table(all, dependency.name + '.' + from);
            if (table == nullptr) { continue; }
            if (is_helm_3_7 && is_named) { imported = all; }
            coalesce_tables(imported, nested(to, *table), is_helm_3_7 ? Nulls::helm_3_7 : Nulls::kept);
        }
    }
    if (is_helm_3_7) {
        // What is imported by a list alone wins over the chart's own values.
        coalesce_tables(imported, all, Nulls::helm_3_7);
        chart.values = imported;
        return;
    }
    const Value own = tmpl::deep_copy(all);
    coalesce_tables(own, imported, Nulls::kept);
    chart.values = own;
}

}  // namespace

void process_dependencies(Chart& chart, const Value& values, bool is_helm_3_7) {
    enable(chart, values, "", is_helm_3_7 ? Nulls::helm_3_7 : Nulls::removed);
    import_values(chart, is_helm_3_7);
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
