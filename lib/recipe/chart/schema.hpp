// SPDX-License-Identifier: Apache-2.0
// values.schema.json: JSON Schema, draft 7, and what of later drafts is used for values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/template/value.hpp"

namespace kmm::recipe::chart {

/// What does not meet `schema`: "image.tag: expected string, found number". Keywords that no draft has are ignored, as
/// the standard says; those that assert something and are not supported are an error, as are references to other files.
/// Errors: data "bad-schema" at `file`, also for what is no schema.
[[nodiscard]] std::vector<std::string> schema_faults(std::string_view schema, const std::string& file,
                                                     const tmpl::Value& values);

/// Whether `schema`, read from `text`, is one by the metaschema of its draft, 2020-12 if it names none. Error: data
/// "bad-schema" at the member.
void check_schema(const tmpl::Value& schema, std::string_view text, const std::string& file);
/// The draft that a valid schema is of: 4, 6, 7, 2019 or 2020.
[[nodiscard]] int schema_draft(const tmpl::Value& schema);
/// The first draft that has a keyword; 0 for what is none.
[[nodiscard]] int first_draft(std::string_view keyword);
/// What a reference such as "#/definitions/port" leads to; null if it leads nowhere.
[[nodiscard]] const tmpl::Value* find_in_schema(const tmpl::Value& root, const std::string& pointer);

}  // namespace kmm::recipe::chart
