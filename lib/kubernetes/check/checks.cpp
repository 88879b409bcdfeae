// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/check/checks.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/check_list.hpp"

namespace kmm::kubernetes {
namespace {

CheckFunction function_of(std::string_view id, std::initializer_list<std::span<const CheckRow>> parts) {
    for (const auto rows : parts) {
        for (const auto& row : rows) {
            if (row.id == id) { return row.run; }
        }
    }
    return nullptr;
}

/// What to do about a check that fails. Only an upgrade can leave nodes out.
std::string fix_of(const CheckInfo& info, const CheckInput& input) {
    std::string fix(info.fix);
    if (input.target && info.id == "node-reach")
        fix += "; workers that cannot be reached may stay as they are: --leave-out";
    if (input.target && info.id == "nodes-ready") fix += "; a worker may be left out of the upgrade: --leave-out";
    return fix;
}

CheckResult run_check(const CheckInfo& info, const CheckInput& input) {
    CheckResult result;
    result.id = info.id;
    auto run = input.nodes == nullptr
                   ? nullptr
                   : function_of(info.id, {node_checks(), etcd_checks(), service_checks(), placing_checks()});
    if (run == nullptr && !info.needs.empty()) {
        result.detail = info.needs;
        return result;
    }
    if (run == nullptr) {
        run = function_of(info.id, {version_checks(), config_checks(), flag_checks(), object_checks(),
                                    order_checks(), drain_checks(), prerequisite_checks(), api_checks(),
                                    addon_checks()});
    }
    if (run == nullptr) { throw bug(fmt::format("check {} has no function", info.id)); }
    auto finding = run(input);
    result.outcome = finding.outcome;
    result.detail = std::move(finding.detail);
    if (result.outcome == Outcome::warn || result.outcome == Outcome::fail) {
        result.fix = finding.fix.empty() ? fix_of(info, input) : std::move(finding.fix);
    }
    return result;
}

}  // namespace

std::span<const std::string_view> application_checks() noexcept {
    static constexpr std::string_view k_ids[] = {"cni-supports", "apps-support", "app-check-programs"};
    return k_ids;
}

std::vector<CheckResult> run_checks(const CheckInput& input, const std::vector<std::string>& ignored,
                                    std::span<const std::string_view> only) {
    std::vector<CheckResult> results;
    for (const auto& info : check_list()) {
        if (!only.empty() && std::find(only.begin(), only.end(), info.id) == only.end()) {
            continue;
        }
        if (!input.target && !info.in_health) { continue; }
        auto result = run_check(info, input);
        if (result.outcome == Outcome::fail && std::find(ignored.begin(), ignored.end(), result.id) != ignored.end()) {
            result.ignored = true;
            result.outcome = Outcome::warn;
        }
        results.push_back(std::move(result));
    }
    return results;
}

std::vector<std::string> parse_ignored(const std::vector<std::string>& options) {
    std::vector<std::string> ids;
    for (const auto& option : options) {
        for (const auto piece : base::split(option, ',')) {
            const std::string id(base::trim(piece));
            const auto* info = find_check(id);
            if (info == nullptr) {
                std::vector<std::string> all;
                for (const auto& each : check_list()) { all.emplace_back(each.id); }
                const auto near = base::nearest(id, all);
                throw Error(Exit::usage, "bad-value",
                            fmt::format("--ignore-checks: expected the id of a check, found '{}'", base::escape(id)))
                    .hint(near ? fmt::format("did you mean {}?", *near)
                               : "kmm-upgrade health and check kubernetes print the ids");
            }
            if (info->weight == Weight::fatal) {
                throw Error(Exit::usage, "bad-value", fmt::format("--ignore-checks: {} is never ignored", id))
                    .hint(std::string(info->fix));
            }
            ids.push_back(id);
        }
    }
    return ids;
}

}  // namespace kmm::kubernetes
