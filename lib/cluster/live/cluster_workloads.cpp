// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/cluster_workloads.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cluster/folder/directory_store.hpp"
#include "cluster/live/kube_store.hpp"

namespace kmm::cluster {
namespace {

using value::Node;

Cordon cordon_of(const Node& node) {
    Cordon cordon;
    const auto* flag = node.find_path({"spec", "unschedulable"});
    cordon.unschedulable = flag != nullptr && flag->as_bool().value_or(false);
    cordon.owner = node.get_string({"metadata", "annotations", api::k_annotation_cordoned_by});
    return cordon;
}

/// True if the server knows who has set spec.unschedulable, and that is not `manager`: a cordon of ours was lifted, and
/// another one set, while our annotation stayed.
bool is_set_by_others(const Node& node, std::string_view manager) {
    const auto* fields = node.find_path({"metadata", "managedFields"});
    bool is_known = false;
    for (const auto& entry : fields == nullptr ? std::vector<Node>() : fields->items()) {
        if (entry.find_path({"fieldsV1", "f:spec", "f:unschedulable"}) == nullptr) continue;
        if (entry.get_string({"manager"}) == manager) return false;
        is_known = true;
    }
    return is_known;
}

/// What `cordon` makes of what it found; nullopt leaves it as it is.
std::optional<Cordon> cordoned(const Cordon& found, const std::string& owner) {
    if (found.unschedulable) return std::nullopt;
    return Cordon{true, owner};
}

/// What `uncordon` makes of what it found. An annotation that outlived somebody's own uncordon goes as well.
std::optional<Cordon> uncordoned(const Cordon& found, const std::string& owner) {
    if (found.owner != owner) return std::nullopt;
    return Cordon{};
}

/// Whether the controller of a Pod is of another group than apps.
bool is_of_another_group(const Node& pod) {
    const auto* owners = pod.find_path({"metadata", "ownerReferences"});
    if (owners == nullptr || !owners->is_sequence()) return false;
    return std::any_of(owners->items().begin(), owners->items().end(), [](const Node& owner) {
        const auto* controller = owner.find("controller");
        const auto version = owner.get_string({"apiVersion"});
        return controller != nullptr && controller->as_bool() == true && !version.empty() &&
               !version.starts_with("apps/");
    });
}

class KubeWorkloads final : public Workloads {
public:
    KubeWorkloads(KubeStore& store, std::optional<kube::OwnPod> own) : store_(store), own_(std::move(own)) {}

    void expect_rights(Leaving leaving) override {
        auto rules = drain_rules();
        if (leaving == Leaving::users) rules.push_back({"list", "resource.k8s.io", "resourceclaims", "", "", ""});
        store_.expect_rights(rules);
    }

    Cordon cordon(const std::string& node, const std::string& owner) override {
        return change(node, owner, [&](const Cordon& found) { return cordoned(found, owner); });
    }

    Cordon uncordon(const std::string& node, const std::string& owner) override {
        return change(node, owner, [&](const Cordon& found) { return uncordoned(found, owner); });
    }

    std::vector<api::WorkloadPod> pods(const std::string& node) override {
        kube::ListQuery query;
        query.field_selector = "spec.nodeName=" + node;
        std::vector<api::WorkloadPod> found;
        for (const auto& tree : store_.client().list_all(kube::resources::k_pods, query)) {
            auto pod = api::decode_workload_pod(tree);
            // Others have a DaemonSet of their own, as OpenKruise: its Pods come back as those of apps do.
            if (pod.controller_kind == "DaemonSet" && !is_of_another_group(tree))
                pod.is_controller_gone = !has_daemon_set({pod.namespace_, pod.controller_name});
            pod.is_self = is_own(pod);
            found.push_back(std::move(pod));
        }
        return found;
    }

    std::vector<api::DisruptionBudget> budgets() override {
        std::vector<api::DisruptionBudget> found;
        if (!store_.client().serves(kube::resources::k_pod_disruption_budgets)) return found;
        for (const auto& tree : store_.client().list_all(kube::resources::k_pod_disruption_budgets, {}))
            found.push_back(api::decode_disruption_budget(tree));
        return found;
    }

    std::vector<api::DeviceClaim> claims() override {
        std::vector<api::DeviceClaim> found;
        const auto resource = store_.client().discover(kube::resources::k_resource_claims);
        if (!resource) return found;
        for (const auto& tree : store_.client().list_all(*resource, {}))
            found.push_back(api::decode_device_claim(tree));
        return found;
    }

    PodEviction evict(const api::WorkloadPod& pod, std::optional<int> grace_seconds) override {
        auto answer = store_.client().evict({pod.namespace_, pod.name}, grace_seconds, kube::DryRun::no, pod.uid);
        PodEviction eviction;
        eviction.reason = std::move(answer.reason);
        eviction.retry_after = answer.retry_after;
        switch (answer.outcome) {
            case kube::Eviction::Outcome::evicted: eviction.outcome = PodEviction::Outcome::evicted; break;
            case kube::Eviction::Outcome::gone: eviction.outcome = PodEviction::Outcome::gone; break;
            case kube::Eviction::Outcome::blocked: eviction.outcome = PodEviction::Outcome::blocked; break;
            case kube::Eviction::Outcome::several_budgets: eviction.outcome = PodEviction::Outcome::never; break;
            case kube::Eviction::Outcome::namespace_ending: eviction.outcome = PodEviction::Outcome::ending; break;
        }
        return eviction;
    }

private:
    /// Writes what `decide` wants. A cordon that others have set since `owner` had one is only rid of our annotation.
    template <typename Decide>
    Cordon change(const std::string& node, const std::string& owner, const Decide& decide) {
        const auto annotation = [](const std::string& by) {
            const auto text = by.empty() ? Node() : Node(by);
            return Node::mapping(
                {{"annotations", Node::mapping({{std::string(api::k_annotation_cordoned_by), text}})}});
        };
        const Node stored = store_.change_node(node, [&](const Node& current) -> std::optional<Node> {
            const auto found = cordon_of(current);
            const bool is_stale = found.unschedulable && found.owner == owner &&
                                  is_set_by_others(current, store_.client().options().field_manager);
            if (is_stale) return Node::mapping({{"metadata", annotation("")}});
            const auto wanted = decide(found);
            if (!wanted) return std::nullopt;
            return Node::mapping(
                {{"spec", Node::mapping({{"unschedulable", wanted->unschedulable ? Node(true) : Node()}})},
                 {"metadata", annotation(wanted->owner)}});
        });
        return cordon_of(stored);
    }

