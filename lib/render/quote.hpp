// SPDX-License-Identifier: Apache-2.0
// Texts of users inside shell commands and Dockerfiles.
#pragma once

#include <string>
#include <string_view>

namespace kmm::render {

/// As base::shell_word, but '*', '?' and bracket expressions keep their meaning as patterns.
[[nodiscard]] std::string shell_pattern(std::string_view text);

/// True if `text` can stand in a Dockerfile's COPY: no line break or other control character, no pattern.
[[nodiscard]] bool fits_copy(std::string_view text) noexcept;
/// The two arguments of COPY: "FROM TO" for plain words, else the JSON form with what Dockerfiles expand escaped.
[[nodiscard]] std::string copy_arguments(std::string_view from, std::string_view to);

}  // namespace kmm::render
