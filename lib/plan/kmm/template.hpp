// SPDX-License-Identifier: Apache-2.0
// The variables of image names and their expansion.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace kmm::plan {

using Variables = std::map<std::string, std::string, std::less<>>;

/// Every byte outside [A-Za-z0-9-._] becomes "_": KMM's normalisation of a kernel version for tags.
[[nodiscard]] std::string normalise_kernel(std::string_view kernel);

/// The kernel as KMM puts it into names and labels of build and sign Pods: lower case, '_' and '.' as '-', no '-' at
/// the ends.
[[nodiscard]] std::string dns_safe_kernel(std::string_view kernel);

/// Whether a name begins with a number, as that of every release of Linux.
[[nodiscard]] bool begins_with_number(std::string_view text) noexcept;

/// The release in the name of a package or file of a kernel: "6.1.0-56-amd64" of "linux-image-6.1.0-56-amd64". "" if
/// there is none, or if the text begins with a number.
[[nodiscard]] std::string kernel_in_name(std::string_view text);

/// Refuses what uname -r cannot print, and what does not begin with a number, as options name kernels. Errors: usage
/// "bad-kernel".
void require_kernel_name(const std::string& kernel);

/// KERNEL_FULL_VERSION, KERNEL_VERSION, KERNEL_XYZ, KERNEL_X, KERNEL_Y and KERNEL_Z of the normalised kernel, and
/// MOD_NAME and MOD_NAMESPACE. nullopt if the kernel has fewer than three pieces between '.', ',' and '-'.
[[nodiscard]] std::optional<Variables> template_variables(std::string_view kernel, std::string_view name,
                                                          std::string_view ns);

/// One use of a variable in a template.
struct VariableUse {
    std::string name;
    std::optional<std::string> value;  ///< nullopt: there is no such variable
    bool has_default = false;          ///< the template says itself what to do without it
    std::size_t offset = 0;            ///< of the "$" in the template, bytes from 0
};

struct Expansion {
    std::string text;
    std::vector<VariableUse> uses;  ///< in template order
    std::string error;              ///< "" if the template could be read; else `text` is incomplete
    std::size_t error_offset = 0;
};

/// Expands $VAR, ${VAR}, ${VAR-default}, ${VAR:-default}, ${VAR=default}, ${VAR:=default}, ${VAR+text}, ${VAR:+text}
/// and $$. A default is text or one $VAR. An unknown variable without a default expands to nothing and shows in `uses`.
/// Follows a8m/envsubst 1.4.2 in its relaxed mode, but refuses what that one reads in surprising ways (operators it
/// does not know, "${" without a name, a default that mixes $VAR and text).
[[nodiscard]] Expansion expand(std::string_view text, const Variables& variables);

/// The error "unknown-template-variable" for a use without value and default. `text` is the template, `what` names its
/// field for the message ("image template"), `variables` are those that it could have used.
[[nodiscard]] Diagnostic unknown_variable(const VariableUse& use, std::string_view what, std::string_view text,
                                          const Variables& variables, std::optional<Position> place);

}  // namespace kmm::plan
