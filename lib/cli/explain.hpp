// SPDX-License-Identifier: Apache-2.0
// The verb `explain` of a command, and the section of its manual page about what it says.
#pragma once

#include <string>
#include <vector>

#include "base/code.hpp"
#include "cli/app.hpp"

namespace kmm::cli {

/// Completes `verb`, which has its texts and examples, to one that explains a code of `codes`, or lists them all.
/// `codes` are sorted and live as long as the program; `known` are those of commands whose codes this one says as well,
/// explained and not listed; `others` tells where more are. The verb fails with not_found "not-found", and with the
/// nearest code as hint.
[[nodiscard]] Verb explain_verb(Verb verb, const std::vector<Code>& codes, const std::vector<Code>& known,
                                std::string others);

/// Verdict, kind, meaning and remedy, at most 80 columns wide. Ends with a newline.
[[nodiscard]] std::string explanation_text(const Code& code);

/// A section of the manual page with an entry for each code; `title` is upper case.
[[nodiscard]] Topic codes_topic(std::string title, const std::vector<Code>& codes);

}  // namespace kmm::cli
