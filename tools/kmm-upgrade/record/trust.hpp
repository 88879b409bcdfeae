// SPDX-License-Identifier: Apache-2.0
// What a record has this machine run, and whether its user has said so.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// The option --trust-record.
[[nodiscard]] cli::Option trust_option();

/// What `resume` and its like would run on this machine because the record says so, as options: "--on-event notify.sh",
/// and where, if that is not the working directory: "--on-event notify.sh (in /srv)"; empty for most records.
[[nodiscard]] std::vector<std::string> recorded_commands(const upgrade::Run& run);

/// Seals the record in `directory` as one whose commands the user has given. Where that cannot be done, going on needs
/// --trust-record.
void seal_record(const std::string& directory, const upgrade::Run& run);

/// Returns if the record runs nothing that `args` do not give anew, if it is sealed, or if the user trusts it: by
/// --trust-record or an answer. Errors: no_permission "record-untrusted" with the commands as details.
void require_trust(const std::string& directory, const upgrade::Run& run, const cli::Args& args, cli::Context& context);

}  // namespace kmm::tool_upgrade
