// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/parse.hpp"
#include "cli/text.hpp"

namespace kmm::cli {
namespace {

constexpr std::size_t k_width = 80;
constexpr std::size_t k_help_column = 28;

/// A command for a shell, broken with " \" where it would not fit.
std::string command_lines(const std::string& command) {
    std::string text;
    std::string line = " ";
    for (const auto word : base::split(command, ' ')) {
        if (line.size() + 1 + word.size() + 2 > k_width && line.find_first_not_of(' ') != std::string::npos) {
            text.append(line).append(" \\\n");
            line = "     ";
        }
        line.append(" ").append(word);
    }
    return text.append(line).append("\n");
}

std::string examples_text(const std::vector<Example>& examples) {
    if (examples.empty()) return {};
    std::string text = "Examples:\n";
    for (const auto& example : examples) {
        text.append(command_lines(example.command)).append(wrap(example.what, k_width, 6));
    }
    return text.append("\n");
}

/// "  HEAD   help", the help in a column of its own, wrapped.
std::string entry(const std::string& head, const std::string& help, std::size_t column) {
    const std::string body = wrap(help, k_width, column);
    const std::string start = "  " + head;
    if (display_width(start) + 2 > column) return start + "\n" + body;
    return pad(start, column) + body.substr(std::min(column, body.size()));
}

std::string option_head(const Option& option) {
    std::string head = option.short_name != 0 ? fmt::format("-{}, ", option.short_name) : std::string("    ");
    head.append("--").append(option.name);
    if (!option.value_name.empty()) head.append(" ").append(option.value_name);
    return head;
}

std::string option_help(const Option& option) {
    std::string help = option.help;
    std::vector<std::string> notes;
    if (!option.choices.empty()) notes.push_back("one of " + base::join(option.choices, ", "));
    if (option.repeatable && !option.value_name.empty()) notes.emplace_back("repeatable");
    if (!option.environment.empty()) notes.push_back("environment: " + option.environment);
    if (!option.default_text.empty()) notes.push_back("default: " + option.default_text);
    if (!notes.empty()) help.append(" (").append(base::join(notes, "; ")).append(")");
    return help;
}

std::string options_text(const std::string& title, const std::vector<Option>& options) {
    std::string text;
    for (const auto& option : options) {
        if (!option.hidden) text.append(entry(option_head(option), option_help(option), k_help_column));
    }
    return text.empty() ? text : title + ":\n" + text + "\n";
}

bool contains(const std::vector<Option>& options, const Option& option) {
    return std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.name == option.name; });
}

std::string verb_help(const Program& program, const Verb& verb) {
    std::string text = wrap(fmt::format("{} {} - {}", program.name, verb.name, verb.summary), k_width) + "\n";
    text.append(examples_text(verb.examples));
    text.append("Usage:\n").append(wrap(usage_line(program, verb), k_width, 2)).append("\n");
    if (!verb.description.empty()) text.append(wrap(verb.description, k_width)).append("\n");
    if (!verb.positionals.empty()) {
        text.append("Arguments:\n");
        for (const auto& positional : verb.positionals)
            text.append(entry(positional.name, positional.help, k_help_column));
        text.append("\n");
    }
    const auto groups = option_groups(verb);
    text.append(options_text("Options", groups.own));
    text.append(options_text("Which cluster", groups.cluster));
    text.append(options_text("Common options", groups.common));
    text.append(fmt::format("Exit codes: {} --help\n", program.name));
    return text;
}

std::string verbs_text(const Program& program, std::string_view prefix) {
    const auto listed = [&](const Verb& verb) { return verb.name.starts_with(prefix); };
    std::size_t column = 0;
    for (const auto& verb : program.verbs) {
        if (listed(verb)) column = std::max(column, verb.name.size() + 4);
    }
    std::string text = "Verbs:\n";
    for (const auto& verb : program.verbs) {
        if (listed(verb)) text.append(entry(verb.name, verb.summary, column));
    }
    return text.append("\n");
}

std::string program_help(const Program& program) {
    std::string text = wrap(fmt::format("{} - {}", program.name, program.summary), k_width) + "\n";
    text.append(examples_text(program.examples));
    text.append(fmt::format("Usage:\n  {} VERB [ARGUMENT...] [OPTION...]\n\n", program.name));
    if (!program.description.empty()) text.append(wrap(program.description, k_width)).append("\n");
    text.append(verbs_text(program, ""));
    text.append(options_text("Common options", common_options()));
    text.append("Exit codes:\n");
    for (const auto& row : exit_code_table()) {
        text.append(fmt::format("  {:>3}  {:<14}  {}\n", static_cast<int>(row.code), row.name, row.meaning));
    }
    text.append(fmt::format("\nSee {} help VERB for the options of a verb.\n", program.name));
    return text;
}

}  // namespace

OptionGroups option_groups(const Verb& verb) {
    OptionGroups groups;
    const auto cluster = cluster_options();
    const auto common = common_options();
    for (const auto& option : accepted_options(verb)) {
        if (contains(common, option)) groups.common.push_back(option);
        else if (contains(cluster, option)) groups.cluster.push_back(option);
        else groups.own.push_back(option);
    }
    return groups;
}

std::string usage_line(const Program& program, const Verb& verb) {
    std::string line = fmt::format("{} {}", program.name, verb.name), command;
    for (const auto& positional : verb.positionals) {
        const std::string name = positional.name + (positional.repeatable ? "..." : "");
        if (positional.is_command) command = " -- " + name;
        else line.append(positional.required ? " " + name : " [" + name + "]");
    }
    for (const auto& option : verb.options)
        if (option.required) line.append(fmt::format(" --{} {}", option.name, option.value_name));
    return line + " [OPTION...]" + command;
}

std::string help_text(const Program& program, const Verb* verb) {
    return verb == nullptr ? program_help(program) : verb_help(program, *verb);
}

std::string group_help_text(const Program& program, const std::string& group) {
    return fmt::format("Usage:\n  {} {} VERB [OPTION...]\n\n", program.name, group) + verbs_text(program, group + " ") +
           fmt::format("See {} help {} VERB for the options of a verb.\n", program.name, group);
}

}  // namespace kmm::cli
