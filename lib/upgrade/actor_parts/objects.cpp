// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/objects.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "upgrade/drive/actor.hpp"

namespace kmm::drive {
namespace {

using value::Node;

constexpr std::chrono::milliseconds k_first_poll{100}, k_longest_poll{2000};
constexpr std::chrono::milliseconds k_first_said{10'000}, k_said_again{30'000};

/// The path of an API's list of kinds.
std::string path_of_group(const std::string& api_version) {
    return api_version.find('/') == std::string::npos ? "/api/" + api_version : "/apis/" + api_version;
}

}  // namespace

std::string object_text(const Node& object) {
    const auto space = object.get_string({"metadata", "namespace"});
    return fmt::format("{} {}{}", object.get_string({"kind"}), space.empty() ? "" : space + "/",
                       object.get_string({"metadata", "name"}));
}

Node placed(Node object, const kube::Resource& resource) {
    const bool is_namespaced = resource.scope == kube::Scope::namespaced;
    if (is_namespaced != object.get_string({"metadata", "namespace"}).empty()) return object;
    auto meta = *object.find("metadata");
    if (is_namespaced) meta.set("namespace", "default");
    else meta.erase("namespace");
    object.set("metadata", std::move(meta));
    return object;
}

std::string controller_problem(const Node& object) {
    using cluster::number_of;
    return number_of(object, {"status", "observedGeneration"}) < number_of(object, {"metadata", "generation"})
               ? object_text(object) + ": its controller has not seen it yet"
               : "";
}

std::string rollout_problem(const Node& object) {
    using cluster::number_of;
    const auto kind = object.get_string({"kind"});
    const bool is_by_hand = object.get_string({"spec", "updateStrategy", "type"}) == "OnDelete";
    const auto incomplete = [&](std::int64_t ready, std::int64_t wanted, std::int64_t updated) {
        auto text = fmt::format("{}: {} of {} Pods are updated and available", object_text(object), ready, wanted);
        if (is_by_hand && updated < wanted)
            text += " (updateStrategy OnDelete: delete the older ones)";
        if (const auto* paused = object.find_path({"spec", "paused"}); paused != nullptr && paused->as_bool() == true)
            text += " (spec.paused: no Pod is replaced)";
        return text;
    };
    if (kind != "DaemonSet" && kind != "Deployment" && kind != "StatefulSet") return "";
    if (auto problem = controller_problem(object); !problem.empty()) return problem;
    if (kind == "DaemonSet") {
        const auto wanted = number_of(object, {"status", "desiredNumberScheduled"});
        const auto updated = number_of(object, {"status", "updatedNumberScheduled"});
        const auto ready = std::min(updated, number_of(object, {"status", "numberAvailable"}));
        return ready >= wanted ? "" : incomplete(ready, wanted, updated);
    }
    const auto* replicas = object.find_path({"spec", "replicas"});
    const auto wanted = replicas == nullptr ? 1 : replicas->as_int().value_or(1);
    // Those of a StatefulSet below its partition, an ordinal, are to stay as they are.
    const auto kept = number_of(object, {"spec", "updateStrategy", "rollingUpdate", "partition"}) -
                      number_of(object, {"spec", "ordinals", "start"});
    const auto updated = number_of(object, {"status", "updatedReplicas"}) + std::max<std::int64_t>(kept, 0);
    // Before Kubernetes 1.22 a StatefulSet neither had minReadySeconds nor counted those that are available.
    const bool counts_available = kind == "Deployment" || number_of(object, {"spec", "minReadySeconds"}) > 0;
    const auto ready =
        std::min(updated, number_of(object, {"status", counts_available ? "availableReplicas" : "readyReplicas"}));
    if (ready < wanted) return incomplete(ready, wanted, updated);
    // Available ones may be those of before.
    const auto old = number_of(object, {"status", "replicas"}) - updated;
    return old <= 0 ? "" : fmt::format("{}: {} Pods of before are still there", object_text(object), old);
}

std::optional<kube::Resource> Objects::resource_of(const Node& object) {
    const auto api_version = object.get_string({"apiVersion"}), kind = object.get_string({"kind"});
    {
        const std::lock_guard guard(mutex_);
        if (const auto found = known_.find({api_version, kind}); found != known_.end()) return found->second;
    }
    kube::Call call;
    call.path = path_of_group(api_version);
    call.is_answer = [](const kube::Failure& failure) { return failure.code == 404; };
    const auto reply = client_.exchange(call);
    if (reply.failure) return std::nullopt;
    const auto list = kube::Client::parse(reply, {"get", "", api_version, "", "", ""});
    const auto* resources = list.find("resources");
    const auto slash = api_version.find('/');
    for (const auto& each : resources == nullptr ? std::vector<Node>() : resources->items()) {
        const auto plural = each.get_string({"name"});
        if (each.get_string({"kind"}) != kind || plural.find('/') != std::string::npos) continue;
        const auto* is_namespaced = each.find("namespaced");
        const kube::Resource resource{
            slash == std::string::npos ? "" : api_version.substr(0, slash),
            slash == std::string::npos ? api_version : api_version.substr(slash + 1), plural, kind,
            is_namespaced != nullptr && is_namespaced->as_bool() == true ? kube::Scope::namespaced
                                                                         : kube::Scope::cluster};
        const std::lock_guard guard(mutex_);
        known_.insert_or_assign({api_version, kind}, resource);
        return resource;
    }
    return std::nullopt;
}

Node Objects::apply(const kube::Resource& resource, const Node& object, kube::Force force, kube::DryRun dry_run) {
    return with_context([&] { return object_text(object); },
                        [&] { return client_.apply(resource, object, force, dry_run); });
}

std::optional<Node> Objects::find(const kube::Resource& resource, const Node& object) {
    return client_.find(resource,
                        {object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})});
}

void await_clear(sys::Clock& clock, const Deadline& deadline, const std::function<bool()>& interrupted,
                 const std::string& hint, const std::function<std::string()>& problem) {
    for (auto wait = k_first_poll;; wait = std::min(wait * 2, k_longest_poll)) {
        const auto found = problem();
        if (found.empty()) return;
        if (deadline.passed())
            throw Error(Exit::unhealthy, "not-verified", fmt::format("{} after the time limit", found)).hint(hint);
        if (interrupted() || !clock.sleep_for(wait) || interrupted()) throw Leave{StepEnd::left};
    }
}

std::function<std::string()> spoken(const sys::Clock& clock, const Deadline& deadline, const Say& say,
                                    std::function<std::string()> problem) {
    return [&clock, &deadline, &say, problem = std::move(problem), next = clock.monotonic() + k_first_said]() mutable {
        auto found = problem();
        if (!found.empty() && clock.monotonic() >= next) {
            say(fmt::format("waits: {}; {} left", found, base::format_duration(deadline.left())));
            next = clock.monotonic() + k_said_again;
        }
        return found;
    };
}

}  // namespace kmm::drive
