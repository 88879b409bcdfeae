// SPDX-License-Identifier: Apache-2.0
// Programs of the administrator that run before and after states of a run and nodes in them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sys/clock.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

/// A directory of programs by name: pre-STATE and post-STATE run once for a state of the run, pre-STATE.NODE and
/// post-STATE.NODE for one node in it, pre-node and post-node for every node in every state. A run without such a
/// directory has none of them. Thread safe.
class Hooks {
public:
    enum class When { before, after };

    /// `directory` "" for none.
    Hooks(std::string directory, const upgrade::Header& run, sys::Clock& clock, std::function<bool()> interrupted);

    /// Runs those for `state`, or with `node` those for that node in it, with FROM, TO, STATE, NODE and UUID in their
    /// environment. One that exits with 75 is run again after 5 s. The names of those that were run. Errors: unhealthy
    /// "hook-failed" for any other code, a signal, and once `deadline` has passed; Leave.
    std::vector<std::string> run(When when, const std::string& state, const std::string& node,
                                 const Deadline& deadline) const;

private:
    void run_one(const std::string& name, const std::string& state, const std::string& node,
                 const Deadline& deadline) const;

    std::string directory_, from_, to_, lineage_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
};

/// Names of those in `directory` ("" for none) that run then, in order; with `node` those for that node. Errors:
/// from_errno.
[[nodiscard]] std::vector<std::string> hooks_for(const std::string& directory, Hooks::When when,
                                                 const std::string& state, const std::string& node);

/// Errors: those of programs_of; usage "unknown-hook" for every file of `directory` whose name is of no hook of that
/// table and those nodes.
void require_hooks(const std::string& directory, const upgrade::Table& table, const std::vector<std::string>& nodes);

}  // namespace kmm::drive
