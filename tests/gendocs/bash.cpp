// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.hpp"
#include "gendocs/generators.hpp"

namespace kmm::gendocs {
namespace {

using cli::Option;
using cli::Program;
using cli::Verb;

/// "--cluster" and, if it has one, "|-c": a pattern of a bash case.
std::string pattern(const Option& option) {
    const std::string name = "--" + option.name;
    return option.short_name == 0 ? name : fmt::format("-{}|{}", option.short_name, name);
}

std::string value_case(const Option& option) {
    const std::string kind = value_kind(option);
    std::string action = "return";
    if (!option.choices.empty()) {
        action = fmt::format("mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$cur\"); return",
                             base::join(option.choices, " "));
    } else if (kind == "file") {
        action = "compopt -o default 2>/dev/null; return";
    } else if (kind == "directory") {
        action = "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); compopt -o filenames 2>/dev/null; return";
    }
    return fmt::format("        {}) {};;\n", pattern(option), action);
}

/// True for a group that does something by itself: `render` and `render chart` are both verbs.
bool is_verb(const Program& program, const std::string& group) {
    const auto verbs = visible_verbs(program);
    return std::any_of(verbs.begin(), verbs.end(), [&](const Verb* verb) { return verb->name == group; });
}

/// Words for the next argument: `count` arguments of the verb stand before it. `second`: verbs that its name begins.
std::string argument_case(const Verb& verb, const std::vector<std::string>& second) {
    std::string cases;
    for (std::size_t i = 0; i < verb.positionals.size(); ++i) {
        const auto& positional = verb.positionals[i];
        if (positional.choices.empty()) continue;
        if (i == 0 && !second.empty()) {
            auto words = second;
            words.insert(words.end(), positional.choices.begin(), positional.choices.end());
            cases.append(fmt::format("        0) [[ $cur == -* ]] || options=\"{}\";;\n", base::join(words, " ")));
        }
        cases.append(fmt::format("        {}) [[ $cur == -* ]] || options=\"{}\";;\n",
                                 positional.repeatable ? "*" : std::to_string(i), base::join(positional.choices, " ")));
    }
    if (cases.empty() && !second.empty())
        cases = fmt::format("        0) [[ $cur == -* ]] || options=\"{} $options\";;\n", base::join(second, " "));
    return cases.empty() ? "" : "        case $count in\n" + cases + "        esac;;\n";
}

std::string verb_case(const Verb& verb, const std::vector<std::string>& second) {
    std::vector<std::string> words;
    std::string values;
    for (const auto& option : visible_options(verb)) {
        words.push_back("--" + option.name);
        if (!option.value_name.empty()) values.append(value_case(option));
    }
    std::string text = fmt::format("    \"{}\")\n", verb.name);
    if (!values.empty()) text.append("        case $prev in\n").append(values).append("        esac\n");
    const std::string arguments = argument_case(verb, second);
    return text.append(fmt::format("        options=\"{}\"{}\n", base::join(words, " "), arguments.empty() ? ";;" : ""))
        .append(arguments);
}

/// Values of the options that may stand before the verb: each with the values that most verbs take, which are the
/// fewest.
std::string values_before_verb(const Program& program) {
    std::map<std::string, Option> first;
    for (const Verb* verb : visible_verbs(program)) {
        for (const auto& option : visible_options(*verb)) {
            if (option.value_name.empty()) continue;
            const auto known = first.try_emplace(option.name, option).first;
            // Where a verb takes fewer of the same words, those; a verb with words of its own does not count.
            const auto& words = known->second.choices;
            const bool same_words = std::all_of(option.choices.begin(), option.choices.end(), [&](const auto& word) {
                return std::find(words.begin(), words.end(), word) != words.end();
            });
            if (option.choices.size() < words.size() && same_words) known->second = option;
        }
    }
    std::string values;
    for (const auto& [name, option] : first) values.append(value_case(option));
    return values;
}

}  // namespace

std::string bash_completion(const Program& program) {
    std::string function = "_" + program.name;
    for (char& c : function) c = c == '-' ? '_' : c;
    std::vector<std::string> first;
    for (const Verb* verb : visible_verbs(program)) {
        if (verb->name.find(' ') == std::string::npos) first.push_back(verb->name);
    }
    const auto groups = verb_groups(program);
    for (const auto& group : groups)
        if (!is_verb(program, group)) first.push_back(group);
    first.emplace_back("help");

    std::string text = fmt::format(
        "# SPDX-License-Identifier: Apache-2.0\n# bash completion of {}; written by tests/gendocs\n", program.name);
    text.append(fmt::format("{}() {{\n    local cur prev verb=\"\" options=\"\" word i count=0\n", function));
    text.append("    COMPREPLY=()\n    cur=${COMP_WORDS[COMP_CWORD]}\n    prev=${COMP_WORDS[COMP_CWORD-1]}\n");
    // --output=json is three words where readline breaks words at '='.
    text.append(
        "    if [[ $cur == = ]]; then\n        cur=\"\"\n    elif [[ $prev == = && COMP_CWORD -gt 1 ]]; then\n        "
        "prev=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n");
    text.append(
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n        word=${COMP_WORDS[i]}\n        case $word in\n        =) "
        "continue;;\n");
    text.append(
        fmt::format("        {})\n            if [[ ${{COMP_WORDS[i+1]}} == = ]]; then i=$((i + 1)); fi\n            "
                    "i=$((i + 1)); continue;;\n",
                    base::join(value_options(program), "|")));
    text.append("        -*) continue;;\n        esac\n        case $verb in\n");
    for (const auto& group : groups) {
        if (!is_verb(program, group)) {
            text.append(fmt::format("        {}) verb=\"{} $word\";;\n", group, group));
            continue;
        }
        text.append(
            fmt::format("        {}) case $word in\n            {}) if [[ $count -eq 0 ]]; then verb=\"{} $word\"; "
                        "else count=$((count + 1)); fi;;\n"
                        "            *) count=$((count + 1));;\n            esac;;\n",
                        group, base::join(second_words(program, group), "|"), group));
    }
    text.append(
        "        \"\") verb=$word;;\n        help) verb=\"help $word\";;\n        *) count=$((count + 1));;\n        "
        "esac\n    done\n");
    text.append("    case $verb in\n");
    text.append(fmt::format("    \"\"|help)\n        case $prev in\n{}        esac\n", values_before_verb(program)));
    text.append(fmt::format("        options=\"{} --help --version\";;\n", base::join(first, " ")));
    for (const auto& group : groups) {
        const auto second = second_words(program, group);
        if (!is_verb(program, group))
            text.append(fmt::format("    {}) options=\"{} --help\";;\n", group, base::join(second, " ")));
        text.append(fmt::format("    \"help {}\") if [[ $count -eq 0 ]]; then options=\"{}\"; fi;;\n", group,
                                base::join(second, " ")));
    }
    for (const Verb* verb : visible_verbs(program))
        text.append(verb_case(*verb, std::find(groups.begin(), groups.end(), verb->name) == groups.end()
                                         ? std::vector<std::string>()
                                         : second_words(program, verb->name)));
    text.append("    esac\n    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n");
    text.append(
        "    if [[ ${#COMPREPLY[@]} -eq 0 && $cur != -* ]]; then\n        compopt -o default 2>/dev/null\n    fi\n}\n");
    return text.append(fmt::format("complete -F {} {}\n", function, program.name));
}

}  // namespace kmm::gendocs
