// SPDX-License-Identifier: Apache-2.0
#include "api/recipe_kind.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::api {

namespace {

constexpr std::string_view k_recipe_group = "sro.openshift.io";
constexpr std::array<std::string_view, 3> k_recipe_kinds{"SpecialResource", "SpecialResourceModule",
                                                         "PreflightValidation"};

}  // namespace

std::string_view group_of(std::string_view api_version) {
    const std::size_t slash = api_version.find('/');
    if (slash != std::string_view::npos) { return api_version.substr(0, slash); }
    return api_version.find('.') == std::string_view::npos ? std::string_view() : api_version;
}

bool is_recipe_kind(std::string_view api_version, std::string_view kind) {
    return group_of(api_version) == k_recipe_group &&
           std::find(k_recipe_kinds.begin(), k_recipe_kinds.end(), kind) != k_recipe_kinds.end();
}

std::optional<Diagnostic> misspelt_recipe(const value::Document& document, const value::Node& root,
                                          std::string_view api_version, std::string_view kind) {
    const auto group = group_of(api_version);
    const std::vector<std::string> groups{std::string(k_recipe_group)};
    if (api_version.empty() || is_recipe_kind(api_version, kind) || (!group.empty() && !base::nearest(group, groups))) {
        return std::nullopt;
    }
    std::vector<std::string> kinds(k_recipe_kinds.begin(), k_recipe_kinds.end());
    if (group != k_recipe_group) { kinds.pop_back(); }  // KMM has a PreflightValidation, too
    const auto near = base::nearest(kind, kinds);
    if (!near) { return std::nullopt; }
    const bool is_kind = *near == kind;
    const value::Node* place = root.find(is_kind ? "apiVersion" : "kind");
    Diagnostic fault;
    fault.code = is_kind ? "unknown-api-version" : "unknown-kind";
    fault.message = is_kind ? fmt::format("apiVersion {} of kind {} is not supported, expected {}/v1beta1",
                                          base::escape(api_version), kind, k_recipe_group)
                            : fmt::format("kind {} ({}) does not exist", base::escape(kind), base::escape(api_version));
    fault.hint = is_kind ? fmt::format("the object was not read; write apiVersion: {}/v1beta1", k_recipe_group)
                         : fmt::format("did you mean {}?", *near);
    fault.position = document.position(place != nullptr ? place->mark() : root.mark());
    return fault;
}

}  // namespace kmm::api
