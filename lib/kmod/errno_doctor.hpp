// SPDX-License-Identifier: Apache-2.0
// What an errno of the kernel's module loader most likely means, and what to do. Source: Linux 6.1 kernel/module/main.c,
// man 2 init_module, man 2 delete_module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/host.hpp"

namespace kmm::kmod {

/// One row of the table.
struct ErrnoAdvice {
    int number;
    std::string_view cause;  ///< likeliest cause, one phrase
    std::string_view hint;   ///< what to do about it
};

/// Answers of finit_module, ascending by number. Static storage.
[[nodiscard]] std::span<const ErrnoAdvice> load_errnos() noexcept;
/// Answers of delete_module, ascending by number. Static storage.
[[nodiscard]] std::span<const ErrnoAdvice> unload_errnos() noexcept;

/// Row for `number`; numbers outside the table are what the module's own init function returned.
[[nodiscard]] ErrnoAdvice load_advice(int number) noexcept;
[[nodiscard]] ErrnoAdvice unload_advice(int number) noexcept;

/// The cause sharpened with the state of this kernel, e.g. which of the four reasons an EPERM has.
[[nodiscard]] std::string load_cause(int number, const KernelState& state, bool is_signed);

/// The number for a name such as "ENOEXEC" or "8" in either case; 0 if it is none.
[[nodiscard]] int errno_number(std::string_view text);

}  // namespace kmm::kmod
