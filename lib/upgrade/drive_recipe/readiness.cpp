// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/readiness.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "recipe/golib/regex.hpp"
#include "recipe/govalue/value.hpp"
#include "recipe/resource/annotations.hpp"
#include "upgrade/actor_parts/objects.hpp"

namespace kmm::drive {
namespace {

using value::Node;

constexpr std::string_view k_prefix = "specialresource.openshift.io/";
constexpr std::size_t k_log_end = 100;

std::string annotation(const Node& object, std::string_view name) {
    return cluster::annotation_of(object, std::string(k_prefix) + std::string(name));
}

/// "True", "False", "Unknown"; "" if there is no such condition.
std::string condition(const Node& object, std::string_view type, std::string* message = nullptr) {
    const auto* found = cluster::condition_of(object, type);
    if (found == nullptr) return "";
    if (message != nullptr) *message = found->get_string({"message"});
    return found->get_string({"status"});
}

Error gate_failed(const Node& object, const std::string& how) {
    const auto kind = object.get_string({"kind"}), space = object.get_string({"metadata", "namespace"});
    const auto named = fmt::format("{} {}{}", base::to_lower(kind), object.get_string({"metadata", "name"}),
                                   space.empty() ? "" : " -n " + space);
    const bool is_task = kind == "Job" || kind == "Pod";
    return Error(Exit::unhealthy, "gate-failed", fmt::format("{} {}", object_text(object), how))
        .hint(fmt::format("kubectl describe {}; {}, then kmm-upgrade resume", named,
                          is_task ? fmt::format("correct the cause and kubectl delete {}", named) : "correct it"));
}

std::int64_t build_number(const Node& build) {
    const auto text = cluster::annotation_of(build, "openshift.io/build.number");
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Whether both have the member and it differs. A Build names more than its BuildConfig: images by digest, proxies.
bool differs(const Node& config, const Node& build, std::initializer_list<std::string_view> path) {
    const auto* wanted = config.find_path(path);
    const auto* built = build.find_path(path);
    return wanted != nullptr && built != nullptr && !wanted->same_value(*built);
}

/// What the BuildConfig has now and its Build does not build: OpenShift starts a Build when a BuildConfig is created,
/// not when it is changed. "" for nothing.
std::string_view unbuilt_change(const Node& config, const Node& build) {
    if (differs(config, build, {"spec", "output", "to", "name"})) return "spec.output";
    const bool is_uploaded = build.find_path({"spec", "source", "binary"}) != nullptr;  // oc start-build --from-dir
    if (!is_uploaded &&
        (differs(config, build, {"spec", "source", "dockerfile"}) ||
         differs(config, build, {"spec", "source", "contextDir"}) ||
         differs(config, build, {"spec", "source", "git", "uri"}) ||
         differs(config, build, {"spec", "source", "git", "ref"})))
        return "spec.source";
    if (differs(config, build, {"spec", "strategy", "dockerStrategy", "dockerfilePath"}) ||
        differs(config, build, {"spec", "strategy", "dockerStrategy", "buildArgs"}))
        return "spec.strategy";
    return "";
}

/// An earlier Build says nothing of what the BuildConfig is now.
std::string build_problem(const Node& config, const std::vector<Node>& builds) {
    const Node* newest = nullptr;
    for (const auto& build : builds)
        if (is_owned_by(build, config) && (newest == nullptr || build_number(build) > build_number(*newest)))
            newest = &build;
    if (newest == nullptr) return object_text(config) + ": no Build has been started";
    const auto* last = config.find_path({"status", "lastVersion"});
    if (last != nullptr && build_number(*newest) < last->as_int().value_or(0))
        return object_text(config) + ": its newest Build is not there yet";
    if (const auto change = unbuilt_change(config, *newest); !change.empty())
        return fmt::format("{}: {} has changed since Build {} was started: oc start-build {} -n {}",
                           object_text(config), change, newest->get_string({"metadata", "name"}),
                           config.get_string({"metadata", "name"}), config.get_string({"metadata", "namespace"}));
    const auto phase = newest->get_string({"status", "phase"});
    if (phase == "Complete") return "";
    if (phase == "Failed" || phase == "Error" || phase == "Cancelled")
        throw gate_failed(config, fmt::format("has Build {} in phase {}: {}", newest->get_string({"metadata", "name"}),
                                              phase, base::escape(newest->get_string({"status", "message"}))));
    return fmt::format("{}: Build {} is in phase {}", object_text(config), newest->get_string({"metadata", "name"}),
                       phase.empty() ? "New" : phase);
}

std::string pod_problem(const Node& pod) {
    const auto phase = pod.get_string({"status", "phase"});
    if (phase == "Succeeded") return "";
    if (phase == "Failed") throw gate_failed(pod, "has failed: " + base::escape(pod.get_string({"status", "message"})));
    return fmt::format("{} is in phase {}, expected Succeeded", object_text(pod), phase.empty() ? "Pending" : phase);
}

std::string job_problem(const Node& job) {
    std::string message;
    if (condition(job, "Complete") == "True") return "";
    if (condition(job, "Failed", &message) == "True") throw gate_failed(job, "has failed: " + base::escape(message));
    const auto* suspended = job.find_path({"spec", "suspend"});
    return object_text(job) + " is not complete" +
           (suspended != nullptr && suspended->as_bool() == true ? " (spec.suspend: it does not run)" : "");
}

std::string claim_problem(const Node& claim) {
    const auto phase = claim.get_string({"status", "phase"});
    if (phase == "Bound") return "";
    if (phase == "Lost") throw gate_failed(claim, "has lost its PersistentVolume");
    return fmt::format("{} is in phase {}, expected Bound", object_text(claim), phase.empty() ? "Pending" : phase);
}

std::string service_problem(const Node& service) {
    const auto has_items = [&](std::initializer_list<std::string_view> path) {
        const auto* found = service.find_path(path);
        return found != nullptr && !found->items().empty();
    };
    const bool is_balanced = service.get_string({"spec", "type"}) == "LoadBalancer";
    if (!is_balanced || has_items({"spec", "externalIPs"}) || has_items({"status", "loadBalancer", "ingress"}))
        return "";
    return object_text(service) + ": its load balancer has no address yet";
}

/// Of a ReplicaSet or ReplicationController.
std::string replicas_problem(const Node& live) {
    if (auto problem = controller_problem(live); !problem.empty()) return problem;
    const auto available = cluster::number_of(live, {"status", "availableReplicas"}), wanted = wanted_pods(live);
    return available >= wanted
               ? ""
               : fmt::format("{}: {} of {} Pods are available", object_text(live), available, wanted);
}

/// KMM counts the nodes that it selects, and those of them that have what the Module asks for.
std::string module_problem(const Node& live) {
    for (const std::string_view part : {"moduleLoader", "devicePlugin"}) {
        if (live.find_path({"spec", part}) == nullptr) continue;
        if (live.find_path({"status", part}) == nullptr)
            return object_text(live) + ": its controller has not seen it yet";
        const auto count = [&](std::string_view name) { return cluster::number_of(live, {"status", part, name}); };
        const auto available = count("availableNumber");
        const auto wanted = std::max(count("nodesMatchingSelectorNumber"), count("desiredNumber"));
        if (available < wanted)
            return fmt::format("{}: {} is available on {} of {}", object_text(live), part, available,
                               base::counted(static_cast<std::size_t>(wanted), "node"));
    }
    return "";
}

/// The condition without which an object of this kind is not ready, "" for none: its controller sets it a moment after
/// the object was made.
std::string_view needed_condition(const Node& object) {
    struct Needed {
        std::string_view group, kind, condition;
    };
    static constexpr Needed k_all[] = {
        {"apiregistration.k8s.io/", "APIService", "Available"}, {"cert-manager.io/", "Certificate", "Ready"},
        {"cert-manager.io/", "ClusterIssuer", "Ready"},         {"cert-manager.io/", "Issuer", "Ready"},
        {"shipwright.io/", "BuildRun", "Succeeded"},            {"tekton.dev/", "PipelineRun", "Succeeded"},
        {"tekton.dev/", "TaskRun", "Succeeded"},
    };
    const auto version = object.get_string({"apiVersion"}), kind = object.get_string({"kind"});
    const auto* found = std::find_if(std::begin(k_all), std::end(k_all), [&](const Needed& each) {
        return each.kind == kind && version.starts_with(each.group);
    });
    return found == std::end(k_all) ? std::string_view() : found->condition;
}

/// Of kinds without a rule of their own.
std::string condition_problem(const Node& live) {
    const auto unseen = [&] { return object_text(live) + ": its controller has not seen it yet"; };
    const auto generation = cluster::number_of(live, {"metadata", "generation"});
    const auto is_old = [&](const Node& from, std::initializer_list<std::string_view> path) {
        return from.find_path(path) != nullptr && cluster::number_of(from, path) < generation;
    };
    if (is_old(live, {"status", "observedGeneration"})) return unseen();
    const auto needed = needed_condition(live);
    for (const std::string_view type : {"Ready", "Available", "Succeeded"}) {
        if (type == "Succeeded" && type != needed) continue;
        const auto* found = cluster::condition_of(live, type);
        if (found == nullptr) continue;
        if (is_old(*found, {"observedGeneration"})) return unseen();
        const auto status = found->get_string({"status"}), message = found->get_string({"message"});
        if (status == "True") continue;
        const auto text = fmt::format("condition {} is {}{}", type, status, message.empty() ? "" : ": ") +
                          base::escape(message);
        if (type == "Succeeded" && status == "False") throw gate_failed(live, "has failed: " + text);
        return object_text(live) + ": " + text;
    }
    if (needed.empty() || cluster::condition_of(live, needed) != nullptr) return "";
    return fmt::format("{}: condition {} is not set yet", object_text(live), needed);
}

/// Source: pkg/kubelet/images/types.go and cri-api's errors.go: why a container waits for its image.
bool is_image_reason(std::string_view reason) {
    static constexpr std::string_view k_reasons[] = {"ErrImageNeverPull", "ErrImagePull",        "ImageInspectError",
                                                     "ImagePullBackOff",  "InvalidImageName",    "RegistryUnavailable",
                                                     "SignatureValidationFailed"};
    return std::find(std::begin(k_reasons), std::end(k_reasons), reason) != std::end(k_reasons);
}

}  // namespace

bool is_gated(const Node& object) {
    return annotation(object, "wait") == "true" || object.get_string({"kind"}) == "CustomResourceDefinition" ||
           !cluster::annotation_of(object, "helm.sh/hook").empty();
}

std::string driver_vendor(const Node& object) { return annotation(object, "driver-container-vendor"); }

bool is_paired_build(const Node& object) {
    const auto kind = object.get_string({"kind"});
    return (kind == "BuildConfig" || kind == "Job") && !driver_vendor(object).empty();
}

std::string missing_image(const std::vector<Node>& pods) {
    for (const auto& pod : pods) {
        for (const auto* list : {"initContainerStatuses", "containerStatuses"}) {
            const auto* statuses = pod.find_path({"status", list});
            if (statuses == nullptr) continue;
            for (const auto& status : statuses->items()) {
                const auto reason = status.get_string({"state", "waiting", "reason"});
                if (!is_image_reason(reason)) continue;
                const auto message = status.get_string({"state", "waiting", "message"});
                return fmt::format("image {} of Pod {}/{} cannot be pulled: {}{}",
                                   base::escape(status.get_string({"image"})),
                                   pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"}),
                                   reason, message.empty() ? "" : ": " + base::escape(message));
            }
        }
    }
    return "";
}

std::string log_pattern(const Node& object) { return annotation(object, "wait-for-logs"); }

std::string log_pattern_fault(const Node& object) {
    const auto fault = recipe::plan::log_pattern_fault(object.get_string({"kind"}), log_pattern(object));
    return fault.empty() ? "" : fmt::format("{}: annotation wait-for-logs: {}", object_text(object), fault);
}

bool log_matches(const std::string& pattern, std::string_view log) {
    return recipe::tmpl::regex_matches(pattern, std::string(log.substr(log.size() - std::min(log.size(), k_log_end))));
}

std::int64_t wanted_pods(const Node& live) {
    const bool is_daemon_set = live.get_string({"kind"}) == "DaemonSet";
    const auto* found =
        is_daemon_set ? live.find_path({"status", "desiredNumberScheduled"}) : live.find_path({"spec", "replicas"});
    return found == nullptr ? (is_daemon_set ? 0 : 1) : found->as_int().value_or(0);
}

std::string deletion_obstacle(const Node& live) {
    if (live.get_string({"kind"}) == "Namespace") {
        for (const auto* type : {"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
                                 "NamespaceDeletionContentFailure", "NamespaceDeletionDiscoveryFailure"}) {
            std::string message;
            if (condition(live, type, &message) == "True" && !message.empty())
                return fmt::format(" ({})", base::escape(message));
        }
    }
    std::vector<std::string> names;
    if (const auto* finalizers = live.find_path({"metadata", "finalizers"}))
        for (const auto& one : finalizers->items())
            if (one.text() != "foregroundDeletion" && one.text() != "orphan") names.push_back(one.text());
    return names.empty() ? "" : fmt::format(" (finalizers: {})", base::escape(base::join(names, ", ")));
}

std::string readiness_problem(const Node& live, const std::vector<Node>& builds) {
    const auto kind = live.get_string({"kind"});
    if (!live.get_string({"metadata", "deletionTimestamp"}).empty())
        return object_text(live) + " is being deleted" + deletion_obstacle(live);
    if (kind == "Pod") return pod_problem(live);
    if (kind == "Job") return job_problem(live);
    if (kind == "BuildConfig") return build_problem(live, builds);
    if (kind == "DaemonSet" || kind == "Deployment" || kind == "StatefulSet") return rollout_problem(live);
    if (kind == "CustomResourceDefinition")
        return condition(live, "Established") == "True" ? "" : object_text(live) + " is not established";
    if (live.get_string({"apiVersion"}) == "v1") {
        if (kind == "PersistentVolumeClaim") return claim_problem(live);
        if (kind == "Service") return service_problem(live);
        if (kind == "ReplicationController") return replicas_problem(live);
    }
    if (kind == "ReplicaSet") return replicas_problem(live);
    if (kind == "Module" && live.get_string({"apiVersion"}).starts_with("kmm.sigs.x-k8s.io/"))
        return module_problem(live);
    if (kind == "Namespace") {
        const auto phase = live.get_string({"status", "phase"});
        return phase == "Active" || phase.empty() ? "" : fmt::format("{} is in phase {}", object_text(live), phase);
    }
    return condition_problem(live);
}

bool selects(const Node& daemon_set, const Node& labels, Label which) {
    const auto* selector = daemon_set.find_path({"spec", "template", "spec", "nodeSelector"});
    return selector == nullptr ||
           std::all_of(selector->members().begin(), selector->members().end(), [&](const value::Member& each) {
               const auto* found = labels.find(each.key);
               return (which == Label::any_kernel && each.key == k_kernel_label) ||
                      (found != nullptr && found->text() == each.value.text());
           });
}

std::vector<std::string> nodes_without_kernel_label(const Node& daemon_set, const std::string& kernel,
                                                    const std::vector<Node>& nodes) {
    std::vector<std::string> names;
    for (const auto& node : nodes) {
        if (node.get_string({"status", "nodeInfo", "kernelVersion"}) != kernel) continue;
        const auto* there = node.find_path({"metadata", "labels"});
        const auto labels = there == nullptr ? Node::mapping() : *there;
        if (selects(daemon_set, labels, Label::any_kernel) && !selects(daemon_set, labels, Label::every))
            names.push_back(node.get_string({"metadata", "name"}));
    }
    return names;
}

bool is_owned_by(const Node& owned, const Node& owner) {
    const auto* owners = owned.find_path({"metadata", "ownerReferences"});
    const auto uid = owner.get_string({"metadata", "uid"});
    return owners != nullptr && !uid.empty() &&
           std::any_of(owners->items().begin(), owners->items().end(),
                       [&](const Node& each) { return each.get_string({"uid"}) == uid; });
}

}  // namespace kmm::drive
