// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/patches.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/kind_phrase.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::array<std::string_view, 6> k_patch_states{"Available",      "Partial-Apply", "Applied",
                                                         "Partial-Remove", "Committed",     "n/a"};

/// States of releases of `software list`, which follows sw-patch, and those of patches that mean the same.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> k_release_states{{
    {"available", "Available"},
    {"unavailable", "n/a"},
    {"deploying", "Partial-Apply"},
    {"deployed", "Applied"},
    {"deployed-partial", "Partial-Apply"},
    {"removing", "Partial-Remove"},
    {"removing-partial", "Partial-Remove"},
    {"committed", "Committed"},
}};

void take_patch(PatchList& list, std::string_view id, std::string_view state) {
    for (const auto& [release, patch] : k_release_states)
        if (state == release) { state = patch; }
    if (!list.fault.empty()) { return; }
    const auto known = std::find(k_patch_states.begin(), k_patch_states.end(), state);
    if (id.empty()) { list.fault = "expected the id of a patch, found nothing"; }
    else if (known == k_patch_states.end()) {
        list.fault =
            fmt::format("patch {}: expected the state {}, found '{}'", base::escape(id),
                        base::join(std::vector<std::string>(k_patch_states.begin(), k_patch_states.end()), ", "),
                        base::escape(state));
    } else if (!list.states.emplace(id, state).second) {
        list.fault = fmt::format("patch {} is listed twice", base::escape(id));
    }
}

std::string first_text(const Node& object, std::initializer_list<std::string_view> members) {
    for (const auto member : members) {
        const Node* found = object.find(member);
        if (found != nullptr && found->is_string()) { return found->text(); }
    }
    return "";
}

void read_json_patches(const Node& root, PatchList& list) {
    if (root.is_sequence()) {
        for (const auto& item : root.items()) {
            take_patch(list, first_text(item, {"patch_id", "release_id", "id"}),
                       first_text(item, {"patchstate", "state"}));
        }
        return;
    }
    if (const auto error = first_text(root, {"error"}); !error.empty()) {
        list.fault = fmt::format("the query failed: {}", base::escape(base::trim(error)));
        return;
    }
    const Node* named = root.find("pd");
    const Node& patches = named == nullptr ? root : *named;
    if (!patches.is_mapping()) {
        list.fault = fmt::format("expected a mapping of patches, found {}", value::a_kind(patches.kind()));
        return;
    }
    for (const auto& [id, mark, patch] : patches.members()) {
        take_patch(list, id, patch.is_string() ? patch.text() : first_text(patch, {"patchstate", "state"}));
    }
}

/// Where a column begins and ends in each line; its end is that of the line for the last one.
struct Column {
    std::size_t begin = 0, end = 0;
    std::string_view title;
    [[nodiscard]] std::string_view of(std::string_view line) const {
        return begin >= line.size() ? std::string_view()
                                    : base::trim(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    }
};

/// The columns that a line of "====  ==" under `header` marks.
std::vector<Column> columns_of(std::string_view header, std::string_view rule) {
    std::vector<Column> columns;
    for (std::size_t at = rule.find('='); at != std::string_view::npos;
         at = rule.find('=', rule.find_first_not_of('=', at))) {
        columns.push_back({at, std::string_view::npos, {}});
        if (rule.find_first_not_of('=', at) == std::string_view::npos) { break; }
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i + 1 < columns.size()) { columns[i].end = columns[i + 1].begin; }
        columns[i].title = columns[i].of(header);
    }
    return columns;
}

