// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/drain.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::plan {
namespace {

constexpr const char* k_unmanaged_refused = "cannot delete Pods that declare no controller (use --force to override)";
constexpr const char* k_unmanaged_told = "deleting Pods that declare no controller";
constexpr const char* k_local_refused =
    "cannot delete Pods with local storage (use --delete-emptydir-data to override)";
constexpr const char* k_local_told = "deleting Pods with local storage";
constexpr const char* k_self_told = "ignoring the Pod that this runs in";
constexpr const char* k_daemon_told = "ignoring DaemonSet-managed Pods";
constexpr const char* k_orphan_refused = "cannot delete Pods whose DaemonSet is gone (use --force to override)";
constexpr const char* k_orphan_told = "deleting Pods whose DaemonSet is gone";

/// The first ten names and how many more there are.
std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t k_most = 10;
    return base::join_some(names, k_most);
}

/// Names under a reason, reasons in the order they first came.
class Reasons {
public:
    void add(const char* reason, const api::WorkloadPod& pod) {
        const auto found =
            std::find_if(list_.begin(), list_.end(), [&](const auto& entry) { return entry.first == reason; });
        auto& names =
            found == list_.end() ? list_.emplace_back(reason, std::vector<std::string>()).second : found->second;
        names.push_back(pod.full_name());
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> texts;
        for (const auto& [reason, names] : list_) texts.push_back(fmt::format("{}: {}", reason, some_of(names)));
        return texts;
    }

private:
    std::vector<std::pair<std::string, std::vector<std::string>>> list_;
};

bool uses_device(const api::WorkloadPod& pod, const DrainRules::Users& users) {
    return std::any_of(pod.resources.begin(), pod.resources.end(),
                       [&](const std::string& name) { return users.resources.contains(name); }) ||
           std::any_of(pod.claims.begin(), pod.claims.end(),
                       [&](const std::string& name) { return users.claims.contains(pod.namespace_ + "/" + name); });
}

/// "3" or "50%" of `all`, rounded up as Kubernetes does; nullopt for text that is neither.
std::optional<std::int64_t> scaled(const std::string& text, std::int64_t all) {
    const bool is_share = text.ends_with('%');
    const auto digits = is_share ? text.substr(0, text.size() - 1) : text;
    const auto number = base::parse_number<std::int64_t>(digits);
    if (!number || *number < 0) return std::nullopt;
    return is_share ? (*number * all + 99) / 100 : *number;
}

/// Why the budget never allows an eviction of a healthy Pod, "" if it may.
std::string hopeless_reason(const api::DisruptionBudget& budget) {
    if (!budget.max_unavailable.empty()) {
        const auto allowed = scaled(budget.max_unavailable, 100);
        return allowed == 0 ? "maxUnavailable " + budget.max_unavailable : "";
    }
    if (budget.min_available.empty()) return "";
    if (budget.min_available == "100%") return "minAvailable 100%";
    if (!budget.expected_pods || *budget.expected_pods <= 0) return "";
    const auto needed = scaled(budget.min_available, *budget.expected_pods);
    if (!needed || *needed < *budget.expected_pods) return "";
    return fmt::format("minAvailable {} of {}", budget.min_available, *budget.expected_pods);
}

}  // namespace

Drain plan_drain(const std::vector<api::WorkloadPod>& pods, const DrainRules& rules) {
    Drain drain;
    Reasons refusals, warnings;
    for (const auto& pod : pods) {
        if (pod.is_mirror || pod.is_worker) continue;
        if (rules.users && !uses_device(pod, *rules.users)) continue;
        if (pod.is_self) {
            warnings.add(k_self_told, pod);
            continue;
        }
        const bool is_daemon = pod.controller_kind == "DaemonSet" && !pod.is_finished();
        if (is_daemon && !pod.is_controller_gone) {
            warnings.add(k_daemon_told, pod);
            continue;
        }
        // What is going away already cannot be kept any more: it is only waited for.
        if (!pod.is_finished() && !pod.is_ending) {
            if (is_daemon) {
                if (rules.unmanaged == OnLoss::refuse) refusals.add(k_orphan_refused, pod);
                else warnings.add(k_orphan_told, pod);
            }
            if (pod.has_empty_dir) {
                if (rules.local_data == OnLoss::refuse) refusals.add(k_local_refused, pod);
                else warnings.add(k_local_told, pod);
            }
            if (pod.controller_kind.empty()) {
                if (rules.unmanaged == OnLoss::refuse) refusals.add(k_unmanaged_refused, pod);
                else warnings.add(k_unmanaged_told, pod);
            }
        }
        drain.evict.push_back(pod);
    }
    drain.refusals = refusals.texts();
    drain.warnings = warnings.texts();
    return drain;
}

DrainRules::Users users_of(const api::Module& module, const std::vector<std::string>& resources,
                           const std::vector<api::DeviceClaim>& claims) {
    if (resources.empty() && module.device_plugin)
        throw Error(
            Exit::checks_failed, "resources-unknown",
            fmt::format("no object says which resources the device plugin of Module {} offers", module.full_name()))
            .hint("name them: --resource example.com/device; kubectl describe node lists them under Allocatable");
    if (resources.empty() && !module.dra)
        throw Error(Exit::checks_failed, "no-users",
                    fmt::format("Module {} has neither a device plugin nor a DRA driver: its users are not known",
                                module.full_name()))
            .hint("--resource NAME names what its users ask for, --drain empties the nodes");
    DrainRules::Users users;
    users.resources.insert(resources.begin(), resources.end());
    if (!module.dra) return users;
    const auto driver = module.dra->get_string({"driverName"});
    std::set<std::string> classes;
    if (const auto* list = module.dra->find("deviceClasses"); list != nullptr)
        for (const auto& item : list->items()) classes.insert(item.get_string({"name"}));
    for (const auto& claim : claims) {
        const bool asks = std::any_of(claim.classes.begin(), claim.classes.end(),
                                      [&](const auto& name) { return classes.contains(name); });
        const bool has = std::find(claim.drivers.begin(), claim.drivers.end(), driver) != claim.drivers.end();
        if (asks || (has && !driver.empty())) users.claims.insert(claim.namespace_ + "/" + claim.name);
    }
    return users;
}

std::vector<std::string> hopeless_budgets(const std::vector<api::DisruptionBudget>& budgets,
                                          const std::vector<api::WorkloadPod>& pods) {
    std::vector<std::string> texts;
    for (const auto& budget : budgets) {
        const auto reason = hopeless_reason(budget);
        if (reason.empty() || !budget.selector) continue;
        std::vector<std::string> names;
        for (const auto& pod : pods) {
            // The eviction API asks no budget for Pods that do not run yet or any more.
            const bool counts = pod.phase == "Running" || pod.phase.empty() || pod.phase == "Unknown";
            if (counts && !pod.is_ending && pod.namespace_ == budget.namespace_ &&
                api::matches(*budget.selector, pod.labels))
                names.push_back(pod.full_name());
        }
        if (names.empty()) continue;
        texts.push_back(fmt::format("PodDisruptionBudget {} never allows an eviction ({}): {}", budget.full_name(),
                                    reason, some_of(names)));
    }
    return texts;
}

}  // namespace kmm::plan
