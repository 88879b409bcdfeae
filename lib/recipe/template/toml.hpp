// SPDX-License-Identifier: Apache-2.0
// TOML as BurntSushi's encoder writes it.
#pragma once

#include <string>

#include "recipe/template/value.hpp"

namespace kmm::recipe::tmpl {

/// Helm's toToml: a dictionary as TOML, or the text of the error, as Helm gives it.
[[nodiscard]] std::string write_toml(const Value& value);

}  // namespace kmm::recipe::tmpl
