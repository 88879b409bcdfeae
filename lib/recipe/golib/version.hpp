// SPDX-License-Identifier: Apache-2.0
// Semantic versions and constraints on them, as Masterminds/semver reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

struct Version {
    std::uint64_t major = 0, minor = 0, patch = 0;
    std::string pre, metadata, original;
    [[nodiscard]] std::string text() const;
    /// -1, 0 or 1; metadata does not count.
    [[nodiscard]] int compare(const Version& other) const;
};

/// "1", "v1.2" and "1.2.3-rc.1+build"; nullopt for what is none.
[[nodiscard]] std::optional<Version> parse_version(std::string_view text);

/// ">=1.2, <2 || ~3.1"; throws Fault if it is none.
[[nodiscard]] bool version_matches(std::string_view constraint, const Version& version);
/// As Helm's IsCompatibleRange: false if either cannot be read.
[[nodiscard]] bool is_compatible(std::string_view constraint, std::string_view version);

/// The value of Sprig's `semver`.
[[nodiscard]] Value version_value(const Version& version);

}  // namespace kmm::recipe::tmpl
