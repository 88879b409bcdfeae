// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_name.hpp"

#include <algorithm>
#include <cstddef>

namespace kmm::base {

bool is_kernel_name(std::string_view text) noexcept {
    constexpr std::size_t longest = 64;
    const auto is_alphanumeric = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !text.empty() && text.size() <= longest && is_alphanumeric(text.front()) &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return is_alphanumeric(c) || std::string_view("._+~-").find(c) != std::string_view::npos;
           });
}

}  // namespace kmm::base
