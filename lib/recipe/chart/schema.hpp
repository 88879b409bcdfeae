// SPDX-License-Identifier: Apache-2.0
// values.schema.json: JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12, as Helm's library has them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// The draft of a schema that names none.
inline constexpr int k_newest_draft = 2020;

/// What does not meet `schema`: "image.tag: expected string, found number". Keywords that no draft has are ignored, as
/// the standard says; references to other documents are an error, but for URNs, which anything meets.
/// Errors: data "bad-schema" at `file`, also for what is no schema; "recipe-too-large" for a check of too many steps.
[[nodiscard]] std::vector<std::string> schema_faults(std::string_view schema, const std::string& file,
                                                     const tmpl::Value& values);

/// Whether `value`, at `path` of the document `root` that `text` holds, is a schema by the metaschema of `draft`.
/// Error: data "bad-schema" at the member.
void check_schema(const tmpl::Value& value, const std::vector<std::string>& path, std::string_view text,
                  const std::string& file, int draft);
/// The draft that "$schema" names: 4, 6, 7, 2019 or 2020; nullopt for another text.
[[nodiscard]] std::optional<int> draft_of(std::string_view text);
[[nodiscard]] bool has_keyword(int draft, std::string_view keyword);
/// Whether `draft` or an older one has `keyword`: Helm looks for identifiers of schemas in the places of all of them.
[[nodiscard]] bool had_keyword(int draft, std::string_view keyword);

/// How a keyword holds schemas.
enum class SubschemaForm { one, list, map, one_or_list };
[[nodiscard]] std::span<const std::pair<std::string_view, SubschemaForm>> subschema_keywords();

}  // namespace kmm::recipe::chart
