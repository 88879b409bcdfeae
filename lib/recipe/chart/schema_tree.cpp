// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/schema_tree.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/schema.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Type;
using tmpl::Value;

namespace {

/// Where the document is for relative references, as Helm has it.
constexpr std::string_view k_base = "file:///values.schema.json";

using Path = std::vector<std::string>;

struct Resource {
    Path path;
    std::string url;
    int draft = 0;
    std::map<std::string, Path> anchors;
    std::set<std::string> dynamic;
};

const Value* member(const Value& value, std::string_view key) {
    const auto found = value.members().find(key);
    return found == value.members().end() ? nullptr : &found->second;
}

const std::string* text_member(const Value& value, std::string_view key) {
    const Value* found = member(value, key);
    return found != nullptr && found->is_text() ? &found->text() : nullptr;
}

std::string joined(const std::string& base, const std::string& reference) {
    return tmpl::resolve_url(tmpl::parse_url(base), tmpl::parse_url(reference)).text();
}

Path extended(Path path, std::initializer_list<std::string_view> steps) {
    for (const auto step : steps) { path.emplace_back(step); }
    return path;
}

/// What stands in front of '#', and what behind it, unescaped. Throws Fault.
std::pair<std::string, std::string> split_reference(const std::string& text) {
    const std::size_t hash = text.find('#');
    if (hash == std::string::npos) {
        return {text, ""};
    }
    return {text.substr(0, hash), tmpl::parse_url("x:/#" + text.substr(hash + 1)).fragment};
}

std::optional<Path> pointer_path(const std::string& pointer) {
    Path path;
    if (pointer.empty()) { return path; }
    for (auto piece : tmpl::split_text(std::string_view(pointer).substr(1), "/")) {
        for (std::size_t at = piece.find('~'); at != std::string::npos; at = piece.find('~', at + 1)) {
            if (at + 1 == piece.size() || (piece[at + 1] != '0' && piece[at + 1] != '1')) { return std::nullopt; }
        }
        path.push_back(tmpl::replace_all(tmpl::replace_all(piece, "~1", "/"), "~0", "~"));
    }
    return path;
}

}  // namespace

const Value* Schema::find(std::string_view keyword) const {
    if (!has_keyword(draft, keyword)) { return nullptr; }
    return member(*value, keyword);
}

const Value* Schema::boolean() const { return value->type() == Type::boolean ? value : nullptr; }

class SchemaTree::Builder {
public:
    Builder(const Value& root, std::string_view text, const std::string& file) : root_(root), text_(text), file_(file) {
        collect(root_, {}, std::string(k_base), k_newest_draft);
        check({}, root_);
        (void)schema_at({});
        // Each schema that is compiled can name further ones.
        for (std::size_t next = 0; next < queue_.size(); ++next) {
            const Path path = queue_[next];
            ensure(path);
            compile(path, *schemas_[path]);
        }
    }

    [[nodiscard]] const Schema& root() const { return *schemas_.at({}); }

private:
    const Value& root_;
    std::string_view text_;
    const std::string& file_;
    std::map<Path, Resource> resources_;
    std::map<std::string, Path> urls_;  ///< of resources_
    std::set<Path> collected_;
    std::map<Path, std::unique_ptr<Schema>> schemas_;
    std::vector<std::unique_ptr<Schema>> outside_;
    std::vector<Path> queue_;

    Error bad(const Path& path, std::string message) const {
        Position position = tmpl::find_yaml_place(text_, path);
        position.file = file_;
        return Error(Exit::data, "bad-schema", std::move(message)).at(std::move(position));
    }

    const Value* find(const Path& path) const {
        const Value* at = &root_;
        for (const auto& step : path) {
            if (at != nullptr) { at = child_at(*at, step); }
        }
        return at;
    }

    Resource& resource_of(const Path& path) {
        Path around = path;
        while (!resources_.contains(around)) { around.pop_back(); }
        return resources_[around];
    }

    void check(const Path& path, const Value& value) const {
        check_schema(value, path, text_, file_, resources_draft(path));
    }

    int resources_draft(Path path) const {
        while (!resources_.contains(path)) { path.pop_back(); }
        return resources_.at(path).draft;
    }

