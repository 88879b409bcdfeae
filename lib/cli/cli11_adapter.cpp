// SPDX-License-Identifier: Apache-2.0
#include "cli/cli11_adapter.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::cli {
namespace {

/// CLI11 takes "--name=" for "--name NEXT": the empty value becomes a token of its own.
std::vector<std::string> with_empty_values(const std::vector<Option>& options, const std::vector<std::string>& tokens) {
    std::vector<std::string> split;
    for (const auto& token : tokens) {
        const bool empty = token.size() > 3 && token.starts_with("--") && token.ends_with('=');
        const std::string name = empty ? token.substr(2, token.size() - 3) : std::string();
        const bool takes_value = std::any_of(options.begin(), options.end(), [&](const Option& option) {
            return option.name == name && !option.value_name.empty();
        });
        if (takes_value) {
            split.push_back("--" + name);
            split.emplace_back();
        } else {
            split.push_back(token);
        }
    }
    return split;
}

/// CLI11's words for what happened to one of `options` are replaced by ours.
Error mismatch_error(const std::vector<Option>& options, const std::string& text) {
    for (const auto& option : options) {
        if (text.find(option.name + " ") == std::string::npos && text.find("--" + option.name) == std::string::npos)
            continue;
        if (option.value_name.empty())
            return Error(Exit::usage, "usage", fmt::format("option --{} takes no value", option.name))
                .hint(fmt::format("write --{} alone", option.name));
        const auto expected = option.choices.empty() ? option.value_name : "one of " + base::join(option.choices, ", ");
        return Error(Exit::usage, "usage", fmt::format("option --{} needs a value: {}", option.name, expected))
            .hint(fmt::format("write --{} {}", option.name,
                              option.choices.empty() ? option.value_name : option.choices.front()));
    }
    return Error(Exit::usage, "usage", text);
}

}  // namespace

RawArgs parse_tokens(const std::vector<Option>& options, const std::vector<std::string>& tokens) {
    CLI::App app;
    app.set_help_flag("");
    app.allow_extras();
    std::vector<std::pair<const Option*, CLI::Option*>> declared;
    const auto accept = [](const CLI::results_t&) { return true; };
    for (const auto& option : options) {
        std::string names = "--" + option.name;
        if (option.short_name != 0) names = fmt::format("-{},{}", option.short_name, names);
        CLI::Option* made = nullptr;
        if (option.value_name.empty()) {
            made = app.add_flag(names)->disable_flag_override();
        } else {
            // Many values in all, one per use: "--node a b" is one value and one positional.
            made = app.add_option(names, accept)->expected(1, CLI::detail::expected_max_vector_size);
            made->allow_extra_args(false);
        }
        made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        declared.emplace_back(&option, made);
    }
    // What follows "--" is taken as it stands. Positionals are not declared: CLI11 would split "[a,b]" at the comma.
    const auto end = std::find(tokens.begin(), tokens.end(), "--");
    auto reversed = with_empty_values(options, {tokens.begin(), end});
    std::reverse(reversed.begin(), reversed.end());
    try {
        app.parse(std::move(reversed));
    } catch (const CLI::ArgumentMismatch& mismatch) {
        throw mismatch_error(options, mismatch.what());
    } catch (const CLI::ParseError& fault) {
        throw Error(Exit::usage, "usage", fault.what());
    }
    RawArgs raw;
    for (const auto& [option, made] : declared) {
        if (made->count() == 0) continue;
        auto& values = raw.values[option->name];
        if (option->value_name.empty()) values.assign(made->count(), "true");
        else values = made->results();
    }
    for (const auto& token : app.remaining()) {
        const bool option = token.starts_with('-') &&
                            token.find_first_not_of("0123456789", 1) != std::string::npos;  // -22 is none, nor is -
        (option ? raw.unknown : raw.positionals).push_back(token);
    }
    if (end != tokens.end()) raw.positionals.insert(raw.positionals.end(), end + 1, tokens.end());
    return raw;
}

}  // namespace kmm::cli
