// SPDX-License-Identifier: Apache-2.0
#include "kernel/weak_updates.hpp"

#include <algorithm>
#include <map>
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

/// True if `name` cannot be loaded without another one of `faulty`.
bool needs_another(const kmod::ModuleIndex& index, const std::string& name,
                   const std::map<std::string, Diagnostic>& faulty) {
    std::set<std::string> seen{name};
    std::vector<std::string> next{name};
    while (!next.empty()) {
        const auto* module = index.find(next.back());
        next.pop_back();
        if (module == nullptr) continue;
        for (const auto& need : index.hard_needs(*module)) {
            if (!seen.insert(need).second) continue;
            if (faulty.contains(need)) return true;
            next.push_back(need);
        }
    }
    return false;
}

}  // namespace

bool is_earlier_release(const std::string& left, const std::string& right) {
    return base::compare_natural(left, right) < 0;
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
    // Of each module the builds that are left, the latest one at the end.
    std::map<std::string, std::vector<std::size_t>> left;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& name = candidates[i].module.file.name;
        if (own_names.contains(name))
            refuse(i, "own-module", fmt::format("kernel {} has a build of its own", interface.release));
        else if (!has_versions)
            refuse(i, "kernel-without-versions",
                   fmt::format("the symbols of kernel {} have no versions to compare", interface.release));
        else left[name].push_back(i);
    }
    for (auto& [name, builds] : left)
        std::stable_sort(builds.begin(), builds.end(), [&](std::size_t a, std::size_t b) {
            return is_earlier_release(candidates[a].home, candidates[b].home);
        });
    for (bool is_stable = false; !is_stable;) {
        is_stable = true;
        kmod::ModuleIndex index;
        for (const auto& module : own) index.add(module);
        for (const auto& [name, builds] : left)
            if (!builds.empty()) index.add(candidates[builds.back()].module);
        // All are judged against the same set: what falls out of it is missing in the next round.
        std::map<std::string, Diagnostic> faulty;
        for (const auto& [name, builds] : left) {
            if (builds.empty()) continue;
            Wish wish;
            wish.module = name;
            wish.release = interface.release;
            const auto findings = judge(index, wish, &interface);
            if (const auto* error = first_error(findings)) faulty.emplace(name, *error);
        }
        // A module that needs a faulty one may fit an earlier build of it.
        std::vector<std::string> fallen;
        for (const auto& [name, error] : faulty)
            if (!needs_another(index, name, faulty)) fallen.push_back(name);
        if (fallen.empty())
            for (const auto& [name, error] : faulty) fallen.push_back(name);
        for (const auto& name : fallen) {
            refuse(left[name].back(), faulty.at(name).code, faulty.at(name).message);
            left[name].pop_back();
            is_stable = false;
        }
    }
    std::map<std::string, std::size_t> by_path;
    for (const auto& [name, builds] : left) {
        if (builds.empty()) continue;
        const auto taken = builds.back();
        for (const auto index : builds)
            if (index != taken)
                refuse(index, "later-build",
                       fmt::format("the build for {} fits, too, and is later", candidates[taken].home));
        const auto [place, is_new] = by_path.emplace(candidates[taken].subpath, taken);
        if (!is_new) {
            refuse(taken, "same-path",
                   fmt::format("{} has the same path below weak-updates", candidates[place->second].module.path));
            continue;
        }
        result[taken].fits = true;
        result[taken].reason = fmt::format("every symbol has the version that kernel {} has", interface.release);
    }
    return result;
}

}  // namespace kmm::kernel
