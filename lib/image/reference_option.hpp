// SPDX-License-Identifier: Apache-2.0
// Image references that options give.
#pragma once

#include <string>
#include <string_view>

namespace kmm::image {

/// `text`, which is the value of --`option`. Errors: usage "bad-reference" unless it is an image reference; with the
/// details of parse_reference.
[[nodiscard]] std::string require_reference(std::string_view option, std::string text);

}  // namespace kmm::image
