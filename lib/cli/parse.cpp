// SPDX-License-Identifier: Apache-2.0
#include "cli/parse.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/cli11_adapter.hpp"
#include "cli/manifest_words.hpp"
#include "cli/text.hpp"
#include "sys/trust.hpp"

namespace kmm::cli {
namespace {

Error usage_error(std::string code, std::string message) {
    return Error(Exit::usage, std::move(code), std::move(message));
}

const Option* find_option(const std::vector<Option>& options, std::string_view name) {
    const auto found = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
    return found == options.end() ? nullptr : &*found;
}

const Option* find_short(const std::vector<Option>& options, char name) {
    const auto found =
        std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.short_name == name; });
    return found == options.end() ? nullptr : &*found;
}

/// The tokens sorted by what they are, before the verb is known.
struct Scan {
    std::vector<std::size_t> words;  ///< indexes of tokens that are neither options nor values of options
    std::optional<std::size_t> unknown_option;  ///< index of the first option no verb has
    bool help = false;
    bool version = false;
};

/// True if `token` is an option whose value is the next token. Notes -h and unknown names in `scan`.
bool scan_option(const std::vector<Option>& known, const std::string& token, std::size_t index, Scan& scan) {
    const auto note_unknown = [&] {
        if (!scan.unknown_option) scan.unknown_option = index;
    };
    if (token.starts_with("--")) {
        const std::size_t equals = token.find('=');
        const auto name = std::string_view(token).substr(2, equals == std::string::npos ? equals : equals - 2);
        if (name == "help") scan.help = true;
        if (name == "version") scan.version = true;
        const Option* option = find_option(known, name);
        if (option == nullptr) note_unknown();
        return option != nullptr && !option->value_name.empty() && equals == std::string::npos;
    }
    for (std::size_t i = 1; i < token.size(); ++i) {
        const Option* option = find_short(known, token[i]);
        if (option == nullptr) {
            note_unknown();
            return false;
        }
        if (option->name == "help") scan.help = true;
        if (!option->value_name.empty()) return i + 1 == token.size();
    }
    return false;
}

Scan scan_tokens(const Program& program, const std::vector<std::string>& tokens) {
    std::vector<Option> known = common_options();
    for (const auto& verb : program.verbs) known = std::move(known) + verb.options;
    Scan scan;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] == "--") {
            for (std::size_t k = i + 1; k < tokens.size(); ++k) scan.words.push_back(k);
            break;
        }
        if (tokens[i].size() > 1 && tokens[i].front() == '-') {
            if (scan_option(known, tokens[i], i, scan)) ++i;
        } else {
            scan.words.push_back(i);
        }
    }
    return scan;
}

/// -o=json as pflag, of kubectl, takes it: "=" after a short option with a text behind it is not of the value.
std::string without_equals(const std::vector<Option>& known, const std::string& token) {
    if (token.size() < 2 || token[0] != '-' || token[1] == '-') return token;
    for (std::size_t i = 1; i < token.size(); ++i) {
        const Option* option = find_short(known, token[i]);
        if (option == nullptr) break;
        const bool has_equals = i + 2 < token.size() && token[i + 1] == '=';
        if (has_equals && option->value_name.empty())
            return i == 1 ? fmt::format("--{}{}", option->name, token.substr(i + 1)) : token;
        if (has_equals) return token.substr(0, i + 1) + token.substr(i + 2);
        if (!option->value_name.empty()) break;
    }
    return token;
}

/// without_equals of the options among `tokens`, which are of one verb.
void drop_equals(const std::vector<Option>& options, std::vector<std::string>& tokens) {
    Scan scan;
    for (std::size_t i = 0; i < tokens.size() && tokens[i] != "--"; ++i) {
        tokens[i] = without_equals(options, tokens[i]);
        if (tokens[i].size() > 1 && tokens[i].front() == '-' && scan_option(options, tokens[i], i, scan)) ++i;
    }
}

const Verb* find_verb(const Program& program, std::string_view name) {
    const auto found =
        std::find_if(program.verbs.begin(), program.verbs.end(), [&](const Verb& v) { return v.name == name; });
    return found == program.verbs.end() ? nullptr : &*found;
}

