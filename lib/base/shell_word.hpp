// SPDX-License-Identifier: Apache-2.0
// Texts of users as words of shell commands.
#pragma once

#include <string>
#include <string_view>

namespace kmm::base {

/// True for a character that a POSIX shell takes as it stands.
[[nodiscard]] bool is_plain_in_shell(char c) noexcept;
/// True if a POSIX shell takes `text` as one word as it stands.
[[nodiscard]] bool is_plain_word(std::string_view text) noexcept;
/// In single quotes, whatever it contains (NUL excepted).
[[nodiscard]] std::string single_quoted(std::string_view text);
/// One word of a POSIX shell: as it stands if it is plain, else in single quotes. A word that begins with a dash gets
/// "./" before it: it would be an option.
[[nodiscard]] std::string shell_word(std::string_view text);
/// The same for commands in messages: without what a terminal must not get.
[[nodiscard]] std::string command_word(std::string_view text);

}  // namespace kmm::base
