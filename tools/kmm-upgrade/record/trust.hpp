// SPDX-License-Identifier: Apache-2.0
// Whether the record is this user's, what it decides, and whether its user has said so.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// The option --trust-record.
[[nodiscard]] cli::Option trust_option();

/// What `resume` and its like would run, here or on nodes, because the record says so, as options: "--on-event
/// notify.sh", and where, if that is not the working directory: "--on-event notify.sh (in /srv)"; empty for most
/// records.
[[nodiscard]] std::vector<std::string> recorded_commands(const upgrade::Run& run);

/// Why the record that was loaded last is not known to be this user's, as a clause: "it has no seal"; "" if it is.
[[nodiscard]] std::string seal_fault(RecordAccess& record);

/// After a run was begun: notes that going on with it needs --trust-record, if it could not be sealed.
void note_unsealed(RecordAccess& record);

/// Returns if the record that was loaded last, which is `run`, is sealed by this user, or the user trusts it: by
/// --trust-record or an answer; it is sealed with what is recorded next then. Errors: no_permission "record-untrusted"
/// with all that the record decides and the command line does not as details.
void require_trust(RecordAccess& record, const upgrade::Run& run);

}  // namespace kmm::tool_upgrade
