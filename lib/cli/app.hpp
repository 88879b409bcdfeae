// SPDX-License-Identifier: Apache-2.0
// A command line as data: verbs, options, examples. Parsing, --help, man pages and completions all read this one tree.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "cli/console.hpp"
#include "value/node.hpp"

namespace kmm::cli {

/// One option. `value_name` "" makes it a flag. Names are without dashes. Values of options whose value_name is
/// "DURATION" or "N" are checked by the parser (base::parse_duration; a decimal number that fits 32 bits).
struct Option {
    std::string name;
    char short_name = 0;
    std::string value_name;            ///< e.g. "DIR", shown in help
    std::string help;                  ///< one phrase, lower case, no full stop
    bool repeatable = false;
    std::vector<std::string> choices;  ///< non-empty: any other value is a usage error with "did you mean"
    std::string environment;           ///< variable read when the option is absent, "" for none
    std::string default_text;          ///< shown in help and returned when nothing else is given; "" for none
    bool hidden = false;               ///< left out of --help, still accepted
    bool required = false;             ///< stands in the usage line; the verb itself says what is missing
    bool in_files = true;  ///< false: configuration files do not set it, as the name has another meaning in other verbs
};

/// An option with these words, the rest as in Option; `value_name` "" makes it a flag.
[[nodiscard]] Option option(std::string name, std::string value_name, std::string help);
[[nodiscard]] Option option(std::string name, char short_name, std::string value_name, std::string help);
/// `made` with one more property each; see Option.
[[nodiscard]] Option repeatable(Option made);
[[nodiscard]] Option required(Option made);
[[nodiscard]] Option hidden(Option made);
[[nodiscard]] Option with_choices(Option made, std::vector<std::string> choices);
[[nodiscard]] Option with_default(Option made, std::string text);
[[nodiscard]] Option with_environment(Option made, std::string variable);

struct Positional {
    std::string name;  ///< upper case, e.g. "MODULE"
    std::string help;
    bool required = true;
    bool repeatable = false;  ///< only the last one may be
    std::vector<std::string> choices = {};  ///< what completions offer; the verb itself refuses anything else
    bool is_command = false;  ///< a command with options of its own, which stands after --
};

struct Example {
    std::string command;
    std::string what;  ///< one phrase
};

class Args;
struct Context;

struct Verb {
    std::string name;  ///< "start module" for a verb below another
    std::string summary;
    std::string description;  ///< paragraphs, wrapped by the printer
    std::vector<Example> examples;  ///< printed first in --help
    std::vector<Positional> positionals;
    std::vector<Option> options;  ///< own options first, shared groups after
    std::function<Exit(const Args&, Context&)> run;
    std::string surplus_hint = {};  ///< where more arguments are given than it takes; "" for its usage line
};

/// A section of the manual page beyond verbs and options.
struct Topic {
    struct Entry {
        std::string name, text;
    };
    std::string title;  ///< upper case
    std::vector<Entry> entries;
};

/// A whole program.
struct Program {
    std::any own;         ///< what main gives to its verbs: the printer does not look at it
    std::string name;     ///< "kmm-plan"
    std::string summary;
    std::string description;
    int man_section = 1;
    std::vector<Verb> verbs;
    std::vector<Example> examples;
    std::vector<Topic> topics;
    /// Variables that are looked at besides those of options, and what they are for: of the manual page.
    std::map<std::string, std::string> environment;
    /// Files and directories of its own, and what is there: of the manual page.
    std::map<std::string, std::string> files;
    /// Verbs of a later version, and what to do instead: asked for, they are refused as "unsupported", not as unknown.
    std::map<std::string, std::string, std::less<>> planned;
    /// Words that kubectl, helm, systemctl and others have for what verbs do here: the hint to each.
    std::map<std::string, std::string, std::less<>> other_words;
    /// Told of every error that ends the program, before it is printed: those of the command line, too. May be empty;
    /// must not throw.
    std::function<void(const Error&)> on_error;
};

/// What the user gave, after environment, configuration files and defaults were applied.
class Args {
public:
    [[nodiscard]] bool flag(std::string_view option) const;
    [[nodiscard]] std::optional<std::string> get(std::string_view option) const;
    [[nodiscard]] std::vector<std::string> all(std::string_view option) const;
    /// The value of an option that the verb cannot do without. Errors: usage "missing-option" with `hint` without it,
    /// "bad-value" where it is empty or blank; both name `value_name`.
    [[nodiscard]] std::string wanted(std::string_view option, std::string_view value_name, std::string hint) const;
    [[nodiscard]] std::string positional(std::string_view name) const;  ///< "" if absent
    [[nodiscard]] std::vector<std::string> positionals(std::string_view name) const;
    /// Where a value came from: "option", "environment", "configuration file", "default", "" if absent.
    [[nodiscard]] std::string source(std::string_view option) const;

    // Filled by the parser.
    std::map<std::string, std::vector<std::string>, std::less<>> values;
    std::map<std::string, std::string, std::less<>> sources;
    std::map<std::string, std::vector<std::string>, std::less<>> positional_values;
};

/// What every verb gets.
struct Context {
    Console& console;
    const Program& program;
    const Verb& verb;
    std::string output;  ///< table, wide, json, yaml, name or jsonl
    int verbosity = 0;   ///< -q is -1, each -v adds 1
    bool color_out = false, color_err = false;
    /// That of the terminal for tables; 0, which cuts nothing, for -o wide and where the result is no terminal's.
    [[nodiscard]] std::size_t table_width() const;
};

/// Shared option groups (docs of the command line, section 1). Each verb appends the ones it takes to its options.
[[nodiscard]] std::vector<Option> common_options();   ///< -o --timeout --color -v -q --no-input -h --version
[[nodiscard]] std::vector<Option> cluster_options();  ///< --cluster --kubeconfig --context -n -l
[[nodiscard]] std::vector<Option> operator+(std::vector<Option> left, const std::vector<Option>& right);

/// Parses, runs the verb, prints any Error once in the house's form (or as JSON kind Error on stdout with -o json) and
/// returns the exit code. Usage errors: 64 with "did you mean" for verbs, options and choices. `argv` as of main.
[[nodiscard]] int run_main(const Program& program, int argc, const char* const* argv, Console& console);

/// --help text of a verb, or of the program for nullptr. At most 80 columns.
[[nodiscard]] std::string help_text(const Program& program, const Verb* verb);

/// The house's form of an error:
///   error: CONTEXT: MESSAGE
///     KEY: VALUE
///     hint:    ...
///     code:    ...
/// and, for collected diagnostics, one "file:line:col: error: message" line each first. No trailing newline trimmed.
[[nodiscard]] std::string error_text(const Error& error, bool color);
/// {"apiVersion":"kmmtools/v1","kind":"Error","code","exit","message","context","hint","position","details","cause",
/// "retryable","diagnostics"}; absent parts are left out. Two blanks a level, final newline.
[[nodiscard]] std::string error_json(const Error& error);
/// The same as a tree.
[[nodiscard]] value::Node error_node(const Error& error);
/// {"code","severity","message","file","line","column","hint"}; absent parts are left out.
[[nodiscard]] value::Node diagnostic_node(const Diagnostic& diagnostic);
/// "file:line:col: severity: message [code]", and the hint on a line of its own. Ends with a newline.
[[nodiscard]] std::string diagnostic_text(const Diagnostic& diagnostic, bool color);

}  // namespace kmm::cli
