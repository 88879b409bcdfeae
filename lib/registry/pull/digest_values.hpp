// SPDX-License-Identifier: Apache-2.0
// A number for each of many digests, in little memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "image/digest.hpp"

namespace kmm::registry {

/// 24 bytes for each digest, of which only the first half is kept: to be used where it harms nobody that two with one
/// beginning count as one.
class DigestValues {
public:
    /// Of several values of one digest the largest stays.
    void add(const image::Digest& digest, std::uint64_t value);
    /// To be called between add() and the following.
    void settle();
    [[nodiscard]] std::optional<std::uint64_t> find(const image::Digest& digest) const;
    [[nodiscard]] std::uint64_t sum() const;

private:
    struct Item {
        std::array<std::uint8_t, 16> key{};
        std::uint64_t value = 0;
    };
    [[nodiscard]] static std::array<std::uint8_t, 16> key_of(const image::Digest& digest);

    std::deque<Item> items_;  ///< once settled, sorted by key, each once
    std::size_t settle_at_ = 1024;
};

}  // namespace kmm::registry
