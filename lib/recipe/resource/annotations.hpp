// SPDX-License-Identifier: Apache-2.0
// Annotations of the Special Resource Operator that nobody will see.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::plan {

/// Why the annotation wait-for-logs with this pattern cannot be obeyed for an object of `kind`; "" if it can, or if the
/// pattern is empty.
[[nodiscard]] std::string log_pattern_fault(std::string_view kind, const std::string& pattern);

/// Calls `found` with a sentence and a hint for each annotation specialresource.openshift.io/... of the object that has
/// no effect: a misspelt name, a value that is neither "true" nor "false", a place where none is looked for; and for a
/// wait-for-logs that cannot be obeyed.
void each_idle_annotation(const tmpl::Value& object,
                          const std::function<void(std::string text, std::string hint)>& found);

}  // namespace kmm::recipe::plan
