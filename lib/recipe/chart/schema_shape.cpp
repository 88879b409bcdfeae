// SPDX-License-Identifier: Apache-2.0
// Whether a schema is one: what the metaschemas of JSON Schema say about each keyword.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/schema.hpp"
#include "recipe/chart/schema_format.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/regex.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Type;
using tmpl::Value;

namespace {

constexpr int k_depth_max = 200;
constexpr std::array<std::string_view, 7> k_types{"array", "boolean", "integer", "null", "number", "object", "string"};

enum class Shape {
    schema,
    schema_or_flag,
    schemas,
    schemas_list,
    items,
    dependencies,
    any,
    type,
    texts,
    choices,
    list,
    text,
    pattern,
    flag,
    number,
    size,
    factor,
    bound,
    url,
    reference,
    anchor,
    vocabulary
};

struct Keyword {
    std::string_view name;
    Shape shape;
    int since = 4;
    int until = 2020;
};

/// Drafts are 4, 6, 7, 2019 and 2020. No draft below limits `any`.
constexpr std::array k_keywords{Keyword{"type", Shape::type},
                                Keyword{"enum", Shape::choices},
                                Keyword{"required", Shape::texts},
                                Keyword{"multipleOf", Shape::factor},
                                Keyword{"minimum", Shape::number},
                                Keyword{"maximum", Shape::number},
                                Keyword{"exclusiveMinimum", Shape::bound},
                                Keyword{"exclusiveMaximum", Shape::bound},
                                Keyword{"minLength", Shape::size},
                                Keyword{"maxLength", Shape::size},
                                Keyword{"minItems", Shape::size},
                                Keyword{"maxItems", Shape::size},
                                Keyword{"minProperties", Shape::size},
                                Keyword{"maxProperties", Shape::size},
                                Keyword{"minContains", Shape::size, 2019},
                                Keyword{"maxContains", Shape::size, 2019},
                                Keyword{"pattern", Shape::pattern},
                                Keyword{"uniqueItems", Shape::flag},
                                Keyword{"readOnly", Shape::flag, 7},
                                Keyword{"writeOnly", Shape::flag, 7},
                                Keyword{"deprecated", Shape::flag, 2019},
                                Keyword{"title", Shape::text},
                                Keyword{"description", Shape::text},
                                Keyword{"$comment", Shape::text, 7},
                                Keyword{"format", Shape::text},
                                Keyword{"$schema", Shape::url},
                                Keyword{"$ref", Shape::reference},
                                Keyword{"id", Shape::text, 4, 4},
                                Keyword{"$id", Shape::reference, 6},
                                Keyword{"$anchor", Shape::anchor, 2019},
                                Keyword{"$dynamicAnchor", Shape::anchor, 2020},
                                Keyword{"$recursiveAnchor", Shape::anchor, 2019},
                                Keyword{"$vocabulary", Shape::vocabulary, 2019},
                                Keyword{"contentSchema", Shape::schema, 2019},
                                Keyword{"contentEncoding", Shape::text, 7},
                                Keyword{"contentMediaType", Shape::text, 7},
                                Keyword{"examples", Shape::list, 6},
                                Keyword{"properties", Shape::schemas},
                                Keyword{"patternProperties", Shape::schemas},
                                Keyword{"definitions", Shape::schemas},
                                Keyword{"$defs", Shape::schemas, 2019},
                                Keyword{"dependentSchemas", Shape::schemas, 2019},
                                Keyword{"dependencies", Shape::dependencies},
                                Keyword{"dependentRequired", Shape::dependencies, 2019},
                                Keyword{"additionalProperties", Shape::schema_or_flag},
                                Keyword{"propertyNames", Shape::schema, 6},
                                Keyword{"contains", Shape::schema, 6},
                                Keyword{"not", Shape::schema},
                                Keyword{"if", Shape::schema, 7},
                                Keyword{"then", Shape::schema, 7},
                                Keyword{"else", Shape::schema, 7},
                                Keyword{"items", Shape::items},
                                Keyword{"additionalItems", Shape::schema_or_flag, 4, 2019},
                                Keyword{"allOf", Shape::schemas_list},
                                Keyword{"anyOf", Shape::schemas_list},
                                Keyword{"oneOf", Shape::schemas_list},
                                Keyword{"prefixItems", Shape::schemas_list, 2020},
                                Keyword{"const", Shape::any, 6},
                                Keyword{"unevaluatedProperties", Shape::schema, 2019},
                                Keyword{"unevaluatedItems", Shape::schema, 2019},
                                Keyword{"$recursiveRef", Shape::reference, 2019},
                                Keyword{"$dynamicRef", Shape::reference, 2020}};

class ShapeCheck {
public:
    ShapeCheck(std::string_view text, const std::string& file, std::vector<std::string> path, int draft)
        : text_(text), file_(file), path_(std::move(path)), draft_(draft) {}

