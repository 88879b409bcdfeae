// SPDX-License-Identifier: Apache-2.0
// Annotations of the Special Resource Operator that nobody will see.
#pragma once

#include <functional>
#include <string>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::plan {

/// Calls `found` with a sentence and a hint for each annotation specialresource.openshift.io/... of the object that has
/// no effect: a misspelt name, a value that is neither "true" nor "false", a place where none is looked for.
void each_idle_annotation(const tmpl::Value& object,
                          const std::function<void(std::string text, std::string hint)>& found);

}  // namespace kmm::recipe::plan
