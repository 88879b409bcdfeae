// SPDX-License-Identifier: Apache-2.0
#include "api/names.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// What a character may be part of. A fleet has millions of them in its labels.
using CharClass = unsigned;
constexpr CharClass k_char_lower = 1, k_char_alnum = 2, k_char_label = 4, k_char_part = 8;

constexpr std::array<unsigned char, 256> k_char_classes = [] {
    std::array<unsigned char, 256> classes{};
    for (unsigned c = 0; c < classes.size(); ++c) {
        const bool lower = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        const bool alnum = lower || (c >= 'A' && c <= 'Z');
        const unsigned bits = (lower ? k_char_lower : 0U) | (alnum ? k_char_alnum : 0U) |
                              (lower || c == '-' ? k_char_label : 0U) |
                              (alnum || c == '-' || c == '_' || c == '.' ? k_char_part : 0U);
        classes[c] = static_cast<unsigned char>(bits);
    }
    return classes;
}();

bool is_char(CharClass wanted, char c) noexcept {
    return (k_char_classes[static_cast<unsigned char>(c)] & wanted) != 0;
}

bool all_chars(CharClass wanted, std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [&](char c) { return is_char(wanted, c); });
}

/// A DNS-1123 label without its length limit, which subdomains do not apply to their parts.
bool is_label_shaped(std::string_view text) noexcept {
    return !text.empty() && is_char(k_char_lower, text.front()) && is_char(k_char_lower, text.back()) &&
           all_chars(k_char_label, text);
}

bool is_name_part(std::string_view text) noexcept {
    return !text.empty() && text.size() <= k_label_length_max && is_char(k_char_alnum, text.front()) &&
           is_char(k_char_alnum, text.back()) && all_chars(k_char_part, text);
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

bool is_quantity(std::string_view text) noexcept { return base::parse_quantity(text).has_value(); }

ModuleName parse_module_name(std::string_view text) {
    const std::size_t slash = text.find('/');
    const bool has_namespace = slash != std::string_view::npos;
    ModuleName name{std::string(has_namespace ? text.substr(0, slash) : ""),
                    std::string(has_namespace ? text.substr(slash + 1) : text)};
    if (!name.name.empty() && name.name.find('/') == std::string::npos &&
        (!has_namespace || !name.namespace_.empty())) {
        return name;
    }
    throw Error(Exit::usage, "bad-value",
                "'" + base::escape(text) + "' is not the name of a Module, expected NAMESPACE/NAME, or NAME alone")
        .hint("with NAME alone, -n says the namespace where several have such a Module");
}

std::set<std::string> module_namespaces(const Objects& objects) {
    std::set<std::string> names;
    for (const auto& module : objects.modules) { names.insert(module.meta.namespace_); }
    for (const auto& config : objects.node_modules_configs) {
        for (const auto& entry : config.spec) { names.insert(entry.namespace_); }
        for (const auto& entry : config.status) { names.insert(entry.namespace_); }
    }
    return names;
}

bool is_operator_config_map(std::string_view name) noexcept {
    // kustomize appends a hash to what it generates, and names that in the operator's Deployment as well.
    constexpr std::size_t k_hash_length = 10;
    constexpr std::string_view k_hash_digits = "2456789bcdfghkmt";
    for (const std::string_view plain : {"kmm-operator-manager-config", "kmm-operator-hub-manager-config"}) {
        if (name == plain) { return true; }
        if (name.size() != plain.size() + 1 + k_hash_length || !name.starts_with(plain)) { continue; }
        const auto hash = name.substr(plain.size() + 1);
        if (name[plain.size()] == '-' && hash.find_first_not_of(k_hash_digits) == hash.npos) { return true; }
    }
    return false;
}

std::string trim_kernel(std::string_view kernel) {
    if (kernel.ends_with('+')) kernel.remove_suffix(1);
    return std::string(kernel);
}

}  // namespace kmm::api
