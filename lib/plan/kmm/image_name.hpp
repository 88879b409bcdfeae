// SPDX-License-Identifier: Apache-2.0
// Whether the name of an image, as the API takes any text for one, can be pulled at all.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"

namespace kmm::plan {

/// What is wrong with `text` as an image's name, its template expanded; nullopt if a registry can have it. A warning
/// "bad-reference" without a place; a password that stands in the name is left out of the message.
[[nodiscard]] std::optional<Diagnostic> image_name_fault(const std::string& text);

}  // namespace kmm::plan
