// SPDX-License-Identifier: Apache-2.0
// Which machine's system calls this program makes, for filters of seccomp. Private to this room.
#pragma once

#include <linux/audit.h>

#include <cstdint>

namespace kmm::sandbox {

#if defined(__x86_64__)
inline constexpr std::uint32_t k_own_calls = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint32_t k_own_calls = AUDIT_ARCH_AARCH64;
#else
inline constexpr std::uint32_t k_own_calls = 0;  ///< the numbers of this machine's calls are not known here: no filter
#endif

}  // namespace kmm::sandbox
