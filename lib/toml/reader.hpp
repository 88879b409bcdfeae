// SPDX-License-Identifier: Apache-2.0
// Reader of TOML 1.0, in which container tools have their configuration. Debian 12's libraries are no choice for what a
// tool reads as root: toml++ 3.3 aborts at "[\n" and has undefined behaviour at letters beyond ASCII, toml11 3.7 has no
// limit of depth.
#pragma once

#include <optional>
#include <string_view>

#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::toml {

/// Reads TOML. A list of tables becomes a sequence of mappings; a date, a time, inf and nan are texts. nullopt, with
/// one diagnostic, for what is none. Codes: toml-syntax, duplicate-key, not-utf8, document-limit.
[[nodiscard]] std::optional<value::Document> read(std::string_view text, std::string_view file,
                                                 Diagnostics& diagnostics, const value::ReadLimits& limits = {});

}  // namespace kmm::toml
