// SPDX-License-Identifier: Apache-2.0
// Kubernetes' rules for names, label keys and label values. Source: apimachinery pkg/util/validation.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "api/types.hpp"

namespace kmm::api {

inline constexpr std::size_t k_label_length_max = 63;       ///< name part of a label key, label value, DNS-1123 label
inline constexpr std::size_t k_subdomain_length_max = 253;  ///< object names, label key prefixes

/// [a-z0-9]([-a-z0-9]*[a-z0-9])?, 1 to 63 bytes: namespaces.
[[nodiscard]] bool is_dns1123_label(std::string_view text) noexcept;
/// DNS-1123 labels (of any length) joined with dots, 1 to 253 bytes: object names.
[[nodiscard]] bool is_dns1123_subdomain(std::string_view text) noexcept;
/// "name" or "prefix/name": name is [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])? of 1 to 63 bytes, prefix a subdomain.
[[nodiscard]] bool is_qualified_name(std::string_view text) noexcept;
/// "" or like the name part of a qualified name.
[[nodiscard]] bool is_label_value(std::string_view text) noexcept;
/// See base::parse_quantity.
[[nodiscard]] bool is_quantity(std::string_view text) noexcept;
/// A Module as people name it.
struct ModuleName {
    std::string namespace_;  ///< "" if it was left out
    std::string name;
};
/// "NAMESPACE/NAME" or "NAME". Errors: usage "bad-value" for a text of other parts, or with an empty one.
[[nodiscard]] ModuleName parse_module_name(std::string_view text);
/// Where there are Modules, or were: the namespaces of the Modules and of what the NodeModulesConfigs hold.
[[nodiscard]] std::set<std::string> module_namespaces(const Objects& objects);
/// A kernel release with one trailing "+" less, as KMM does before it matches, tags or writes it into a config.
[[nodiscard]] std::string trim_kernel(std::string_view kernel);

/// The ConfigMap of KMM's operator, on a hub or not, that holds its controller_config.yaml.
[[nodiscard]] bool is_operator_config_map(std::string_view name) noexcept;

}  // namespace kmm::api
