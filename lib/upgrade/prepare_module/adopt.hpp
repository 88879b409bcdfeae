// SPDX-License-Identifier: Apache-2.0
// The record of an upgrade out of what it has left in the cluster, when the state directory is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/seam/store.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::drive {

/// Something of a kmm-upgrade besides labels and entries: the holder of a Lease, a worker Pod.
struct RunSign {
    std::string lineage;             ///< UUID of the run it is of
    std::string ns, module;          ///< the Module it is about
    std::string node;                ///< "" for a Lease
    std::string what;                ///< for people: "Lease drivers/... of ann@host/7/..."
    bool changes_node = false;       ///< a worker that loads or unloads
};

struct AdoptRequest {
    /// name "": the one Module of which an upgrade is under way; to_version "": the Module's. `lineage` is that of a
    /// new run.
    StartRequest start;
    std::optional<std::string> from;     ///< --from, "" for "nothing was loaded"
    std::optional<std::string> run;      ///< --run: the lineage, "" for a new one
    std::vector<RunSign> signs;
};

/// A record as `start` would have begun it, and what has happened to it since.
struct Adopted {
    upgrade::Run run;
    std::vector<upgrade::Event>
        events;  ///< in order, legal from `run` on; the last one is a pause with the reason "adopted"
    std::int64_t in_the_middle = 0;      ///< so many nodes must be allowed in flight
    std::vector<std::string> notes;      ///< what was concluded from what, for people
};

/// Pause of a record that is still being written; such a record is replaced by the next adoption.
inline constexpr const char* k_pause_adopting = "adopting";

/// Reads only `snapshot`: no node is asked, nothing is changed. A node is done when labels, spec and status say the
/// target version for its kernel and boot; in the middle when its label version-module says it but the rest does not,
/// when its labels contradict each other, or when a cordon or worker of the run is on it; else pending. Done nodes come
/// first in the walk, then those in the middle. What is missing of those for a rollback, the entry of the previous
/// version, is taken from a node of the same kernel that still has it. Errors: those of choosing Module and nodes as
/// prepare; not_found "nothing-to-adopt", and "no-run" for a run that nothing is of; checks_failed "adopt-ambiguous"
/// with what was found as details and the option that decides as hint.
[[nodiscard]] Adopted adopt(const cluster::Snapshot& snapshot, const sys::Clock& clock, const AdoptRequest& request);

}  // namespace kmm::drive