void read_table(std::string_view text, PatchList& list) {
    std::string_view header;
    std::vector<Column> columns;
    const Column *id = nullptr, *state = nullptr;
    bool is_behind = false;
    for (const auto line : base::split(text, '\n')) {
        const auto trimmed = base::trim(line);
        // A blank line ends the table; notes, warnings and errors may follow it.
        if (trimmed.empty()) {
            is_behind = is_behind || id != nullptr;
            continue;
        }
        if (is_behind) {
            if (trimmed == "Error:") {
                list.fault = fmt::format("the query failed: {}", base::escape(base::trim(
                                                                     text.substr(text.find("Error:") + 6))));
                return;
            }
            continue;
        }
        if (id != nullptr) { take_patch(list, id->of(line), state->of(line)); }
        else if (trimmed.find_first_not_of("= ") != std::string_view::npos) { header = line; }
        else {
            columns = columns_of(header, line);
            const auto find = [&](std::string_view title) -> const Column* {
                const auto found =
                    std::find_if(columns.begin(), columns.end(), [&](const auto& each) { return each.title == title; });
                return found == columns.end() ? nullptr : &*found;
            };
            id = find("Patch ID");
            state = find("Patch State");
            if (state == nullptr) { state = find("Repo State"); }
            if (id == nullptr || state == nullptr) {
                list.fault = fmt::format("expected columns Patch ID and Patch State, found '{}'",
                                         base::escape(base::trim(header)));
                return;
            }
        }
    }
    if (id == nullptr) {
        list.fault = fmt::format("expected the table of sw-patch query or JSON, found '{}'",
                                 base::escape(base::trim(text).substr(0, 60)));
    }
}

std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    auto rest = base::trim(line);
    rest = rest.substr(1, rest.size() - (rest.size() > 1 && rest.back() == '|' ? 2 : 1));
    for (const auto cell : base::split(rest, '|')) { cells.push_back(base::trim(cell)); }
    return cells;
}

/// The table of `software list`: columns between bars, lines of "+---+" around them.
void read_bordered_table(std::string_view text, PatchList& list) {
    std::size_t id = 0, state = 0;
    bool has_header = false;
    for (const auto line : base::split(text, '\n')) {
        if (!base::trim(line).starts_with('|')) { continue; }
        const auto cells = cells_of(line);
        if (has_header) {
            take_patch(list, id < cells.size() ? cells[id] : "", state < cells.size() ? cells[state] : "");
            continue;
        }
        const auto find = [&](std::string_view title) {
            return static_cast<std::size_t>(std::find(cells.begin(), cells.end(), title) - cells.begin());
        };
        id = find("Release");
        state = find("State");
        has_header = true;
        if (id == cells.size() || state == cells.size()) {
            list.fault = fmt::format("expected columns Release and State, found '{}'", base::escape(base::trim(line)));
            return;
        }
    }
    if (!has_header) { list.fault = "expected the table of software list, found its border alone"; }
}

}  // namespace

PatchList read_patches(std::string_view text) {
    PatchList list;
    const auto trimmed = base::trim(text);
    if (!trimmed.starts_with('{') && !trimmed.starts_with('[')) {
        if (trimmed.starts_with("+-")) { read_bordered_table(text, list); }
        else { read_table(text, list); }
        if (!list.fault.empty()) { list.states.clear(); }
        return list;
    }
    Diagnostics faults;
    const auto documents = value::read_json(text, "", faults);
    if (documents.empty() || has_errors(faults)) {
        list.fault = "expected JSON: " + (faults.empty() ? "it has no value" : faults.front().message);
    } else {
        read_json_patches(documents.front().root, list);
    }
    if (!list.fault.empty()) { list.states.clear(); }
    return list;
}

std::vector<std::string> patch_problems(const PatchStates& states, const std::vector<std::string>& wanted,
                                        PatchNeed need) {
    std::vector<std::string> problems;
    for (const auto& id : wanted) {
        const auto found = states.find(id);
        const auto expected = need == PatchNeed::applied ? "Applied" : "Available";
        if (found == states.end()) {
            problems.push_back(fmt::format("{} is not known, expected {}", base::escape(id), expected));
            continue;
        }
        const auto& state = found->second;
        const bool is_applied = state == "Applied" || state == "Committed";
        const bool fits =
            is_applied || (need == PatchNeed::available && (state == "Available" || state == "Partial-Apply"));
        if (!fits) { problems.push_back(fmt::format("{} is {}, expected {}", base::escape(id), state, expected)); }
    }
    return problems;
}

}  // namespace kmm::kubernetes
