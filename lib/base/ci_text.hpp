// SPDX-License-Identifier: Apache-2.0
// Text that CI systems must not obey. They read commands out of what a step prints: lines that begin with "::" after
// blanks (GitHub, Gitea), "##[", "##vso[" and "##teamcity[" anywhere. Source: actions/runner,
// src/Runner.Common/ActionCommand.cs.
#pragma once

#include <string>
#include <string_view>

namespace kmm::base {

/// Passes a stream of text on, piece by piece, with every form of a command made harmless: "::" at the start of a line
/// becomes ":\x3a", the
/// '[' of "##word[" becomes "\x5b". Other text stays as it is.
class CiFilter {
public:
    /// The next piece, made harmless.
    [[nodiscard]] std::string pass(std::string_view piece);
    /// The same without a copy of a piece that is harmless; else the result is in `room`.
    [[nodiscard]] std::string_view pass(std::string_view piece, std::string& room);
    /// True if pass() would change `piece`. Keeps the state as it is.
    [[nodiscard]] bool changes(std::string_view piece) const;

private:
    enum class Line { start, colon, inside };
    enum class Mark { none, one, two, word };  ///< "#", "##", "##letters"
    /// Takes the next byte; true if it must be escaped.
    [[nodiscard]] bool escapes(char c) noexcept;

    Line line_ = Line::start;
    Mark mark_ = Mark::none;
};

/// True if a CI system could take a part of `text` for a command, wherever it is printed.
[[nodiscard]] bool has_ci_command(std::string_view text);

}  // namespace kmm::base
