// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/parse.hpp"
#include "cli/text.hpp"
#include "gendocs/generators.hpp"

namespace kmm::gendocs {
namespace {

using cli::Option;
using cli::Program;
using cli::Verb;

/// Words of a shell line without expansions; quotes are removed.
std::vector<std::string> shell_words(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    char quote = 0;
    bool started = false;
    for (const char c : line) {
        if (quote != 0) {
            if (c == quote) quote = 0;
            else word.push_back(c);
        } else if (c == '\'' || c == '"') {
            quote = c;
            started = true;
        } else if (c == ' ') {
            if (started) words.push_back(std::exchange(word, ""));
            started = false;
        } else {
            word.push_back(c);
            started = true;
        }
    }
    if (started) words.push_back(word);
    return words;
}

/// The command of ours in an example: what stands between pipes, without redirections, sudo and assignments.
std::vector<std::string> own_words(const Program& program, const std::string& line) {
    const auto words = shell_words(line);
    const auto start = std::find(words.begin(), words.end(), program.name);
    if (start == words.end()) return {};
    const auto end = std::find_if(start, words.end(), [](const std::string& word) {
        return word == "|" || word == ">" || word == "<" || word == "&&" || word.starts_with(">") || word == ";";
    });
    return {start + 1, end};
}

void check_examples(const Program& program, const std::vector<cli::Example>& examples, const std::string& place,
                    std::vector<std::string>& faults) {
    cli::Surroundings nothing;
    nothing.environment = [](const std::string&) { return std::nullopt; };
    nothing.read_file = [](const std::string&) { return std::nullopt; };
    for (const auto& example : examples) {
        const auto words = own_words(program, example.command);
        if (words.empty()) {
            faults.push_back(fmt::format("{}: example without {}: {}", place, program.name, example.command));
            continue;
        }
        try {
            (void)cli::parse_command(program, words, nothing);
        } catch (const Error& error) {
            faults.push_back(
                fmt::format("{}: example '{}' does not parse: {}", place, example.command, error.message()));
        }
        if (example.what.empty())
            faults.push_back(fmt::format("{}: example '{}' is not explained", place, example.command));
    }
}

void check_phrase(const std::string& place, const std::string& text, std::vector<std::string>& faults) {
    if (text.empty()) faults.push_back(fmt::format("{}: no text", place));
    else if (text.ends_with('.')) faults.push_back(fmt::format("{}: ends with a full stop: {}", place, text));
}

void check_width(const std::string& place, const std::string& text, std::vector<std::string>& faults) {
    for (const auto line : base::split(text, '\n')) {
        if (cli::display_width(line) > 80) faults.push_back(fmt::format("{}: wider than 80 columns: {}", place, line));
    }
}

void check_verb(const Program& program, const Verb& verb, std::vector<std::string>& faults) {
    check_phrase(verb.name, verb.summary, faults);
    if (!verb.run) faults.push_back(fmt::format("{}: no action", verb.name));
    if (verb.examples.empty()) faults.push_back(fmt::format("{}: no example", verb.name));
    check_examples(program, verb.examples, verb.name, faults);
    std::set<std::string> names;
    std::set<char> letters;
    for (const auto& option : cli::accepted_options(verb)) {
        const std::string place = fmt::format("{} --{}", verb.name, option.name);
        check_phrase(place, option.help, faults);
        if (!names.insert(option.name).second) faults.push_back(fmt::format("{}: declared twice", place));
        if (option.short_name != 0 && !letters.insert(option.short_name).second) {
            faults.push_back(fmt::format("{}: -{} is taken", place, option.short_name));
        }
    }
    for (const auto& positional : verb.positionals) {
        check_phrase(fmt::format("{} {}", verb.name, positional.name), positional.help, faults);
    }
    check_width(verb.name, cli::help_text(program, &verb), faults);
}

}  // namespace

std::vector<std::string> check_tree(const Program& program) {
    std::vector<std::string> faults;
    check_phrase("summary", program.summary, faults);
    check_examples(program, program.examples, "program", faults);
    check_width("program", cli::help_text(program, nullptr), faults);
    if (program.verbs.empty()) faults.emplace_back("no verbs");
    for (const auto& verb : program.verbs) {
        check_verb(program, verb, faults);
    }
    return faults;
}

std::string help_texts(const Program& program) {
    std::string text = fmt::format("==== {}\n{}", program.name, cli::help_text(program, nullptr));
    for (const Verb* verb : visible_verbs(program)) {
        text.append(fmt::format("==== {} {}\n{}", program.name, verb->name, cli::help_text(program, verb)));
    }
    return text;
}

std::vector<const Verb*> visible_verbs(const Program& program) {
    std::vector<const Verb*> verbs;
    for (const auto& verb : program.verbs) {
        verbs.push_back(&verb);
    }
    return verbs;
}

std::vector<Option> visible_options(const Verb& verb) {
    auto options = cli::accepted_options(verb);
    std::erase_if(options, [](const Option& option) { return option.hidden; });
    return options;
}

std::vector<std::string> verb_groups(const Program& program) {
    std::vector<std::string> groups;
    for (const Verb* verb : visible_verbs(program)) {
        const std::size_t blank = verb->name.find(' ');
        if (blank == std::string::npos) continue;
        const std::string group = verb->name.substr(0, blank);
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
    return groups;
}

std::vector<std::string> second_words(const Program& program, const std::string& group) {
    std::vector<std::string> words;
    for (const Verb* verb : visible_verbs(program)) {
        if (verb->name.starts_with(group + " ")) words.push_back(verb->name.substr(group.size() + 1));
    }
    return words;
}

std::vector<std::string> value_options(const Program& program) {
    std::set<std::string> names;
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& option : visible_options(*verb)) {
            if (option.value_name.empty()) continue;
            names.insert("--" + option.name);
            if (option.short_name != 0) names.insert(fmt::format("-{}", option.short_name));
        }
    }
    return {names.begin(), names.end()};
}

std::string value_kind(const Option& option) {
    if (option.value_name.starts_with("FILE") || option.value_name == "PATH") return "file";
    if (option.value_name == "DIR") return "directory";
    return "";
}

}  // namespace kmm::gendocs
