// SPDX-License-Identifier: Apache-2.0
// A schema document with its references followed, as Helm's library compiles it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// One schema of a document. What its keywords lead to is here, all else is read from `value`.
struct Schema {
    enum class Kind {
        own,         ///< `value` says what it is
        anything,    ///< what nobody can look up: a URN
        metaschema,  ///< a schema by the draft `draft`
    };
    using Named = std::map<std::string, const Schema*, std::less<>>;

    Kind kind = Kind::own;
    const tmpl::Value* value = nullptr;
    int draft = 0;                     ///< 4, 6, 7, 2019 or 2020
    const Schema* resource = nullptr;  ///< the nearest one around it that has an identifier, or the root
    const Schema *ref = nullptr, *recursive_ref = nullptr, *dynamic_ref = nullptr;
    std::string dynamic_anchor;  ///< of $dynamicRef, if it is resolved while values are checked
    Named anchors;               ///< of a resource: what $dynamicAnchor names
    std::vector<const Schema*> all_of, any_of, one_of, front_items;
    const Schema *none = nullptr, *condition = nullptr, *then = nullptr, *otherwise = nullptr;
    const Schema* items = nullptr;  ///< for those behind front_items
    bool items_closed = false;      ///< there is nothing behind front_items
    const Schema *contains = nullptr, *property_names = nullptr, *other_properties = nullptr;
    const Schema *unevaluated_properties = nullptr, *unevaluated_items = nullptr;
    Named properties, patterns, dependencies, dependent_schemas;

    /// The keyword, if the draft has it; a boolean has none.
    [[nodiscard]] const tmpl::Value* find(std::string_view keyword) const;
    [[nodiscard]] const tmpl::Value* boolean() const;
};

/// Errors of the constructor: data "bad-schema" at the member, for what is no schema by its draft, for a reference that
/// leads nowhere or to another document, and for identifiers that stand twice.
class SchemaTree {
public:
    SchemaTree(const tmpl::Value& root, std::string_view text, const std::string& file);
    ~SchemaTree();
    SchemaTree(const SchemaTree&) = delete;
    SchemaTree& operator=(const SchemaTree&) = delete;
    [[nodiscard]] const Schema& root() const;

private:
    class Builder;
    std::unique_ptr<Builder> builder_;
};

}  // namespace kmm::recipe::chart
