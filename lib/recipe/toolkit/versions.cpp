// SPDX-License-Identifier: Apache-2.0
#include "recipe/toolkit/versions.hpp"

#include <algorithm>
#include <array>

#include "base/kernel_name.hpp"
#include "base/natural.hpp"
#include "base/text.hpp"

namespace kmm::recipe::toolkit {

namespace {

constexpr std::array<std::string_view, 6> k_architectures{"x86_64", "aarch64", "ppc64le", "s390x", "riscv64", "i686"};

bool is_number(char c) { return c >= '0' && c <= '9'; }

/// Releases one behind the other, as rpm prints two packages of a kernel without a line end between them.
bool is_of_several(std::string_view text) {
    return std::any_of(k_architectures.begin(), k_architectures.end(), [&](std::string_view name) {
        for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
            auto rest = text.substr(at + name.size());
            for (const std::string_view flavour : {"+rt", "+64k"})
                if (rest.starts_with(flavour)) rest.remove_prefix(flavour.size());
            if (at > 0 && text[at - 1] == '.' && !rest.empty() && is_number(rest.front())) { return true; }
        }
        return false;
    });
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
    return base::is_kernel_name(text) && !is_of_several(text);
}

std::string kernel_architecture(std::string_view kernel) {
    const auto plain = kernel.substr(0, kernel.find('+'));
    const std::size_t dot = plain.rfind('.');
    if (dot == std::string_view::npos) { return {}; }
    const auto last = plain.substr(dot + 1);
    return std::find(k_architectures.begin(), k_architectures.end(), last) == k_architectures.end() ? std::string()
                                                                                                    : std::string(last);
}

std::string_view kernel_flavour(std::string_view kernel) {
    if (kernel.ends_with("+64k")) { return "64k"; }
    if (kernel.ends_with("+rt")) { return "rt"; }
    for (const auto part : base::split(kernel, '.')) {
        if (part.size() > 2 && part.starts_with("rt") && std::all_of(part.begin() + 2, part.end(), is_number)) {
            return "rt";
        }
    }
    return "std";
}

bool is_of_one_kind(std::string_view left, std::string_view right) {
    return kernel_architecture(left) == kernel_architecture(right) && kernel_flavour(left) == kernel_flavour(right);
}

std::string with_architecture(const std::string& kernel, const std::string& architecture) {
    if (!kernel_architecture(kernel).empty()) { return kernel; }
    const std::size_t plus = std::min(kernel.find('+'), kernel.size());
    return kernel.substr(0, plus) + '.' + architecture + kernel.substr(plus);
}

std::string without_architecture(const std::string& kernel) {
    const std::string architecture = kernel_architecture(kernel);
    const std::string plain = kernel.substr(0, kernel.find('+'));
    return architecture.empty() ? plain : plain.substr(0, plain.size() - architecture.size() - 1);
}

bool version_before(std::string_view left, std::string_view right) {
    const auto base_of = [](std::string_view text) { return text.substr(0, text.find('-')); };
    if (const int order = base::compare_natural(base_of(left), base_of(right)); order != 0) { return order < 0; }
    const bool has_left = left.size() > base_of(left).size(), has_right = right.size() > base_of(right).size();
    if (has_left != has_right) { return has_left; }
    if (const int order = base::compare_natural(left, right); order != 0) { return order < 0; }
    return left < right;
}

}  // namespace kmm::recipe::toolkit
