// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/schema.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/template/functions.hpp"
#include "recipe/template/json.hpp"
#include "recipe/template/text.hpp"
#include "recipe/template/tree.hpp"
#include "recipe/template/unicode.hpp"

namespace kmm::recipe::chart {

using tmpl::Map;
using tmpl::Type;
using tmpl::Value;

namespace {

constexpr int k_schema_depth_max = 200;
constexpr std::size_t k_faults_max = 100;
constexpr std::array<std::string_view, 4> k_unsupported{"unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
                                                        "$recursiveRef"};

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

class Checker {
public:
    Checker(const Value& root, const std::string& file) : root_(root), file_(file), draft_(schema_draft(root)) {}

    std::vector<std::string> faults;

    void check(const Value& schema, const Value& value, const std::string& path, int depth = 0) {
        if (faults.size() >= k_faults_max) { return; }
        if (depth > k_schema_depth_max) { throw bad("the schema refers to itself without an end"); }
        if (schema.type() == Type::boolean) {
            if (!schema.as_bool()) { fault(path, "is not allowed"); }
            return;
        }
        if (!schema.is_map()) {
            throw bad(fmt::format("a schema is an object or a boolean, found {}", json_type(schema)));
        }
        for (const auto keyword : k_unsupported) {
            if (find(schema, keyword) != nullptr) {
                throw bad(fmt::format("the keyword {} is not supported", keyword));
            }
        }
        if (const Value* ref = find(schema, "$ref")) { check(resolve(*ref), value, path, depth + 1); }
        check_any(schema, value, path);
        check_combined(schema, value, path, depth);
        if (value.is_map()) { check_object(schema, value, path, depth); }
        if (value.is_list()) { check_array(schema, value, path, depth); }
        if (value.is_text()) { check_text(schema, value.text(), path); }
        if (is_number(value)) { check_number(schema, number_of(value), path); }
    }

private:
    const Value& root_;
    const std::string& file_;
    int draft_;

    Error bad(std::string message) const {
        return Error(Exit::data, "bad-schema", std::move(message)).at(Position{file_, 0, 0});
    }

    void fault(const std::string& path, std::string_view message) {
        faults.push_back(fmt::format("{}: {}", path.empty() ? "(root)" : base::escape(path), message));
    }

    /// The keyword, if the draft has it.
    const Value* find(const Value& schema, std::string_view key) const {
        if (draft_ < first_draft(key)) { return nullptr; }
        const auto found = schema.members().find(key);
        return found == schema.members().end() ? nullptr : &found->second;
    }

    static std::string below(const std::string& path, const std::string& key) {
        return path.empty() ? key : path + '.' + key;
    }

    bool passes(const Value& schema, const Value& value, int depth) {
        Checker inner(root_, file_);
        inner.check(schema, value, "", depth + 1);
        return inner.faults.empty();
    }

    const Value& resolve(const Value& ref) const {
        const std::string& text = ref.text();
        if (text == "#") { return root_; }
        if (!text.starts_with("#/")) {
            throw bad(fmt::format("$ref {}: only references within the file are supported", base::escape(text)));
        }
        const Value* found = find_in_schema(root_, text);
        if (found == nullptr) { throw bad(fmt::format("$ref {} leads nowhere", base::escape(text))); }
        return *found;
    }

    static bool has_type(const Value& value, std::string_view type) {
        if (type == "integer") { return is_number(value) && std::trunc(number_of(value)) == number_of(value); }
        return json_type(value) == type;
    }

