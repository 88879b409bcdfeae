// SPDX-License-Identifier: Apache-2.0
// What a node has to stand before it is done: the command of the user, and some time.
#pragma once

#include <functional>
#include <string>

#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive/recorder.hpp"

namespace kmm::drive {

/// Runs the check command of the run, if it has one, with `document` at its standard input.
/// Errors: unhealthy "check-failed" with the last lines of what it printed. Throws Leave.
void ask_user_check(const upgrade::Options& options, const value::Node& document, const Deadline& deadline,
                    const std::function<bool()>& interrupted);

/// Waits for as long as nodes of the run are watched, which is recorded with `facts`. The caller looks at the node
/// afterwards. Throws Leave.
void soak(Recorder& recorder, sys::Clock& clock, const std::string& node, value::Node facts,
          const std::function<bool()>& interrupted);

}  // namespace kmm::drive
