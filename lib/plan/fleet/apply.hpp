// SPDX-License-Identifier: Apache-2.0
// What bringing a fleet to its wanted state has to do, Module by Module.
#pragma once

#include <string>
#include <vector>

#include "plan/decide/plan.hpp"

namespace kmm::plan {

/// A node that is left as it is although the plan does not call it right, and why.
struct ApplyLeft {
    std::string node, reason;  ///< reason: a reason's code
    std::string message;       ///< for people
    friend bool operator==(const ApplyLeft&, const ApplyLeft&) = default;
};

/// The work for one Module. Nodes are sorted by name.
struct ApplyWork {
    std::string namespace_, module;
    std::string version;               ///< the Module's, "" if it has none or was deleted
    bool deleted = false;              ///< the Module was not read; only NodeModulesConfigs name it
    std::vector<std::string> load;     ///< nodes that get it, or get it anew
    std::vector<std::string> unload;   ///< nodes that lose it for good
    std::vector<std::string> ordered;  ///< nodes that an ordered upgrade of the Module's version is for
    std::vector<ApplyLeft> blocked;
    /// Nodes that a Module with versions selects and that cannot have it: whether that matters is for the ordered
    /// upgrade to say.
    std::vector<ApplyLeft> kept_out;

    [[nodiscard]] std::string full_name() const { return namespace_ + "/" + module; }
    [[nodiscard]] bool has_work() const noexcept { return !load.empty() || !unload.empty(); }
};

/// The settled plan as work: every Module that was read or that a NodeModulesConfig names, those without work included.
/// Its order is one in which the work can be done: Modules that only leave nodes first, the needed ones last; then the
/// others, the needed ones first (kmmtools.dev/needs). A Module that is to load on some nodes and to leave one where a
/// Module it needs goes or comes anew is there twice: among the first with what it leaves, and among the others with
/// the rest.
///
/// Of a Module with versions only removals are work: which node has which version is a matter of its version label,
/// which an ordered upgrade moves. An entry of a Module that was deleted is work even where it stands in spec.modules:
/// nobody else will take it out. `options` as for make_plan; Options::next must be false.
[[nodiscard]] std::vector<ApplyWork> apply_work(const api::Objects& objects, const Options& options);

}  // namespace kmm::plan
