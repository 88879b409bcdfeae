// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/digest_values.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::registry {

std::array<std::uint8_t, 16> DigestValues::key_of(const image::Digest& digest) {
    std::array<std::uint8_t, 16> key{};
    const auto bytes = base::from_hex(std::string_view(digest.hex).substr(0, 2 * key.size()));
    if (!bytes || bytes->size() != key.size()) {
        throw bug("expected a digest, found " + digest.to_string());
    }
    std::copy(bytes->begin(), bytes->end(), key.begin());
    return key;
}

void DigestValues::add(const image::Digest& digest, std::uint64_t value) {
    if (items_.size() >= settle_at_) {
        settle();  // many may be there twice
        settle_at_ = std::max(settle_at_, 2 * items_.size());
    }
    items_.push_back({key_of(digest), value});
}

void DigestValues::settle() {
    std::sort(items_.begin(), items_.end(),
              [](const Item& a, const Item& b) { return a.key != b.key ? a.key < b.key : a.value > b.value; });
    items_.erase(std::unique(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.key == b.key; }),
                 items_.end());
}

std::optional<std::uint64_t> DigestValues::find(const image::Digest& digest) const {
    const auto key = key_of(digest);
    const auto found = std::lower_bound(items_.begin(), items_.end(), key,
                                        [](const Item& item, const auto& wanted) { return item.key < wanted; });
    return found != items_.end() && found->key == key ? std::optional(found->value) : std::nullopt;
}

std::uint64_t DigestValues::sum() const {
    std::uint64_t total = 0;
    for (const Item& item : items_) {
        total += item.value;
    }
    return total;
}

}  // namespace kmm::registry
