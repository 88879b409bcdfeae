// SPDX-License-Identifier: Apache-2.0
#include "api/workload.hpp"

#include <algorithm>
#include <set>

#include "api/labels.hpp"
#include "base/text.hpp"

namespace kmm::api {
namespace {

/// On worker Pods that this toolkit makes.
constexpr const char* k_label_worker_verb = "kmmtools.dev/verb";

const value::Node& sequence_at(const value::Node& node, std::initializer_list<std::string_view> path) {
    static const value::Node empty = value::Node::sequence();
    const auto* found = node.find_path(path);
    return found != nullptr && found->is_sequence() ? *found : empty;
}

Labels text_map_at(const value::Node& node, std::initializer_list<std::string_view> path) {
    Labels labels;
    const auto* found = node.find_path(path);
    if (found == nullptr || !found->is_mapping()) return labels;
    for (const auto& member : found->members())
        if (member.value.is_string()) labels.emplace(member.key, member.value.text());
    return labels;
}

/// "2" and 2 are the same to Kubernetes.
std::string number_or_text(const value::Node& node, std::initializer_list<std::string_view> path) {
    const auto* found = node.find_path(path);
    if (found == nullptr) return "";
    if (const auto number = found->as_int()) return std::to_string(*number);
    return found->is_string() ? found->text() : "";
}

void add_resources(const value::Node& containers, std::set<std::string>& names) {
    for (const auto& container : containers.items()) {
        for (const auto* part : {"requests", "limits"}) {
            const auto* wanted = container.find_path({"resources", part});
            if (wanted == nullptr) continue;
            for (const auto& member : wanted->members()) {
                const bool none =
                    member.value.as_int() == 0 || (member.value.is_string() && member.value.text() == "0");
                if (is_extended_resource(member.key) && !none) names.insert(member.key);
            }
        }
    }
}

}  // namespace

bool matches(const selector::LabelSelector& selector, const Labels& labels) {
    return selector::matches(selector, [&](const std::string& key) {
        const auto found = labels.find(key);
        return found == labels.end() ? nullptr : &found->second;
    });
}

/// deletionTimestamp is when the grace period ends.
void read_ending(const value::Node& pod, WorkloadPod& made) {
    const auto end = base::parse_rfc3339(pod.get_string({"metadata", "deletionTimestamp"}));
    if (!end) return;
    const auto* grace = pod.find_path({"metadata", "deletionGracePeriodSeconds"});
    made.ending_grace = grace == nullptr ? std::nullopt : grace->as_int();
    made.ending_since = *end - made.ending_grace.value_or(0);
}

WorkloadPod decode_workload_pod(const value::Node& pod) {
    WorkloadPod made;
    made.namespace_ = pod.get_string({"metadata", "namespace"});
    made.name = pod.get_string({"metadata", "name"});
    made.uid = pod.get_string({"metadata", "uid"});
    made.phase = pod.get_string({"status", "phase"});
    made.labels = text_map_at(pod, {"metadata", "labels"});
    made.is_ending = !pod.get_string({"metadata", "deletionTimestamp"}).empty();
    read_ending(pod, made);
    made.finalizers = pod.get_texts({"metadata", "finalizers"});
    made.is_worker =
        made.labels.contains(std::string(k_label_worker_action)) || made.labels.contains(k_label_worker_verb);
    made.is_mirror = text_map_at(pod, {"metadata", "annotations"}).contains("kubernetes.io/config.mirror");
    for (const auto& owner : sequence_at(pod, {"metadata", "ownerReferences"}).items()) {
        const auto* controller = owner.find("controller");
        if (controller == nullptr || controller->as_bool() != true) continue;
        made.controller_kind = owner.get_string({"kind"});
        made.controller_name = owner.get_string({"name"});
    }
    for (const auto& condition : sequence_at(pod, {"status", "conditions"}).items())
        if (condition.get_string({"type"}) == "Ready") made.is_ready = condition.get_string({"status"}) == "True";
    for (const auto& volume : sequence_at(pod, {"spec", "volumes"}).items())
        if (volume.find("emptyDir") != nullptr) made.has_empty_dir = true;
    std::set<std::string> resources;
    add_resources(sequence_at(pod, {"spec", "containers"}), resources);
    add_resources(sequence_at(pod, {"spec", "initContainers"}), resources);
    made.resources.assign(resources.begin(), resources.end());
    std::set<std::string> claims;
    for (const auto& claim : sequence_at(pod, {"spec", "resourceClaims"}).items())
        if (const auto name = claim.get_string({"resourceClaimName"}); !name.empty()) claims.insert(name);
    for (const auto& claim : sequence_at(pod, {"status", "resourceClaimStatuses"}).items())
        if (const auto name = claim.get_string({"resourceClaimName"}); !name.empty()) claims.insert(name);
    made.claims.assign(claims.begin(), claims.end());
    return made;
}

DisruptionBudget decode_disruption_budget(const value::Node& budget) {
    DisruptionBudget made;
    made.namespace_ = budget.get_string({"metadata", "namespace"});
    made.name = budget.get_string({"metadata", "name"});
    made.min_available = number_or_text(budget, {"spec", "minAvailable"});
    made.max_unavailable = number_or_text(budget, {"spec", "maxUnavailable"});
    if (const auto* expected = budget.find_path({"status", "expectedPods"}); expected != nullptr)
        made.expected_pods = expected->as_int();
    const auto* selector = budget.find_path({"spec", "selector"});
    if (selector != nullptr && selector->is_mapping()) made.selector = selector::decode_label_selector(*selector);
    return made;
}

DeviceClaim decode_device_claim(const value::Node& claim) {
    DeviceClaim made;
    made.namespace_ = claim.get_string({"metadata", "namespace"});
    made.name = claim.get_string({"metadata", "name"});
    const auto add = [](std::vector<std::string>& names, std::string name) {
        if (!name.empty()) names.push_back(std::move(name));
    };
    for (const auto& request : sequence_at(claim, {"spec", "devices", "requests"}).items()) {
        add(made.classes, request.get_string({"exactly", "deviceClassName"}));
        add(made.classes, request.get_string({"deviceClassName"}));  // before v1
        for (const auto& choice : sequence_at(request, {"firstAvailable"}).items())
            add(made.classes, choice.get_string({"deviceClassName"}));
    }
    for (const auto& result : sequence_at(claim, {"status", "allocation", "devices", "results"}).items())
        add(made.drivers, result.get_string({"driver"}));
    return made;
}

}  // namespace kmm::api
