// SPDX-License-Identifier: Apache-2.0
// The end of what a command printed.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::base {

/// The last `most` lines of `text` that are not empty, in their order, without blanks around them. They lie in `text`.
[[nodiscard]] std::vector<std::string_view> last_lines(std::string_view text, std::size_t most);
template <typename Text>
    requires std::same_as<Text, std::string>
std::vector<std::string_view> last_lines(Text&& text, std::size_t most) = delete;  // they would not outlive it

/// The last of them, "" if there is none.
[[nodiscard]] std::string_view last_line(std::string_view text);

}  // namespace kmm::base
