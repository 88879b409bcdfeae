// SPDX-License-Identifier: Apache-2.0
// Whether modules of the host claim devices that those of the image claim, and what two alias patterns have in common.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

bool gives_way(const CheckInput& input, const std::string& name) {
    const auto& listed = input.request.in_tree_modules_to_remove;
    return std::any_of(listed.begin(), listed.end(),
                       [&](const std::string& raw) { return normalise_name(raw) == name; });
}

namespace {

/// The part before the first wildcard.
std::string_view literal_part(std::string_view pattern) { return pattern.substr(0, pattern.find_first_of("*?[")); }

/// Aliases of modules that stand for one device ID ("pci:v000010DEd*sv*..."), to be compared with those of others that
/// may be written in another way. Patterns for whole classes of devices ("pci:v*...") and for features of a CPU do not
/// stand for one.
class DeviceAliases {
public:
    void add(const std::string& alias, const std::string& module) {
        exact_.emplace(alias, module);
        if (names_device(alias)) by_literal_.emplace(literal_part(alias), std::pair(alias, module));
    }
    [[nodiscard]] bool empty() const { return exact_.empty(); }
    /// The modules with an alias that fits a device that `alias` fits, too.
    [[nodiscard]] std::set<std::string> rivals_of(const std::string& alias) const {
        std::set<std::string> modules;
        const auto [first, last] = exact_.equal_range(alias);
        for (auto it = first; it != last; ++it) modules.insert(it->second);
        if (!modules.empty() || !names_device(alias)) return modules;
        const std::string literal(literal_part(alias));
        const auto take = [&](const auto& entry) {
            if (aliases_meet(entry.second.first, alias)) modules.insert(entry.second.second);
        };
        for (auto it = by_literal_.lower_bound(literal); it != by_literal_.end() && it->first.starts_with(literal);
             ++it)
            take(*it);
        for (std::size_t length = literal.find(':') + 2; length < literal.size(); ++length) {
            const auto [begin, end] = by_literal_.equal_range(literal.substr(0, length));
            for (auto it = begin; it != end; ++it) take(*it);
        }
        return modules;
    }

private:
    static bool names_device(const std::string& alias) {
        const std::string_view literal = literal_part(alias);
        const auto colon = literal.find(':');
        return colon != std::string_view::npos && literal.size() > colon + 2 && !literal.starts_with("cpu:") &&
               !literal.starts_with("dmi:") && literal.size() < alias.size();
    }

    std::multimap<std::string, std::string> exact_;
    std::multimap<std::string, std::pair<std::string, std::string>> by_literal_;
};

}  // namespace

void check_aliases(const CheckInput& input, Diagnostics& findings) {
    DeviceAliases ours;
    for (const auto& name : input.found.order.names) {
        const IndexedModule& module = *input.index.find(name);
        if (is_of_host(input, module)) continue;  // which of its modules udev loads is for the host to say
        for (const auto& alias : module.file.info_all("alias")) ours.add(alias, name);
    }
    const auto text =
        ours.empty() || input.directory.empty() ? std::nullopt : read_text(input.directory + "/modules.alias");
    if (!text) return;
    std::map<std::string, std::set<std::string>> rivals;  // module of the image -> modules of the host
    for (const auto line : base::split(*text, '\n')) {
        if (!line.starts_with("alias ")) continue;
        const auto blank = line.rfind(' ');
        if (blank <= 6) continue;
        const auto claimed = ours.rivals_of(std::string(line.substr(6, blank - 6)));
        const std::string other = normalise_name(line.substr(blank + 1));
        if (claimed.empty() || input.index.find(other) != nullptr || gives_way(input, other) ||
            input.found.config.blacklist.contains(other))
            continue;
        for (const auto& name : claimed) rivals[name].insert(other);
    }
    for (const auto& [name, others] : rivals) {
        add_finding(findings, Severity::warning, "alias-conflict",
                    fmt::format("module {} and {} of the host claim the same devices; udev may load the host's", name,
                                first_of({others.begin(), others.end()})),
                    "list it in inTreeModulesToRemove, and blacklist it on the node");
    }
}

bool aliases_meet(std::string_view a, std::string_view b) {
    // The states after each piece of `a`, as `b` goes on: whether some text fits both so far.
    const auto class_end = [](std::string_view pattern, std::size_t at) {
        const auto end = pattern.find(']', at + 2);
        return end == std::string_view::npos ? at + 1 : end + 1;
    };
    const auto next = [&](std::string_view pattern, std::size_t at) {
        return pattern[at] == '[' ? class_end(pattern, at) : at + 1;
    };
    const auto is_literal = [](std::string_view pattern, std::size_t at) {
        return pattern[at] != '?' && pattern[at] != '[';
    };
    const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto fits_star = [&](std::string_view pattern, std::size_t star, char c) {
        return !is_lower(c) || star + 1 == pattern.size() || !is_lower(pattern[star + 1]);
    };
    std::set<std::pair<std::size_t, std::size_t>> seen;
    std::vector<std::pair<std::size_t, std::size_t>> open{{0, 0}};
    while (!open.empty()) {
        const auto [i, j] = open.back();
        open.pop_back();
        if (!seen.insert({i, j}).second) continue;
        const bool a_ends = i == a.size();
        const bool b_ends = j == b.size();
        if (a_ends && b_ends) return true;
        const bool a_star = !a_ends && a[i] == '*';
        const bool b_star = !b_ends && b[j] == '*';
        if (a_star) open.emplace_back(i + 1, j);
        if (b_star) open.emplace_back(i, j + 1);
        if (a_star && !b_ends && !b_star && fits_star(a, i, b[j])) open.emplace_back(i, next(b, j));
        if (b_star && !a_ends && !a_star && fits_star(b, j, a[i])) open.emplace_back(next(a, i), j);
        if (a_star || b_star || a_ends || b_ends) continue;
        if (is_literal(a, i) && is_literal(b, j) && a[i] != b[j])
            continue;  // a class is taken to fit: better one warning too many
        open.emplace_back(next(a, i), next(b, j));
    }
    return false;
}

}  // namespace kmm::kmod
