// SPDX-License-Identifier: Apache-2.0
// Names and labels that an API server refuses.
#pragma once

#include <string>

#include "base/error.hpp"
#include "recipe/template/value.hpp"

namespace kmm::recipe::plan {

/// Checks the name of an object, its labels, and those and the node selector of its Pods. `suffix`: what was added to
/// its name for a kernel, "" for nothing. Errors: data "bad-manifest" at `place`.
void require_valid_names(const tmpl::Value& object, const std::string& suffix, const Position& place);

}  // namespace kmm::recipe::plan
