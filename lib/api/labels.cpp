// SPDX-License-Identifier: Apache-2.0
#include "api/labels.hpp"

#include <fmt/format.h>

namespace kmm::api {

std::string label_ready(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/{}.{}.ready", ns, name);
}
std::string label_version_ready(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/{}.{}.version.ready", ns, name);
}
std::string label_version_module(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/version-module.{}.{}", ns, name);
}
std::string label_version_worker_pod(std::string_view ns, std::string_view name) {
    return fmt::format("beta.kmm.node.kubernetes.io/version-worker-pod.{}.{}", ns, name);
}
std::string label_version_schedule_pod(std::string_view ns, std::string_view name) {
    return fmt::format("beta.kmm.node.kubernetes.io/version-schedule-pod.{}.{}", ns, name);
}
std::string label_version_device_plugin(std::string_view ns, std::string_view name) {
    return fmt::format("beta.kmm.node.kubernetes.io/version-device-plugin.{}.{}", ns, name);
}
std::string_view to_string(ScheduleKey key) noexcept {
    return key == ScheduleKey::schedule_pod ? "version-schedule-pod" : "version-device-plugin";
}
std::string label_version_schedule(ScheduleKey key, std::string_view ns, std::string_view name) {
    return key == ScheduleKey::schedule_pod ? label_version_schedule_pod(ns, name)
                                            : label_version_device_plugin(ns, name);
}
std::string label_device_plugin_ready(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/{}.{}.device-plugin-ready", ns, name);
}
std::string label_dra_ready(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/{}.{}.dra-ready", ns, name);
}
std::string label_module_configured(std::string_view ns, std::string_view name) {
    return fmt::format("beta.kmm.node.kubernetes.io/{}.{}.module-configured", ns, name);
}
std::string label_module_in_use(std::string_view ns, std::string_view name) {
    return fmt::format("beta.kmm.node.kubernetes.io/{}.{}.module-in-use", ns, name);
}
std::string label_device_plugin_target(std::string_view ns, std::string_view name) {
    return fmt::format("kmm.node.kubernetes.io/{}.{}.device-plugin-target", ns, name);
}

}  // namespace kmm::api
