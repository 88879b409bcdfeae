// SPDX-License-Identifier: Apache-2.0
// What the options of start, apply, migrate and adopt ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/app.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::tool_upgrade {

/// "N" or "P%"; a percentage is of the nodes of the run, rounded down, at least one. Kept as given: the number of nodes
/// is not known yet.
struct Share {
    std::int64_t number = 1;
    bool percent = false;
    [[nodiscard]] std::int64_t of(std::size_t nodes) const;
};

/// --max-unavailable, and its text. Errors: usage "bad-value".
[[nodiscard]] Share max_unavailable(const cli::Args& args);
[[nodiscard]] Share parse_share(std::string text);

/// MODULE as NAMESPACE/NAME, or NAME with or without --namespace; "" if it is not given. Errors: usage "bad-value".
void take_module(const cli::Args& args, drive::StartRequest& request);
/// Nodes, order, pace, drain and who asks, from the options that start and apply share; a new lineage. Errors: usage.
void take_walk_options(const cli::Args& args, drive::StartRequest& request);
/// take_walk_options of a verb that drains nodes unless --no-drain is given. Errors: usage, also for options of a drain
/// beside --no-drain.
void take_draining_walk_options(const cli::Args& args, drive::StartRequest& request);

/// The two parts of it that a continued apply needs as well: the names of an order file, and who asks, with which
/// lineage.
void read_order(drive::StartRequest& request);
void sign_request(upgrade::Signature& request);

/// --until of a verb that goes on with `run`; nullopt if it is not given. Errors: usage "bad-value" for a state in
/// which the run cannot stop any more.
[[nodiscard]] std::optional<std::string> until_option(const cli::Args& args, const upgrade::Run& run);

/// The number of an option, `fallback` if it is not given. Errors: usage "bad-value" below `least` or above a million.
[[nodiscard]] std::int64_t count_option(const cli::Args& args, const std::string& name, std::int64_t fallback,
                                        std::int64_t least);
/// The text of an option that is a command line, "" if it is not given. Errors: usage "bad-value".
[[nodiscard]] std::string command_option(const cli::Args& args, const std::string& name);
/// Of a command line that is to be run, not empty: its program can be. Errors: not_found "command-not-found"; as root,
/// no_permission "untrusted-file" for one given by its path that others may change.
void require_command(const std::string& command);

/// "Nothing to do" must not be the answer where -n or -l is misspelt. Errors: not_found "module-not-found",
/// checks_failed "no-nodes".
void require_matches(const api::Objects& objects, const std::string& ns, const cluster::Selector& selector);

}  // namespace kmm::tool_upgrade
