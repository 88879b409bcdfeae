// SPDX-License-Identifier: Apache-2.0
// JSON as Go's encoding/json writes and reads it.
#pragma once

#include <string>
#include <string_view>

#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

struct JsonStyle {
    bool html = true;     ///< <, > and & as \u003c, \u003e and \u0026
    bool pretty = false;  ///< two blanks a level
};

/// Throws Fault for infinities and NaN, "recipe-too-large" for nesting.
[[nodiscard]] std::string write_json(const Value& value, const JsonStyle& style = {});
/// The same, with the '[' of "##word[" as \u005b: nothing of it is a command to a CI system (base/ci_text.hpp).
[[nodiscard]] std::string write_inert_json(const Value& value, const JsonStyle& style = {});
/// A float64 as encoding/json writes it.
[[nodiscard]] std::string json_number(double number);
/// A text in quotes as encoding/json writes it.
[[nodiscard]] std::string json_quoted(std::string_view text, bool html);
/// All numbers are float64. On a fault, `fault` says what Go says and nil is returned; if the only fault is a number
/// that float64 does not hold, the rest with nil in its place.
[[nodiscard]] Value read_json_text(std::string_view text, std::string& fault, Budget* budget = nullptr);
/// The same; `at` becomes the byte of the fault.
[[nodiscard]] Value read_json_text(std::string_view text, std::string& fault, std::size_t& at);
/// The value that `text` begins with; `at` becomes the byte behind it, or that of the fault.
[[nodiscard]] Value read_json_prefix(std::string_view text, std::string& fault, std::size_t& at);

}  // namespace kmm::recipe::tmpl
