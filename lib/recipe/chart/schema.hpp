// SPDX-License-Identifier: Apache-2.0
// values.schema.json: JSON Schema, draft 7, and what of later drafts is used for values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/template/value.hpp"

namespace kmm::recipe::chart {

/// What does not meet `schema`: "image.tag: expected string, found number". Keywords that no draft has are ignored, as the standard
/// says; those that assert something and are not supported are an error, as are references to other files.
/// Errors: data "bad-schema" at `file`.
[[nodiscard]] std::vector<std::string> schema_faults(std::string_view schema, const std::string& file, const tmpl::Value& values);

}  // namespace kmm::recipe::chart
