// SPDX-License-Identifier: Apache-2.0
#include "base/module_name.hpp"

#include <algorithm>

namespace kmm::base {

bool is_module_name(std::string_view name) noexcept {
    if (name.empty() || name.size() >= k_module_name_bytes || name.front() == '.') return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
}

std::string_view module_name_problem(std::string_view name) noexcept {
    if (!is_module_name(name)) return "is not a module name";
    const bool is_file = name.ends_with(".ko") || name.find(".ko.") != std::string_view::npos;
    return is_file ? "is the name of a file, not of a module" : "";
}

std::string kernel_module_name(std::string_view name) {
    std::string result(name);
    std::replace(result.begin(), result.end(), '-', '_');
    return result;
}

}  // namespace kmm::base
