// SPDX-License-Identifier: Apache-2.0
// Releases of KMM: which fields of a Module each one has. Source: the CRDs of KMM's tags v2.0.0 to v2.6.0 and of its branch main.
#pragma once

#include <compare>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::plan {

/// A release of KMM. "main" is later than any.
struct Release {
    unsigned major = 0, minor = 0, patch = 0;
    friend auto operator<=>(const Release&, const Release&) = default;
};

inline constexpr Release k_main{std::numeric_limits<unsigned>::max(), 0, 0};
/// The last release whose fields and rules are known. What later ones have is known as far as main had it.
inline constexpr Release k_last_known{2, 6, 0};
inline constexpr Release k_after_last_known{2, 7, 0};

/// "main", or "v2.6.0", "2.6" and the like; nullopt for other texts and for releases before v2.0, which have no ordered upgrade.
[[nodiscard]] std::optional<Release> parse_release(std::string_view text);
/// "main", "v2.6.0".
[[nodiscard]] std::string to_string(const Release& release);

/// A field of spec that not every release has.
struct FieldRelease {
    std::string_view path;  ///< with "[]" for the entries of a list
    Release since;
};
/// Static storage, in no order.
[[nodiscard]] std::span<const FieldRelease> field_releases() noexcept;

/// Fields of a Module that `release` does not have are errors unknown-field; without a release those that the last known one does not
/// have are warnings newer-field. `subject` begins each message. O(fields that were read).
void check_field_releases(const api::Module& module, const std::string& subject, const std::optional<Release>& release, Diagnostics& diagnostics);

}  // namespace kmm::plan
