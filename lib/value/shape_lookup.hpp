// SPDX-License-Identifier: Apache-2.0
// What both streaming readers ask of shapes and keys. Internal to lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "value/object_stream.hpp"

namespace kmm::value {

constexpr std::size_t k_not_skipped = std::numeric_limits<std::size_t>::max();

/// The row of `key` among what `shape` leaves out, or k_not_skipped. `shape` may be null.
[[nodiscard]] std::size_t find_skipped(const Shape* shape, std::string_view key) noexcept;
/// The shape of the member `key`, nullptr if all of it is kept.
[[nodiscard]] const Shape* find_inner(const Shape* shape, std::string_view key) noexcept;

/// The keys of one mapping that were left out.
class SkippedKeys {
public:
    /// False if the row is there already, or is one of more than can be remembered.
    [[nodiscard]] bool add(std::size_t row) noexcept {
        const auto bit = row < 64 ? std::uint64_t{1} << row : 0U;
        const bool fresh = bit != 0 && (rows_ & bit) == 0;
        rows_ |= bit;
        return fresh;
    }

private:
    std::uint64_t rows_ = 0;
};

/// True if two members of the mapping have the same key.
[[nodiscard]] bool has_twins(const Node& mapping);

/// True if the last member of the mapping is its kind.
[[nodiscard]] bool is_kind_read(const Node& mapping) noexcept;

}  // namespace kmm::value
