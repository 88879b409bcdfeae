// SPDX-License-Identifier: Apache-2.0
// What functions make of arguments that Go's types do not check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

/// Bytes of one template, and of one text that a function makes.
inline constexpr std::size_t k_output_max = 64U << 20U;

/// Sprig's strval: the text itself, else `%v`.
[[nodiscard]] std::string text_of(const Value& value);
/// Sprig's strslice: the texts of a list without nils; of another value, its text alone. Asks `budget` for each.
[[nodiscard]] std::vector<std::string> texts_of(const Value& value, Budget& budget);
/// cast.ToInt64 and cast.ToFloat64: 0 for what is no number.
[[nodiscard]] std::int64_t to_int(const Value& value);
[[nodiscard]] double to_real(const Value& value);
/// Throws Fault "recipe-too-large" if a result would be larger than what one template may print.
void check_size(std::uint64_t bytes);
/// Items of any list; throws Fault "Cannot DOES on type KIND" for other values.
[[nodiscard]] std::span<const Value> require_list(const Value& value, std::string_view does);
/// A list of any type, or bytes, as a list: what is a list already is not copied. Throws as require_list.
[[nodiscard]] Value list_of(const Value& value, std::string_view does);
/// Its items, copied.
[[nodiscard]] List items_of(const Value& value, std::string_view does);

}  // namespace kmm::recipe::tmpl
