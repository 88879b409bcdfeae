// SPDX-License-Identifier: Apache-2.0
// What an errno of the kernel's module loader most likely means, and what to do. Source: Linux 6.1
// kernel/module/main.c, man 2 init_module, man 2 delete_module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/host/host.hpp"

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

/// What testing a cause on this host gave.
enum class Applies { yes, no, unknown };

/// "yes", "no", "unknown".
[[nodiscard]] std::string_view to_string(Applies applies) noexcept;

/// One possible cause and what this host says about it.
struct Cause {
    std::string text;
    Applies applies = Applies::unknown;
    std::string evidence;  ///< what was read, "" if nothing can be
};

/// What is known about the module that was refused; all of it may be missing.
struct Suspect {
    const ModuleFile* file = nullptr;
    std::string parameters;  ///< as given to the kernel
};

/// The causes of an errno of loading, in the order in which the kernel checks them, each tested on this host where that
/// is possible. Never empty. Source: Linux 6.1 kernel/module/main.c and signing.c.
[[nodiscard]] std::vector<Cause> load_causes(int number, const HostPaths& host, const KernelState& state,
                                             const Suspect& suspect = {});

/// True if every reason that the kernel itself has for an errno, as far as it can be tested here, was tested, and none
/// applies: then it is the answer of the module's own init function.
[[nodiscard]] bool all_excluded(const std::vector<Cause>& causes);

/// Whether the kernel answers with this errno for want of a signature that it trusts: of a module without any, too.
[[nodiscard]] bool is_signature_errno(int number) noexcept;

/// The first cause that applies, with its evidence; else the table's.
[[nodiscard]] std::string likeliest_cause(const std::vector<Cause>& causes, int number);

/// The number for a name such as "ENOEXEC" in either case, "8" or, as the kernel logs it, "-8"; 0 if it is none.
[[nodiscard]] int errno_number(std::string_view text);

}  // namespace kmm::kmod
