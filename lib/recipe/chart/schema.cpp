// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/schema.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/schema_format.hpp"
#include "recipe/chart/schema_tree.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/regex.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/template/tree.hpp"

namespace kmm::recipe::chart {

using tmpl::Map;
using tmpl::Type;
using tmpl::Value;

namespace {

constexpr std::size_t k_scopes_max = 2000;
constexpr std::size_t k_checks_max = 10'000'000;
constexpr std::size_t k_faults_max = 100;

double number_of(const Value& value) {
    return value.type() == Type::float64 ? value.as_real() : static_cast<double>(value.as_int());
}
bool is_number(const Value& value) { return value.type() == Type::float64 || value.is_int() || value.is_uint(); }

std::string_view json_type(const Value& value) {
    if (value.is_nil()) { return "null"; }
    if (value.is_map()) { return "object"; }
    if (value.is_list()) { return "array"; }
    if (value.is_text()) { return "string"; }
    if (value.type() == Type::boolean) { return "boolean"; }
    return "number";
}

bool same_json(const Value& a, const Value& b) {
    if (is_number(a) && is_number(b)) { return number_of(a) == number_of(b); }
    if (json_type(a) != json_type(b)) { return false; }
    if (a.is_map()) {
        return a.members().size() == b.members().size() &&
               std::equal(
                   a.members().begin(), a.members().end(), b.members().begin(),
                   [](const auto& x, const auto& y) { return x.first == y.first && same_json(x.second, y.second); });
    }
    if (a.is_list()) {
        return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same_json);
    }
    return tmpl::deep_equal(a, b);
}

/// The same text for values that are the same to a schema.
std::string json_identity(const Value& value) {
    if (is_number(value)) { return tmpl::json_number(number_of(value) + 0.0); }
    if (value.is_list()) {
        std::string text = "[";
        for (const auto& item : value.items()) { text += json_identity(item) + ','; }
        return text + ']';
    }
    if (!value.is_map()) { return tmpl::write_json(value); }
    std::string text = "{";
    for (const auto& [key, member] : value.members()) {
        text += tmpl::json_quoted(key, false) + ':' + json_identity(member) + ',';
    }
    return text + '}';
}

/// Members and items that no keyword has looked at so far; none are counted where nobody asks for them.
struct Unevaluated {
    std::set<std::string> members;
    std::set<std::size_t> items;

    Unevaluated() = default;
    Unevaluated(const Schema& schema, const Value& value, bool is_asked) {
        if (value.is_map() && schema.other_properties == nullptr &&
            (is_asked || schema.unevaluated_properties != nullptr)) {
            for (const auto& [key, member] : value.members()) { members.insert(key); }
        }
        const bool has_rest = schema.items != nullptr || schema.items_closed;
        if (value.is_list() && !has_rest && (is_asked || schema.unevaluated_items != nullptr)) {
            for (std::size_t i = schema.front_items.size(); i < value.items().size(); ++i) { items.insert(i); }
        }
    }

    [[nodiscard]] bool empty() const { return members.empty() && items.empty(); }
    void keep(const Unevaluated& other) {
        std::erase_if(members, [&](const std::string& key) { return !other.members.contains(key); });
        std::erase_if(items, [&](std::size_t i) { return !other.items.contains(i); });
    }
};

class Checker {
public:
    explicit Checker(const std::string& file) : file_(file) {}

    std::vector<std::string> faults;

    void check(const Schema& schema, const Value& value) {
        Unevaluated rest(schema, value, false);
        (void)check(schema, value, "", 0, rest);
    }

private:
    struct Scope {
        const Schema* schema;
        std::size_t depth;  ///< of the value that is checked
    };

    const std::string& file_;
    std::vector<Scope> scopes_;
    int silent_ = 0;           ///< faults count alone
    std::size_t counted_ = 0;  ///< faults so far
    std::size_t checks_ = 0;   ///< of values by schemas so far

    Error bad(std::string message) const {
        return Error(Exit::data, "bad-schema", std::move(message)).at(Position{file_, 0, 0});
    }

    void fault(const std::string& path, std::string_view message) {
        ++counted_;
        if (silent_ > 0 || faults.size() >= k_faults_max) { return; }
        faults.push_back(fmt::format("{}: {}", path.empty() ? "(root)" : base::escape(path), message));
    }

    static std::string below(const std::string& path, const std::string& key) {
        return path.empty() ? key : path + '.' + key;
    }

