// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/parse.hpp"
#include "gendocs/generators.hpp"

namespace kmm::gendocs {
namespace {

using cli::Option;
using cli::Program;
using cli::Verb;

/// Text for roff: backslashes, hyphens that are typed, and characters that begin a request.
std::string roff(std::string_view text) {
    std::string safe;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool line_start = i == 0 || text[i - 1] == '\n';
        if (line_start && (c == '.' || c == '\'')) safe.append("\\&");
        if (c == '\\') safe.append("\\e");
        else if (c == '-') safe.append("\\-");
        else safe.push_back(c);
    }
    return safe;
}

/// Paragraphs of prose; lines that begin with a blank stay as they are.
std::string paragraphs(const std::string& text) {
    std::string page;
    bool literal = false;
    for (const auto line : base::split(text, '\n')) {
        const bool keep = !line.empty() && line.front() == ' ';
        if (keep != literal) page.append(keep ? ".nf\n" : ".fi\n");
        literal = keep;
        page.append(line.empty() ? ".PP\n" : roff(line) + "\n");
    }
    return literal ? page + ".fi\n" : page;
}

std::string option_entry(const Option& option) {
    std::string entry = ".TP\n";
    std::string names;
    if (option.short_name != 0) names = fmt::format("\\fB\\-{}\\fR, ", option.short_name);
    names.append(fmt::format("\\fB\\-\\-{}\\fR", roff(option.name)));
    if (!option.value_name.empty()) names.append(fmt::format(" \\fI{}\\fR", roff(option.value_name)));
    entry.append(names).append("\n").append(roff(option.help));
    if (!option.choices.empty()) entry.append("; one of ").append(roff(base::join(option.choices, ", ")));
    if (option.repeatable && !option.value_name.empty()) entry.append("; may be given again");
    if (!option.environment.empty()) entry.append("; environment: ").append(roff(option.environment));
    if (!option.default_text.empty()) entry.append("; default: ").append(roff(option.default_text));
    return entry.append(".\n");
}

std::string options_of(const std::vector<Option>& options) {
    std::string text;
    for (const auto& option : options) {
        if (!option.hidden) text.append(option_entry(option));
    }
    return text;
}

/// Commands as they are typed: not filled, and not arguments of a macro, which would take their quotes.
std::string examples_of(const std::vector<cli::Example>& examples) {
    std::string text;
    for (const auto& example : examples)
        text.append(fmt::format(".PP\n.nf\n\\fB{}\\fR\n.fi\n.RS\n{}.\n.RE\n", roff(example.command),
                                roff(example.what)));
    return text;
}

std::string verb_section(const Program& program, const Verb& verb) {
    std::string usage = cli::usage_line(program, verb);
    std::string text = fmt::format(".SS {}\n.B {}\n.PP\n{}.\n", roff(verb.name), roff(usage), roff(verb.summary));
    if (!verb.description.empty()) text.append(".PP\n").append(paragraphs(verb.description));
    for (const auto& positional : verb.positionals) {
        text.append(".TP\n.I ").append(roff(positional.name)).append("\n").append(roff(positional.help)).append(".\n");
    }
    text.append(options_of(cli::option_groups(verb).own));
    text.append(examples_of(verb.examples));
    return text;
}

/// Variables named by options, and those every command looks at.
std::string environment_section(const Program& program) {
    std::map<std::string, std::string> variables = {
        {"NO_COLOR", "no colour when not empty."},
        {"TERM", "no colour and no live display when dumb."},
        {"COLUMNS", "width of the terminal, before what the terminal says."},
        {"XDG_CONFIG_HOME", "where the user's configuration file is looked for; default: ~/.config."},
    };
    for (const auto& [name, meaning] : program.environment) variables[name] = roff(meaning) + ".";
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& option : visible_options(*verb)) {
            if (!option.environment.empty())
                variables[option.environment] = fmt::format("as \\-\\-{}.", roff(option.name));
        }
    }
    std::string text;
    for (const auto& [name, meaning] : variables) text.append(fmt::format(".TP\n.B {}\n{}\n", roff(name), meaning));
    return text;
}

}  // namespace

std::string man_page(const Program& program) {
    std::string name = program.name;
    for (char& c : name) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    std::string page =
        ".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Written by tests/gendocs from the command tree.\n";
    page.append(fmt::format(".TH {} {} \"\" \"kmm\\-tools\" \"User Commands\"\n", roff(name), program.man_section));
    // Names of options and variables are not cut, and blanks are not stretched: people search for them and paste them.
    page.append(".nh\n.ad l\n");
    page.append(fmt::format(".SH NAME\n{} \\- {}\n", roff(program.name), roff(program.summary)));
    page.append(
        fmt::format(".SH SYNOPSIS\n.B {}\n.I VERB\n[\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n", roff(program.name)));
    if (!program.description.empty()) page.append(".SH DESCRIPTION\n").append(paragraphs(program.description));
    if (!program.examples.empty()) page.append(".SH EXAMPLES\n").append(examples_of(program.examples));
    page.append(".SH VERBS\n");
    for (const Verb* verb : visible_verbs(program)) page.append(verb_section(program, *verb));
    bool any_cluster = false;
    for (const Verb* verb : visible_verbs(program))
        any_cluster = any_cluster || !cli::option_groups(*verb).cluster.empty();
    if (any_cluster) page.append(".SH WHICH CLUSTER\n").append(options_of(cli::cluster_options()));
    page.append(".SH COMMON OPTIONS\n").append(options_of(cli::common_options()));
    for (const auto& topic : program.topics) {
        page.append(fmt::format(".SH {}\n", roff(topic.title)));
        for (const auto& entry : topic.entries)
            page.append(fmt::format(".TP\n.B {}\n{}\n", roff(entry.name), roff(entry.text)));
    }
    page.append(".SH EXIT STATUS\n");
    for (const auto& row : exit_code_table()) {
        page.append(
            fmt::format(".TP\n.B {}\n{}: {}.\n", static_cast<int>(row.code), roff(row.name), roff(row.meaning)));
    }
    page.append(".SH ENVIRONMENT\n").append(environment_section(program));
    page.append(".SH FILES\n.TP\n.I /etc/kmm\\-tools/config.yaml\n.TQ\n.I $XDG_CONFIG_HOME/kmm\\-tools/config.yaml\n");
    page.append(
        "Defaults of options, shared by the three commands: a YAML mapping of long option names, of which each\n");
    page.append("command takes those it has. The second file wins over the first, the environment over both, the\n");
    page.append("command line over all. What stands under the name of a command, as\n");
    page.append(fmt::format(".BR {}: ,\nis for that command alone.\n", roff(program.name)));
    for (const auto& [path, meaning] : program.files)
        page.append(fmt::format(".TP\n.I {}\n{}.\n", roff(path), roff(meaning)));
    std::string others;
    for (const std::string other : {"kmm-plan", "kmm-upgrade", "kmm-worker"}) {
        if (other == program.name) continue;
        if (!others.empty()) others.append(" ,\n");
        others.append(fmt::format(".BR {} (1)", roff(other)));
    }
    return page.append(".SH SEE ALSO\n").append(others).append("\n");
}

}  // namespace kmm::gendocs
