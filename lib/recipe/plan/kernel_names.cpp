// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/kernel_names.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace kmm::recipe::plan {

bool names_kernel(std::string_view image, std::string_view kernel) {
    const auto is_digit_at = [&](std::size_t at) { return at < image.size() && image[at] >= '0' && image[at] <= '9'; };
    const auto is_word_at = [&](std::size_t at) {
        return is_digit_at(at) || (at < image.size() && ((image[at] | 0x20) >= 'a' && (image[at] | 0x20) <= 'z'));
    };
    const auto begins = [&](std::size_t at) {
        return at == 0 || (!is_digit_at(at - 1) && (image[at - 1] != '.' || at == 1 || !is_digit_at(at - 2)));
    };
    const auto ends = [&](std::size_t at) {
        if (at == image.size()) { return true; }
        if (is_word_at(at) || (image[at] == '.' && is_digit_at(at + 1))) { return false; }
        if (image[at] != '_' && image[at] != '+' && image[at] != '-') { return true; }
        static constexpr std::array<std::string_view, 4> k_flavours{"rt", "64k", "16k", "debug"};
        return std::none_of(k_flavours.begin(), k_flavours.end(), [&](std::string_view flavour) {
            return image.substr(at + 1).starts_with(flavour) && !is_word_at(at + 1 + flavour.size());
        });
    };
    if (kernel.empty()) { return false; }
    std::string in_tag(kernel);
    std::replace(in_tag.begin(), in_tag.end(), '+', '_');
    for (const std::string_view form : {kernel, std::string_view(in_tag)}) {
        for (auto at = image.find(form); at != std::string_view::npos; at = image.find(form, at + 1)) {
            if (begins(at) && ends(at + form.size())) { return true; }
        }
    }
    return false;
}

}  // namespace kmm::recipe::plan
