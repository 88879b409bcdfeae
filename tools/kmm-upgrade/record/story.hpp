// SPDX-License-Identifier: Apache-2.0
// Runs as they are told afterwards: the record in place, and those of the history.
#pragma once

#include <string>
#include <vector>

#include "kmm-upgrade/record/access.hpp"
#include "record/state_dir.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

struct Story {
    std::string id;  ///< "current" for the record in place, else the name of its journal in the history
    upgrade::Run run;
    record::Loaded loaded;  ///< has the header and every event; never empty
};

/// Every run that can be read and that -n does not leave out, newest first. Damaged ones are said on standard error.
/// Takes no lock. Errors: those of StateDir::open; not_found "history-not-found" if there are runs, but none of that
/// namespace.
[[nodiscard]] std::vector<Story> stories(RecordAccess& record);
/// The one with that id. Errors: not_found "history-not-found".
[[nodiscard]] const Story& named_story(const std::vector<Story>& all, const std::string& id);
/// From the first entry to the last, with all pauses; "-" if clocks went backwards between.
[[nodiscard]] std::string took(const Story& story);

}  // namespace kmm::tool_upgrade
