// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/operator_rollouts.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"

namespace kmm::drive {
namespace {

using value::Node;

/// How long nothing may change: an operator of another version first becomes the leader.
constexpr std::chrono::seconds k_quiet{30};

const kube::Resource k_operated_deployments{"apps", "v1", "deployments", "Deployment", kube::Scope::namespaced};

std::string group_of(const std::string& api_version) {
    const auto slash = api_version.find('/');
    return slash == std::string::npos ? std::string() : api_version.substr(0, slash);
}

/// The groups that the set brings.
std::set<std::string> groups_of(const std::vector<value::Document>& documents) {
    std::set<std::string> groups;
    for (const auto& document : documents) {
        const auto kind = document.root.get_string({"kind"});
        const auto group = kind == "CustomResourceDefinition" ? document.root.get_string({"spec", "group"})
                                                              : group_of(document.root.get_string({"apiVersion"}));
        if (is_custom_group(group)) groups.insert(group);
    }
    return groups;
}

bool is_owned_by(const Node& object, const std::set<std::string>& groups) {
    const auto* owners = object.find_path({"metadata", "ownerReferences"});
    return owners != nullptr && std::any_of(owners->items().begin(), owners->items().end(), [&](const auto& owner) {
               return groups.contains(group_of(owner.get_string({"apiVersion"})));
           });
}

/// Tells one state of workloads from another.
std::string state_of(const std::vector<Node>& workloads) {
    std::string state;
    for (const auto& each : workloads)
        state += fmt::format("{} {};", object_text(each), cluster::number_of(each, {"metadata", "generation"}));
    return state;
}

}  // namespace

bool is_custom_group(std::string_view group) {
    for (const std::string_view own : {"", "apps", "autoscaling", "batch", "extensions", "policy"})
        if (group == own) return false;
    return !group.ends_with(".k8s.io");
}

std::string custom_problem(const Node& object) {
    const auto generation = cluster::number_of(object, {"metadata", "generation"});
    const auto* seen = object.find_path({"status", "observedGeneration"});
    if (seen != nullptr && seen->as_int().value_or(generation) < generation) return controller_problem(object);
    const auto* conditions = object.find_path({"status", "conditions"});
    if (conditions == nullptr || !conditions->is_sequence()) return {};
    const auto& all = conditions->items();
    const bool is_of_cluster = std::any_of(all.begin(), all.end(), [](const auto& condition) {
        return condition.get_string({"type"}) == "Degraded";
    });
    for (const auto& condition : all) {
        const auto type = condition.get_string({"type"}), status = condition.get_string({"status"});
        const bool is_good = type == "Ready" || type == "Available";
        const bool is_bad = type == "Degraded" || type == "Stalled" || type == "Reconciling" ||
                            (type == "Progressing" && is_of_cluster);
        if (!(is_good && status == "False") && !(is_bad && status == "True")) continue;
        const auto* of = condition.find("observedGeneration");
        if (of != nullptr && of->as_int().value_or(generation) < generation) continue;  // of what it was before
        const auto message = condition.get_string({"message"});
        return fmt::format("{}: {} is {}{}{}", object_text(object), type, status, message.empty() ? "" : ": ",
                           base::escape(message));
    }
    return {};
}

std::vector<Node> OperatorRollouts::workloads_of(const std::set<std::string>& groups) {
    std::vector<Node> found;
    for (const auto* resource : {&kube::resources::k_daemon_sets, &k_operated_deployments}) {
        if (!client_.serves(*resource)) continue;
        for (auto& each : client_.list_all(*resource, {})) {
            if (!is_owned_by(each, groups)) continue;
            each.set("kind", resource->kind);
            found.push_back(std::move(each));
        }
    }
    return found;
}

std::string OperatorRollouts::await(const std::vector<value::Document>& documents, const Applied& applied,
                                    const Deadline& deadline, const std::function<bool()>& interrupted,
                                    const Say& say) {
    const auto groups = groups_of(documents);
    if (groups.empty()) return {};
    std::string state, unlisted;
    auto since = clock_.monotonic();
    std::vector<Node> workloads;
    const auto problem = [&]() -> std::string {
        bool has_custom = false;
        for (const auto& [resource, key] : applied) {
            if (!is_custom_group(resource.group)) continue;
            has_custom = true;
            if (auto found = custom_problem(client_.get(resource, key)); !found.empty()) return found;
        }
        try {
            workloads = workloads_of(groups);
        } catch (const Error& error) {
            if (error.exit() != Exit::no_permission) throw;
            unlisted = "rollouts of operators are not known: this user may not list DaemonSets and Deployments";
            return {};
        }
        if (auto now = state_of(workloads); now != state) {
            state = std::move(now);
            since = clock_.monotonic();
        }
        for (const auto& each : workloads)
            if (auto found = rollout_problem(each); !found.empty()) return found;
        const bool is_quiet = clock_.monotonic() - since >= k_quiet || (workloads.empty() && !has_custom);
        return is_quiet ? std::string() : "it is not known yet whether an operator begins a rollout";
    };
    await_clear(clock_, deadline, interrupted,
                fmt::format("see the status of objects of {}, the log of their operator, and kubectl get daemonsets,"
                            "deployments -A",
                            base::join(std::vector<std::string>(groups.begin(), groups.end()), ", ")),
                spoken(clock_, deadline, say, problem));
    if (!unlisted.empty()) return unlisted;
    std::vector<std::string> names;
    for (const auto& each : workloads) names.push_back(base::escape(object_text(each)));
    return names.empty() ? std::string()
                         : fmt::format("operators have nothing more to roll out: {}", base::join(names, ", "));
}

}  // namespace kmm::drive
