// SPDX-License-Identifier: Apache-2.0
// Objects that replace others of the same name.
#pragma once

#include <cstddef>
#include <string>

#include "recipe/plan/render.hpp"

namespace kmm::recipe::plan {

/// What an object was made for.
struct Copy {
    std::size_t object = 0;  ///< of RenderedRecipes::objects
    std::string kernel;
    std::string release;     ///< its version, for a SpecialResourceModule
};

/// "ConfigMap a/b: the copies for kernels 5.14.0-1 and 5.14.0-2 have one name and differ"; `object` is for people.
[[nodiscard]] std::string copies_differ(const std::string& object, const std::string& kernel, const std::string& other);

struct OverwriteTexts {
    std::string message, hint;
};
/// Why `made`, of the template at `origin`, replaces `before`, and what to do. `object` is for people.
[[nodiscard]] OverwriteTexts overwrite_texts(const std::string& object, const RecipeObject& before,
                                             const Copy& before_copy, const Copy& made, const Position& origin);

}  // namespace kmm::recipe::plan
