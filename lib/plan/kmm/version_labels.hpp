// SPDX-License-Identifier: Apache-2.0
// The version labels of KMM's ordered upgrade and the one step at a time that moves them. Source: KMM
// label_module_version; facts: KMM 8.1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/labels.hpp"
#include "api/types.hpp"

namespace kmm::plan {

/// Values of one module's labels on one node; "" is missing or empty.
struct VersionLabels {
    std::string module;    ///< M, version-module: set by the administrator
    std::string worker;    ///< W, version-worker-pod
    std::string schedule;  ///< S, version-schedule-pod; of released KMM: version-device-plugin
    friend bool operator==(const VersionLabels&, const VersionLabels&) = default;
};

/// Reads the labels. S is the value of `key`; a label of the other key is nothing to KMM and does not count.
[[nodiscard]] VersionLabels version_labels(const api::Labels& labels, std::string_view ns, std::string_view name,
                                           api::ScheduleKey key);

/// The key that the nodes' labels and the CustomResourceDefinitions speak for: schedule_pod if any node has such a
/// label, else device_plugin if any node has that one, else what the definition of Module says (released KMM has no
/// spec.dra), else schedule_pod. O(nodes * log labels).
[[nodiscard]] api::ScheduleKey detect_schedule_key(const api::Objects& objects);

/// The key of a KMM version: "main", or "v2.6.0", "2.6" and the like; nullopt for other texts and for versions before
/// v2.0, which have no ordered upgrade.
[[nodiscard]] std::optional<api::ScheduleKey> schedule_key_of(std::string_view version);

/// `stuck`: a combination that KMM's table does not know and never leaves by itself.
enum class LabelStep { none, add_worker, add_schedule, delete_schedule, delete_worker, stuck };
/// "add version-worker-pod" and so on, with the name that `key` has.
[[nodiscard]] std::string to_string(LabelStep step, api::ScheduleKey key);

/// missing (or empty); present and equal to M, or M is missing; differs from M.
enum class LabelState { missing, present, differs };

/// One combination of the three labels.
struct LabelRow {
    LabelState module, worker, schedule;
    LabelStep step;
    std::string_view name;  ///< of a dead combination, e.g. "worker-lost"; "" if KMM goes on by itself
    std::string_view text;  ///< what is wrong with it, "" likewise
};
/// All 13 combinations that exist, KMM's eight rows first. Static storage.
[[nodiscard]] std::span<const LabelRow> label_table() noexcept;
/// "(P,-,D)".
[[nodiscard]] std::string to_string(const LabelRow& row);

/// The row of the labels. Total.
[[nodiscard]] const LabelRow& label_row(const VersionLabels& labels);
/// What the label controller does next, guards apart.
[[nodiscard]] LabelStep next_step(const VersionLabels& labels);
/// The labels after that step; none and stuck change nothing.
[[nodiscard]] VersionLabels after(LabelStep step, VersionLabels labels);

}  // namespace kmm::plan
