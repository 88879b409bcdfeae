// SPDX-License-Identifier: Apache-2.0
// Sprig's functions of dictionaries. Where Go has them in the order of its maps, which is random, they are in order of
// the keys.
#include <algorithm>

#include <fmt/format.h>

#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_merge_depth_max = 500;

Map& to_change(const Value& value) {
    Map* members = value.shared_map();
    if (members == nullptr) { throw Fault{"assignment to entry in nil map"}; }
    return *members;
}

/// Charts that forget a key have whole contexts as keys, with addresses. That does no harm where nobody prints them,
/// which Run::look sees to.
std::string key_of(Call& call, const Value& value) {
    if (value.is_text() || value.type() == Type::bytes) { return value.text(); }
    std::string key = print_with_addresses(value);
    call.run.has_addresses = call.run.has_addresses || key.find(k_address) != std::string::npos;
    return key;
}

Value dict(Call& call, List& a) {
    Map members;
    for (std::size_t i = 0; i < a.size(); i += 2) {
        std::string key = key_of(call, a[i]);
        call.run.budget.take(member_bytes(key.size()));
        members[std::move(key)] = i + 1 < a.size() ? a[i + 1] : Value::string("");
    }
    return Value::map(std::move(members));
}

Value get(Call&, List& a) {
    const auto found = a[0].members().find(a[1].text());
    return found != a[0].members().end() ? found->second : Value::string("");
}

Value set(Call& call, List& a) {
    call.run.budget.take(member_bytes(a[1].text().size()));
    to_change(a[0])[a[1].text()] = a[2];
    call.run.remember(a[0]);
    return a[0].as(Type::map);
}

Value unset(Call&, List& a) {
    if (Map* members = a[0].shared_map()) { members->erase(a[1].text()); }
    return a[0].as(Type::map);
}

Value pluck(Call&, List& a) {
    List found;
    for (std::size_t i = 1; i < a.size(); ++i) {
        if (const auto member = a[i].members().find(a[0].text()); member != a[i].members().end()) {
            found.push_back(member->second);
        }
    }
    return Value::list(std::move(found));
}

Value keys(Call& call, List& a) {
    std::vector<std::string> names;
    for (const auto& one : a) {
        for (const auto& [key, value] : one.members()) {
            call.run.budget.take(sizeof(std::string) + text_bytes(key.size()));
            names.push_back(key);
        }
    }
    return Value::strings(std::move(names));
}

Value values(Call&, List& a) {
    List all;
    for (const auto& [key, value] : a[0].members()) { all.push_back(value); }
    return Value::list(std::move(all));
}

Value picked(const List& a, bool wanted) {
    Map members;
    for (const auto& [key, value] : a[0].members()) {
        const bool named = std::any_of(a.begin() + 1, a.end(), [&](const Value& name) { return name.text() == key; });
        if (named == wanted) { members.emplace(key, value); }
    }
    return Value::map(std::move(members));
}

/// mergo.Merge of maps: members that are missing or empty are taken over, with `overwrite` all that are not empty.
void merge_into(Run& run, Map& target, const Map& source, bool overwrite, int depth) {
    if (depth > k_merge_depth_max) { throw Fault{"dictionaries are nested too deep to merge", "recipe-too-large", ""}; }
    for (const auto& [key, from] : source) {
        run.step();
        const auto found = target.find(key);
        const bool there = found != target.end();
        if (!there) { run.budget.take(member_bytes(key.size())); }
        const bool nil_slice = (from.is_list() || from.is_map() || from.type() == Type::bytes) && from.is_none();
        if (from.is_nil()) {
            if (overwrite) { target[key] = from; }
            continue;
        }
        if (from.is_map() && !nil_slice && there && found->second.is_map()) {
            if (found->second.shared_map() != nullptr && !found->second.same_ref(from)) {
                merge_into(run, *found->second.shared_map(), from.members(), overwrite, depth + 1);
            }
            if (!empty(found->second)) { continue; }
        }
        if (from.is_list()) {
            // A list replaces a list only when all of the target is empty, or with `overwrite`.
            if (!there || found->second.is_nil()) {
                target[key] = Value::list({}, from.type());
            }
            if (!source.empty() && (overwrite || target.empty())) { target[key] = from; }
            if (there && !empty(found->second)) { continue; }
        }
        if (overwrite || !there || empty(found->second)) { target[key] = from; }
    }
}

Value merged(Call& call, List& a, bool overwrite) {
    if (a[0].is_none()) { a[0] = Value::map({}); }
    call.run.remember(a[0]);
    for (std::size_t i = 1; i < a.size(); ++i) {
        if (a[i].members().empty() || a[i].same_ref(a[0])) { continue; }
        merge_into(call.run, to_change(a[0]), a[i].members(), overwrite, 0);
    }
    return a[0].as(Type::map);
}

Value dig(Call&, List& a) {
    if (a.size() < 3) { throw Fault{"dig needs at least three arguments"}; }
    Value at = a.back();
    for (std::size_t i = 0; i + 2 < a.size(); ++i) {
        if (!a[i].is_text()) { throw Fault{fmt::format("key {} is {}, expected string", i + 1, type_name(a[i]))}; }
        if (at.type() != Type::map) {
            throw Fault{fmt::format("{} is not a dictionary but {}",
                                    i == 0 ? std::string("the last argument") : "the value of " + a[i - 1].text(),
                                    type_name(at))};
        }
        const auto found = at.members().find(a[i].text());
        if (found == at.members().end()) { return a[a.size() - 2]; }
        const Value next = found->second;
        at = next;
    }
    return at;
}

Value merge_plain(Call& call, List& a) { return merged(call, a, false); }
Value merge_over(Call& call, List& a) { return merged(call, a, true); }
Value copied(Call& call, List& a) {
    if (a[0].is_nil()) { throw Fault{"cannot copy nil"}; }
    return deep_copy(a[0], &call.run.budget);
}

}  // namespace

std::span<const Function> dict_functions() {
    static const Function table[] = {
        {"dict", "a", true, dict},
        {"get", "ms", false, get},
        {"set", "msa", false, set},
        {"unset", "ms", false, unset},
        {"hasKey", "ms", false, [](Call&, List& a) { return Value::boolean(a[0].members().contains(a[1].text())); }},
        {"pluck", "sm", true, pluck},
        {"keys", "m", true, keys},
        {"values", "m", false, values},
        {"pick", "ms", true, [](Call&, List& a) { return picked(a, true); }},
        {"omit", "ms", true, [](Call&, List& a) { return picked(a, false); }},
        {"merge", "mm", true, merge_plain},
        {"mustMerge", "mm", true, merge_plain},
        {"mergeOverwrite", "mm", true, merge_over},
        {"mustMergeOverwrite", "mm", true, merge_over},
        {"dig", "a", true, dig},
        {"deepCopy", "a", false, copied},
        {"mustDeepCopy", "a", false, copied},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
