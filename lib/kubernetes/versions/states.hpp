// SPDX-License-Identifier: Apache-2.0
// The state of each known version, from what runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/observe.hpp"

namespace kmm::kubernetes {

enum class State { active, partial, available, unavailable };

/// "active", "partial", "available" or "unavailable".
[[nodiscard]] std::string_view to_string(State state) noexcept;

/// One version of the metadata, or one that runs and is not in the metadata.
struct VersionRow {
    Version version;
    const VersionEntry* entry = nullptr;  ///< of the catalogue; nullptr if it is not there
    State state = State::unavailable;
    bool is_target = false;               ///< the version the cluster is at, or is being upgraded to
    std::size_t control_planes = 0, kubelets = 0;  ///< nodes that run it
};

/// Sorted by version. A control-plane node counts for the lowest version of its three components, a node for that of
/// its kubelet. A version that is the only one to run is `active`, several are `partial`. Of the others those above the
/// active one, to which a path leads from it, are `available` and the rest is `unavailable`. The active one is the
/// target, unless an upgrade to another one is under way. `seen` must have no faults; `catalogue` must outlive the
/// result.
[[nodiscard]] std::vector<VersionRow> version_rows(const Catalogue& catalogue, const Observation& seen,
                                                   const std::optional<Version>& upgraded_to = std::nullopt);

/// The row with the version, nullptr if it is not there.
[[nodiscard]] const VersionRow* find_row(const std::vector<VersionRow>& rows, const Version& version) noexcept;

/// The active one, nullptr in a mixed cluster.
[[nodiscard]] const VersionRow* active_row(const std::vector<VersionRow>& rows) noexcept;

}  // namespace kmm::kubernetes
