// SPDX-License-Identifier: Apache-2.0
// Lists that may be long, in one line for people.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kmm::base {

/// "a, b, c", or of more than `most` the first ones and how many others there are: "a, b and 3 more". "" for none.
[[nodiscard]] std::string join_some(std::span<const std::string> names, std::size_t most);

}  // namespace kmm::base
