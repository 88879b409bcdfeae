// SPDX-License-Identifier: Apache-2.0
// Checks of APIs that the target no longer serves.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/inventory/removed_apis.hpp"

namespace kmm::kubernetes {
namespace {

/// The minor that the oldest API server has, 0 if that is not known.
unsigned minor_now(const CheckInput& input) {
    const auto lowest = input.seen.lowest_control_plane();
    return lowest ? lowest->minor : 0;
}

struct Uses {
    std::vector<std::string> going, gone;  ///< with this upgrade; before it
};

Uses uses_of(const CheckInput& input, UsedApi::Where where) {
    Uses found;
    for (const auto& used : input.inventory.used_apis) {
        if (used.where != where || used.removed->minor > input.target->minor) { continue; }
        const auto instead = used.removed->replacement.empty() ? std::string("nothing takes its place")
                                                               : fmt::format("use {}", used.removed->replacement);
        const bool is_gone = used.removed->minor <= minor_now(input);
        (is_gone ? found.gone : found.going)
            .push_back(fmt::format("{} {} {} {} (gone {} v1.{}; {})", used.object, used.by, used.removed->group_version,
                                   used.kind, is_gone ? "since" : "in", used.removed->minor, instead));
    }
    return found;
}

/// Kinds with a version that this upgrade takes away.
std::set<std::string_view> going_kinds(const CheckInput& input) {
    std::set<std::string_view> kinds;
    for (const auto& api : removed_apis()) {
        if (api.minor <= minor_now(input) || api.minor > input.target->minor) { continue; }
        for (const auto kind : base::split(api.kinds, ' ')) {
            if (!kind.ends_with("Review")) { kinds.insert(kind); }  // asked, never stored
        }
    }
    return kinds;
}

Finding removed_api_stored(const CheckInput& input) {
    if (auto lower = target_lower(input)) { return *lower; }
    const auto found = uses_of(input, UsedApi::Where::object);
    if (!found.going.empty()) { return {Outcome::fail, name_some(found.going)}; }
    if (!found.gone.empty()) { return {Outcome::warn, name_some(found.gone)}; }
    if (!input.seen.lowest_control_plane()) {
        return {Outcome::skip, "the version that the control plane runs is not known"};
    }
    const auto kinds = going_kinds(input);
    if (kinds.empty()) {
        return {Outcome::ok, fmt::format("{} serves every API that is served now", input.target->line().text())};
    }
    std::vector<std::string> unknown;
    for (const auto kind : kinds) {
        if (auto reason = input.inventory.unknown_reason(kind, plural_of(kind)); !reason.empty()) {
            unknown.push_back(input.inventory.is_live ? reason : std::string(kind));
        }
    }
    if (!unknown.empty()) {
        return {
            Outcome::skip,
            fmt::format("{}{}",
                        input.inventory.is_live ? "" : "an API of these kinds goes, and the documents contain none: ",
                        name_some(unknown))};
    }
    return {Outcome::ok,
            fmt::format("no object was written with an API that is gone in {}", input.target->line().text())};
}

Finding removed_api_helm(const CheckInput& input) {
    const auto found = uses_of(input, UsedApi::Where::release);
    std::vector<std::string> problems = found.going;
    problems.insert(problems.end(), found.gone.begin(), found.gone.end());
    for (const auto& name : input.inventory.unread_releases) {
        problems.push_back(fmt::format("{} cannot be read", name));
    }
    if (!problems.empty()) { return {Outcome::warn, name_some(problems)}; }
    if (auto reason = input.inventory.releases_unknown_reason(); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    std::set<std::pair<std::string_view, std::string_view>> names;
    for (const auto* each : current_revisions(input.inventory.releases)) {
        names.emplace(each->meta.ns, each->release);
    }
    return {Outcome::ok,
            fmt::format("Helm releases with APIs that {} serves: {}", input.target->line().text(), names.size())};
}

constexpr CheckRow k_api_rows[] = {
    {"removed-api-stored", removed_api_stored},
    {"removed-api-helm", removed_api_helm},
};

}  // namespace

std::span<const CheckRow> api_checks() noexcept { return k_api_rows; }

}  // namespace kmm::kubernetes
