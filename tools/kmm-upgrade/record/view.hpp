// SPDX-License-Identifier: Apache-2.0
// A run as text and as a document.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/session/place_options.hpp"
#include "record/state_dir.hpp"
#include "report/metrics.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/run.hpp"
#include "value/node.hpp"

namespace kmm::tool_upgrade {

/// "10:41:07" of an RFC 3339 time; the text itself if it is none.
[[nodiscard]] std::string clock_text(const std::string& time);
/// "-" for "".
[[nodiscard]] std::string dash(const std::string& text);
/// "2 of 3 nodes done, 1 failed, 0 in flight".
[[nodiscard]] std::string counts_text(const upgrade::Run& run);
/// Of times that are known to the second: "<1s", "12s", "4m5s", "1h2m0s".
[[nodiscard]] std::string seconds_text(std::chrono::seconds duration);
/// NODE KERNEL CURRENT TARGET STATE SINCE MESSAGE of all nodes, in the order of the run; `width` as of format_nodes.
/// With a width, which is for a person at a terminal, failed nodes come first, then those in flight. A long cause that
/// several nodes have stands once.
[[nodiscard]] std::string node_table(const upgrade::Run& run, std::size_t width);
/// The lines module, state, paused, next; each two columns of facts. Lines that are wider than `width` are broken at
/// blanks; 0 breaks none. `owner` is the process that walks the run now, if any; then `follow` is the next command, ""
/// for none. Commands get `place`.
[[nodiscard]] std::string properties(const upgrade::Run& run, const std::optional<record::Owner>& owner = std::nullopt,
                                     std::size_t width = 0, const std::string& follow = "kmm-upgrade show --watch",
                                     const PlaceOptions& place = {});
/// {"apiVersion":"kmmtools/v1","kind":"Upgrade",...}. Commands get `place`.
[[nodiscard]] value::Node document(const upgrade::Run& run, const PlaceOptions& place = {});
/// What a walking verb prints at its end on standard output, in the format asked for. The last line of text names the
/// next command.
void print_summary(const cli::Args& args, cli::Context& context, const upgrade::Run& run, bool interrupted);
/// --metrics.
[[nodiscard]] cli::Option metrics_option();
/// --metrics-cluster NAME, beside --metrics.
[[nodiscard]] cli::Option metrics_cluster_option();
/// The text of --metrics.
[[nodiscard]] std::string metrics_text(const cli::Args& args, const std::vector<report::MetricFamily>& families);
/// Writes the run as metrics to the file of --metrics as a whole, if it is given. Without a run, the file has the names
/// alone. `is_worked_on`: a process goes on with it after this call. Errors: io.
void write_metrics(const cli::Args& args, cli::Context& context, const std::optional<upgrade::Run>& run,
                   bool is_worked_on = false);

}  // namespace kmm::tool_upgrade
