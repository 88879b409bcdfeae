// SPDX-License-Identifier: Apache-2.0
// The only place that knows CLI11. Internal to the room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/app.hpp"

namespace kmm::cli {

/// What stood on the command line, before defaults.
struct RawArgs {
    std::map<std::string, std::vector<std::string>, std::less<>>
        values;                            ///< by long name; a flag is "true", once per use
    std::vector<std::string> positionals;  ///< in order
    std::vector<std::string> unknown;      ///< options nobody declared, as written
};

/// Parses `tokens` (without program name and verb) against `options`. An option that needs a value takes the next
/// token whatever it looks like, except "--". Errors: usage 64, code "usage", for a missing value or a value given to a
/// flag.
[[nodiscard]] RawArgs parse_tokens(const std::vector<Option>& options, const std::vector<std::string>& tokens);

}  // namespace kmm::cli
