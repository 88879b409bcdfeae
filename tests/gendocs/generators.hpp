// SPDX-License-Identifier: Apache-2.0
// Texts made from a command tree.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"

namespace kmm::gendocs {

/// The man page, roff with the man macros.
[[nodiscard]] std::string man_page(const cli::Program& program);
[[nodiscard]] std::string bash_completion(const cli::Program& program);
[[nodiscard]] std::string zsh_completion(const cli::Program& program);
[[nodiscard]] std::string fish_completion(const cli::Program& program);
/// All --help texts, each after a line "==== PROGRAM VERB".
[[nodiscard]] std::string help_texts(const cli::Program& program);

/// What is wrong with the tree itself: examples that do not parse, missing or badly formed texts, lines over 80
/// columns, options declared twice. Empty when all is well.
[[nodiscard]] std::vector<std::string> check_tree(const cli::Program& program);

/// Verbs and options that are not hidden.
[[nodiscard]] std::vector<const cli::Verb*> visible_verbs(const cli::Program& program);
[[nodiscard]] std::vector<cli::Option> visible_options(const cli::Verb& verb);
/// First words of the two-word verbs, each once, in order.
[[nodiscard]] std::vector<std::string> verb_groups(const cli::Program& program);
/// Second words of the verbs of a group, in order.
[[nodiscard]] std::vector<std::string> second_words(const cli::Program& program, const std::string& group);

/// "-o" and "--output" of all visible options that take a value, sorted, each once: the next word belongs to them.
[[nodiscard]] std::vector<std::string> value_options(const cli::Program& program);

/// What a value is completed with: "file", "directory" or "" for nothing.
[[nodiscard]] std::string value_kind(const cli::Option& option);

}  // namespace kmm::gendocs
