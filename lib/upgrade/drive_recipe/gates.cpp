// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/gates.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "selector/label_selector.hpp"
#include "upgrade/drive_recipe/downgrade.hpp"
#include "upgrade/drive_recipe/readiness.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::ReleaseObject;
using value::Node;

const kube::Resource k_builds{"build.openshift.io", "v1", "builds", "Build", kube::Scope::namespaced};
const kube::Resource k_storage_classes{"storage.k8s.io", "v1", "storageclasses", "StorageClass", kube::Scope::cluster};
constexpr const char* k_log_lines = "50";

const kube::Resource k_events{"", "v1", "events", "Event", kube::Scope::namespaced};

/// Of a workload's Pods, as a list takes it; "" for one that selects everything.
std::string selector_of(const Node& live) {
    const auto* selector = live.find_path({"spec", "selector"});
    return selector == nullptr ? std::string() : selector::to_text(selector::decode_label_selector(*selector));
}

/// An evicted Pod stays until someone deletes it; its controller has another one in its place.
bool has_ended(const Node& pod) {
    const auto phase = pod.get_string({"status", "phase"});
    return phase == "Failed" || phase == "Succeeded";
}

bool lacks_pods(const Node& live) {
    const auto kind = live.get_string({"kind"});
    const auto number = [&](const char* name) {
        const auto* found = live.find_path({"status", name});
        return found == nullptr ? 0 : found->as_int().value_or(0);
    };
    if (kind == "DaemonSet") {
        const auto* current = live.find_path({"status", "currentNumberScheduled"});
        return current != nullptr && current->as_int().value_or(0) < wanted_pods(live);
    }
    if (kind == "Deployment" || kind == "StatefulSet") return number("replicas") < wanted_pods(live);
    return kind == "Job" && number("active") + number("succeeded") + number("failed") == 0;
}

}  // namespace

std::string Gates::problem(const ReleaseObject& wanted) {
    const auto pattern = log_pattern(wanted.object);
    const bool gated = is_gated(wanted.object);
    if (!gated && pattern.empty()) return "";
    const auto resource = objects_.resource_of(wanted.object);
    if (!resource)
        return fmt::format("the API server does not serve kind {} of {}", wanted.object.get_string({"kind"}),
                           wanted.object.get_string({"apiVersion"}));
    const auto object = placed(wanted.object, *resource);
    const auto live = objects_.find(*resource, object);
    if (!live) return absence_problem(object);
    // Logs of Pods that are not there yet, or are to be replaced, say nothing.
    if (gated || resource->kind != "Pod") {
        if (auto found = lacks(*live); !found.empty()) return found + refusal_of_pods(*live);
        if (resource->kind == "Job") ended_.insert(upgrade::recipe::id_of(object));
        if (!wanted.kernel.empty() && resource->kind == "DaemonSet") {
            const auto names = nodes_without_kernel_label(*live, wanted.kernel, nodes());
            if (!names.empty())
                return fmt::format(
                    "{}: no Pod for kernel {} on {}: the label {} is missing there", object_text(object),
                    wanted.kernel, base::join(names, ", "), k_kernel_label);
        }
    }
    if (resource->kind == "DaemonSet" && wanted_pods(*live) == 0) idle_.push_back(object_text(object) + " wants");
    return pattern.empty() ? "" : log_problem(*live, pattern);
}

std::string Gates::absence_problem(const Node& object) const {
    if (ended_.contains(upgrade::recipe::id_of(object))) return "";
    const auto* kept = object.find_path({"spec", "ttlSecondsAfterFinished"});
    return object_text(object) + " does not exist" +
           (kept == nullptr ? ""
                            : fmt::format(" (ttlSecondsAfterFinished {}: removed before its end was seen, or by "
                                          "someone; leave it out or make it longer)",
                                          kept->text()));
}

std::string Gates::readiness(const ReleaseObject& wanted) {
    const auto resource = objects_.resource_of(wanted.object);
    if (!resource)
        return fmt::format("the API server does not serve kind {} of {}", wanted.object.get_string({"kind"}),
                           wanted.object.get_string({"apiVersion"}));
    const auto object = placed(wanted.object, *resource);
    const auto live = objects_.find(*resource, object);
    if (!live) return absence_problem(object);
    return lacks(*live);
}

std::string Gates::lacks(const Node& live) {
    const auto kind = live.get_string({"kind"});
    std::vector<Node> builds;
    if (kind == "BuildConfig")
        builds = client_.list_all(k_builds, {live.get_string({"metadata", "namespace"}), "", ""});
    auto found = readiness_problem(live, builds);
    if (found.empty() || kind != "PersistentVolumeClaim") return found;
    // The Pod that makes it bound may come with a later object.
    const auto name = live.get_string({"spec", "storageClassName"});
    const auto storage = name.empty() ? std::nullopt : client_.find(k_storage_classes, {"", name});
    const bool waits_for_pod = storage && storage->get_string({"volumeBindingMode"}) == "WaitForFirstConsumer";
    return waits_for_pod && live.get_string({"metadata", "deletionTimestamp"}).empty() ? "" : found;
}

