// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "gendocs/generators.hpp"

namespace kmm::gendocs {
namespace {

using cli::Option;
using cli::Program;
using cli::Verb;

/// Text inside single quotes of an _arguments specification.
std::string zsh_quoted(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        if (c == '\'') safe.append("'\\''");
        else if (c == '[' || c == ']' || c == ':') safe.append("\\").push_back(c);
        else safe.push_back(c);
    }
    return safe;
}

std::string specification(const Option& option) {
    std::string value;
    if (!option.value_name.empty()) {
        const std::string kind = value_kind(option);
        value = ":" + zsh_quoted(option.value_name) + ":";
        if (!option.choices.empty()) value.append("(").append(base::join(option.choices, " ")).append(")");
        else if (kind == "file") value.append("_files");
        else if (kind == "directory") value.append("_files -/");
    }
    const std::string star = option.repeatable ? "*" : "";
    std::string text = fmt::format("      '{}--{}{}[{}]{}' \\\n", star, option.name, value.empty() ? "" : "=",
                                   zsh_quoted(option.help), value);
    if (option.short_name != 0) {
        text.append(fmt::format("      '{}-{}[{}]{}' \\\n", star, option.short_name, zsh_quoted(option.help), value));
    }
    return text;
}

/// Arguments after the words of the verb, which _arguments counts as well.
std::string arguments(const Verb& verb) {
    const auto words = static_cast<std::size_t>(std::count(verb.name.begin(), verb.name.end(), ' ')) + 1;
    const bool any = std::any_of(verb.positionals.begin(), verb.positionals.end(),
                                 [](const auto& positional) { return !positional.choices.empty(); });
    std::string text;
    for (std::size_t i = 1; i <= words; ++i) text.append(fmt::format("      '{}:verb:' \\\n", i));
    // With two colons, no option would be completed after the verb.
    if (!any) return text.append("      '*:argument:_files';;\n");
    for (std::size_t i = 0; i < verb.positionals.size(); ++i) {
        const auto& positional = verb.positionals[i];
        const std::string offered =
            positional.choices.empty() ? "_files" : "(" + base::join(positional.choices, " ") + ")";
        text.append(fmt::format("      '{}:{}:{}'{}\n", positional.repeatable ? "*" : std::to_string(words + i + 1),
                                positional.name, offered, i + 1 == verb.positionals.size() ? ";;" : " \\"));
    }
    return text;
}

}  // namespace

std::string zsh_completion(const Program& program) {
    std::string text =
        fmt::format("#compdef {}\n# SPDX-License-Identifier: Apache-2.0\n# zsh completion; written by tests/gendocs\n",
                    program.name);
    text.append("local -a verbs words_only\nlocal verb word value=0\nverbs=(\n");
    for (const Verb* verb : visible_verbs(program)) {
        if (verb->name.find(' ') == std::string::npos)
            text.append(fmt::format("  '{}:{}'\n", verb->name, zsh_quoted(verb->summary)));
    }
    const auto is_verb = [&](const std::string& group) {
        const auto verbs = visible_verbs(program);
        return std::any_of(verbs.begin(), verbs.end(), [&](const Verb* verb) { return verb->name == group; });
    };
    for (const auto& group : verb_groups(program))
        if (!is_verb(group)) text.append(fmt::format("  '{}:{} ...'\n", group, group));
    text.append("  'help:tell about a verb'\n)\n");
    // The value of an option that stands before the verb is no verb.
    text.append(
        "for word in ${words[2,CURRENT-1]}; do\n  if (( value )); then value=0; continue; fi\n  case $word in\n");
    text.append(fmt::format("  ({}) value=1;;\n  (-*) ;;\n  (*) words_only+=($word);;\n  esac\ndone\n",
                            base::join(value_options(program), "|")));
    text.append("verb=${words_only[1]}\nif [[ -z $verb ]] && (( value )); then _files; return; fi\n");
    text.append("if [[ $verb == help ]]; then\n  verb=${words_only[2]}\n  case $verb in\n");
    for (const auto& group : verb_groups(program)) {
        text.append(fmt::format("  {}) if [[ ${{#words_only}} -lt 3 ]]; then compadd -- {}; fi; return;;\n", group,
                                base::join(second_words(program, group), " ")));
    }
    text.append("  ?*) return;;\n  esac\nfi\n");
    text.append("if [[ -z $verb ]]; then\n  _describe verb verbs\n  return\nfi\n");
    for (const auto& group : verb_groups(program)) {
        const auto second = second_words(program, group);
        text.append(fmt::format("if [[ $verb == {} ]]; then\n", group));
        if (is_verb(group)) {
            // What follows may be a verb of the group, or an argument of the verb that has its name.
            text.append(
                fmt::format("  if [[ ${{#words_only}} -lt 2 ]] && (( ! value )); then compadd -- {}; fi\n",
                            base::join(second, " ")));
            text.append(
                fmt::format("  case ${{words_only[2]}} in\n  ({}) verb=\"$verb ${{words_only[2]}}\";;\n  esac\nfi\n",
                            base::join(second, "|")));
            continue;
        }
        text.append("  if [[ ${#words_only} -lt 2 ]] && (( value )); then _files; return; fi\n");
        text.append(fmt::format("  if [[ ${{#words_only}} -lt 2 ]]; then compadd -- {}; return; fi\n",
                                base::join(second, " ")));
        text.append("  verb=\"$verb ${words_only[2]}\"\nfi\n");
    }
    text.append("case $verb in\n");
    for (const Verb* verb : visible_verbs(program)) {
        text.append(fmt::format("  '{}')\n    _arguments -S \\\n", verb->name));
        for (const auto& option : visible_options(*verb)) text.append(specification(option));
        text.append(arguments(*verb));
    }
    return text.append("esac\n");
}

}  // namespace kmm::gendocs
