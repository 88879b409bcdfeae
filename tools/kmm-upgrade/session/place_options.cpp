// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/place_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/shell_word.hpp"

namespace kmm::tool_upgrade {
namespace {

bool is_word_char(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool takes(const cli::Verb& verb, std::string_view option) {
    return std::any_of(verb.options.begin(), verb.options.end(),
                       [&](const cli::Option& each) { return each.name == option && !each.hidden; });
}

/// The record of their run names the cluster.
bool goes_on_with_run(const cli::Verb& verb) {
    constexpr std::array<std::string_view, 5> k_verbs{"abort", "resume", "retry", "skip", "step"};
    return std::find(k_verbs.begin(), k_verbs.end(), verb.name) != k_verbs.end();
}

/// What it does with -f is not another thing than what it does without.
bool only_reads(const cli::Verb& verb) {
    constexpr std::array<std::string_view, 4> k_verbs{"check kubernetes", "health", "require", "versions"};
    return std::find(k_verbs.begin(), k_verbs.end(), verb.name) != k_verbs.end();
}

/// The verb that `rest` begins with, nullptr if it is none.
const cli::Verb* verb_at(const cli::Program& program, std::string_view rest) {
    const cli::Verb* found = nullptr;
    for (const auto& verb : program.verbs) {
        const bool is_whole = rest.starts_with(verb.name) &&
                              (rest.size() == verb.name.size() || !is_word_char(rest[verb.name.size()]));
        if (is_whole && (found == nullptr || found->name.size() < verb.name.size())) found = &verb;
    }
    return found;
}

/// Whether the command that `rest` goes on with names its record or its cluster, or is one for another host.
bool has_place(std::string_view rest) {
    const auto command = rest.substr(0, rest.find_first_of(",;\n"));
    if (command.ends_with(" there")) return true;
    constexpr std::array<std::string_view, 4> k_options{"--state-dir", "--cluster", "--kubeconfig", "--context"};
    return std::any_of(k_options.begin(), k_options.end(),
                       [&](std::string_view option) { return command.find(option) != std::string_view::npos; });
}

}  // namespace

PlaceOptions::PlaceOptions(const cli::Args& args, const cli::Program& program) : program_(&program) {
    const auto given = [&](const char* name) {
        const auto value = args.get(name);
        return value && args.source(name) == "option" ? fmt::format(" --{} {}", name, base::shell_word(*value))
                                                      : std::string();
    };
    record_ = given("state-dir");
    for (const auto* name : {"cluster", "kubeconfig", "context"}) cluster_ += given(name);
    if (args.source("filename") == "option")
        for (const auto& file : args.all("filename")) dumps_ += " -f " + base::shell_word(file);
}

std::string PlaceOptions::put_into(const std::string& text) const {
    if (program_ == nullptr || (record_.empty() && cluster_.empty() && dumps_.empty())) return text;
    const auto name = program_->name + " ";
    std::string made;
    std::size_t done = 0;
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
        if (at > 0 && (is_word_char(text[at - 1]) || text[at - 1] == '/')) continue;
        const auto rest = std::string_view(text).substr(at + name.size());
        const auto* verb = verb_at(*program_, rest);
        if (verb == nullptr || has_place(rest)) continue;
        const auto end = at + name.size() + verb->name.size();
        made += text.substr(done, end - done);
        if (takes(*verb, "state-dir")) made += record_;
        if (takes(*verb, "cluster") && !goes_on_with_run(*verb)) made += cluster_;
        if (only_reads(*verb)) made += dumps_;
        done = end;
    }
    return made + text.substr(done);
}

}  // namespace kmm::tool_upgrade
