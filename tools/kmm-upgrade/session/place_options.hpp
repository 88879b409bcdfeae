// SPDX-License-Identifier: Apache-2.0
// The options of a command line that say which record and which cluster it is about, for the commands that are printed.
#pragma once

#include <string>

#include "cli/app.hpp"

namespace kmm::tool_upgrade {

/// --state-dir, --cluster, --kubeconfig, --context and -f as the command line has them. Those of the environment and of
/// configuration files are found again by the next command.
class PlaceOptions {
public:
    /// None: texts stay as they are.
    PlaceOptions() = default;
    PlaceOptions(const cli::Args& args, const cli::Program& program);

    /// `text` with the options after the verb of each command of the program in it, quoted for a shell where needed. A
    /// verb gets what its --help has; one that goes on with a run gets no cluster, which is in the record, and one that
    /// changes something no -f. A command
    /// that names a record or a cluster itself, or is for another host ("... there"), stays.
    [[nodiscard]] std::string put_into(const std::string& text) const;

private:
    const cli::Program* program_ = nullptr;
    std::string record_, cluster_, dumps_;  ///< each with a blank before it, or ""
};

}  // namespace kmm::tool_upgrade