    void run(const Value& value) { schema(value, 0); }

private:
    std::string_view text_;
    const std::string& file_;
    std::vector<std::string> path_;
    int draft_;

    Error bad(std::string message) const {
        Position position = tmpl::find_yaml_place(text_, path_);
        position.file = file_;
        return Error(Exit::data, "bad-schema", std::move(message)).at(std::move(position));
    }

    void expect(bool holds, std::string_view expected, const Value& found) const {
        if (holds) { return; }
        const std::string name = path_.empty() ? "the schema" : base::escape(base::join(path_, "."));
        throw bad(fmt::format("{}: expected {}, found {}", name, expected, tmpl::describe(found)));
    }

    template <typename Body>
    void at(const std::string& step, Body&& body) {
        path_.push_back(step);
        body();
        path_.pop_back();
    }

    /// What has an identifier may be of another draft than what is around it.
    int draft_inside(const Value& value, int depth) const {
        if (depth == 0 || !value.is_map()) { return draft_; }
        const auto named = value.members().find("$schema");
        if (named == value.members().end() || !named->second.is_text()) { return draft_; }
        const int draft = draft_of(named->second.text()).value_or(draft_);
        const auto id = value.members().find(draft == 4 ? "id" : "$id");
        const bool hidden = draft < 2019 && value.members().contains("$ref");
        const bool is_resource = !hidden && id != value.members().end() && id->second.is_text() &&
                                 !id->second.text().empty() && id->second.text()[0] != '#';
        return is_resource ? draft : draft_;
    }

    void schema(const Value& value, int depth) {
        if (depth > k_depth_max) { throw bad("the schema is nested too deep"); }
        const int around = draft_;
        draft_ = draft_inside(value, depth);
        keywords(value, depth);
        draft_ = around;
    }

    void keywords(const Value& value, int depth) {
        if (value.type() == Type::boolean && draft_ > 4) { return; }
        expect(value.is_map(), draft_ > 4 ? "a schema: an object or a boolean" : "a schema: an object", value);
        if (draft_ == 4) {
            constexpr std::array<std::pair<std::string_view, std::string_view>, 2> k_pairs{
                {{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}}};
            for (const auto& [flag, limit] : k_pairs) {
                if (value.members().contains(flag) && !value.members().contains(limit)) {
                    throw bad(fmt::format("{} needs {} beside it", flag, limit));
                }
            }
        }
        for (const auto& keyword : k_keywords) {
            const auto found = value.members().find(keyword.name);
            if (found == value.members().end() || draft_ < keyword.since || draft_ > keyword.until) { continue; }
            at(std::string(keyword.name), [&] { member(keyword, found->second, depth + 1); });
        }
    }

    void each(const Value& list, int depth) {
        for (std::size_t i = 0; i < list.items().size(); ++i) {
            at(std::to_string(i), [&] { schema(list.items()[i], depth); });
        }
    }

