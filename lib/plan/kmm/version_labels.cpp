// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/version_labels.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plan/kmm/release.hpp"

namespace kmm::plan {

namespace {

using S = LabelState;

constexpr std::array k_label_rows{
    LabelRow{S::missing, S::missing, S::missing, LabelStep::none, "", ""},
    LabelRow{S::missing, S::present, S::present, LabelStep::delete_schedule, "", ""},
    LabelRow{S::missing, S::present, S::missing, LabelStep::delete_worker, "", ""},
    LabelRow{S::present, S::missing, S::missing, LabelStep::add_worker, "", ""},
    LabelRow{S::present, S::present, S::missing, LabelStep::add_schedule, "", ""},
    LabelRow{S::present, S::present, S::present, LabelStep::none, "", ""},
    LabelRow{S::present, S::differs, S::differs, LabelStep::delete_schedule, "", ""},
    LabelRow{S::present, S::differs, S::missing, LabelStep::delete_worker, "", ""},
    LabelRow{S::missing, S::missing, S::present, LabelStep::stuck, "schedule-orphaned",
             "version-module and the worker label are gone, the schedule label is left"},
    LabelRow{S::present, S::missing, S::present, LabelStep::stuck, "worker-lost",
             "the worker label is gone although the schedule label has the wanted version"},
    LabelRow{S::present, S::missing, S::differs, LabelStep::stuck, "worker-lost-in-move",
             "the worker label is gone while the schedule label still has another version"},
    LabelRow{S::present, S::present, S::differs, LabelStep::stuck, "schedule-behind",
             "the worker label has the wanted version, the schedule label another one"},
    LabelRow{S::present, S::differs, S::present, LabelStep::stuck, "schedule-ahead",
             "the schedule label has the wanted version, the worker label another one"},
};

S state_of(const std::string& label, const std::string& module) {
    if (label.empty()) { return S::missing; }
    return module.empty() || label == module ? S::present : S::differs;
}

bool has_key_starting(const api::Labels& labels, const std::string& prefix) {
    const auto found = labels.lower_bound(prefix);
    return found != labels.end() && found->first.starts_with(prefix);
}

bool any_node_has(const api::Objects& objects, api::ScheduleKey key) {
    // A key without names is the prefix of all keys, but for the dot between the names.
    std::string prefix = api::label_version_schedule(key, "", "");
    prefix.pop_back();
    return std::any_of(objects.nodes.begin(), objects.nodes.end(),
                       [&](const api::Node& node) { return has_key_starting(node.meta.labels, prefix); });
}

}  // namespace

VersionLabels version_labels(const api::Labels& labels, std::string_view ns, std::string_view name,
                             api::ScheduleKey key) {
    const auto value = [&](const std::string& label) {
        const auto found = labels.find(label);
        return found == labels.end() ? std::string() : found->second;
    };
    return VersionLabels{value(api::label_version_module(ns, name)), value(api::label_version_worker_pod(ns, name)),
                         value(api::label_version_schedule(key, ns, name))};
}

api::ScheduleKey detect_schedule_key(const api::Objects& objects) {
    for (const auto key : {api::ScheduleKey::schedule_pod, api::ScheduleKey::device_plugin}) {
        if (any_node_has(objects, key)) { return key; }
    }
    for (const auto& definition : objects.custom_resource_definitions) {
        if (definition.meta.name != "modules.kmm.sigs.x-k8s.io" || definition.spec_fields.empty()) { continue; }
        const auto& fields = definition.spec_fields;
        return std::binary_search(fields.begin(), fields.end(), "dra") ? api::ScheduleKey::schedule_pod
                                                                        : api::ScheduleKey::device_plugin;
    }
    return api::ScheduleKey::schedule_pod;
}

std::optional<api::ScheduleKey> schedule_key_of(std::string_view version) {
    const auto release = parse_release(version);
    if (!release) { return std::nullopt; }
    return *release < k_after_last_known ? api::ScheduleKey::device_plugin : api::ScheduleKey::schedule_pod;
}

std::string to_string(LabelStep step, api::ScheduleKey key) {
    switch (step) {
        case LabelStep::none: return "none";
        case LabelStep::add_worker: return "add version-worker-pod";
        case LabelStep::add_schedule: return fmt::format("add {}", api::to_string(key));
        case LabelStep::delete_schedule: return fmt::format("delete {}", api::to_string(key));
        case LabelStep::delete_worker: return "delete version-worker-pod";
        case LabelStep::stuck: return "stuck";
    }
    return "none";
}

std::span<const LabelRow> label_table() noexcept { return k_label_rows; }

std::string to_string(const LabelRow& row) {
    constexpr std::string_view letters = "-PD";
    return fmt::format("({},{},{})", letters[static_cast<std::size_t>(row.module)],
                       letters[static_cast<std::size_t>(row.worker)], letters[static_cast<std::size_t>(row.schedule)]);
}

const LabelRow& label_row(const VersionLabels& labels) {
    const S module = labels.module.empty() ? S::missing : S::present;
    const S worker = state_of(labels.worker, labels.module);
    const S schedule = state_of(labels.schedule, labels.module);
    const auto* row = std::find_if(k_label_rows.begin(), k_label_rows.end(), [&](const LabelRow& candidate) {
        return candidate.module == module && candidate.worker == worker && candidate.schedule == schedule;
    });
    if (row == k_label_rows.end()) { throw bug("no row of the label table fits"); }
    return *row;
}

LabelStep next_step(const VersionLabels& labels) { return label_row(labels).step; }

VersionLabels after(LabelStep step, VersionLabels labels) {
    switch (step) {
        case LabelStep::add_worker: labels.worker = labels.module; break;
        case LabelStep::add_schedule: labels.schedule = labels.module; break;
        case LabelStep::delete_schedule: labels.schedule.clear(); break;
        case LabelStep::delete_worker: labels.worker.clear(); break;
        case LabelStep::none:
        case LabelStep::stuck: break;
    }
    return labels;
}

}  // namespace kmm::plan
