// SPDX-License-Identifier: Apache-2.0
// gzip (RFC 1952) of texts that are whole in memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::base {

/// Whether `data` begins as a gzip stream does.
[[nodiscard]] bool is_gzip(std::string_view data) noexcept;

/// As small as zlib makes it; no name and no time is in it. Throws bug() where zlib has no memory.
[[nodiscard]] std::string to_gzip(std::string_view plain);

/// nullopt for what is no gzip stream, is not whole, has bytes behind it, or is larger than `most` bytes unpacked.
[[nodiscard]] std::optional<std::string> from_gzip(std::string_view packed, std::size_t most);

}  // namespace kmm::base
