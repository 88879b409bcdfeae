// SPDX-License-Identifier: Apache-2.0
// The version labels of KMM's ordered upgrade and the one step at a time that moves them. Source: KMM
// label_module_version; facts: KMM 8.1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"

namespace kmm::plan {

/// Values of one module's labels on one node; "" is missing or empty.
struct VersionLabels {
    std::string module;    ///< M, version-module: set by the administrator
    std::string worker;    ///< W, version-worker-pod
    std::string schedule;  ///< S, version-schedule-pod; of released KMM: version-device-plugin
    friend bool operator==(const VersionLabels&, const VersionLabels&) = default;
};

/// Reads the labels; S is version-schedule-pod if present, else version-device-plugin.
[[nodiscard]] VersionLabels version_labels(const api::Labels& labels, std::string_view ns, std::string_view name);

/// `stuck`: a combination that KMM's table does not know and never leaves by itself.
enum class LabelStep { none, add_worker, add_schedule, delete_schedule, delete_worker, stuck };
/// "add version-worker-pod" and so on.
[[nodiscard]] std::string_view to_string(LabelStep step) noexcept;

/// What the label controller does next, guards apart.
[[nodiscard]] LabelStep next_step(const VersionLabels& labels);

/// The labels after all steps, with every guard given time to become true.
struct SettledLabels {
    VersionLabels labels;
    std::vector<LabelStep> steps;  ///< in order, without none and stuck
    bool stuck = false;
    bool worker_removed = false;  ///< W was deleted on the way, so that the module was unloaded in between
};
[[nodiscard]] SettledLabels settle(VersionLabels labels);

}  // namespace kmm::plan
