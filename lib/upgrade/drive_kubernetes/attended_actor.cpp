// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/attended_actor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/versions/patches.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/programs.hpp"
#include "upgrade/engine/procedure.hpp"

namespace kmm::drive {

using namespace upgrade::kubernetes;

AttendedActor::AttendedActor(std::unique_ptr<Actor> inner, Recorder& recorder, sys::Clock& clock,
                             std::function<bool()> interrupted, std::function<void()> between)
    : inner_(std::move(inner)),
      recorder_(recorder),
      clock_(clock),
      interrupted_(interrupted),
      between_(std::move(between)),
      subject_(subject_of(recorder.header())),
      hooks_(subject_.hooks, recorder.header(), clock, std::move(interrupted)) {}

const upgrade::Stage* AttendedActor::stage() const {
    return upgrade::procedure_of(recorder_.header()).table().stage_of(recorder_.state().state);
}

Sight AttendedActor::look(const upgrade::NodeStep& step, const Deadline& deadline) {
    const auto& table = upgrade::procedure_of(recorder_.header()).table();
    const auto* data = table.find_step(step.step);
    const auto node = recorder_.node(step.node);
    const auto is_start = [&](const std::string& state) {
        return state == upgrade::k_node_pending || table.is_rest(state);
    };
    // A step that was cut off may have been so before its hook had ended.
    const bool can_begin = data != nullptr && std::any_of(data->from.begin(), data->from.end(), is_start);
    {
        const std::lock_guard guard(mutex_);
        begins_[step.node] = is_start(node.state) || (can_begin && node.open && node.state == data->during);
    }
    return inner_->look(step, deadline);
}

void AttendedActor::require_patches(const upgrade::NodeStep& step) const {
    const bool is_kubelet = step.step == k_step_kubelet;
    if (!is_kubelet && step.step != k_step_prepare && step.step != k_step_control_plane) return;
    if (subject_.patch_query.empty() || (subject_.applied_patches.empty() && subject_.available_patches.empty()))
        return;
    const auto list = query_patches(subject_.patch_query, recorder_.header().options.command_directory, interrupted_);
    if (!list.fault.empty())
        throw Error(Exit::checks_failed, "patch-query-failed", "which patches are applied is not known: " + list.fault)
            .hint("the command must print what sw-patch query prints, or its JSON");
    auto problems = kubernetes::patch_problems(list.states, subject_.applied_patches, kubernetes::PatchNeed::applied);
    const auto more =
        kubernetes::patch_problems(list.states, subject_.available_patches,
                                   is_kubelet ? kubernetes::PatchNeed::applied : kubernetes::PatchNeed::available);
    problems.insert(problems.end(), more.begin(), more.end());
    if (problems.empty()) return;
    throw Error(Exit::checks_failed, "patches-missing", "patches that this step needs: " + base::join(problems, "; "))
        .hint("apply them, then kmm-upgrade retry " + step.node);
}

void AttendedActor::run_hooks(Hooks::When when, const std::string& node, const Deadline& deadline) {
    const auto* in = stage();
    if (in == nullptr) return;
    for (const auto& name : hooks_.run(when, in->during, node, deadline)) {
        if (!node.empty()) tell(recorder_, node, fmt::format("hook {} is done", base::escape(name)));
    }
}

Done AttendedActor::act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    if (step.step == upgrade::k_step_rollback) return inner_->act(step, sight, deadline);
    if (step.node.empty()) {
        auto done = inner_->act(step, sight, deadline);
        run_hooks(Hooks::When::after, "", deadline);
        return done;
    }
    bool begins = false;
    {
        const std::lock_guard guard(mutex_);
        begins = begins_[step.node];
    }
    if (begins) {
        if (between_) between_();
        run_hooks(Hooks::When::before, step.node, deadline);
    }
    require_patches(step);
    auto done = inner_->act(step, sight, deadline);
    const auto* in = stage();
    const auto* data = upgrade::procedure_of(recorder_.header()).table().find_step(step.step);
    const auto& state = done.state.empty() && data != nullptr ? data->done : done.state;
    if (in != nullptr && state == in->until) run_hooks(Hooks::When::after, step.node, deadline);
    return done;
}

void AttendedActor::explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) {
    if (error.code() == "hook-failed")
        for (const auto& [key, text] : error.details())
            if (key == "output") failed.message += ": " + text;
    inner_->explain(step, error, failed);
}

std::optional<Error> AttendedActor::lost_for_good(const upgrade::NodeStep& step, const Error& error) {
    const auto& code = error.code();
    if (code == "hook-failed" || code == "patches-missing" || code == "patch-query-failed") return std::nullopt;
    return inner_->lost_for_good(step, error);
}

void AttendedActor::before_move(const upgrade::Event& move) {
    const Deadline deadline(clock_, std::chrono::milliseconds(recorder_.header().options.node_timeout_ms));
    const auto* entered = upgrade::procedure_of(recorder_.header()).table().find_stage(move.step);
    if (move.to == upgrade::k_run_complete) static_cast<void>(hooks_.run(Hooks::When::before, move.to, "", deadline));
    if (entered == nullptr) return;
    if (move.kind == upgrade::EventKind::intent && move.to == entered->during) {
        if (between_) between_();
        static_cast<void>(hooks_.run(Hooks::When::before, entered->during, "", deadline));
    }
    if (move.kind == upgrade::EventKind::done && move.to == entered->done)
        static_cast<void>(hooks_.run(Hooks::When::after, entered->during, "", deadline));
}

}  // namespace kmm::drive
