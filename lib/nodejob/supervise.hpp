// SPDX-License-Identifier: Apache-2.0
// The process that runs the commands of a job.
#pragma once

#include <string>

#include "nodejob/slot.hpp"

namespace kmm::nodejob {

/// Starts the supervisor of a job, detached: in a session of its own, not a child of this process, its standard input
/// /dev/null, its output the file `out`. It and its commands inherit `alive`, whose lock this process gives up when it
/// closes it. Returns when it is detached. Errors: from_errno.
void start_supervisor(const JobSpec& spec, const std::string& id, const SlotPlace& place, int alive, sys::FileOps& ops,
                      sys::Clock& clock);

}  // namespace kmm::nodejob
