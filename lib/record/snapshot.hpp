// SPDX-License-Identifier: Apache-2.0
// The text of the snapshot, without any disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::record {

struct ParsedSnapshot {
    std::uint64_t serial = 0;  ///< seq of the journal entry it stands for
    value::Node payload;
    value::Node document;      ///< everything, members of newer programs included
};

/// Readable JSON whose last member is a checksum (SHA-256 of all bytes before it). Members of `previous` that this
/// program does not know are kept.
[[nodiscard]] std::string
encode_snapshot(std::uint64_t serial, const value::Node& payload, const value::Node* previous);

/// nullopt when the text was changed or cut. Errors: config (78) "state-newer".
[[nodiscard]] std::optional<ParsedSnapshot> parse_snapshot(std::string_view text, const std::string& file);

}  // namespace kmm::record
