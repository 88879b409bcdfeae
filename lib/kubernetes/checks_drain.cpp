// SPDX-License-Identifier: Apache-2.0
// Checks of what draining a node would meet.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/checks.hpp"

namespace kmm::kubernetes {
namespace {

/// The Pods that a drain of their node evicts.
std::vector<const PodObject*> evicted_pods(const Inventory& inventory) {
    std::vector<const PodObject*> pods;
    for (const auto& pod : inventory.pods) {
        const bool ended = pod.phase == "Succeeded" || pod.phase == "Failed";
        if (!pod.node.empty() && !pod.is_mirror && !pod.is_deleted && !ended && pod.controller_kind != "DaemonSet") { pods.push_back(&pod); }
    }
    return pods;
}

std::string place_of(const PodObject& pod) { return fmt::format("{} on {}", base::escape(pod.meta.full_name()), base::escape(pod.node)); }

/// Why the budget allows no eviction, "" if it allows one.
std::string blocked_by(const BudgetObject& budget) {
    const auto name = base::escape(budget.meta.full_name());
    if (!budget.disruptions_allowed || budget.observed_generation < budget.generation) { return fmt::format("{} has no current status", name); }
    return *budget.disruptions_allowed > 0 ? "" : fmt::format("{} allows 0 disruptions", name);
}

Finding pdb_blocks_drain(const CheckInput& input) {
    if (auto reason = input.inventory.unknown_reason("PodDisruptionBudget", "poddisruptionbudgets"); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    if (auto reason = input.inventory.pods_unknown_reason(); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> bad;
    for (const auto* pod : evicted_pods(input.inventory)) {
        std::vector<const BudgetObject*> over;
        for (const auto& budget : input.inventory.budgets) {
            if (budget.meta.ns == pod->meta.ns && budget.selector && matches(*budget.selector, pod->meta.labels)) { over.push_back(&budget); }
        }
        if (over.size() > 1) { bad.push_back(fmt::format("{}: {} budgets select it, eviction is refused", place_of(*pod), over.size())); }
        if (over.size() != 1) { continue; }
        if (const auto why = blocked_by(*over.front()); !why.empty()) { bad.push_back(fmt::format("{}: {}", place_of(*pod), why)); }
    }
    return fail_if_any(bad, fmt::format("budgets that allow an eviction: {}", input.inventory.budgets.size()));
}

Finding drain_local_data(const CheckInput& input) {
    if (auto reason = input.inventory.pods_unknown_reason(); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> bad;
    for (const auto* pod : evicted_pods(input.inventory)) {
        if (pod->has_empty_dir) { bad.push_back(place_of(*pod)); }
    }
    return fail_if_any(bad, "no Pod that would be evicted has an emptyDir");
}

Finding drain_unmanaged(const CheckInput& input) {
    if (auto reason = input.inventory.pods_unknown_reason(); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> bad;
    for (const auto* pod : evicted_pods(input.inventory)) {
        if (pod->controller_kind.empty()) { bad.push_back(place_of(*pod)); }
    }
    return fail_if_any(bad, "every Pod that would be evicted has a controller");
}

constexpr CheckRow k_drain_rows[] = {
    {"pdb-blocks-drain", pdb_blocks_drain},
    {"drain-local-data", drain_local_data},
    {"drain-unmanaged", drain_unmanaged},
};

}  // namespace

std::span<const CheckRow> drain_checks() noexcept { return k_drain_rows; }

}  // namespace kmm::kubernetes