std::vector<std::string> Gates::unwaited_drivers(const upgrade::recipe::Release& release) {
    std::vector<std::string> found;
    for (const auto& state : release.states)
        for (const auto& one : state.objects)
            if (is_driver(one) && !is_gated(one.object) && log_pattern(one.object).empty())
                if (auto lacks = readiness(one); !lacks.empty()) found.push_back(std::move(lacks));
    return found;
}

std::string Gates::image_problem(const ReleaseObject& wanted) {
    if (wanted.object.get_string({"kind"}) != "DaemonSet") return "";
    const auto object = placed(wanted.object, kube::resources::k_daemon_sets);
    const auto live = objects_.find(kube::resources::k_daemon_sets, object);
    if (!live) return "";
    auto pods = client_.list_all(kube::resources::k_pods, {object.get_string({"metadata", "namespace"}), "", ""});
    std::erase_if(pods, [&](const Node& pod) { return !is_owned_by(pod, *live); });
    return missing_image(pods);
}

std::string Gates::refusal_of_pods(const Node& live) {
    if (!lacks_pods(live)) return "";
    std::string message, latest;
    if (const auto* failure = cluster::condition_of(live, "ReplicaFailure");
        failure != nullptr && failure->get_string({"status"}) == "True")
        message = failure->get_string({"message"});
    const kube::ListQuery query{live.get_string({"metadata", "namespace"}), "",
                                fmt::format("reason=FailedCreate,involvedObject.uid={}",
                                            live.get_string({"metadata", "uid"}))};
    try {
        if (message.empty())
            for (const auto& event : client_.list_all(k_events, query)) {
                auto time = event.get_string({"lastTimestamp"});
                if (time.empty()) time = event.get_string({"metadata", "creationTimestamp"});
                if (!message.empty() && time < latest) continue;
                latest = std::move(time);
                message = event.get_string({"message"});
            }
    } catch (const Error& error) {
        if (error.code() != "forbidden" && error.code() != "object-not-found") throw;
    }
    return message.empty() ? "" : "; Pods are refused: " + base::escape(message);
}

void Gates::look_again() {
    nodes_.reset();
    idle_.clear();
}

const std::vector<Node>& Gates::nodes() {
    if (!nodes_) nodes_ = client_.list_all(kube::resources::k_nodes, {});
    return *nodes_;
}

std::string Gates::lasting_problem(const ReleaseObject& wanted) {
    const auto kind = wanted.object.get_string({"kind"});
    const bool lasts = kind == "DaemonSet" || kind == "Deployment" || kind == "StatefulSet";
    return lasts ? problem(wanted) : "";
}

std::string Gates::log_problem(const Node& live, const std::string& pattern) {
    const auto space = live.get_string({"metadata", "namespace"});
    const bool is_pod = live.get_string({"kind"}) == "Pod";
    if (is_pod) return log_problem_of_pod(live, pattern);
    const auto selector = selector_of(live);
    std::vector<Node> pods;
    for (auto& pod : client_.list_all(kube::resources::k_pods, {space, selector, ""}))
        if (pod.get_string({"metadata", "deletionTimestamp"}).empty() && !has_ended(pod))
            pods.push_back(std::move(pod));
    if (live.get_string({"kind"}) != "Deployment")
        std::erase_if(pods, [&](const Node& pod) { return !is_owned_by(pod, live); });
    const auto wanted = wanted_pods(live);
    if (static_cast<std::int64_t>(pods.size()) < wanted)
        return fmt::format("{}: {} of {} Pods whose logs are waited for exist", object_text(live), pods.size(), wanted);
    for (const auto& pod : pods)
        if (auto found = log_problem_of_pod(pod, pattern); !found.empty()) return found;
    return "";
}

std::string Gates::log_problem_of_pod(const Node& pod, const std::string& pattern) {
    const kube::Key key{pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"})};
    const auto* containers = pod.find_path({"spec", "containers"});
    kube::Call call;
    call.path = kube::path_of(kube::resources::k_pods, key, "log");
    call.accept = "*/*";
    call.action = {"get", "", "pods", "log", key.namespace_, key.name};
    if (containers != nullptr && !containers->items().empty())
        call.query.emplace_back("container", containers->items().front().get_string({"name"}));
    call.query.emplace_back("tailLines", k_log_lines);
    // A container that has not started has no log.
    call.is_answer = [](const kube::Failure& failure) { return failure.code == 400 || failure.code == 404; };
    const auto reply = client_.exchange(call);
    if (reply.failure)
        return fmt::format("Pod {} has no log: {}", key.to_string(), base::escape(reply.failure->message));
    if (log_matches(pattern, reply.body)) return "";
    return fmt::format("Pod {}: the last 100 bytes of its log do not match \"{}\"", key.to_string(),
                       base::escape(pattern));
}

}  // namespace kmm::drive
