// SPDX-License-Identifier: Apache-2.0
// Objects without a namespace by their name.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace kmm::plan {

/// The object with that name, nullptr if there is none. O(log objects) where api::finish has sorted them, if it is
/// there.
template <typename Object>
[[nodiscard]] const Object* find_named(const std::vector<Object>& objects, std::string_view name) {
    const auto place =
        std::lower_bound(objects.begin(), objects.end(), name,
                         [](const Object& object, std::string_view wanted) { return object.meta.name < wanted; });
    if (place != objects.end() && place->meta.name == name) { return &*place; }
    const auto found =
        std::find_if(objects.begin(), objects.end(), [&](const Object& object) { return object.meta.name == name; });
    return found == objects.end() ? nullptr : &*found;
}

}  // namespace kmm::plan
