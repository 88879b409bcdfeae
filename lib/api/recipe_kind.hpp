// SPDX-License-Identifier: Apache-2.0
// Names of the kinds of the Special Resource Operator, which the wing recipe reads.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// The group of an apiVersion: "" of "v1". A group whose version was forgotten has a dot, which no version has.
[[nodiscard]] std::string_view group_of(std::string_view api_version);

/// Whether the document is of one of the kinds of the group sro.openshift.io, in any version.
[[nodiscard]] bool is_recipe_kind(std::string_view api_version, std::string_view kind);

/// The error of an object `root` of `document` that is nearly a recipe: a misspelt kind in that group, in one that is
/// nearly it or in none (unknown-kind), or a kind that only that group has in such a group (unknown-api-version).
/// Nothing serves these. nullopt for recipes and for everything else.
[[nodiscard]] std::optional<Diagnostic> misspelt_recipe(const value::Document& document, const value::Node& root,
                                                        std::string_view api_version, std::string_view kind);

}  // namespace kmm::api