/// Names of the verbs that begin with "WORD ".
std::vector<std::string> verbs_below(const Program& program, const std::string& word) {
    std::vector<std::string> names;
    for (const auto& verb : program.verbs) {
        if (verb.name.starts_with(word + " ")) names.push_back(verb.name);
    }
    return names;
}

std::vector<std::string> verb_names(const Program& program) {
    std::vector<std::string> names;
    for (const auto& verb : program.verbs) names.push_back(verb.name);
    return names;
}

/// Comma-separated, in lines that fit beside the key of a detail.
std::string word_list(const std::vector<std::string>& words) {
    const std::string lines = wrap(base::join(words, ", "), 68);
    return lines.substr(0, lines.find_last_not_of('\n') + 1);
}

/// The first of `verbs` whose second word is `word`, else the first that begins with `word`, from three letters on.
std::optional<std::string> verb_like(const std::string& word, const std::vector<std::string>& verbs) {
    auto found = std::find_if(verbs.begin(), verbs.end(),
                              [&](const std::string& verb) { return verb.ends_with(" " + word); });
    if (found == verbs.end() && word.size() >= 3)
        found = std::find_if(verbs.begin(), verbs.end(),
                             [&](const std::string& verb) { return verb.starts_with(word); });
    return found == verbs.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> nearest_other_word(const Program& program, const std::string& word) {
    std::vector<std::string> others;
    for (const auto& [other, hint] : program.other_words) others.push_back(other);
    return base::nearest(word, others);
}

Error unknown_verb(const Program& program, const std::vector<std::string>& words) {
    for (const auto& name : {words.front(), words.size() > 1 ? words[0] + " " + words[1] : std::string()}) {
        const auto later = program.planned.find(name);
        if (later == program.planned.end()) continue;
        return usage_error("unsupported", fmt::format("'{}' is for a later version of {}", name, program.name))
            .hint(later->second);
    }
    const auto below = verbs_below(program, words.front());
    if (!below.empty() && words.size() == 1) {
        return usage_error("missing-argument", fmt::format("'{}' alone is not a verb", words.front()))
            .hint(fmt::format("{} {}", program.name, base::join(below, ", ")));
    }
    const std::string name = below.empty() ? words.front() : words[0] + " " + words[1];
    auto error = usage_error("unknown-verb", fmt::format("unknown verb '{}'", name));
    // A verb of kubectl and kubeadm.
    if (name == "version") return std::move(error).hint(fmt::format("{} --version", program.name));
    if (const auto other = program.other_words.find(base::to_lower(name)); other != program.other_words.end())
        return std::move(error).hint(other->second);
    const auto candidates = below.empty() ? verb_names(program) : below;
    auto near = base::nearest(name, candidates);
    if (!near && below.empty() && words.size() > 1) near = base::nearest(words[0] + " " + words[1], candidates);
    if (!near && below.empty()) near = verb_like(name, candidates);
    if (near) return std::move(error).hint(fmt::format("did you mean '{}'?", *near));
    if (const auto other = nearest_other_word(program, name))
        return std::move(error).hint(program.other_words.find(*other)->second);
    return std::move(error).detail("verbs", word_list(candidates)).hint(fmt::format("{} --help", program.name));
}

/// The argument of `verb` that other verbs take as the value of the option `written`, "" if there is none.
std::string argument_named(const Program& program, const Verb& verb, const std::string& written) {
    if (!written.starts_with("--")) return {};
    for (const auto& other : program.verbs) {
        const auto* option = find_option(other.options, written.substr(2));
        if (option == nullptr) continue;
        for (const auto& positional : verb.positionals)
            if (positional.name == option->value_name) return positional.name;
    }
    return {};
}

Error unknown_option(const Program& program, const Verb* verb, const std::string& token) {
    const std::string written = token.substr(0, token.find('='));
    std::vector<std::string> names;
    const auto options = verb != nullptr ? accepted_options(*verb) : common_options();
    for (const auto& option : options) {
        if (!option.hidden) names.push_back("--" + option.name);
    }
    auto error = usage_error("unknown-option", fmt::format("unknown option {}", written));
    if (verb != nullptr && !verb->positionals.empty() && verb->positionals.back().is_command)
        return std::move(error).hint(
            fmt::format("put -- before the command and its options: {}", usage_line(program, *verb)));
    if (const auto argument = verb == nullptr ? std::string() : argument_named(program, *verb, written);
        !argument.empty())
        return std::move(error).hint(
            fmt::format("{} is given without {}: {}", argument, written, usage_line(program, *verb)));
    if (const auto near = base::nearest(written, names))
        return std::move(error).hint(fmt::format("did you mean {}?", *near));
    std::vector<std::string> owners;
    for (const auto& other : program.verbs) {
        if (written.size() > 2 && find_option(other.options, written.substr(2)) != nullptr) {
            owners.push_back(other.name);
        }
    }
    if (!owners.empty()) error.detail("belongs", fmt::format("to {}", base::join(owners, ", ")));
    const std::string subject = verb != nullptr ? " " + verb->name : std::string();
    return std::move(error).hint(fmt::format("{}{} --help lists the options", program.name, subject));
}

/// An empty variable of a script is no file at all, and not any node, run or version.
void require_not_empty(const Positional& positional, const std::string& text) {
    static constexpr std::array k_never_empty{std::string_view("CHART"), std::string_view("CONFIG"),
                                              std::string_view("FILE"), std::string_view("NODE"),
                                              std::string_view("NODE|STAGE"), std::string_view("RUN"),
                                              std::string_view("VERSION")};
    if (!text.empty() ||
        std::find(k_never_empty.begin(), k_never_empty.end(), positional.name) == k_never_empty.end()) {
        return;
    }
    throw usage_error("bad-value", fmt::format("expected {}, found ''", positional.name))
        .hint(positional.required ? "name one" : "name one, or leave it out");
}

void assign_positionals(const Program& program, const Verb& verb, const std::vector<std::string>& given, Args& args) {
    std::size_t next = 0;
    for (const auto& positional : verb.positionals) {
        if (next == given.size()) {
            if (!positional.required) continue;
            throw usage_error("missing-argument",
                              fmt::format("missing argument {}: {}", positional.name, positional.help))
                .hint(usage_line(program, verb));
        }
        auto& values = args.positional_values[positional.name];
        do {
            values.push_back(bare_name(positional.name, given[next++]));
            require_not_empty(positional, values.back());
        } while (positional.repeatable && next < given.size());
    }
    if (next < given.size()) {
        throw usage_error("usage", fmt::format("unexpected argument '{}'", given[next]))
            .hint(!verb.surplus_hint.empty() ? verb.surplus_hint
                  : takes_manifests(verb.options) && is_manifest_name(given[next])
                      ? option_before_file_hint(given[next])
                      : usage_line(program, verb));
    }
}

/// "true" once for a true flag, nothing for a false one.
std::vector<std::string> flag_values(const Option& option, const std::string& text) {
    const std::string word = base::to_lower(text);
    if (word == "1" || word == "true" || word == "yes" || word == "on") return {"true"};
    if (word == "0" || word == "false" || word == "no" || word == "off") return {};
    throw usage_error("bad-value", fmt::format("environment variable {}: expected true or false, found '{}'",
                                               option.environment, text))
        .hint(fmt::format("for example {}=true", option.environment));
}

void resolve_option(const Option& option, const RawArgs& raw, const std::vector<Settings>& configuration,
                    const Surroundings& surroundings, Args& args) {
    const auto put = [&](std::vector<std::string> values, std::string source) {
        args.values[option.name] = std::move(values);
        args.sources[option.name] = std::move(source);
    };
    if (const auto given = raw.values.find(option.name); given != raw.values.end()) {
        if (given->second.size() > 1 && !option.repeatable && !option.value_name.empty()) {
            throw usage_error("usage", fmt::format("option --{} was given {} times", option.name, given->second.size()))
                .hint("give it once");
        }
        for (const auto& text : given->second) {
            if (!option.value_name.empty()) check_value(option, text, fmt::format("option --{}", option.name));
        }
        auto values = given->second;
        for (auto& text : values) text = bare_name(option.value_name, std::move(text));
        return put(std::move(values), "option");
    }
    if (!option.environment.empty()) {
        const auto text = surroundings.environment(option.environment).value_or("");
        if (!text.empty() && option.value_name.empty()) return put(flag_values(option, text), "environment");
        if (!text.empty()) {
            check_value(option, text, fmt::format("environment variable {}", option.environment));
            return put({text}, "environment");
        }
    }
    for (auto file = configuration.rbegin(); option.in_files && file != configuration.rend(); ++file) {
        const auto found = file->find(option.name);
        if (found != file->end()) return put(found->second.values, "configuration file");
    }
    if (!option.default_text.empty() && !option.value_name.empty()) put({option.default_text}, "default");
}

/// An option of the command line that does nothing without another one. A configuration file may have it alone.
void require_partners(const std::vector<Option>& options, const Args& args) {
    struct Partners {
        std::string_view name, partner;
    };
    static constexpr std::array k_partners{Partners{"confirm", "restore-etcd"},
                                           Partners{"metrics-cluster", "metrics"}};
    for (const auto& [name, partner] : k_partners) {
        const auto* wanted = find_option(options, partner);
        if (wanted == nullptr || args.source(name) != "option" || args.get(partner)) continue;
        throw usage_error("missing-option", fmt::format("--{} requires --{}", name, partner))
            .hint(wanted->value_name.empty() ? fmt::format("add --{}, or leave --{} out", partner, name)
                                             : fmt::format("add --{} {}", partner, wanted->value_name));
    }
}

/// The verb named by the first one or two words, and how many words it took.
std::pair<const Verb*, std::size_t> match_verb(const Program& program, const std::vector<std::string>& words) {
    if (words.size() > 1) {
        if (const Verb* verb = find_verb(program, words[0] + " " + words[1])) return {verb, 2};
    }
    return {words.empty() ? nullptr : find_verb(program, words[0]), 1};
}

/// `explain` describes the very error of a configuration that cannot be read: without it, then.
std::vector<Settings> configuration_of(const Program& program, const Verb& verb, const Surroundings& surroundings) {
    try {
        return read_configuration(program, surroundings);
    } catch (const Error&) {
        if (verb.name == "explain") return {};
        throw;
    }
}

/// `help [VERB]`, or --help anywhere.
Command help_command(const Program& program, const std::vector<std::string>& words) {
    Command command;
    command.request = Request::help;
    if (words.empty()) return command;
    command.verb = match_verb(program, words).first;
    if (command.verb != nullptr) return command;
    if (verbs_below(program, words[0]).empty() || words.size() > 1) throw unknown_verb(program, words);
    command.group = words[0];
    return command;
}

}  // namespace

