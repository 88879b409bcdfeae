// SPDX-License-Identifier: Apache-2.0
// The functions that templates may call: Go's, Sprig's and Helm's.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"
#include "recipe/template/function.hpp"

namespace kmm::recipe::tmpl {

/// All of them. O(log n) to find one.
[[nodiscard]] const Library& chart_library();
/// Those of Go's text/template alone, with all methods.
[[nodiscard]] const Library& go_library();

/// What text/template prints of a text that is no file of a chart, with Go's own functions alone. Errors: those of
/// parse() and execute().
[[nodiscard]] std::string expand_text(const std::string& name, const std::string& text, const Value& dot,
                                      std::function<void(Diagnostic)> notice = {});

// The parts of the libraries.

[[nodiscard]] std::span<const Function> builtin_functions();
[[nodiscard]] std::span<const Function> helm_functions();
/// As Library::method.
[[nodiscard]] BoundMethod find_method(const Value& receiver, std::string_view name);

}  // namespace kmm::recipe::tmpl
