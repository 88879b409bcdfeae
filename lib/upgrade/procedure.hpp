// SPDX-License-Identifier: Apache-2.0
// What is special to one kind of upgrade, as pure questions about a run. A procedure has no state of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "upgrade/table.hpp"

namespace kmm::upgrade {

struct Header;
struct NodeRecord;
struct Run;

/// Who takes part in a stage.
struct Members {
    bool is_left_out = false;         ///< the run goes on without this stage
    std::vector<std::size_t> places;  ///< of a walk: places in Run::nodes, in the order in which they begin
    std::int64_t failure_budget = 0;  ///< of a walk: nodes that may fail before no other one begins
};

class Procedure {
public:
    virtual ~Procedure() = default;
    [[nodiscard]] virtual const Table& table() const = 0;
    /// Costs at most O(nodes).
    [[nodiscard]] virtual Members members(const Run& run, const Stage& stage) const = 0;
    /// The step that `node` stands before or in the middle of on its way through `stage`; "" if none is left, or it has failed.
    [[nodiscard]] virtual std::string next_step(const Run& run, const NodeRecord& node, const Stage& stage) const = 0;
    /// The state that a node goes back to when a person sends it back after a failure, or it is found changed.
    [[nodiscard]] virtual std::string restart_state(const Run& run, const NodeRecord& node) const = 0;
    /// Why the run pauses after a stage that pauses, for people.
    [[nodiscard]] virtual std::string pause_note(const Run& run, const Stage& stage) const = 0;
};

/// The ordered upgrade of one Module (module), and apply, which is the same but for nodes that end without it. Source: facts KMM 8.1 and
/// 8.2 for the flow of a node, the command line page section 3 for the names.
[[nodiscard]] const Procedure& procedure_module();
[[nodiscard]] const Procedure& procedure_apply();

/// Procedures that a program knows.
using Procedures = std::vector<const Procedure*>;
/// module and apply.
[[nodiscard]] const Procedures& released_procedures();

}  // namespace kmm::upgrade