Surroundings process_surroundings() {
    Surroundings surroundings;
    surroundings.environment = [](const std::string& name) -> std::optional<std::string> {
        const char* text = std::getenv(name.c_str());
        if (text == nullptr) return std::nullopt;
        return std::string(text);
    };
    surroundings.read_file = [](const std::string& path) -> std::optional<std::string> {
        constexpr std::chrono::seconds patience(1);  // for a pipe in its place: --timeout is not known here
        try {
            return sys::read_trusted_file(path, "configuration file", 1U << 20U, patience);
        } catch (const Error& error) {
            if (error.exit() == Exit::not_found) return std::nullopt;
            throw;
        }
    };
    return surroundings;
}

std::vector<Option> accepted_options(const Verb& verb) {
    auto options = verb.options;
    for (const auto& option : common_options()) {
        if (find_option(options, option.name) == nullptr) options.push_back(option);
    }
    return options;
}

void check_value(const Option& option, const std::string& value, const std::string& origin) {
    // Else an empty variable of a script would mean every namespace, another cluster or kernel, or no signature policy.
    static constexpr std::array k_never_empty{std::string_view("context"), std::string_view("kernel"),
                                              std::string_view("namespace"), std::string_view("parameter")};
    const auto names_path = [&] {
        return option.value_name.find("FILE") != std::string::npos ||
               option.value_name.find("DIR") != std::string::npos;
    };
    if (value.empty() && (names_path() || std::find(k_never_empty.begin(), k_never_empty.end(), option.name) !=
                                              k_never_empty.end())) {
        throw usage_error("bad-value", fmt::format("{}: expected {}, found ''", origin, option.value_name))
            .hint(option.required ? "name one" : "name one, or leave the option out");
    }
    if (!option.choices.empty() &&
        std::find(option.choices.begin(), option.choices.end(), value) == option.choices.end()) {
        auto error = usage_error("bad-value", fmt::format("{}: expected one of {}, found '{}'", origin,
                                                          base::join(option.choices, ", "), value));
        const auto near = base::nearest(value, option.choices);
        error.hint(near ? fmt::format("did you mean '{}'?", *near)
                        : fmt::format("write one of them, for example '{}'", option.choices.front()));
        throw std::move(error);
    }
    if (option.value_name == "DURATION" && !base::parse_duration(value)) {
        throw usage_error("bad-value",
                          fmt::format("{}: expected a duration such as 90s or 5m, found '{}'", origin, value))
            .hint("a number and its unit, which is ms, s, m or h");
    }
    if (option.value_name == "N" && !base::parse_number<std::uint32_t>(value)) {
        throw usage_error("bad-value", fmt::format("{}: expected a number, found '{}'", origin, value))
            .hint(value.ends_with('%') ? "digits alone: this option does not take a percentage"
                                       : "digits alone, up to 4294967295");
    }
}

