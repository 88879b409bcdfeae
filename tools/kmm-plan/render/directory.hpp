// SPDX-License-Identifier: Apache-2.0
// --out of render: its options, and what is said about it.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// Errors: usage for --prune without --out, and for an empty --out; usage "out-in-input" for an --out in a directory
/// that is read: the next run would read what this one writes.
void check_out(const cli::Args& args);

/// Writes each document as the file of the same index in `names` (without ending, "DIRECTORY/NAME" allowed) below
/// --out, in the format of -o, and says on standard error what changed. `in_use` are names that --prune leaves alone.
/// Errors: usage for another -o than yaml or json; those of write_files.
void write_directory(const std::vector<value::Node>& documents, const std::vector<std::string>& names,
                     const std::vector<std::string>& in_use, const cli::Args& args, cli::Context& context);

}  // namespace kmm::tool_plan
