// SPDX-License-Identifier: Apache-2.0
// From a journal to the run it tells of. Illegal moves are refused, whoever wrote them.
#pragma once

#include <string>
#include <vector>

#include "upgrade/event.hpp"
#include "upgrade/procedure.hpp"
#include "upgrade/run.hpp"
#include "value/node.hpp"

namespace kmm::upgrade {

/// One journal entry as replay needs it.
struct TimedPayload {
    std::string time;  ///< RFC 3339, information only
    value::Node payload;
};

/// Applies one event. Errors: io "state-damaged" if the move is not in the procedure's table, names an unknown node, or
/// starts from another state than the run is in. `run` is unchanged then.
void apply(Run& run, const Event& event, const std::string& time);

/// The run a journal tells of: entry 1 is the header. Errors: as apply, with the entry's number. `entries` not empty.
[[nodiscard]] Run replay(const std::vector<TimedPayload>& entries);

/// The procedure a record names. Errors: config "unknown-procedure" for any but "module" and "apply".
[[nodiscard]] const Procedure& procedure_of(const Run& run);

}  // namespace kmm::upgrade
