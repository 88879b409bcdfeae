// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/operator_rollouts.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"

namespace kmm::drive {
namespace {

using value::Node;

/// How long nothing may change: an operator of another version first becomes the leader.
constexpr std::chrono::seconds k_quiet{30};

/// How old a list may be: it is of all workloads of the cluster.
constexpr std::chrono::seconds k_list_again{10};
/// In seconds, by how much clocks of the cluster may be behind that of the run.
constexpr std::int64_t k_skew = 300;

std::array<const kube::Resource*, 2> workload_kinds() {
    return {&kube::resources::k_daemon_sets, &k_deployments};
}

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

/// Whether the rollout of a workload goes on only by hand: it is paused, or Pods are replaced once they are deleted.
bool is_held(const Node& workload) {
    using cluster::number_of;
    if (!controller_problem(workload).empty()) return false;
    const auto* paused = workload.find_path({"spec", "paused"});
    if (paused != nullptr && paused->as_bool() == true) return true;
    return workload.get_string({"spec", "updateStrategy", "type"}) == "OnDelete" &&
           number_of(workload, {"status", "updatedNumberScheduled"}) <
               number_of(workload, {"status", "desiredNumberScheduled"});
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

std::string custom_problem(const Node& object, std::int64_t began) {
    const auto generation = cluster::number_of(object, {"metadata", "generation"});
    const auto unseen = [&](const Node* seen, const std::string& where) {
        const auto number = seen == nullptr ? generation : seen->as_int().value_or(generation);
        return number >= generation ? std::string()
                                    : fmt::format("{}: {} is {}, metadata.generation is {}", object_text(object),
                                                  where, number, generation);
    };
    if (auto found = unseen(object.find_path({"status", "observedGeneration"}), "status.observedGeneration");
        !found.empty())
        return found;
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
        if (auto old = unseen(condition.find("observedGeneration"), fmt::format("observedGeneration of {}", type));
            !old.empty()) {
            if (is_good) return old;
            continue;  // of what it was before
        }
        if (!(is_good && status == "False") && !(is_bad && status == "True")) continue;
        const auto changed = base::parse_rfc3339(condition.get_string({"lastTransitionTime"}));
        if (changed && *changed < began) continue;
        const auto message = condition.get_string({"message"});
        return fmt::format("{}: {} is {}{}{}", object_text(object), type, status, message.empty() ? "" : ": ",
                           base::escape(message));
    }
    return {};
}

std::vector<kube::Rule> OperatorRollouts::rules(const std::vector<value::Document>& documents) {
    std::vector<kube::Rule> rules;
    if (groups_of(documents).empty()) return rules;
    for (const auto* resource : workload_kinds())
        rules.push_back({"list", resource->group, resource->plural, "", "", ""});
    return rules;
}

void OperatorRollouts::require_rights(kube::Client& client, const std::vector<value::Document>& documents) {
    const auto needed = rules(documents);
    if (needed.empty()) return;
    const auto missing = kube::missing_rules(client, needed);
    if (missing.empty()) return;
    throw kube::missing_error(client, missing, "kmm-upgrade")
        .detail("component", "manifests/rbac-kubernetes-operators grants this to ServiceAccount kmm-upgrade");
}

std::vector<Node> OperatorRollouts::workloads_of(const std::set<std::string>& groups) {
    std::vector<Node> found;
    unlisted_.clear();
    for (const auto* resource : workload_kinds()) {
        try {
            if (!client_.serves(*resource)) continue;
            for (auto& each : client_.list_all(*resource, {})) {
                if (!is_owned_by(each, groups)) continue;
                each.set("kind", resource->kind);
                found.push_back(std::move(each));
            }
        } catch (const Error& error) {
            if (error.exit() != Exit::no_permission) throw;
            unlisted_.insert(resource->kind + "s");
        }
    }
    return found;
}

std::string OperatorRollouts::await(const std::vector<value::Document>& documents, const Applied& applied,
                                    std::int64_t began, const Deadline& deadline,
                                    const std::function<bool()>& interrupted, const Say& say) {
    const auto groups = groups_of(documents);
    if (groups.empty()) return {};
    const Deadline last(clock_, deadline.left() + k_quiet);
    std::string state;
    auto since = clock_.monotonic();
    std::optional<std::chrono::milliseconds> listed;
    std::vector<Node> workloads;
    std::vector<std::string> said;
    const auto group_names = base::join(std::vector<std::string>(groups.begin(), groups.end()), ", ");
    const auto hint_of_workloads = fmt::format("see the log of the operator of {}, and kubectl get "
                                               "daemonsets,deployments -A", group_names);
    std::string hint;
    const auto problem = [&]() -> std::string {
        said.clear();
        hint = hint_of_workloads;
        bool has_custom = false;
        for (const auto& [resource, key] : applied) {
            if (!is_custom_group(resource.group)) continue;
            has_custom = true;
            const auto object = client_.get(resource, key);
            if (auto found = custom_problem(object, began - k_skew); !found.empty()) {
                hint = fmt::format("kubectl describe {} {}{}; see whether its operator runs, and its log; take the "
                                   "object out of --networking if it is to stay so, or if its operator does not keep "
                                   "observedGeneration",
                                   resource.full_name(), key.name,
                                   key.namespace_.empty() ? "" : " -n " + key.namespace_);
                return found;
            }
            if (const auto found = custom_problem(object); !found.empty())
                said.push_back(fmt::format("{} since before the upgrade", found));
        }
        const auto now = clock_.monotonic();
        if (!listed || now - *listed >= k_list_again || last.passed()) {
            workloads = workloads_of(groups);
            listed = now;
            if (auto seen = state_of(workloads); seen != state) {
                state = std::move(seen);
                since = now;
            }
        }
        for (const auto& each : workloads) {
            const auto found = rollout_problem(each);
            if (found.empty()) continue;
            if (!is_held(each)) return found;
            said.push_back(base::escape(found));
        }
        if (*listed - since >= k_quiet || (workloads.empty() && !has_custom)) return {};
        if (!last.passed()) return "operators are watched for 30 s after the last change of a workload";
        said.emplace_back("operators have changed workloads in the last 30 s before the time limit");
        return {};
    };
    await_clear(clock_, last, interrupted, hint, spoken(clock_, last, say, problem));
    if (!unlisted_.empty())
        said.push_back(fmt::format("rollouts of operators are not known: this user may not list {}",
                                   base::join(std::vector<std::string>(unlisted_.begin(), unlisted_.end()), " and ")));
    std::vector<std::string> names;
    for (const auto& each : workloads) names.push_back(base::escape(object_text(each)));
    if (!names.empty() && said.empty())
        said.push_back("operators have nothing more to roll out: " + base::join(names, ", "));
    said.push_back(fmt::format("workloads without an ownerReference to {} were not awaited", group_names));
    return base::join(said, "; ");
}

}  // namespace kmm::drive
