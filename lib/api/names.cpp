// SPDX-License-Identifier: Apache-2.0
#include "api/names.hpp"

#include <algorithm>

namespace kmm::api {

namespace {

bool is_lower_alnum(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) noexcept { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

/// A DNS-1123 label without its length limit, which subdomains do not apply to their parts.
bool is_label_shaped(std::string_view text) noexcept {
    return !text.empty() && is_lower_alnum(text.front()) && is_lower_alnum(text.back()) &&
           std::all_of(text.begin(), text.end(), [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool is_name_part(std::string_view text) noexcept {
    return !text.empty() && text.size() <= k_label_length_max && is_alnum(text.front()) && is_alnum(text.back()) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

bool is_dns1123_label(std::string_view text) noexcept {
    return text.size() <= k_label_length_max && is_label_shaped(text);
}

bool is_dns1123_subdomain(std::string_view text) noexcept {
    if (text.empty() || text.size() > k_subdomain_length_max) { return false; }
    while (true) {
        const std::size_t dot = text.find('.');
        if (!is_label_shaped(text.substr(0, dot))) { return false; }
        if (dot == std::string_view::npos) { return true; }
        text.remove_prefix(dot + 1);
    }
}

bool is_qualified_name(std::string_view text) noexcept {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) { return is_name_part(text); }
    return is_dns1123_subdomain(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

bool is_label_value(std::string_view text) noexcept { return text.empty() || is_name_part(text); }

std::string trim_kernel(std::string_view kernel) {
    if (kernel.ends_with('+')) kernel.remove_suffix(1);
    return std::string(kernel);
}

}  // namespace kmm::api
