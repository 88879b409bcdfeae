// SPDX-License-Identifier: Apache-2.0
// The platform of an image: operating system, architecture, variant.
#pragma once

#include <optional>
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

/// How far `offered` is from `wanted`, 0 for the same; nullopt if it does not serve. A later variant includes the
/// earlier ones (arm v7 takes v6, amd64 v3 takes v2), as container runtimes have it; without a variant amd64 is v1,
/// arm64 v8 and arm v7. Where one of the two says no variant, the other may be greater: that is farther than any of
/// those. Other spellings of an architecture (x86_64, aarch64) are read as container runtimes do.
[[nodiscard]] std::optional<int> distance(const Platform& offered, const Platform& wanted);

/// True if `offered` serves where `wanted` is asked for.
[[nodiscard]] bool matches(const Platform& offered, const Platform& wanted);

}  // namespace kmm::image
