// SPDX-License-Identifier: Apache-2.0
// A run as text and as a document.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/app.hpp"
#include "record/state_dir.hpp"
#include "upgrade/planner.hpp"
#include "upgrade/run.hpp"
#include "value/node.hpp"

namespace kmm::tool_upgrade {

/// "10:41:07" of an RFC 3339 time; the text itself if it is none.
[[nodiscard]] std::string clock_text(const std::string& time);
/// "-" for "".
[[nodiscard]] std::string dash(const std::string& text);
/// "2 of 3 nodes done, 1 failed, 0 in flight".
[[nodiscard]] std::string counts_text(const upgrade::Run& run);
/// NODE KERNEL CURRENT TARGET STATE SINCE MESSAGE. `width` as in cli::format_table.
[[nodiscard]] std::string node_table(const upgrade::Run& run, std::size_t width);
/// The lines module, state, paused, next; each two columns of facts. `owner` is the process that walks the run now, if any.
[[nodiscard]] std::string properties(const upgrade::Run& run, const std::optional<record::Owner>& owner = std::nullopt);
/// {"apiVersion":"kmmtools/v1","kind":"Upgrade",...}.
[[nodiscard]] value::Node document(const upgrade::Run& run);
/// What a walking verb prints at its end on standard output, in the format asked for. The last line of text names the next
/// command.
void print_summary(cli::Context& context, const upgrade::Run& run, bool interrupted);

}  // namespace kmm::tool_upgrade