    void distinct_texts(const Value& list) const {
        expect(list.is_list(), "a list of strings", list);
        std::set<std::string> seen;
        for (const auto& item : list.items()) {
            expect(item.is_text(), "a list of strings", item);
            expect(seen.insert(item.text()).second, "each string once", item);
        }
    }

    void distinct(const Value& list) const {
        std::set<std::string> seen;
        for (const auto& item : list.items()) {
            expect(seen.insert(tmpl::write_json(item)).second, "each item once", item);
        }
    }

    void anchor(const Keyword& keyword, const Value& value) const {
        if (draft_ == 2019 && keyword.name == "$recursiveAnchor") {
            return expect(value.type() == Type::boolean, "true or false", value);
        }
        constexpr std::string_view k_wanted = "a name of letters, digits, -, . and _ that begins with a letter";
        expect(value.is_text(), k_wanted, value);
        static const std::string old = "^[A-Za-z][-A-Za-z0-9.:_]*$", current = "^[A-Za-z_][-A-Za-z0-9._]*$";
        expect(tmpl::regex_matches(draft_ == 2019 ? old : current, value.text()), k_wanted, value);
    }

    void regex(const std::string& pattern) const {
        try {
            (void)tmpl::regex_matches(pattern, "");
        } catch (const tmpl::Fault& fault) { throw bad(fault.message); }
    }

    void member(const Keyword& keyword, const Value& value, int depth) {
        const bool is_number = value.type() == Type::float64;
        const double number = is_number ? value.as_real() : 0;
        switch (keyword.shape) {
            case Shape::any: return;
            case Shape::schema: return schema(value, depth);
            case Shape::schema_or_flag: return value.type() == Type::boolean ? void() : schema(value, depth);
            case Shape::schemas:
                expect(value.is_map(), "an object of schemas", value);
                for (const auto& [key, inner] : value.members()) {
                    at(key, [&] {
                        if (keyword.name == "patternProperties") { regex(key); }
                        schema(inner, depth);
                    });
                }
                return;
            case Shape::schemas_list:
                expect(value.is_list() && value.items().begin() != value.items().end(), "a list of schemas", value);
                return each(value, depth);
            case Shape::items:
                if (!value.is_list() || draft_ == 2020) { return schema(value, depth); }
                return each(value, depth);
            case Shape::dependencies:
                expect(value.is_map(), "an object of schemas and of lists of strings", value);
                for (const auto& [key, inner] : value.members()) {
                    at(key, [&] {
                        const bool texts = inner.is_list() || keyword.name == "dependentRequired";
                        return texts ? distinct_texts(inner) : schema(inner, depth);
                    });
                }
                return;
            case Shape::type: return type(value);
            case Shape::texts:
                distinct_texts(value);
                return expect(draft_ > 4 || value.items().begin() != value.items().end(), "a string in the list",
                              value);
            case Shape::choices:
                expect(value.is_list(), "a list", value);
                if (draft_ > 7) { return; }
                expect(value.items().begin() != value.items().end(), "an item in the list", value);
                return distinct(value);
            case Shape::list: return expect(value.is_list(), "a list", value);
            case Shape::text:
                return expect(value.is_text(), "a string", value);
            case Shape::url:
                return expect(value.is_text() && (draft_ < 6 || has_format("uri", value.text())), "a URL", value);
            case Shape::reference: {
                expect(value.is_text(), "a string", value);
                const std::string& text = value.text();
                const bool plain = keyword.name != "$id" || draft_ < 2019 || text.find('#') >= text.size() - 1;
                return expect(draft_ < 6 || (plain && has_format("uri-reference", text)),
                              plain ? "a reference to a URL" : "a URL without a fragment", value);
            }
            case Shape::anchor: return anchor(keyword, value);
            case Shape::vocabulary:
                expect(value.is_map(), "an object of booleans", value);
                for (const auto& [key, inner] : value.members()) {
                    at(key, [&] {
                        expect(has_format("uri", key), "a URL as its name", Value::string(key));
                        expect(inner.type() == Type::boolean, "true or false", inner);
                    });
                }
                return;
            case Shape::pattern:
                expect(value.is_text(), "a regular expression", value);
                return regex(value.text());
            case Shape::flag: return expect(value.type() == Type::boolean, "true or false", value);
            case Shape::number: return expect(is_number, "a number", value);
            case Shape::size:
                return expect(is_number && number >= 0 && std::trunc(number) == number, "a whole number, 0 or more",
                              value);
            case Shape::factor: return expect(is_number && number > 0, "a number above 0", value);
            case Shape::bound:
                if (draft_ == 4) { return expect(value.type() == Type::boolean, "true or false", value); }
                return expect(is_number, "a number", value);
        }
    }

