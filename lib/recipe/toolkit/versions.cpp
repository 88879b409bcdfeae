// SPDX-License-Identifier: Apache-2.0
#include "recipe/toolkit/versions.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace kmm::recipe::toolkit {

namespace {

constexpr std::array<std::string_view, 6> k_architectures{"x86_64", "aarch64", "ppc64le", "s390x", "riscv64", "i686"};

bool is_number(char c) { return c >= '0' && c <= '9'; }

/// <0, 0 or >0.
int compare_natural(std::string_view left, std::string_view right) {
    while (!left.empty() && !right.empty()) {
        if (!is_number(left[0]) || !is_number(right[0])) {
            if (left[0] != right[0]) { return left[0] < right[0] ? -1 : 1; }
            left.remove_prefix(1);
            right.remove_prefix(1);
            continue;
        }
        const auto take = [](std::string_view& text) {
            const std::size_t end = std::min(static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_number) - text.begin()), text.size());
            std::string_view digits = text.substr(0, end);
            digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
            text.remove_prefix(end);
            return digits;
        };
        const auto a = take(left), b = take(right);
        if (a.size() != b.size()) { return a.size() < b.size() ? -1 : 1; }
        if (const int order = a.compare(b); order != 0) { return order; }
    }
    return left.size() == right.size() ? 0 : left.size() < right.size() ? -1 : 1;
}

}  // namespace

bool is_kernel_release(std::string_view text) {
    std::size_t at = 0;
    for (int part = 0; part < 3; ++part) {
        if (part > 0 && (at >= text.size() || text[at++] != '.')) { return false; }
        const std::size_t begin = at;
        while (at < text.size() && is_number(text[at])) { ++at; }
        if (at == begin) { return false; }
    }
    return text.size() <= 64 && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), [](char c) {
        return is_number(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || std::string_view("._-+~").find(c) != std::string_view::npos;
    });
}

std::string kernel_architecture(std::string_view kernel) {
    const auto plain = kernel.substr(0, kernel.find('+'));
    const std::size_t dot = plain.rfind('.');
    if (dot == std::string_view::npos) { return {}; }
    const auto last = plain.substr(dot + 1);
    return std::find(k_architectures.begin(), k_architectures.end(), last) == k_architectures.end() ? std::string() : std::string(last);
}

std::string_view kernel_flavour(std::string_view kernel) {
    if (kernel.ends_with("+64k")) { return "64k"; }
    if (kernel.ends_with("+rt")) { return "rt"; }
    for (const auto part : base::split(kernel, '.')) {
        if (part.size() > 2 && part.starts_with("rt") && std::all_of(part.begin() + 2, part.end(), is_number)) { return "rt"; }
    }
    return "std";
}

bool version_before(std::string_view left, std::string_view right) {
    const auto base_of = [](std::string_view text) { return text.substr(0, text.find('-')); };
    if (const int order = compare_natural(base_of(left), base_of(right)); order != 0) { return order < 0; }
    const bool has_left = left.size() > base_of(left).size(), has_right = right.size() > base_of(right).size();
    if (has_left != has_right) { return has_left; }
    if (const int order = compare_natural(left, right); order != 0) { return order < 0; }
    return left < right;
}

}  // namespace kmm::recipe::toolkit
