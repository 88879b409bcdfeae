// SPDX-License-Identifier: Apache-2.0
// KMM's label, annotation and finalizer keys. Source: kernel-module-management internal/constants and pkg/labels.
#pragma once

#include <string>
#include <string_view>

namespace kmm::api {

/// kmm.node.kubernetes.io/<ns>.<name>.ready
[[nodiscard]] std::string label_ready(std::string_view ns, std::string_view name);
/// kmm.node.kubernetes.io/<ns>.<name>.version.ready
[[nodiscard]] std::string label_version_ready(std::string_view ns, std::string_view name);
/// kmm.node.kubernetes.io/version-module.<ns>.<name>: set by the administrator (M)
[[nodiscard]] std::string label_version_module(std::string_view ns, std::string_view name);
/// beta.kmm.node.kubernetes.io/version-worker-pod.<ns>.<name> (W)
[[nodiscard]] std::string label_version_worker_pod(std::string_view ns, std::string_view name);
/// beta.kmm.node.kubernetes.io/version-schedule-pod.<ns>.<name> (S, unreleased KMM)
[[nodiscard]] std::string label_version_schedule_pod(std::string_view ns, std::string_view name);
/// beta.kmm.node.kubernetes.io/version-device-plugin.<ns>.<name> (S of v2.0 to v2.6.0)
[[nodiscard]] std::string label_version_device_plugin(std::string_view ns, std::string_view name);

/// Which key KMM's label controller and its DaemonSets use for S.
enum class ScheduleKey {
    schedule_pod,   ///< version-schedule-pod: KMM after v2.6.0
    device_plugin,  ///< version-device-plugin: KMM v2.0 to v2.6.0
};
/// "version-schedule-pod" or "version-device-plugin".
[[nodiscard]] std::string_view to_string(ScheduleKey key) noexcept;
/// The whole label key for one Module.
[[nodiscard]] std::string label_version_schedule(ScheduleKey key, std::string_view ns, std::string_view name);

/// kmm.node.kubernetes.io/<ns>.<name>.device-plugin-ready and .dra-ready: such a Pod serves on the node
[[nodiscard]] std::string label_device_plugin_ready(std::string_view ns, std::string_view name);
[[nodiscard]] std::string label_dra_ready(std::string_view ns, std::string_view name);
/// beta.kmm.node.kubernetes.io/<ns>.<name>.module-configured, on NodeModulesConfig
[[nodiscard]] std::string label_module_configured(std::string_view ns, std::string_view name);
/// beta.kmm.node.kubernetes.io/<ns>.<name>.module-in-use, on NodeModulesConfig
[[nodiscard]] std::string label_module_in_use(std::string_view ns, std::string_view name);
/// kmm.node.kubernetes.io/<ns>.<name>.device-plugin-target, on Nodes that a device plugin may go to
[[nodiscard]] std::string label_device_plugin_target(std::string_view ns, std::string_view name);

inline constexpr std::string_view k_group_version = "kmm.sigs.x-k8s.io/v1beta1";
inline constexpr std::string_view k_group = "kmm.sigs.x-k8s.io";
inline constexpr std::string_view k_label_contains_modules = "kmm.node.k8s.io/contains-modules";  ///< on Namespaces
inline constexpr std::string_view k_label_managed_cluster_module = "kmm.node.kubernetes.io/managedclustermodule.name";
inline constexpr std::string_view k_label_module_name = "kmm.node.kubernetes.io/module.name";
inline constexpr std::string_view k_label_worker_action = "kmm.node.kubernetes.io/worker-action";
inline constexpr std::string_view k_label_role = "kmm.node.kubernetes.io/role";
inline constexpr std::string_view k_taint_unschedulable = "node.kubernetes.io/unschedulable";

}  // namespace kmm::api
