// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/drain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "upgrade/actor_parts/drainer.hpp"

namespace kmm::drive {

plan::DrainRules drain_rules_of(const upgrade::Options& options, const api::Module& module,
                                cluster::Workloads& workloads) {
    auto rules = drain_rules_of(options);
    if (!options.evict_users) return rules;
    std::vector<std::string> resources;
    for (const auto name : base::split(options.user_resources, ','))
        if (!name.empty()) resources.emplace_back(name);
    rules.users = plan::users_of(module, resources, module.dra ? workloads.claims() : std::vector<api::DeviceClaim>());
    return rules;
}

namespace {

bool has_self(const std::vector<api::WorkloadPod>& pods) {
    return std::any_of(pods.begin(), pods.end(), [](const api::WorkloadPod& pod) { return pod.is_self; });
}

}  // namespace

std::string own_node_of(cluster::Workloads& workloads, const upgrade::Run& run) {
    for (const auto& node : run.nodes)
        if (has_self(workloads.pods(node.name))) return node.name;
    return "";
}

DrainReview review_drain(cluster::Workloads& workloads, const api::Module& module, const upgrade::Run& run) {
    const auto rules = drain_rules_of(run.options, module, workloads);
    DrainReview review;
    std::vector<api::WorkloadPod> all;
    std::vector<std::pair<std::string, std::string>> refused;
    for (const auto& node : run.nodes) {
        const auto pods = workloads.pods(node.name);
        for (const auto& text : plan::plan_drain(pods, rules).refusals) refused.emplace_back(node.name, text);
        all.insert(all.end(), pods.begin(), pods.end());
        if (has_self(pods)) review.own_node = node.name;
    }
    if (!refused.empty()) {
        std::set<std::string> names;
        for (const auto& [name, text] : refused) names.insert(name);
        Error error(
            Exit::checks_failed, "pods-not-evictable",
            fmt::format("{} of {} cannot be drained; nothing was changed", names.size(),
                        base::counted(run.nodes.size(), "node")));
        for (const auto& [name, text] : refused) error.detail(name, text);
        throw error.hint("move these Pods, or add the option that is named");
    }
    auto whole = plan::plan_drain(all, rules);
    review.warnings = std::move(whole.warnings);
    if (whole.evict.empty()) return review;
    for (auto& text : plan::hopeless_budgets(workloads.budgets(), whole.evict))
        review.warnings.push_back(std::move(text));
    return review;
}

bool put_last(upgrade::Run& run, const std::string& own_node) {
    if (run.options.order != "name" && run.options.order != "zone") return false;
    const auto found =
        std::find_if(run.nodes.begin(), run.nodes.end(), [&](const auto& node) { return node.name == own_node; });
    if (found == run.nodes.end() || found + 1 == run.nodes.end()) return false;
    std::rotate(found, found + 1, run.nodes.end());
    return true;
}

cluster::Cordon DryWorkloads::cordon(const std::string& node, const std::string& owner) {
    sink_(node, "cordon");
    return {true, owner};
}

cluster::Cordon DryWorkloads::uncordon(const std::string& node, const std::string& /*owner*/) {
    sink_(node, "uncordon");
    return {};
}

std::vector<api::WorkloadPod> DryWorkloads::pods(const std::string& node) {
    auto pods = inner_.pods(node);
    const std::lock_guard guard(mutex_);
    for (const auto& pod : pods) nodes_[pod.uid] = node;
    std::erase_if(pods, [&](const api::WorkloadPod& pod) { return evicted_.contains(pod.uid); });
    return pods;
}

cluster::PodEviction DryWorkloads::evict(const api::WorkloadPod& pod, std::optional<int> /*grace_seconds*/) {
    const std::lock_guard guard(mutex_);
    sink_(nodes_[pod.uid], "evict Pod " + pod.full_name());
    evicted_.insert(pod.uid);
    return {};
}

}  // namespace kmm::drive
