// SPDX-License-Identifier: Apache-2.0
// What a command can say, as a code and its meaning: what `explain` and the manual pages tell.
#pragma once

#include <string>
#include <string_view>

namespace kmm {

/// One code. All texts are for people; the code and the kind are stable.
struct Code {
    std::string code;
    std::string kind;     ///< "reason", "finding", "error", or "reason, finding"
    std::string verdict;  ///< one phrase, lower case, no full stop
    std::string meaning;  ///< whole sentences, "" if the verdict says it all
    std::string remedy;   ///< what to do, "" if nothing needs to be done
};

/// A row of the tables that lists of codes are made of.
struct CodeText {
    std::string_view code, kind, verdict, meaning, remedy;
};

}  // namespace kmm
