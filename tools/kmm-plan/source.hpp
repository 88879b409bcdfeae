// SPDX-License-Identifier: Apache-2.0
// Where kmm-plan reads its objects from.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"
#include "cli/app.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// --cluster and its kin, and -f.
[[nodiscard]] std::vector<cli::Option> source_options();

/// Everything that was read, and what is wrong with it.
struct Source {
    api::Objects objects;
    Diagnostics diagnostics;
    std::vector<api::Module> replaced;  ///< Modules of the cluster in whose place documents of -f stand, sorted
    value::Node description;  ///< {"cluster": DIR, "files": [...]}, absent parts left out
};

/// Reads --cluster and -f, the latter on top of the former, and `more_files`. Faults are in the diagnostics.
/// Errors: usage "no-source" if none of them is given, usage "unsupported" for an API server, not_found "cluster-not-found".
[[nodiscard]] Source read_source(const cli::Args& args, const std::vector<std::string>& more_files = {});

/// The files that the objects and findings come from, and those that were named, sorted.
[[nodiscard]] std::vector<std::string> read_files(const Source& source);

/// Removes what only `validate` is asked for.
void drop_notes(Diagnostics& diagnostics);

/// read_source, and the rules of Modules. Errors: as read_source; data (or not_found) with all faults if there is any.
/// Warnings go to standard error unless -q is given.
[[nodiscard]] Source read_valid_source(const cli::Args& args, cli::Context& context);

/// The nodes that -l and `names` select, in order. Errors: not_found "node-not-found" with the nearest name; usage for a bad
/// selector. Empty `names`: all nodes.
[[nodiscard]] std::vector<const api::Node*> select_nodes(const Source& source, const cli::Args& args,
                                                         const std::vector<std::string>& names);

/// The Module "NAMESPACE/NAME", or "NAME" if it is unique or -n is given. Errors: not_found "module-not-found" with the
/// nearest name, usage "ambiguous-module".
[[nodiscard]] const api::Module& find_module(const Source& source, const cli::Args& args, const std::string& name);

}  // namespace kmm::tool_plan
