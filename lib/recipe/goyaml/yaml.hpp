// SPDX-License-Identifier: Apache-2.0
// YAML as sigs.k8s.io/yaml writes and reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

/// yaml.Marshal: by way of JSON, keys in natural order. Throws Fault for what JSON does not have, and for nesting.
[[nodiscard]] std::string write_yaml(const Value& value);
/// Helm's toYaml: without the last line feed; "" for what cannot be written.
[[nodiscard]] std::string to_yaml_text(const Value& value);
/// Helm's toYamlPretty: by go-yaml v3, lists are indented.
[[nodiscard]] std::string to_yaml_pretty(const Value& value);

/// A fault of a YAML text.
struct YamlFault {
    std::string message;     ///< as Go words it; empty: none
    std::string problem;     ///< the same without a line
    std::size_t line = 0;    ///< from 1, 0 unknown
    std::size_t column = 0;  ///< from 1, 0 unknown
    /// Where the quoted scalar or the flow collection begins that is not closed, or a quoted scalar of several lines in
    /// front of the fault; line and column as above.
    std::size_t open_line = 0;
    std::size_t open_column = 0;
};
/// "; what is not closed may begin at FILE:LINE:COLUMN" where `fault` names such a place in another line; "" for
/// others. `begin` is that place.
[[nodiscard]] std::string open_text(const YamlFault& fault, const Position& begin);
/// The position of `fault` in `file`, and the line of `text` that it stands in as the detail "found".
[[nodiscard]] Error yaml_error(std::string code, const YamlFault& fault, const std::string& file,
                               std::string_view text);

/// Where the value at `path` (keys, and numbers of items) stands in the first document of `text`: line and column, from
/// 1. Of a path that leads nowhere, the last member that is there.
[[nodiscard]] Position find_yaml_place(std::string_view text, const std::vector<std::string>& path);

/// yaml.Unmarshal of the first document into any value: numbers are float64, keys texts, the last of equal keys wins,
/// aliases and merges are expanded. Empty text is nil.
enum class WholeNumbers { real, exact };  ///< exact: whole numbers are int64 and uint64, as in objects of the API
[[nodiscard]] Value read_yaml_text(std::string_view text, YamlFault& fault, WholeNumbers whole = WholeNumbers::real);

/// How go-yaml resolves a plain scalar.
enum class Resolved { null, boolean, integer, uint, real, text, timestamp, merge };
struct Scalar {
    Resolved kind = Resolved::text;
    bool truth = false;
    std::int64_t integer = 0;
    double real = 0;
};
[[nodiscard]] Scalar resolve_scalar(std::string_view text);

}  // namespace kmm::recipe::tmpl
