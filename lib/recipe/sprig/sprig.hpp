// SPDX-License-Identifier: Apache-2.0
// Sprig's functions, one table a file; a function checks what Go's types do not.
#pragma once

#include <span>

#include "recipe/template/function.hpp"

namespace kmm::recipe::tmpl {

[[nodiscard]] std::span<const Function> text_functions();
[[nodiscard]] std::span<const Function> case_functions();
[[nodiscard]] std::span<const Function> number_functions();
[[nodiscard]] std::span<const Function> list_functions();
[[nodiscard]] std::span<const Function> dict_functions();
[[nodiscard]] std::span<const Function> type_functions();
[[nodiscard]] std::span<const Function> encoding_functions();
[[nodiscard]] std::span<const Function> digest_functions();
[[nodiscard]] std::span<const Function> path_functions();
[[nodiscard]] std::span<const Function> regex_functions();
[[nodiscard]] std::span<const Function> version_functions();
[[nodiscard]] std::span<const Function> time_functions();
/// Those that give something else each time.
[[nodiscard]] std::span<const Function> random_functions();

}  // namespace kmm::recipe::tmpl
