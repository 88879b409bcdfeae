// SPDX-License-Identifier: Apache-2.0
// Members of members of an object that a template has made.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::plan {

/// Keys from the outermost member inwards, as {"metadata", "name"}.
using Path = std::initializer_list<std::string_view>;

/// The value at `path`; nullptr where it, or a member on the way, is missing or is no mapping.
[[nodiscard]] inline const tmpl::Value* find_at(const tmpl::Value& object, Path path) {
    const tmpl::Value* at = &object;
    for (const auto key : path) {
        const auto found = at->members().find(key);
        if (found == at->members().end()) { return nullptr; }
        at = &found->second;
    }
    return at;
}

/// The text at `path`; "" where there is none.
[[nodiscard]] inline std::string text_at(const tmpl::Value& object, Path path) {
    const tmpl::Value* found = find_at(object, path);
    return found != nullptr && found->is_text() ? found->text() : std::string();
}

}  // namespace kmm::recipe::plan
