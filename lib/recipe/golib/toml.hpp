// SPDX-License-Identifier: Apache-2.0
// TOML as BurntSushi's encoder writes it and its decoder reads it.
#pragma once

#include <string>
#include <string_view>

#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

/// Helm's toToml: a dictionary as TOML, or the text of the error, as Helm gives it.
[[nodiscard]] std::string write_toml(const Value& value);
/// A document as a map. Throws Fault: with the line for what is no TOML, "unsupported-zone" for times without a zone.
[[nodiscard]] Value read_toml(std::string_view text, Budget* budget = nullptr);

}  // namespace kmm::recipe::tmpl
