// SPDX-License-Identifier: Apache-2.0
#include "base/natural.hpp"

#include <algorithm>
#include <cstddef>

namespace kmm::base {
namespace {

bool is_number(char c) { return c >= '0' && c <= '9'; }

/// The digits that `text` begins with, without leading zeros; they are taken off it.
std::string_view take_number(std::string_view& text) {
    const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_number) - text.begin());
    auto digits = text.substr(0, end);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    text.remove_prefix(end);
    return digits;
}

}  // namespace

int compare_natural(std::string_view left, std::string_view right) noexcept {
    while (!left.empty() && !right.empty()) {
        if (!is_number(left[0]) || !is_number(right[0])) {
            if (left[0] != right[0]) return left[0] < right[0] ? -1 : 1;
            left.remove_prefix(1);
            right.remove_prefix(1);
            continue;
        }
        const auto a = take_number(left), b = take_number(right);
        if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
        if (const int order = a.compare(b); order != 0) return order;
    }
    return left.size() == right.size() ? 0 : left.size() < right.size() ? -1 : 1;
}

}  // namespace kmm::base
