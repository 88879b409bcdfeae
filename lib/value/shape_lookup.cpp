// SPDX-License-Identifier: Apache-2.0
#include "value/shape_lookup.hpp"

#include <algorithm>
#include <vector>

namespace kmm::value {

std::size_t find_skipped(const Shape* shape, std::string_view key) noexcept {
    if (shape == nullptr) return k_not_skipped;
    const auto& keys = shape->skipped;
    const auto found = std::find(keys.begin(), keys.end(), key);
    return found == keys.end() ? k_not_skipped : static_cast<std::size_t>(found - keys.begin());
}

const Shape* find_inner(const Shape* shape, std::string_view key) noexcept {
    if (shape == nullptr) return nullptr;
    for (const auto& inner : shape->inner) {
        if (inner.key == key) return inner.shape;
    }
    return nullptr;
}

bool has_twins(const Node& mapping) {
    const auto& members = mapping.members();
    // The API server writes keys in order.
    const auto not_before = [](const Member& a, const Member& b) { return !(a.key < b.key); };
    if (std::adjacent_find(members.begin(), members.end(), not_before) == members.end()) return false;
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& member : members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

bool is_kind_read(const Node& mapping) noexcept {
    return !mapping.members().empty() && mapping.members().back().key == "kind";
}

}  // namespace kmm::value