    /// Identifiers and anchors of a schema and of those in it.
    void collect(const Value& value, const Path& path, std::string base, int fallback) {
        if (!collected_.insert(path).second) { return; }
        if (!value.is_map()) {
            if (path.empty()) {
                add_resource(Resource{path, base, fallback, {}, {}});
            }
            return;
        }
        int draft = fallback;
        if (const std::string* named = text_member(value, "$schema")) {
            const auto known = draft_of(*named);
            if (!known) {
                throw bad(extended(path, {"$schema"}),
                          fmt::format("$schema: expected the URL of a draft of json-schema.org, found \"{}\"",
                                      base::escape(*named)));
            }
            draft = *known;
        }
        std::string id = identifier(value, draft);
        if (id.empty() && !path.empty()) {
            draft = fallback;
            id = identifier(value, draft);
        }
        if (!id.empty() || path.empty()) {
            try {
                if (!id.empty()) { base = joined(base, id); }
            } catch (const tmpl::Fault& fault) {
                throw bad(path, fault.message);
            }
            add_resource(Resource{path, base, draft, {}, {}});
        }
        Resource& own = resource_with(base);
        collect_anchors(value, path, own);
        for (const auto& [keyword, form] : subschema_keywords()) {
            if (!had_keyword(draft, keyword)) { continue; }
            const Value* inner = member(value, keyword);
            if (inner == nullptr) { continue; }
            const Path below = extended(path, {keyword});
            if (form == SubschemaForm::one || form == SubschemaForm::one_or_list) {
                collect(*inner, below, base, own.draft);
            }
            if (form == SubschemaForm::map) {
                for (const auto& [key, one] : inner->members()) {
                    collect(one, extended(below, {key}), base, own.draft);
                }
            }
            if (form == SubschemaForm::list || form == SubschemaForm::one_or_list) {
                for (std::size_t i = 0; inner->is_list() && i < inner->items().size(); ++i) {
                    collect(inner->items()[i], extended(below, {std::to_string(i)}), base, own.draft);
                }
            }
        }
    }

    static std::string identifier(const Value& value, int draft) {
        if (draft < 2019 && member(value, "$ref") != nullptr) { return ""; }
        const std::string* id = text_member(value, draft == 4 ? "id" : "$id");
        return id == nullptr ? "" : id->substr(0, id->find('#'));
    }

    void add_resource(Resource made) {
        const auto [place, is_new] = urls_.emplace(made.url, made.path);
        if (!is_new && place->second != made.path) {
            throw bad(made.path, fmt::format("the identifier {} stands twice", base::escape(made.url)));
        }
        resources_[made.path] = std::move(made);
    }

    Resource& resource_with(const std::string& url) { return resources_.at(urls_.at(url)); }

    void collect_anchors(const Value& value, const Path& path, Resource& own) {
        const auto add = [&](const std::string& name) {
            const auto [place, added] = own.anchors.emplace(name, path);
            if (!added && place->second != path) {
                throw bad(path, fmt::format("the anchor {} stands twice", base::escape(name)));
            }
        };
        if (own.draft < 2019) {
            if (member(value, "$ref") != nullptr) { return; }
            const std::string* id = text_member(value, own.draft == 4 ? "id" : "$id");
            if (id == nullptr) { return; }
            try {
                const std::string fragment = split_reference(*id).second;
                if (!fragment.empty() && fragment[0] != '/') { add(fragment); }
            } catch (const tmpl::Fault& fault) {
                throw bad(path, fault.message);
            }
            return;
        }
        if (const std::string* anchor = text_member(value, "$anchor")) { add(*anchor); }
        if (own.draft < 2020) { return; }
        if (const std::string* anchor = text_member(value, "$dynamicAnchor")) {
            add(*anchor);
            own.dynamic.insert(*anchor);
        }
    }

    /// A reference can lead to what stands at no place of a schema.
    void ensure(const Path& path) {
        if (collected_.contains(path)) { return; }
        const Value& value = *find(path);
        const Resource& around = resource_of(path);
        collect(value, path, around.url, around.draft);
        if (!resources_.contains(path) && value.is_map()) { collect_anchors(value, path, resource_of(path)); }
        check(path, value);
    }

    const Schema* schema_at(const Path& path) {
        auto& made = schemas_[path];
        if (!made) {
            made = std::make_unique<Schema>();
            made->value = find(path);
            queue_.push_back(path);
        }
        return made.get();
    }

    const Schema* outside(Schema::Kind kind, int draft) {
        outside_.push_back(std::make_unique<Schema>());
        outside_.back()->kind = kind;
        outside_.back()->draft = draft;
        outside_.back()->resource = outside_.back().get();
        return outside_.back().get();
    }

