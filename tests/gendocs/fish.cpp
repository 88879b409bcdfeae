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

/// Begin of the names of the functions that the completion defines.
std::string function_name(const Program& program) {
    std::string name = "__" + program.name;
    for (char& c : name) c = c == '-' ? '_' : c;
    return name;
}

/// Condition under which the words of `verb` stand on the command line.
std::string condition(const Program& program, const Verb& verb) {
    return fish_quoted(function_name(program) + "_verb " + verb.name);
}

/// Condition under which `words`, which may be empty, stand there and the next word belongs to them.
std::string wanted_after(const Program& program, const std::string& words) {
    return fish_quoted(function_name(program) + "_wants_word" + (words.empty() ? "" : " " + words));
}

/// The words that conditions look at. __fish_use_subcommand takes the value of an option before the verb for a verb.
std::string functions(const Program& program) {
    const std::string name = function_name(program);
    return fmt::format(
        "function {0}_words -d 'words before the cursor that are no options and no values of options'\n"
        "    set -l value 0\n"
        "    for word in (commandline -opc)[2..-1]\n"
        "        if test $value = 1\n"
        "            set value 0\n"
        "            continue\n"
        "        end\n"
        "        switch $word\n"
        "            case {1}\n"
        "                set value 1\n"
        "            case '-*'\n"
        "            case '*'\n"
        "                echo -- $word\n"
        "        end\n"
        "    end\n"
        "    test $value = 0\n"
        "end\n"
        "function {0}_verb -d 'these words are the verb'\n"
        "    set -l words ({0}_words)\n"
        "    set -l length (count $argv)\n"
        "    test (count $words) -ge $length; and test \"$words[1..$length]\" = \"$argv\"\n"
        "end\n"
        "function {0}_wants_word -d 'these words stand there, and the next one comes'\n"
        "    set -l words ({0}_words); or return 1\n"
        "    test \"$words\" = \"$argv\"\n"
        "end\n",
        name, base::join(value_options(program), " "));
}

std::string option_line(const Program& program, const Verb& verb, const Option& option) {
    std::string text = fmt::format("complete -c {} -n {} -l {}", program.name, condition(program, verb), option.name);
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
    std::string text = fmt::format(
        "# SPDX-License-Identifier: Apache-2.0\n# fish completion of {}; written by tests/gendocs\n", program.name);
    text.append(functions(program));
    for (const Verb* verb : visible_verbs(program)) {
        const std::size_t blank = verb->name.find(' ');
        if (blank == std::string::npos) {
            text.append(fmt::format("complete -c {} -n {} -f -a {} -d {}\n", program.name, wanted_after(program, ""),
                                    verb->name, fish_quoted(verb->summary)));
            continue;
        }
        const std::string group = verb->name.substr(0, blank);
        text.append(fmt::format("complete -c {} -n {} -f -a {} -d {}\n", program.name, wanted_after(program, group),
                                verb->name.substr(blank + 1), fish_quoted(verb->summary)));
    }
    for (const auto& group : verb_groups(program)) {
        text.append(fmt::format("complete -c {} -n {} -f -a {}\n", program.name, wanted_after(program, ""), group));
    }
    text.append(fmt::format("complete -c {} -n {} -f -a help -d 'tell about a verb'\n", program.name,
                            wanted_after(program, "")));
    std::vector<std::string> first;
    for (const Verb* verb : visible_verbs(program)) {
        if (verb->name.find(' ') == std::string::npos) first.push_back(verb->name);
    }
    const auto groups = verb_groups(program);
    first.insert(first.end(), groups.begin(), groups.end());
    text.append(fmt::format("complete -c {} -n {} -f -a {}\n", program.name, wanted_after(program, "help"),
                            fish_quoted(base::join(first, " "))));
    for (const auto& group : groups) {
        text.append(fmt::format("complete -c {} -n {} -f -a {}\n", program.name, wanted_after(program, "help " + group),
                                fish_quoted(base::join(second_words(program, group), " "))));
    }
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& positional : verb->positionals) {
            if (positional.choices.empty()) continue;
            text.append(fmt::format("complete -c {} -n {} -f -a {}\n", program.name, condition(program, *verb),
                                    fish_quoted(base::join(positional.choices, " "))));
        }
    }
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& option : visible_options(*verb)) text.append(option_line(program, *verb, option));
    }
    return text;
}

}  // namespace kmm::gendocs