    void type(const Value& value) const {
        const auto known = [](const Value& name) {
            return name.is_text() && std::find(k_types.begin(), k_types.end(), name.text()) != k_types.end();
        };
        constexpr std::string_view k_wanted = "array, boolean, integer, null, number, object, string or a list of them";
        if (!value.is_list()) { return expect(known(value), k_wanted, value); }
        expect(value.items().begin() != value.items().end(), k_wanted, value);
        for (const auto& name : value.items()) { expect(known(name), k_wanted, name); }
        distinct_texts(value);
    }
};

}  // namespace

bool has_keyword(int draft, std::string_view keyword) {
    const auto found =
        std::find_if(k_keywords.begin(), k_keywords.end(), [&](const Keyword& one) { return one.name == keyword; });
    return found != k_keywords.end() && found->since <= draft && draft <= found->until;
}

bool had_keyword(int draft, std::string_view keyword) {
    return std::any_of(k_keywords.begin(), k_keywords.end(),
                       [&](const Keyword& one) { return one.name == keyword && one.since <= draft; });
}

std::span<const std::pair<std::string_view, SubschemaForm>> subschema_keywords() {
    static const auto made = [] {
        std::vector<std::pair<std::string_view, SubschemaForm>> list;
        for (const auto& keyword : k_keywords) {
            switch (keyword.shape) {
                case Shape::schema:
                case Shape::schema_or_flag: list.emplace_back(keyword.name, SubschemaForm::one); break;
                case Shape::schemas:
                case Shape::dependencies: list.emplace_back(keyword.name, SubschemaForm::map); break;
                case Shape::schemas_list: list.emplace_back(keyword.name, SubschemaForm::list); break;
                case Shape::items: list.emplace_back(keyword.name, SubschemaForm::one_or_list); break;
                default: break;
            }
        }
        return list;
    }();
    return made;
}

std::optional<int> draft_of(std::string_view text) {
    const std::size_t hash = text.find('#');
    const bool has_fragment = hash != std::string_view::npos && hash + 1 < text.size();
    text = text.substr(0, hash);
    bool has_scheme = false;
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!has_scheme && text.starts_with(scheme)) {
            text.remove_prefix(scheme.size());
            has_scheme = true;
        }
    }
    if (has_fragment && !has_scheme) { return std::nullopt; }
    constexpr std::array<std::pair<std::string_view, int>, 6> k_drafts{
        {{"json-schema.org/schema", k_newest_draft},
         {"json-schema.org/draft-04/schema", 4},
         {"json-schema.org/draft-06/schema", 6},
         {"json-schema.org/draft-07/schema", 7},
         {"json-schema.org/draft/2019-09/schema", 2019},
         {"json-schema.org/draft/2020-12/schema", 2020}}};
    const auto found = std::find_if(k_drafts.begin(), k_drafts.end(), [&](const auto& d) { return d.first == text; });
    return found == k_drafts.end() ? std::nullopt : std::optional(found->second);
}

void check_schema(const Value& value, const std::vector<std::string>& path, std::string_view text,
                  const std::string& file, int draft) {
    ShapeCheck(text, file, path, draft).run(value);
}

}  // namespace kmm::recipe::chart
