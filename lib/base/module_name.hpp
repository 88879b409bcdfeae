// SPDX-License-Identifier: Apache-2.0
// What the name of a kernel module may be: one rule for what is planned and for what is loaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kmm::base {

/// Bytes of a module's name in the kernel, its final zero byte included: MODULE_NAME_LEN of 64-bit kernels
/// (linux/moduleparam.h, 6.1).
inline constexpr std::size_t k_module_name_bytes = 56;

/// The hint for a text that is no name of a module.
inline constexpr const char* k_module_name_hint =
    "a module's name is that of its file without .ko: at most 55 letters, digits, '_', '-' or '.', the first no '.'";

/// True for names the kernel can carry: 1 to 55 bytes of letters, digits, `_`, `-`, `.`, not starting with `.`. Cost:
/// linear.
[[nodiscard]] bool is_module_name(std::string_view name) noexcept;

/// Why nothing can be known to the kernel by this name: "is no module name", or "is the name of a file, not of a
/// module" ("demo.ko", "demo.ko.xz");
/// "" if something can. Cost: linear.
[[nodiscard]] std::string_view module_name_problem(std::string_view name) noexcept;

/// "kmm-hello" as "kmm_hello": the name the kernel has for it. Cost: linear.
[[nodiscard]] std::string kernel_module_name(std::string_view name);

}  // namespace kmm::base
