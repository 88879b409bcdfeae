// SPDX-License-Identifier: Apache-2.0
// Files of objects that are given where no file is expected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace kmm::cli {

/// Whether a word is a name that files of objects have: it ends with .yaml, .yml or .json.
[[nodiscard]] bool is_manifest_name(std::string_view word) noexcept;
/// Whether files of objects are given with -f to a verb that has `options`.
[[nodiscard]] bool takes_manifests(const std::vector<Option>& options);
/// That `file` is to be given with -f, as a hint.
[[nodiscard]] std::string option_before_file_hint(std::string_view file);

}  // namespace kmm::cli
