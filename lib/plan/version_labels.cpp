// SPDX-License-Identifier: Apache-2.0
#include "plan/version_labels.hpp"

#include <array>

#include "api/labels.hpp"
#include "base/error.hpp"

namespace kmm::plan {

namespace {

/// missing (or empty); present and equal to M, or M is missing; differs from M.
enum class State { missing, present, differs };

struct Row {
    State module, worker, schedule;
    LabelStep step;
};

/// Every combination that is not here is stuck.
constexpr std::array k_rows{
    Row{State::missing, State::missing, State::missing, LabelStep::none},
    Row{State::missing, State::present, State::present, LabelStep::delete_schedule},
    Row{State::missing, State::present, State::missing, LabelStep::delete_worker},
    Row{State::present, State::missing, State::missing, LabelStep::add_worker},
    Row{State::present, State::present, State::missing, LabelStep::add_schedule},
    Row{State::present, State::present, State::present, LabelStep::none},
    Row{State::present, State::differs, State::differs, LabelStep::delete_schedule},
    Row{State::present, State::differs, State::missing, LabelStep::delete_worker},
};

State state_of(const std::string& label, const std::string& module) {
    if (label.empty()) { return State::missing; }
    return module.empty() || label == module ? State::present : State::differs;
}

}  // namespace

VersionLabels version_labels(const api::Labels& labels, std::string_view ns, std::string_view name) {
    const auto value = [&](const std::string& key) {
        const auto found = labels.find(key);
        return found == labels.end() ? std::string() : found->second;
    };
    VersionLabels result;
    result.module = value(api::label_version_module(ns, name));
    result.worker = value(api::label_version_worker_pod(ns, name));
    result.schedule = value(api::label_version_schedule_pod(ns, name));
    if (result.schedule.empty()) { result.schedule = value(api::label_version_device_plugin(ns, name)); }
    return result;
}

std::string_view to_string(LabelStep step) noexcept {
    switch (step) {
        case LabelStep::none: return "none";
        case LabelStep::add_worker: return "add version-worker-pod";
        case LabelStep::add_schedule: return "add version-schedule-pod";
        case LabelStep::delete_schedule: return "delete version-schedule-pod";
        case LabelStep::delete_worker: return "delete version-worker-pod";
        case LabelStep::stuck: return "stuck";
    }
    return "none";
}

LabelStep next_step(const VersionLabels& labels) {
    const State module = labels.module.empty() ? State::missing : State::present;
    const State worker = state_of(labels.worker, labels.module);
    const State schedule = state_of(labels.schedule, labels.module);
    for (const auto& row : k_rows) {
        if (row.module == module && row.worker == worker && row.schedule == schedule) { return row.step; }
    }
    return LabelStep::stuck;
}

SettledLabels settle(VersionLabels labels) {
    SettledLabels result;
    result.labels = std::move(labels);
    constexpr int k_steps_max = 8;  // the longest walk, from (P,D,D) to (P,P,P), has four
    for (int i = 0; i < k_steps_max; ++i) {
        const LabelStep step = next_step(result.labels);
        result.stuck = step == LabelStep::stuck;
        if (step == LabelStep::none || result.stuck) { return result; }
        result.steps.push_back(step);
        if (step == LabelStep::add_worker) { result.labels.worker = result.labels.module; }
        if (step == LabelStep::add_schedule) { result.labels.schedule = result.labels.module; }
        if (step == LabelStep::delete_schedule) { result.labels.schedule.clear(); }
        if (step == LabelStep::delete_worker) {
            result.labels.worker.clear();
            result.worker_removed = true;
        }
    }
    throw bug("version labels do not settle");
}

}  // namespace kmm::plan
