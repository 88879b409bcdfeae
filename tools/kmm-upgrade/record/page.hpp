// SPDX-License-Identifier: Apache-2.0
// What the page of `kmm-upgrade report` shows below its heading: HTML without scripts, which loads nothing.
#pragma once

#include <string>
#include <string_view>

#include "kmm-upgrade/record/story.hpp"

namespace kmm::tool_upgrade {

/// CSS of the page.
[[nodiscard]] std::string_view page_style();
/// Counts of nodes by state, and each cause of failure with its nodes.
[[nodiscard]] std::string page_summary(const upgrade::Run& run);
/// Timeline, nodes (failed ones first) and events (folded). O(events); at most 3 MB for 2,000 nodes: of more events
/// than fit, the last are left out, which the page says.
[[nodiscard]] std::string page_details(const Story& story);

}  // namespace kmm::tool_upgrade
