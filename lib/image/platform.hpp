// SPDX-License-Identifier: Apache-2.0
// The platform of an image: operating system, architecture, variant.
#pragma once

#include <string>

namespace kmm::image {

/// As in an index entry or an image configuration. Empty members mean "not said".
struct Platform {
    std::string os;
    std::string architecture;
    std::string variant;

    /// "linux/arm64/v8", without the variant if there is none.
    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const Platform&, const Platform&) = default;
};

/// True if `offered` satisfies `wanted`: same os and architecture, and the variants are equal, or one side says none.
/// "v8" of arm64 and "v1" of amd64 count as none; other spellings of an architecture (x86_64, aarch64) are read as
/// container runtimes do.
[[nodiscard]] bool matches(const Platform& offered, const Platform& wanted);

}  // namespace kmm::image