    /// Whether `value` meets `schema`; `rest` becomes what no keyword has looked at.
    bool check(const Schema& schema, const Value& value, const std::string& path, std::size_t depth,
               Unevaluated& rest) {
        const std::size_t before = counted_;
        if (++checks_ > k_checks_max) {
            throw Error(Exit::data, "recipe-too-large", "the schema takes too many steps").at(Position{file_, 0, 0});
        }
        if (schema.kind == Schema::Kind::anything) { return true; }
        if (schema.kind == Schema::Kind::metaschema) {
            try {
                check_schema(value, {}, "", file_, schema.draft);
            } catch (const Error& error) { fault(path, error.message()); }
            return before == counted_;
        }
        if (const Value* flag = schema.boolean()) {
            if (!flag->as_bool()) { fault(path, "is not allowed"); }
            return before == counted_;
        }
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend() && scope->depth == depth; ++scope) {
            if (scope->schema == &schema && !schema.value->members().empty()) {
                fault(path, "the schema refers to itself without an end");
                return false;
            }
        }
        if (scopes_.size() > k_scopes_max) { throw bad("the schema refers to itself too often"); }
        scopes_.push_back({&schema, depth});
        if (schema.ref != nullptr) { (void)self(*schema.ref, value, path, rest); }
        // Older drafts ignore what stands beside a reference.
        if (schema.ref == nullptr || schema.draft >= 2019) {
            check_any(schema, value, path);
            if (value.is_map()) { check_object(schema, value, path, rest); }
            if (value.is_list()) { check_array(schema, value, path, rest); }
            if (value.is_text()) { check_text(schema, value.text(), path); }
            if (is_number(value)) { check_number(schema, number_of(value), path); }
            check_references(schema, value, path, rest);
            check_combined(schema, value, path, rest);
            check_rest(schema, value, path, rest);
        }
        scopes_.pop_back();
        return before == counted_;
    }

    /// The same value by another schema.
    bool self(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        Unevaluated inner = schema.value == nullptr ? rest : Unevaluated(schema, value, !rest.empty());
        if (!check(schema, value, path, scopes_.back().depth, inner)) { return false; }
        rest.keep(inner);
        return true;
    }

    /// A member or an item.
    bool inner(const Schema& schema, const Value& value, const std::string& path) {
        Unevaluated rest(schema, value, false);
        return check(schema, value, path, scopes_.back().depth + 1, rest);
    }

    template <typename Check>
    bool passes(Check&& body) {
        const std::size_t before = counted_;
        ++silent_;
        const bool passed = body();
        --silent_;
        counted_ = before;
        return passed;
    }

    bool passes_self(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        return passes([&] { return self(schema, value, path, rest); });
    }

