// SPDX-License-Identifier: Apache-2.0
// Releases of KMM: names of them, and what of the objects that were read each one has. Source: the CRDs of KMM's tags
// v2.0.0 to v2.6.0 and of its branch main, see lib/schema/kmm.schema.
#pragma once

#include <compare>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// "main", or "v2.6.0", "2.6" and the like; nullopt for other texts and for releases before v2.0, which have no ordered
/// upgrade.
[[nodiscard]] std::optional<Release> parse_release(std::string_view text);
/// "main", "v2.6.0".
[[nodiscard]] std::string to_string(const Release& release);

/// What `release` does not know is an error unknown-field or unknown-kind, what it requires an error missing-field.
/// Without a release fields that the last known one does not have are warnings newer-field, and what the operator
/// writes is left in peace. O(marks).
void check_releases(const std::vector<api::ReleaseMark>& marks, const std::optional<Release>& release,
                    Diagnostics& diagnostics);

}  // namespace kmm::plan