    void check_any(const Value& schema, const Value& value, const std::string& path) {
        if (const Value* type = find(schema, "type")) {
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
        if (const Value* choices = find(schema, "enum")) {
            const auto& items = choices->items();
            if (std::none_of(items.begin(), items.end(), [&](const Value& item) { return same_json(item, value); })) {
                fault(path, fmt::format("expected one of {}, found {}", tmpl::write_json(*choices, {false, false}),
                                        short_json(value)));
            }
        }
        if (const Value* constant = find(schema, "const"); constant != nullptr && !same_json(*constant, value)) {
            fault(path,
                  fmt::format("expected {}, found {}", tmpl::write_json(*constant, {false, false}), short_json(value)));
        }
    }

    static std::string short_json(const Value& value) {
        const std::string text = tmpl::write_json(value, {false, false});
        return text.size() > 60 ? text.substr(0, 60) + "..." : text;
    }

    void check_combined(const Value& schema, const Value& value, const std::string& path, int depth) {
        if (const Value* all = find(schema, "allOf")) {
            for (const auto& one : all->items()) { check(one, value, path, depth + 1); }
        }
        const auto count = [&](const Value& list) {
            return std::count_if(list.items().begin(), list.items().end(),
                                 [&](const Value& one) { return passes(one, value, depth); });
        };
        if (const Value* any = find(schema, "anyOf"); any != nullptr && count(*any) == 0) {
            fault(path, "does not meet any schema of anyOf");
        }
        if (const Value* one = find(schema, "oneOf")) {
            const auto met = count(*one);
            if (met != 1) { fault(path, fmt::format("must meet one schema of oneOf, meets {}", met)); }
        }
        if (const Value* none = find(schema, "not"); none != nullptr && passes(*none, value, depth)) {
            fault(path, "meets the schema of not");
        }
        if (const Value* condition = find(schema, "if")) {
            const Value* then = find(schema, passes(*condition, value, depth) ? "then" : "else");
            if (then != nullptr) { check(*then, value, path, depth + 1); }
        }
    }

    void limits(const Value& schema, std::string_view least, std::string_view most, std::size_t size,
                const std::string& path, std::string_view unit) {
        if (const Value* limit = find(schema, least);
            limit != nullptr && static_cast<double>(size) < number_of(*limit)) {
            fault(path, fmt::format("expected at least {} {}, found {}", number_of(*limit), unit, size));
        }
        if (const Value* limit = find(schema, most);
            limit != nullptr && static_cast<double>(size) > number_of(*limit)) {
            fault(path, fmt::format("expected at most {} {}, found {}", number_of(*limit), unit, size));
        }
    }

    void check_object(const Value& schema, const Value& value, const std::string& path, int depth) {
        limits(schema, "minProperties", "maxProperties", value.members().size(), path, "properties");
        const auto require = [&](const Value& names) {
            for (const auto& name : names.items()) {
                if (!value.members().contains(name.text())) {
                    fault(path, fmt::format("the property {} is missing", base::escape(name.text())));
                }
            }
        };
        if (const Value* names = find(schema, "required")) { require(*names); }
        const Value* properties = find(schema, "properties");
        const Value* patterns = find(schema, "patternProperties");
        const Value* others = find(schema, "additionalProperties");
        const Value* names = find(schema, "propertyNames");
        for (const auto& [key, member] : value.members()) {
            bool known = false;
            if (properties != nullptr) {
                if (const auto inner = properties->members().find(key); inner != properties->members().end()) {
                    known = true;
                    check(inner->second, member, below(path, key), depth + 1);
                }
            }
            if (patterns != nullptr) {
                for (const auto& [pattern, inner] : patterns->members()) {
                    if (!matches(pattern, key)) { continue; }
                    known = true;
                    check(inner, member, below(path, key), depth + 1);
                }
            }
            if (!known && others != nullptr) {
                if (others->type() == Type::boolean && !others->as_bool()) {
                    fault(path, fmt::format("the property {} is not allowed", base::escape(key)));
                } else {
                    check(*others, member, below(path, key), depth + 1);
                }
            }
            if (names != nullptr) { check(*names, Value::string(key), below(path, key), depth + 1); }
        }
        for (const auto keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
            const Value* dependent = find(schema, keyword);
            if (dependent == nullptr) { continue; }
            for (const auto& [key, inner] : dependent->members()) {
                if (!value.members().contains(key)) { continue; }
                if (inner.is_list()) {
                    require(inner);
                } else {
                    check(inner, value, path, depth + 1);
                }
            }
        }
    }

    void check_array(const Value& schema, const Value& value, const std::string& path, int depth) {
        const auto& items = value.items();
        limits(schema, "minItems", "maxItems", items.size(), path, "items");
        if (const Value* unique = find(schema, "uniqueItems"); unique != nullptr && unique->as_bool()) {
            for (std::size_t i = 0; i < items.size(); ++i) {
                const auto same = std::find_if(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i),
                                               [&](const Value& v) { return same_json(v, items[i]); });
                if (same != items.begin() + static_cast<std::ptrdiff_t>(i)) {
                    fault(path, fmt::format("the items {} and {} are equal", same - items.begin(), i));
                    break;
                }
            }
        }
        if (const Value* contains = find(schema, "contains")) {
            const auto met = std::count_if(items.begin(), items.end(),
                                           [&](const Value& item) { return passes(*contains, item, depth); });
            const Value* least = find(schema, "minContains");
            const Value* most = find(schema, "maxContains");
            if (static_cast<double>(met) < (least == nullptr ? 1 : number_of(*least))) {
                fault(path, least == nullptr
                                ? "no item meets the schema of contains"
                                : fmt::format("{} items meet the schema of contains, fewer than minContains", met));
            }
            if (most != nullptr && static_cast<double>(met) > number_of(*most)) {
                fault(path, fmt::format("{} items meet the schema of contains, more than maxContains", met));
            }
        }
        const Value* each = find(schema, "items");
        const Value* front = find(schema, "prefixItems");
        const Value* rest = each;
        if (each != nullptr && each->is_list()) {
            front = each;
            rest = find(schema, "additionalItems");
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            const std::string inner = fmt::format("{}[{}]", path, i);
            if (front != nullptr && i < front->items().size()) {
                check(front->items()[i], items[i], inner, depth + 1);
            } else if (rest != nullptr) {
                check(*rest, items[i], inner, depth + 1);
            }
        }
    }

    void check_text(const Value& schema, const std::string& text, const std::string& path) {
        limits(schema, "minLength", "maxLength", tmpl::runes(text).size(), path, "characters");
        if (const Value* pattern = find(schema, "pattern"); pattern != nullptr && !matches(pattern->text(), text)) {
            fault(path, fmt::format("\"{}\" does not match {}", base::escape(text), base::escape(pattern->text())));
        }
    }

    bool matches(const std::string& pattern, const std::string& text) const {
        try {
            return tmpl::regex_matches(pattern, text);
        } catch (const tmpl::Fault& f) { throw bad(f.message); }
    }

    void check_number(const Value& schema, double number, const std::string& path) {
        const auto compare = [&](std::string_view keyword, std::string_view words, auto&& holds) {
            const Value* limit = find(schema, keyword);
            if (limit != nullptr && is_number(*limit) && !holds(number_of(*limit))) {
                fault(path, fmt::format("expected {} {}, found {}", words, number_of(*limit), number));
            }
        };
        const Value* open_low = find(schema, "exclusiveMinimum");
        const Value* open_high = find(schema, "exclusiveMaximum");
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
    check_schema(root, schema, file);
    Checker checker(root, file);
    checker.check(root, values, "");
    return std::move(checker.faults);
}

}  // namespace kmm::recipe::chart