    [[nodiscard]] bool is_own(const api::WorkloadPod& pod) const {
        if (!own_) return false;
        return own_->uid.empty() ? pod.namespace_ == own_->namespace_ && pod.name == own_->name : pod.uid == own_->uid;
    }

    /// Asked once for each: a DaemonSet that goes away during the walk takes its Pods with it.
    bool has_daemon_set(const kube::Key& key) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto known = daemon_sets_.find(key.to_string()); known != daemon_sets_.end())
                return known->second;
        }
        const bool found = store_.client().find(kube::resources::k_daemon_sets, key).has_value();
        const std::lock_guard lock(mutex_);
        daemon_sets_[key.to_string()] = found;
        return found;
    }

    KubeStore& store_;
    std::optional<kube::OwnPod> own_;
    std::mutex mutex_;
    std::map<std::string, bool> daemon_sets_;
};

/// Takes members of `parent` away, and the parent with them if nothing else is in it.
void remove_members(const Node& root, const std::vector<std::string>& parent, const std::vector<std::string>& names,
                    std::vector<edit::Edit>& edits) {
    const Node* there = &root;
    for (const auto& name : parent) there = there == nullptr ? nullptr : there->find(name);
    if (there == nullptr) return;
    std::vector<std::string> found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [&](const auto& name) { return there->find(name) != nullptr; });
    if (!found.empty() && found.size() == there->members().size()) {
        edits.push_back({parent, std::nullopt});
        return;
    }
    for (const auto& name : found) {
        auto path = parent;
        path.push_back(name);
        edits.push_back({std::move(path), std::nullopt});
    }
}

/// spec.taints with the taint of a cordon or without it, as Kubernetes' node lifecycle controller keeps it.
Node cordon_taints(const Node& node, bool unschedulable) {
    auto taints = Node::sequence();
    if (const auto* there = node.find_path({"spec", "taints"}); there != nullptr)
        for (const auto& taint : there->items())
            if (taint.get_string({"key"}) != api::k_taint_unschedulable) taints.push_back(taint);
    if (unschedulable) taints.push_back(Node::mapping({{"key", api::k_taint_unschedulable}, {"effect", "NoSchedule"}}));
    return taints;
}

class DirectoryWorkloads final : public Workloads {
public:
    explicit DirectoryWorkloads(DirectoryStore& store) : store_(store) {}

    void expect_rights(Leaving /*leaving*/) override {}

    Cordon cordon(const std::string& node, const std::string& owner) override {
        return change(node, [&](const Cordon& found) { return cordoned(found, owner); });
    }

    Cordon uncordon(const std::string& node, const std::string& owner) override {
        return change(node, [&](const Cordon& found) { return uncordoned(found, owner); });
    }

    std::vector<api::WorkloadPod> pods(const std::string& /*node*/) override { return {}; }
    std::vector<api::DisruptionBudget> budgets() override { return {}; }
    std::vector<api::DeviceClaim> claims() override { return {}; }
    PodEviction evict(const api::WorkloadPod& /*pod*/, std::optional<int> /*grace_seconds*/) override { return {}; }

private:
    template <typename Decide>
    Cordon change(const std::string& node, const Decide& decide) {
        Cordon now;
        store_.change_node(node, [&](const Node& current) {
            std::vector<edit::Edit> edits;
            now = cordon_of(current);
            const auto wanted = decide(now);
            if (!wanted) return edits;
            now = *wanted;
            const std::string annotation(api::k_annotation_cordoned_by);
            auto taints = cordon_taints(current, wanted->unschedulable);
            std::vector<std::string> gone;
            if (!taints.items().empty()) edits.push_back({{"spec", "taints"}, std::move(taints)});
            else gone.emplace_back("taints");
            if (wanted->unschedulable) {
                edits.push_back({{"spec", "unschedulable"}, Node(true)});
                edits.push_back({{"metadata", "annotations", annotation}, Node(wanted->owner)});
            } else {
                gone.emplace_back("unschedulable");
                remove_members(current, {"metadata", "annotations"}, {annotation}, edits);
            }
            remove_members(current, {"spec"}, gone, edits);
            return edits;
        });
        return now;
    }

    DirectoryStore& store_;
};

}  // namespace

std::unique_ptr<Workloads> workloads_of(KubeStore& store, std::optional<kube::OwnPod> own) {
    return std::make_unique<KubeWorkloads>(store, std::move(own));
}

std::unique_ptr<Workloads> workloads_of(DirectoryStore& store) { return std::make_unique<DirectoryWorkloads>(store); }

}  // namespace kmm::cluster
