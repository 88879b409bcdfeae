// SPDX-License-Identifier: Apache-2.0
// Nodes that came after a run began.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kmm-upgrade/session/call.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// What is said of nodes that came later, of one and of several, as "does not run v2" and "do not run v2".
struct NewcomerWords {
    std::string one, several;
};

/// Notes the nodes that `find` returns, which `run`, a complete one, does not have as they came later, with the command
/// that upgrades them. Nothing with --quiet. What `find` cannot read is noted as well: the run has ended well.
void note_newcomers(Call& call, const upgrade::Run& run, const NewcomerWords& words,
                    const std::function<std::vector<std::string>()>& find);

}  // namespace kmm::tool_upgrade
