// SPDX-License-Identifier: Apache-2.0
// What a plain YAML scalar means, and when a string must be quoted so that no reader takes it for something else.
#pragma once

#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::value {

/// Meaning of a plain (unquoted, untagged) scalar. `not_a_number` stands for the .inf and .nan family, which JSON
/// cannot hold.
struct PlainScalar {
    Node node;
    bool not_a_number = false;
};

/// Resolves as goyaml.v2 does for sigs.k8s.io/yaml (resolve.go, resolveTable): YAML 1.1 booleans, Go base-0 integers
/// with
/// `_` removed, floats by its pattern, dates stay strings.
[[nodiscard]] PlainScalar resolve_plain(std::string_view text);

/// True if the plain scalar `text` means the number or boolean `node`, whose text is another one.
[[nodiscard]] bool is_written_otherwise(const Node& node, std::string_view text) noexcept;

/// The canonical text of a finite number, always with a point or an exponent: "1.0", "1e+300".
[[nodiscard]] std::string float_text(double number);

/// A JSON number token (RFC 8259 section 6) as integer where int64 or uint64 holds it, else floating; null node if it
/// is no JSON number or no double holds it.
[[nodiscard]] Node parse_json_number(std::string_view token);

/// True unless every YAML 1.1 and 1.2 reader takes the plain text for this string, as key and as value.
[[nodiscard]] bool needs_quotes(std::string_view text) noexcept;

}  // namespace kmm::value