    void check_references(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        if (schema.recursive_ref != nullptr) {
            const Schema* target = schema.recursive_ref;
            const auto is_anchor = [](const Schema& one) {
                const Value* flag =
                    one.value == nullptr || !one.value->is_map() ? nullptr : one.find("$recursiveAnchor");
                return flag != nullptr && flag->type() == Type::boolean && flag->as_bool();
            };
            if (is_anchor(*target)) {
                const auto outer = std::find_if(scopes_.begin(), scopes_.end(),
                                                [&](const Scope& scope) { return is_anchor(*scope.schema->resource); });
                if (outer != scopes_.end()) { target = outer->schema; }
            }
            (void)self(*target, value, path, rest);
        }
        if (schema.dynamic_ref != nullptr) {
            const Schema* target = schema.dynamic_ref;
            const Value* anchor = target->value == nullptr || !target->value->is_map() || schema.dynamic_anchor.empty()
                                      ? nullptr
                                      : target->find("$dynamicAnchor");
            if (anchor != nullptr && anchor->text() == schema.dynamic_anchor) {
                for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
                    const auto& anchors = scope->schema->resource->anchors;
                    const auto found = anchors.find(schema.dynamic_anchor);
                    if (found != anchors.end()) { target = found->second; }
                }
            }
            (void)self(*target, value, path, rest);
        }
    }

    void check_rest(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        if (schema.unevaluated_properties != nullptr && value.is_map()) {
            for (const auto& key : rest.members) {
                other_member(*schema.unevaluated_properties, key, value.members().find(key)->second, path);
            }
            rest.members.clear();
        }
        if (schema.unevaluated_items != nullptr && value.is_list()) {
            for (const std::size_t i : rest.items) {
                (void)inner(*schema.unevaluated_items, value.items()[i], fmt::format("{}[{}]", path, i));
            }
            rest.items.clear();
        }
    }

    /// A member that no other keyword allows.
    void other_member(const Schema& schema, const std::string& key, const Value& member, const std::string& path) {
        const Value* flag = schema.value == nullptr ? nullptr : schema.boolean();
        if (flag != nullptr && !flag->as_bool()) {
            fault(path, fmt::format("the property {} is not allowed", base::escape(key)));
        } else {
            (void)inner(schema, member, below(path, key));
        }
    }

    static bool has_type(const Value& value, std::string_view type) {
        if (type == "integer") { return is_number(value) && std::trunc(number_of(value)) == number_of(value); }
        return json_type(value) == type;
    }

    void check_any(const Schema& schema, const Value& value, const std::string& path) {
        if (const Value* type = schema.find("type")) {
            std::vector<std::string> names;
            if (type->is_text()) { names = {type->text()}; }
            for (const auto& item : type->items()) { names.push_back(item.text()); }
            if (std::none_of(names.begin(), names.end(),
                             [&](const std::string& name) { return has_type(value, name); })) {
                const bool shows = !value.is_map() && !value.is_list() && !value.is_nil();
                fault(path, fmt::format("expected {}, found {}{}", tmpl::join_texts(names, " or "), json_type(value),
                                        shows ? ' ' + short_json(value) : ""));
            }
        }
        if (const Value* choices = schema.find("enum")) {
            const auto& items = choices->items();
            if (std::none_of(items.begin(), items.end(), [&](const Value& item) { return same_json(item, value); })) {
                fault(path, fmt::format("expected one of {}, found {}", tmpl::write_json(*choices, {false, false}),
                                        short_json(value)));
            }
        }
        if (const Value* name = schema.find("format");
            name != nullptr && schema.draft < 2019 && value.is_text() && !has_format(name->text(), value.text())) {
            fault(path, fmt::format("{} is not of the format {}", short_json(value), base::escape(name->text())));
        }
        if (const Value* constant = schema.find("const"); constant != nullptr && !same_json(*constant, value)) {
            fault(path,
                  fmt::format("expected {}, found {}", tmpl::write_json(*constant, {false, false}), short_json(value)));
        }
    }

    static std::string short_json(const Value& value) {
        const std::string text = tmpl::write_json(value, {false, false});
        return text.size() > 60 ? text.substr(0, 60) + "..." : text;
    }

    void check_combined(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        if (schema.none != nullptr && passes_self(*schema.none, value, path, rest)) {
            fault(path, "meets the schema of not");
        }
        for (const auto* one : schema.all_of) { (void)self(*one, value, path, rest); }
        if (!schema.any_of.empty()) {
            bool met = false;
            for (const auto* one : schema.any_of) {
                met = passes_self(*one, value, path, rest) || met;
                if (met && rest.empty()) { break; }
            }
            if (!met) { fault(path, "does not meet any schema of anyOf"); }
        }
        if (!schema.one_of.empty()) {
            const auto met = std::count_if(schema.one_of.begin(), schema.one_of.end(), [&](const Schema* one) {
                return passes_self(*one, value, path, rest);
            });
            if (met != 1) { fault(path, fmt::format("must meet one schema of oneOf, meets {}", met)); }
        }
        if (schema.condition != nullptr) {
            const Schema* next = passes_self(*schema.condition, value, path, rest) ? schema.then : schema.otherwise;
            if (next != nullptr) { (void)self(*next, value, path, rest); }
        }
    }

    void limits(const Schema& schema, std::string_view least, std::string_view most, std::size_t size,
                const std::string& path, std::string_view unit) {
        if (const Value* limit = schema.find(least);
            limit != nullptr && static_cast<double>(size) < number_of(*limit)) {
            fault(path, fmt::format("expected at least {} {}, found {}", number_of(*limit), unit, size));
        }
        if (const Value* limit = schema.find(most);
            limit != nullptr && static_cast<double>(size) > number_of(*limit)) {
            fault(path, fmt::format("expected at most {} {}, found {}", number_of(*limit), unit, size));
        }
    }

    void check_object(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        const auto& members = value.members();
        limits(schema, "minProperties", "maxProperties", members.size(), path, "properties");
        const auto require = [&](const Value& names) {
            for (const auto& name : names.items()) {
                if (!members.contains(name.text())) {
                    fault(path, fmt::format("the property {} is missing", base::escape(name.text())));
                }
            }
        };
        if (const Value* names = schema.find("required")) { require(*names); }
        for (const auto& [key, member] : members) {
            bool known = schema.other_properties != nullptr;
            bool named = false;
            if (const auto own = schema.properties.find(key); own != schema.properties.end()) {
                named = true;
                (void)inner(*own->second, member, below(path, key));
            }
            for (const auto& [pattern, one] : schema.patterns) {
                if (!matches(pattern, key)) { continue; }
                named = true;
                (void)inner(*one, member, below(path, key));
            }
            if (!named && known) { other_member(*schema.other_properties, key, member, path); }
            if (named || known) { rest.members.erase(key); }
            if (schema.property_names != nullptr) {
                (void)inner(*schema.property_names, Value::string(key), below(path, key));
            }
        }
        for (const auto keyword : {"dependencies", "dependentRequired"}) {
            const Value* dependent = schema.find(keyword);
            if (dependent == nullptr) { continue; }
            for (const auto& [key, names] : dependent->members()) {
                if (names.is_list() && members.contains(key)) { require(names); }
            }
        }
        for (const auto* dependent : {&schema.dependencies, &schema.dependent_schemas}) {
            for (const auto& [key, one] : *dependent) {
                if (members.contains(key)) { (void)self(*one, value, path, rest); }
            }
        }
    }

    void check_array(const Schema& schema, const Value& value, const std::string& path, Unevaluated& rest) {
        const auto& items = value.items();
        limits(schema, "minItems", "maxItems", items.size(), path, "items");
        if (const Value* unique = schema.find("uniqueItems"); unique != nullptr && unique->as_bool()) {
            std::map<std::string, std::size_t> seen;
            for (std::size_t i = 0; i < items.size(); ++i) {
                const auto [same, is_new] = seen.emplace(json_identity(items[i]), i);
                if (is_new) { continue; }
                fault(path, fmt::format("the items {} and {} are equal", same->second, i));
                break;
            }
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            const std::string place = fmt::format("{}[{}]", path, i);
            if (i < schema.front_items.size()) {
                (void)inner(*schema.front_items[i], items[i], place);
            } else if (schema.items != nullptr) {
                (void)inner(*schema.items, items[i], place);
            } else if (schema.items_closed) {
                fault(place, "is not allowed");
            }
        }
        if (schema.contains == nullptr) { return; }
        std::size_t met = 0;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (!passes([&] { return inner(*schema.contains, items[i], path); })) { continue; }
            ++met;
            if (schema.draft >= 2020) { rest.items.erase(i); }
        }
        const Value* least = schema.find("minContains");
        const Value* most = schema.find("maxContains");
        if (static_cast<double>(met) < (least == nullptr ? 1 : number_of(*least))) {
            fault(path, least == nullptr
                            ? "no item meets the schema of contains"
                            : fmt::format("{} items meet the schema of contains, fewer than minContains", met));
        }
        if (most != nullptr && static_cast<double>(met) > number_of(*most)) {
            fault(path, fmt::format("{} items meet the schema of contains, more than maxContains", met));
        }
    }

    void check_text(const Schema& schema, const std::string& text, const std::string& path) {
        limits(schema, "minLength", "maxLength", tmpl::runes(text).size(), path, "characters");
        if (const Value* pattern = schema.find("pattern"); pattern != nullptr && !matches(pattern->text(), text)) {
            fault(path, fmt::format("\"{}\" does not match {}", base::escape(text), base::escape(pattern->text())));
        }
    }

    bool matches(const std::string& pattern, const std::string& text) const {
        try {
            return tmpl::regex_matches(pattern, text);
        } catch (const tmpl::Fault& f) { throw bad(f.message); }
    }

    void check_number(const Schema& schema, double number, const std::string& path) {
        const auto compare = [&](std::string_view keyword, std::string_view words, auto&& holds) {
            const Value* limit = schema.find(keyword);
            if (limit != nullptr && is_number(*limit) && !holds(number_of(*limit))) {
                fault(path, fmt::format("expected {} {}, found {}", words, number_of(*limit), number));
            }
        };
        const Value* open_low = schema.find("exclusiveMinimum");
        const Value* open_high = schema.find("exclusiveMaximum");
        const bool low = open_low != nullptr && open_low->type() == Type::boolean && open_low->as_bool();
        const bool high = open_high != nullptr && open_high->type() == Type::boolean && open_high->as_bool();
        compare("minimum", low ? "more than" : "at least",
                [&](double limit) { return low ? number > limit : number >= limit; });
        compare("maximum", high ? "less than" : "at most",
                [&](double limit) { return high ? number < limit : number <= limit; });
        compare("exclusiveMinimum", "more than", [&](double limit) { return number > limit; });
        compare("exclusiveMaximum", "less than", [&](double limit) { return number < limit; });
        compare("multipleOf", "a multiple of", [&](double factor) {
            return factor == 0 || std::fabs(std::remainder(number, factor)) < 1e-9 * std::fabs(factor);
        });
    }
};

}  // namespace

std::vector<std::string> schema_faults(std::string_view schema, const std::string& file, const Value& values) {
    std::string fault;
    std::size_t at = 0;
    const Value root = tmpl::read_json_text(schema, fault, at);
    if (!fault.empty()) {
        throw tmpl::syntax_error(tmpl::Source{file, std::string(schema)}, at, "bad-schema", base::escape(fault), {})
            .hint("correct the JSON");
    }
    const SchemaTree tree(root, schema, file);
    Checker checker(file);
    checker.check(tree.root(), values);
    return std::move(checker.faults);
}

}  // namespace kmm::recipe::chart
