// SPDX-License-Identifier: Apache-2.0
// Pods as somebody sees them who wants them off a node, and the budgets that protect them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "selector/label_selector.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// On a Node: who cordoned it, so that nobody else lifts the cordon unaware. Set and removed together with
/// spec.unschedulable.
inline constexpr std::string_view k_annotation_cordoned_by = "kmmtools.dev/cordoned-by";

/// Names of an extended resource have a domain; those of Kubernetes itself have none or one of its own.
[[nodiscard]] inline bool is_extended_resource(std::string_view name) noexcept {
    return name.find('/') != std::string_view::npos && name.find("kubernetes.io/") == std::string_view::npos;
}

/// core/v1 Pod, what decides whether it may be evicted.
struct WorkloadPod {
    std::string namespace_, name, uid;
    std::string phase;                        ///< "Pending", "Running", "Succeeded", "Failed", "Unknown" or ""
    Labels labels;
    std::string controller_kind, controller_name;  ///< of the owner with controller: true; "" if there is none
    bool is_controller_gone = false;          ///< the DaemonSet is not there any more; set by who looked, not decoded
    bool is_mirror = false;                   ///< of a static Pod: the kubelet's own
    bool is_ready = false;                    ///< its condition Ready is True
    bool has_empty_dir = false;
    bool is_ending = false;                   ///< deletionTimestamp is set
    /// When it was asked to end, in seconds since 1970, and how long it may take; absent unless it is ending.
    std::optional<std::int64_t> ending_since, ending_grace;
    std::vector<std::string> finalizers;      ///< who must agree before it is gone, in the server's order
    bool is_worker = false;                   ///< a worker Pod, KMM's or ours
    bool is_self = false;                     ///< this process runs in it; set by who looked, not decoded
    std::vector<std::string> resources;       ///< names of extended resources its containers ask for, sorted, unique
    std::vector<std::string> claims;          ///< names of its ResourceClaims, made from templates or not; sorted

    /// "NAMESPACE/NAME".
    [[nodiscard]] std::string full_name() const { return namespace_ + "/" + name; }
    /// True once its containers have ended for good.
    [[nodiscard]] bool is_finished() const { return phase == "Succeeded" || phase == "Failed"; }
};

[[nodiscard]] bool matches(const selector::LabelSelector& selector, const Labels& labels);

/// policy/v1 PodDisruptionBudget.
struct DisruptionBudget {
    std::string namespace_, name;
    std::optional<selector::LabelSelector> selector;  ///< nullopt matches nothing
    std::string min_available, max_unavailable;  ///< "2" or "50%", "" if absent
    std::optional<std::int64_t> expected_pods;   ///< status: how many Pods it counts
    [[nodiscard]] std::string full_name() const { return namespace_ + "/" + name; }
};

/// resource.k8s.io ResourceClaim, any version.
struct DeviceClaim {
    std::string namespace_, name;
    std::vector<std::string> classes;  ///< DeviceClasses it asks for
    std::vector<std::string> drivers;  ///< of the devices it was given
};

/// What the server sends is taken as it is: fields that are missing or of another kind count as absent.
[[nodiscard]] WorkloadPod decode_workload_pod(const value::Node& pod);
[[nodiscard]] DisruptionBudget decode_disruption_budget(const value::Node& budget);
[[nodiscard]] DeviceClaim decode_device_claim(const value::Node& claim);

}  // namespace kmm::api
