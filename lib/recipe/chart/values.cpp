// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/values.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Map;
using tmpl::Value;

namespace {

constexpr const char* k_global = "global";

void coalesce_globals(Map& target, const Map& source, Nulls nulls) {
    Value own = Value::map({});
    if (const auto found = target.find(k_global); found != target.end()) {
        if (!found->second.is_map()) { return; }
        own = found->second;
        if (own.is_none()) { own = Value::map({}); }
    }
    const auto given = source.find(k_global);
    if (given != source.end() && !given->second.is_map()) { return; }
    if (given != source.end()) {
        Map& globals = *own.shared_map();
        for (const auto& [key, value] : given->second.members()) {
            const auto present = globals.find(key);
            if (value.is_map()) {
                const Value copy = Value::map(value.members());
                if (present == globals.end()) {
                    globals[key] = copy;
                } else if (present->second.is_map()) {
                    coalesce_tables(copy, present->second, nulls == Nulls::helm_3_7 ? nulls : Nulls::kept);
                    globals[key] = copy;
                }
            } else if (present == globals.end() || !present->second.is_map()) {
                globals[key] = value;
            }
        }
    }
    target[k_global] = own;
}

void coalesce_own(const Chart& chart, Map& values, Nulls nulls) {
    const Value defaults = tmpl::deep_copy(chart.values);
    for (const auto& [key, value] : defaults.members()) {
        const auto given = values.find(key);
        if (given == values.end()) {
            values[key] = value;
        } else if (given->second.is_nil() && nulls != Nulls::kept) {
            values.erase(given);
        } else if (given->second.is_map() && value.is_map()) {
            const bool child =
                std::any_of(chart.children.begin(), chart.children.end(),
                            [&, name = std::string_view(key)](const Chart& c) { return c.name() == name; });
            coalesce_tables(given->second, value, child && nulls == Nulls::removed ? Nulls::kept : nulls);
        }
    }
}

/// In values.yaml of the chart, if its value is the one that counts; else it was given.
Error wrong_child_values(const Chart& chart, const std::string& child, const Value& found) {
    const auto own = chart.values.members().find(child);
    const bool is_own = own != chart.values.members().end() && tmpl::deep_equal(own->second, found);
    auto text = fmt::format("{}: expected a mapping, as this is a sub-chart, found {}", base::escape(child),
                            tmpl::describe(found));
    Error error(Exit::data, "bad-values", is_own ? text : fmt::format("{}: value {}", chart.place, text));
    error.hint("rename the value, or give it the values of the sub-chart");
    if (!is_own) { return error; }
    Position place = tmpl::find_yaml_place(chart.values_text, {child});
    place.file = chart.place + "/values.yaml";
    return error.at(std::move(place));
}

void coalesce_chart(const Chart& chart, const Value& values, Nulls nulls) {
    Map& members = *values.shared_map();
    coalesce_own(chart, members, nulls);
    for (const auto& child : chart.children) {
        auto found = members.find(child.name());
        if (found == members.end()) {
            found = members.emplace(child.name(), Value::map({})).first;
        } else if (!found->second.is_map()) {
            throw wrong_child_values(chart, child.name(), found->second);
        }
        if (found->second.is_none()) { found->second = Value::map({}); }
        coalesce_globals(*found->second.shared_map(), members, nulls);
        const Value inner = found->second;
        coalesce_chart(child, inner, nulls);
    }
}

}  // namespace

Value merge_values(const Value& under, const Value& over) {
    Map merged = under.members();
    for (const auto& [key, value] : over.members()) {
        const auto present = merged.find(key);
        if (value.is_map() && present != merged.end() && present->second.is_map()) {
            present->second = merge_values(present->second, value);
        } else {
            merged[key] = value;
        }
    }
    return Value::map(std::move(merged));
}

Value coalesce_values(const Chart& chart, const Value& given, Nulls nulls) {
    Value values = given.is_none() ? Value::map({}) : tmpl::deep_copy(given);
    coalesce_chart(chart, values, nulls);
    return values;
}

void coalesce_tables(const Value& target, const Value& source, Nulls nulls) {
    if (target.is_none() || source.is_none()) { return; }
    Map& into = *target.shared_map();
    Map& from = *source.shared_map();
    if (nulls == Nulls::helm_3_7) {
        for (const auto& [key, value] : from) {
            const auto present = into.find(key);
            if (present == into.end()) {
                into[key] = value;
            } else if (present->second.is_nil()) {
                into.erase(present);
            } else if (value.is_map() && present->second.is_map() && !present->second.same_ref(value)) {
                coalesce_tables(present->second, value, nulls);
            }
        }
        return;
    }
    std::set<std::string> set_keys;
    for (const auto& [key, value] : from) {
        if (!value.is_nil()) { set_keys.insert(key); }
    }
    for (const auto& [key, value] : into) {
        if (value.is_nil()) { from[key] = Value::nil(); }
    }
    for (const auto& [key, value] : from) {
        const auto present = into.find(key);
        if (present != into.end() && nulls != Nulls::kept && present->second.is_nil() && set_keys.contains(key)) {
            into.erase(present);
        } else if (present == into.end()) {
            into[key] = value;
        } else if (value.is_map() && present->second.is_map() && !present->second.same_ref(value)) {
            coalesce_tables(present->second, value, nulls);
        }
    }
}

const Value* find_table(const Value& values, std::string_view path) {
    const Value* at = &values;
    for (const auto& name : tmpl::split_text(path, ".")) {
        const auto found = at->members().find(name);
        if (found == at->members().end() || !found->second.is_map()) { return nullptr; }
        at = &found->second;
    }
    return at;
}

const Value* child_at(const Value& value, const std::string& step) {
    constexpr std::size_t k_digits_max = 6;
    if (value.is_map()) {
        const auto found = value.members().find(step);
        return found == value.members().end() ? nullptr : &found->second;
    }
    const bool is_number =
        !step.empty() && step.size() <= k_digits_max && step.find_first_not_of("0123456789") == std::string::npos;
    if (!value.is_list() || !is_number) { return nullptr; }
    const auto index = static_cast<std::size_t>(std::stoul(step));
    return index < value.items().size() ? &value.items()[index] : nullptr;
}

}  // namespace kmm::recipe::chart
