// SPDX-License-Identifier: Apache-2.0
// Reader of the part of TOML that configuration files of container tools use.
#pragma once

#include <optional>
#include <string_view>

#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::value {

/// Reads TOML of this subset: comments, [table], [[list of tables]] (dotted names go below the last table of each
/// name), and `key = VALUE` with bare or quoted keys and VALUE a one-line string ("…" with escapes or '…'), a decimal
/// integer, true, false, or a list of values. A list of tables becomes a sequence of mappings. nullopt, with one
/// diagnostic, for anything else. Codes: toml-syntax, duplicate-key, not-utf8, document-limit.
[[nodiscard]] std::optional<Document> read_toml(std::string_view text, std::string_view file, Diagnostics& diagnostics,
                                                const ReadLimits& limits = {});

}  // namespace kmm::value
