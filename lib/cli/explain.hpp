// SPDX-License-Identifier: Apache-2.0
// The verb `explain` of a command, and the section of its manual page about what it says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/code.hpp"
#include "cli/app.hpp"

namespace kmm::cli {

/// Completes `verb`, which has its texts and examples, to one that explains a code of `codes`, or lists them all.
/// `codes` are sorted and live as long as the program; `known` are those of commands whose codes this one says as well,
/// explained and not listed; `others` tells where more are. The verb fails with not_found "not-found", and with the
/// command that knows the code as hint, else with the nearest code.
[[nodiscard]] Verb explain_verb(Verb verb, const std::vector<Code>& codes, const std::vector<Code>& known,
                                std::string others);

/// The codes that `command`, one of the three, lists with explain, sorted; none for another name.
[[nodiscard]] std::span<const std::string_view> codes_of(std::string_view command) noexcept;
/// "COMMAND explain CODE" of the commands other than `command` that describe `code` or, of kmm-worker, an errno; "" if
/// none does.
[[nodiscard]] std::string explained_elsewhere(std::string_view code, std::string_view command);

/// Verdict, kind, meaning and remedy, at most 80 columns wide. Ends with a newline.
[[nodiscard]] std::string explanation_text(const Code& code);

/// A section of the manual page with an entry for each code; `title` is upper case.
[[nodiscard]] Topic codes_topic(std::string title, const std::vector<Code>& codes);

}  // namespace kmm::cli
