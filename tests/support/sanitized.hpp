// SPDX-License-Identifier: Apache-2.0
#pragma once

// A test's own code is compiled without sanitizers and with the same flags in every build tree, so that ccache compiles
// it once. Whether what it tests has them is therefore asked of the program as linked, not of the preprocessor.
extern "C" void __asan_init() __attribute__((weak));

namespace kmm::test {

/// Whether this program is linked with AddressSanitizer.
inline bool sanitized() noexcept {
    return __asan_init != nullptr;
}

}  // namespace kmm::test
