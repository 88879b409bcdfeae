// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.hpp"
#include "gendocs/generators.hpp"

namespace kmm::gendocs {
namespace {

using cli::Option;
using cli::Program;
using cli::Verb;

std::string fish_quoted(std::string_view text) {
    std::string safe = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') safe.push_back('\\');
        safe.push_back(c);
    }
    return safe + "'";
}

/// Condition under which the words of `verb` stand on the command line.
std::string condition(const Verb& verb) {
    std::string text;
    for (const auto word : base::split(verb.name, ' ')) {
        if (!text.empty()) text.append("; and ");
        text.append("__fish_seen_subcommand_from ").append(word);
    }
    return fish_quoted(text);
}

std::string option_line(const Program& program, const Verb& verb, const Option& option) {
    std::string text = fmt::format("complete -c {} -n {} -l {}", program.name, condition(verb), option.name);
    if (option.short_name != 0) text.append(fmt::format(" -s {}", option.short_name));
    if (!option.value_name.empty()) {
        const std::string kind = value_kind(option);
        if (!option.choices.empty()) text.append(" -x -a ").append(fish_quoted(base::join(option.choices, " ")));
        else if (kind == "directory") text.append(" -x -a '(__fish_complete_directories)'");
        else if (kind == "file") text.append(" -r -F");
        else text.append(" -x");
    }
    return text + " -d " + fish_quoted(option.help) + "\n";
}

}  // namespace

std::string fish_completion(const Program& program) {
    std::string text = fmt::format("# SPDX-License-Identifier: Apache-2.0\n# fish completion of {}; written by tests/gendocs\n", program.name);
    for (const Verb* verb : visible_verbs(program)) {
        const std::size_t blank = verb->name.find(' ');
        if (blank == std::string::npos) {
            text.append(fmt::format("complete -c {} -n __fish_use_subcommand -f -a {} -d {}\n", program.name, verb->name, fish_quoted(verb->summary)));
            continue;
        }
        const std::string group = verb->name.substr(0, blank);
        text.append(fmt::format(
            "complete -c {} -n '__fish_seen_subcommand_from {}' -f -a {} -d {}\n", program.name, group, verb->name.substr(blank + 1),
            fish_quoted(verb->summary)
        ));
    }
    for (const auto& group : verb_groups(program)) {
        text.append(fmt::format("complete -c {} -n __fish_use_subcommand -f -a {}\n", program.name, group));
    }
    text.append(fmt::format("complete -c {} -n __fish_use_subcommand -f -a help -d 'tell about a verb'\n", program.name));
    std::vector<std::string> first;
    for (const Verb* verb : visible_verbs(program)) {
        if (verb->name.find(' ') == std::string::npos) first.push_back(verb->name);
    }
    const auto groups = verb_groups(program);
    first.insert(first.end(), groups.begin(), groups.end());
    text.append(fmt::format("complete -c {} -n '__fish_seen_subcommand_from help; and not __fish_seen_subcommand_from {}' -f -a {}\n", program.name,
                            base::join(first, " "), fish_quoted(base::join(first, " "))));
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& positional : verb->positionals) {
            if (positional.choices.empty()) continue;
            text.append(fmt::format("complete -c {} -n {} -f -a {}\n", program.name, condition(*verb), fish_quoted(base::join(positional.choices, " "))));
        }
    }
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& option : visible_options(*verb)) text.append(option_line(program, *verb, option));
    }
    return text;
}

}  // namespace kmm::gendocs
