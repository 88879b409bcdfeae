// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/hint.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"

namespace kmm::upgrade {
namespace {

constexpr std::string_view k_worker_says = "kmm-worker says: ";
/// Where a clause begins to be about a run that is under way.
constexpr std::array<std::string_view, 7> k_run_commands{
    "kmm-upgrade retry", "kmm-upgrade resume", "kmm-upgrade skip", "kmm-upgrade step",
    "kmm-upgrade abort", " and retry",         ", then retry"};
constexpr std::array<std::string_view, 10> k_connectors{", then ", ", or: ", ", or ", " or: ", " or ",
                                                        "then ",   "or: ",   "or ",   " and",  ","};

void replace_each(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

/// `clause` up to its first command of a run, "" if it is about nothing else.
std::string_view before_command(std::string_view clause) {
    auto cut = std::string_view::npos;
    for (const auto command : k_run_commands) cut = std::min(cut, clause.find(command));
    if (cut == std::string_view::npos) return clause;
    auto kept = clause.substr(0, cut);
    for (bool is_shorter = true; is_shorter;) {
        is_shorter = false;
        for (const auto connector : k_connectors) {
            if (!kept.ends_with(connector)) continue;
            kept.remove_suffix(connector.size());
            is_shorter = true;
            break;
        }
    }
    // Words that only introduce the command.
    const auto end = kept.find_last_not_of(' ');
    return end == std::string_view::npos || kept[end] == ':' ? std::string_view() : kept.substr(0, end + 1);
}

/// An abort that is a condition of what follows it has been done.
std::string without_abort(std::string_view hint) {
    constexpr std::string_view k_abort = "kmm-upgrade abort", k_then = ", then ";
    std::string text(hint);
    for (auto at = text.find(k_abort); at != std::string::npos; at = text.find(k_abort, at)) {
        const auto end = text.find_first_of(",;", at);
        if (end != std::string::npos && text.compare(end, k_then.size(), k_then) == 0)
            text.erase(at, end + k_then.size() - at);
        else
            at += k_abort.size();
    }
    return text;
}

}  // namespace

std::string hint_in_run(std::string hint, const std::string& node, bool is_rollback) {
    const auto retry = "kmm-upgrade retry " + node;
    const std::string again = is_rollback || node.empty() ? "kmm-upgrade resume" : retry;
    if (hint.starts_with(k_worker_says)) {
        replace_each(hint, "run the same command again", again);
        replace_each(hint, "the same command again", again);
    }
    if (is_rollback && !node.empty()) replace_each(hint, retry, again);
    return hint;
}

std::string hint_after_end(std::string_view hint) {
    std::vector<std::string> kept;
    const auto rest = without_abort(hint);
    hint = rest;
    const auto is_said = hint.starts_with(k_worker_says);
    if (is_said) hint.remove_prefix(k_worker_says.size());
    while (!hint.empty()) {
        const auto end = hint.find("; ");
        if (const auto clause = before_command(hint.substr(0, end)); !clause.empty()) kept.emplace_back(clause);
        hint.remove_prefix(end == std::string_view::npos ? hint.size() : end + 2);
    }
    if (kept.empty()) return "";
    return (is_said ? std::string(k_worker_says) : std::string()) + base::join(kept, "; ");
}

}  // namespace kmm::upgrade