    const Schema* resolve(const Path& path, const Resource& around, std::string_view keyword, std::string* anchor) {
        const std::string* text = text_member(*find(path), keyword);
        if (text == nullptr) { return nullptr; }
        const Path place = extended(path, {keyword});
        const auto nowhere = [&] {
            return bad(place, fmt::format("{} {} leads nowhere", keyword, base::escape(*text)));
        };
        std::string url, fragment;
        try {
            std::tie(url, fragment) = split_reference(*text);
            url = joined(around.url, url);
        } catch (const tmpl::Fault& fault) {
            throw bad(place, fault.message);
        }
        const auto known = urls_.find(url);
        const Resource* target = url == k_base           ? &resources_.at({})
                                 : known != urls_.end() ? &resources_.at(known->second)
                                                        : nullptr;
        if (target == nullptr) {
            if (url.starts_with("urn:")) { return outside(Schema::Kind::anything, around.draft); }
            const auto draft = fragment.empty() ? draft_of(url) : std::nullopt;
            if (draft) { return outside(Schema::Kind::metaschema, *draft); }
            throw bad(place, fmt::format("{} {} leads to another document", keyword, base::escape(*text)))
                .hint("copy that schema into $defs of this file, or render chart --skip-schema-validation");
        }
        Path found = target->path;
        if (!fragment.empty() && fragment[0] != '/') {
            const auto named = target->anchors.find(fragment);
            if (named == target->anchors.end()) { throw nowhere(); }
            found = named->second;
            if (anchor != nullptr) { *anchor = fragment; }
        } else {
            const auto below = pointer_path(fragment);
            if (!below) { throw nowhere(); }
            found.insert(found.end(), below->begin(), below->end());
        }
        if (find(found) == nullptr) { throw nowhere(); }
        return schema_at(found);
    }

    void compile(const Path& path, Schema& schema) {
        const Resource& around = resource_of(path);
        schema.draft = around.draft;
        schema.resource = schema_at(around.path);
        if (path == around.path && schema.draft >= 2020) {
            for (const auto& name : around.dynamic) { schema.anchors[name] = schema_at(around.anchors.at(name)); }
        }
        if (!schema.value->is_map()) { return; }
        schema.ref = resolve(path, around, "$ref", nullptr);
        if (schema.ref != nullptr && schema.draft < 2019) { return; }
        const auto one = [&](std::string_view keyword) -> const Schema* {
            return schema.find(keyword) == nullptr ? nullptr : schema_at(extended(path, {keyword}));
        };
        const auto list = [&](std::string_view keyword) {
            std::vector<const Schema*> made;
            const Value* given = schema.find(keyword);
            for (std::size_t i = 0; given != nullptr && given->is_list() && i < given->items().size(); ++i) {
                made.push_back(schema_at(extended(path, {keyword, std::to_string(i)})));
            }
            return made;
        };
        const auto named = [&](std::string_view keyword) {
            Schema::Named made;
            if (const Value* given = schema.find(keyword)) {
                for (const auto& [key, value] : given->members()) {
                    if (value.is_list()) { continue; }
                    made[key] = schema_at(extended(path, {keyword, key}));
                }
            }
            return made;
        };
        schema.all_of = list("allOf");
        schema.any_of = list("anyOf");
        schema.one_of = list("oneOf");
        schema.none = one("not");
        schema.properties = named("properties");
        schema.patterns = named("patternProperties");
        schema.other_properties = one("additionalProperties");
        schema.dependencies = named("dependencies");
        schema.dependent_schemas = named("dependentSchemas");
        schema.contains = one("contains");
        schema.property_names = one("propertyNames");
        schema.unevaluated_properties = one("unevaluatedProperties");
        schema.unevaluated_items = one("unevaluatedItems");
        compile_items(path, schema, one, list);
        schema.condition = one("if");
        if (schema.condition != nullptr) {
            schema.then = one("then");
            schema.otherwise = one("else");
        }
        if (schema.draft >= 2019) { schema.recursive_ref = resolve(path, around, "$recursiveRef", nullptr); }
        if (schema.draft >= 2020) { schema.dynamic_ref = resolve(path, around, "$dynamicRef", &schema.dynamic_anchor); }
    }

    template <typename One, typename Many>
    static void compile_items(const Path&, Schema& schema, const One& one, const Many& list) {
        const Value* items = schema.find("items");
        if (schema.draft >= 2020) {
            schema.front_items = list("prefixItems");
            schema.items = one("items");
        } else if (items != nullptr && items->is_list()) {
            schema.front_items = list("items");
            const Value* more = schema.find("additionalItems");
            schema.items_closed = more != nullptr && more->type() == Type::boolean && !more->as_bool();
            if (!schema.items_closed) { schema.items = one("additionalItems"); }
        } else {
            schema.items = one("items");
        }
    }
};

SchemaTree::SchemaTree(const Value& root, std::string_view text, const std::string& file)
    : builder_(std::make_unique<Builder>(root, text, file)) {}
SchemaTree::~SchemaTree() = default;
const Schema& SchemaTree::root() const { return builder_->root(); }

}  // namespace kmm::recipe::chart
