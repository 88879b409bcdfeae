// SPDX-License-Identifier: Apache-2.0
// What the ways of giving up rights are made of: filters of system calls, Landlock's rights, lines of the report. Used
// inside this room only.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace kmm::sandbox {

/// A seccomp filter. Calls of other machines (32-bit ones, x32) fail with EPERM, whatever follows.
class CallFilter {
public:
    CallFilter();
    void allow(long call);
    /// The call fails with `number`.
    void refuse(long call, int number);
    /// Allowed if the argument has all bits of `all` and none of `none` in its lower half, else EPERM.
    void allow_bits(long call, unsigned argument, std::uint32_t all, std::uint32_t none);
    /// Allowed if the lower half of the argument is `value`, else EPERM.
    void allow_value(long call, unsigned argument, std::uint32_t value);
    /// EPERM if the lower half of the argument is one of `values`.
    void refuse_values(long call, unsigned argument, std::span<const std::uint32_t> values);
    /// What is to become of calls that nothing was said of.
    enum class Others { allowed, refused };
    /// For all threads. Errno, or 0; ENOSYS on machines whose calls are not known here.
    [[nodiscard]] int install(Others others);

private:
    void add(const sock_filter& word) { program_.push_back(word); }
    void load(std::size_t offset);
    void load_argument(unsigned argument);
    void give(std::uint32_t answer);
    void only(long call, std::size_t words);

    std::vector<sock_filter> program_;
};

/// The version of the running kernel's Landlock; below 1 with errno without one.
[[nodiscard]] long landlock_version();

/// Every right over files that Landlock of this version knows.
[[nodiscard]] std::uint64_t landlock_file_rights(long version);

/// Notes what is in force if `fault`, an errno, is 0, else that `what` is missing.
void note_part(SandboxReport& report, const char* done, const char* what, int fault);

}  // namespace kmm::sandbox