// A name as kubectl get -o name prints it is as good as the bare one: neither Nodes nor Namespaces have such names.
std::string bare_name(std::string_view placeholder, std::string text) {
    struct Prefix {
        std::string_view placeholder, text;
    };
    static constexpr std::array k_prefixes{Prefix{"NODE", "node/"}, Prefix{"NODE", "nodes/"},
                                           Prefix{"MODULE", "module.kmm.sigs.x-k8s.io/"}};
    for (const auto& prefix : k_prefixes)
        if (prefix.placeholder == placeholder && text.starts_with(prefix.text)) return text.substr(prefix.text.size());
    return text;
}

Command parse_command(const Program& program, const std::vector<std::string>& tokens,
                      const Surroundings& surroundings) {
    const Scan scan = scan_tokens(program, tokens);
    std::vector<std::string> words;
    for (const std::size_t index : scan.words) words.push_back(tokens[index]);
    if (!words.empty() && words[0] == "help" && find_verb(program, "help") == nullptr) {
        return help_command(program, {words.begin() + 1, words.end()});
    }
    if (scan.help) return help_command(program, words);
    Command command;
    if (scan.version) {
        command.request = Request::version;
        return command;
    }
    const auto [verb, taken] = match_verb(program, words);
    if (verb == nullptr) {
        const bool option_first = scan.unknown_option && (words.empty() || *scan.unknown_option < scan.words.front());
        if (option_first) throw unknown_option(program, nullptr, tokens[*scan.unknown_option]);
        if (!words.empty()) throw unknown_verb(program, words);
        throw usage_error("missing-argument", "no verb given")
            .detail("verbs", word_list(verb_names(program)))
            .hint(fmt::format("{} --help", program.name));
    }
    command.verb = verb;
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto end = scan.words.begin() + static_cast<std::ptrdiff_t>(taken);
        if (std::find(scan.words.begin(), end, i) == end) rest.push_back(tokens[i]);
    }
    const auto options = accepted_options(*verb);
    drop_equals(options, rest);
    const RawArgs raw = parse_tokens(options, rest);
    if (!raw.unknown.empty()) throw unknown_option(program, verb, raw.unknown.front());
    assign_positionals(program, *verb, raw.positionals, command.args);
    const auto configuration = configuration_of(program, *verb, surroundings);
    for (const auto& option : options) resolve_option(option, raw, configuration, surroundings, command.args);
    require_partners(options, command.args);
    return command;
}

}  // namespace kmm::cli
