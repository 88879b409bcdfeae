// SPDX-License-Identifier: Apache-2.0
// What every fuzz target has: libFuzzer's entry point, and a way to say that a property does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// Takes any input; returns 0. Aborts if a property does not hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kmm::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Aborts with `what` if `holds` is false.
inline void require(bool holds, const char* what) {
    if (holds) { return; }
    std::fprintf(stderr, "property does not hold: %s\n", what);
    std::abort();
}

}  // namespace kmm::fuzz
