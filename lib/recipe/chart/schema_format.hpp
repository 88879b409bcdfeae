// SPDX-License-Identifier: Apache-2.0
// The keyword `format` of JSON Schema, as Helm's library asserts it: for drafts before 2019.
#pragma once

#include <string_view>

namespace kmm::recipe::chart {

/// Whether `text` is of the format `name`; true for a name that is no format.
[[nodiscard]] bool has_format(std::string_view name, std::string_view text);

}  // namespace kmm::recipe::chart
