// SPDX-License-Identifier: Apache-2.0
#include "kernel/weak_updates.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/natural.hpp"
#include "kernel/judge.hpp"

namespace kmm::kernel {
namespace {

/// The first error among `findings`, nullptr if there is none.
const Diagnostic* first_error(const Diagnostics& findings) {
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [](const Diagnostic& each) { return each.severity == Severity::error; });
    return found == findings.end() ? nullptr : &*found;
}

/// Of each module of one release, its name to the candidate.
using Builds = std::map<std::string, std::size_t>;

/// The builds of each release, the latest release first. A second build of a module for one release is in a round of
/// its own, after that of the one that depmod prefers, which comes last in `candidates`.
std::vector<Builds> builds_by_release(const std::vector<WeakCandidate>& candidates) {
    std::vector<std::size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (is_earlier_release(candidates[b].home, candidates[a].home)) return true;
        return candidates[a].home == candidates[b].home && a > b;
    });
    std::vector<Builds> releases;
    std::size_t first = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || candidates[order[i]].home != candidates[order[i - 1]].home) first = releases.size();
        std::size_t at = first;
        while (at < releases.size() && releases[at].contains(candidates[order[i]].module.file.name)) ++at;
        if (at == releases.size()) releases.emplace_back();
        releases[at].emplace(candidates[order[i]].module.file.name, order[i]);
    }
    return releases;
}

/// Each module that no other one needs, with all that it needs; groups of one module first.
std::vector<std::set<std::string>> groups_of(const std::vector<WeakCandidate>& candidates, const Builds& builds) {
    kmod::ModuleIndex index;
    for (const auto& [name, at] : builds) index.add(candidates[at].module);
    std::map<std::string, std::set<std::string>> needed;
    for (const auto& [name, at] : builds) {
        auto& all = needed[name];
        all.insert(name);
        std::vector<std::string> next{name};
        while (!next.empty()) {
            const auto* module = index.find(next.back());
            next.pop_back();
            if (module == nullptr) continue;
            for (const auto& need : index.hard_needs(*module)) {
                const auto* other = index.find(need);
                if (other != nullptr && all.insert(other->file.name).second) next.push_back(other->file.name);
            }
        }
    }
    std::set<std::string> inner;
    for (const auto& [name, all] : needed)
        for (const auto& need : all)
            if (need != name && (!needed[need].contains(name) || name < need)) inner.insert(need);
    std::vector<std::set<std::string>> groups;
    for (auto& [name, all] : needed)
        if (!inner.contains(name)) groups.push_back(std::move(all));
    std::stable_partition(groups.begin(), groups.end(), [](const auto& group) { return group.size() == 1; });
    return groups;
}

/// The parts of a release between dots, hyphens and underscores, runs of digits apart from letters.
std::vector<std::string_view> parts_of(std::string_view text) {
    const auto kind_of = [](char c) {
        return c >= '0' && c <= '9' ? 1 : (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? 2 : c == '~' ? 3 : 0;
    };
    std::vector<std::string_view> parts;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
        while (end < text.size() && kind_of(text[end]) == kind_of(text[at])) ++end;
        if (kind_of(text[at]) != 0) parts.push_back(text.substr(at, end - at));
    }
    return parts;
}

}  // namespace

bool is_earlier_release(const std::string& left, const std::string& right) {
    const auto a = parts_of(left), b = parts_of(right);
    // A number is later than letters, and those than nothing; '~' is earlier than nothing.
    const auto rank_of = [](const std::vector<std::string_view>& parts, std::size_t at) {
        if (at >= parts.size()) return 1;
        return parts[at].front() == '~' ? 0 : parts[at].front() >= '0' && parts[at].front() <= '9' ? 3 : 2;
    };
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (rank_of(a, i) != rank_of(b, i)) return rank_of(a, i) < rank_of(b, i);
        if (const int order = base::compare_natural(a[i], b[i]); order != 0) return order < 0;
    }
    return left < right;
}

std::vector<WeakJudgement> judge_weak(const std::vector<WeakCandidate>& candidates,
                                      const std::vector<kmod::IndexedModule>& own, const Interface& interface) {
    std::vector<WeakJudgement> result(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) result[i].candidate = &candidates[i];
    const auto refuse = [&](std::size_t index, std::string code, std::string reason) {
        result[index].code = std::move(code);
        result[index].reason = std::move(reason);
    };
    std::set<std::string> own_names;
    for (const auto& module : own) own_names.insert(module.file.name);
    const bool has_versions = std::any_of(interface.exports.begin(), interface.exports.end(),
                                          [](const auto& each) { return each.second.crc != 0; });
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (own_names.contains(candidates[i].module.file.name))
            refuse(i, "own-module", fmt::format("kernel {} has a build of its own", interface.release));
        else if (!has_versions)
            refuse(i, "kernel-without-versions",
                   fmt::format("the symbols of kernel {} have no versions to compare", interface.release));
    }
    kmod::ModuleIndex index;
    for (const auto& module : own) index.add(module);
    Builds taken;
    for (const auto& builds : has_versions ? builds_by_release(candidates) : std::vector<Builds>()) {
        for (const auto& group : groups_of(candidates, builds)) {
            Builds added;
            for (const auto& name : group)
                if (!own_names.contains(name) && !taken.contains(name)) added.emplace(name, builds.at(name));
            for (const auto& [name, at] : added) index.add(candidates[at].module);
            std::map<std::string, Diagnostic> faulty;
            for (const auto& [name, at] : added) {
                Request request;
                request.module = name;
                request.release = interface.release;
                const auto findings = judge(index, request, &interface);
                if (const auto* error = first_error(findings)) faulty.emplace(name, *error);
            }
            if (faulty.empty()) {
                taken.merge(added);
                continue;
            }
            for (const auto& [name, at] : added) {
                index.remove(name);
                if (const auto found = faulty.find(name); found != faulty.end())
                    refuse(at, found->second.code, found->second.message);
                else
                    refuse(at, "group-unfit",
                           fmt::format("it fits, but {} does not: modules that need each other are linked together or "
                                       "not at all",
                                       faulty.begin()->first));
            }
        }
    }
    std::map<std::string, std::size_t> by_path;
    for (const auto& [name, at] : taken) {
        const auto [place, is_new] = by_path.emplace(candidates[at].subpath, at);
        if (!is_new) {
            refuse(at, "same-path",
                   fmt::format("{} has the same path below weak-updates", candidates[place->second].module.path));
            continue;
        }
        result[at].fits = true;
        result[at].code.clear();
        result[at].reason = fmt::format("every symbol has the version that kernel {} has", interface.release);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (result[i].fits || !result[i].code.empty()) continue;
        const auto& chosen = candidates[taken.at(candidates[i].module.file.name)];
        refuse(i, "later-build", fmt::format("the build for {} fits, too, and is later", chosen.home));
    }
    return result;
}

}  // namespace kmm::kernel
