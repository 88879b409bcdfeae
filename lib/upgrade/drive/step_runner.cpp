// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/step_runner.hpp"

#include <fmt/format.h>

#include "cluster/seam/store.hpp"
#include "upgrade/engine/hint.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

using upgrade::Event;
using upgrade::EventKind;

Event node_event(const Recorder& recorder, EventKind kind, const std::string& node, const std::string& step,
                 const std::string& to) {
    Event made;
    made.kind = kind;
    made.node = node;
    made.step = step;
    made.from = recorder.node(node).state;
    made.to = to.empty() ? made.from : to;
    made.facts = value::Node::mapping();
    return made;
}

void tell(Recorder& recorder, const std::string& node, std::string text) {
    auto told = node_event(recorder, EventKind::observed, node, "");
    told.message = std::move(text);
    recorder.record(told);
}

std::function<void(const std::string&, const std::string&)> teller(Recorder& recorder) {
    return [&recorder](const std::string& node, const std::string& text) { tell(recorder, node, text); };
}

bool StepRunner::ends_walk(const Error& error) const {
    return error.code() == "bug" || error.code() == "state-damaged" || error.code() == "state-changed" ||
           cluster::ends_run(error);
}

StepEnd StepRunner::run(const upgrade::NodeStep& step) {
    if (step.node.empty()) return run_stage(step.step);
    if (step.step != upgrade::k_step_release) return run_node(step);
    release(step.node);
    return StepEnd::done;
}

StepEnd StepRunner::run_stage(const std::string& name) {
    const auto& header = recorder_.header();
    const auto* stage = upgrade::procedure_of(header).table().find_stage(name);
    if (stage == nullptr || stage->is_walk()) throw bug(fmt::format("{} is not a step of the run", name));
    Event event;
    event.step = name;
    event.from = stage->during;
    try {
        auto done =
            actor_.act({"", name}, {}, Deadline(clock_, std::chrono::milliseconds(header.options.node_timeout_ms)));
        event.kind = EventKind::done;
        event.to = stage->done;
        event.message = std::move(done.message);
        event.facts = std::move(done.facts);
    } catch (const Leave& leave) {
        return leave.end;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) return StepEnd::left;
        if (ends_walk(error)) throw;
        event.kind = EventKind::failed;
        event.to = stage->failed;
        event.reason = error.code();
        event.message = error.message();
        event.facts = value::Node::mapping();
        if (!error.hint().empty()) event.facts.set("hint", upgrade::hint_in_run(error.hint(), "", false));
    }
    recorder_.record(event);
    return event.kind == EventKind::done ? StepEnd::done : StepEnd::failed;
}

StepEnd StepRunner::run_node(const upgrade::NodeStep& step) {
    const auto& header = recorder_.header();
    const auto* data = upgrade::procedure_of(header).table().find_step(step.step);
    if (data == nullptr || data->scope != upgrade::Scope::node)
        throw bug(fmt::format("{} is not a step of a node", step.step));
    const Deadline deadline(clock_, std::chrono::milliseconds(header.options.node_timeout_ms));
    const auto sight = actor_.look(step, deadline);
    if (sight.is_interrupted) return StepEnd::left;
    if (sight.changed) {
        recorder_.record(*sight.changed);
        return StepEnd::again;
    }
    if (sight.left) recorder_.record(*sight.left);
    auto intent = node_event(recorder_, EventKind::intent, step.node, step.step, data->during);
    intent.facts = actor_.intent(step);
    recorder_.record(intent);
    Done result;
    try {
        if (sight.error) throw *sight.error;
        result = actor_.act(step, sight, deadline);
    } catch (const Leave& leave) {
        return leave.end;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) {
            tell(recorder_, step.node, error.message());
            return StepEnd::left;
        }
        if (ends_walk(error)) throw;
        record_failure(step, *data, error);
        return StepEnd::failed;
    }
    auto done =
        node_event(recorder_, EventKind::done, step.node, step.step, result.state.empty() ? data->done : result.state);
    done.message = std::move(result.message);
    if (!result.facts.is_null()) done.facts = std::move(result.facts);
    recorder_.record(done);
    return StepEnd::done;
}

void StepRunner::record_failure(const upgrade::NodeStep& step, const upgrade::Step& data, const Error& error) {
    auto failed = node_event(recorder_, EventKind::failed, step.node, step.step, data.failed);
    failed.reason = error.code();
    failed.message = error.message();
    if (!error.hint().empty()) failed.facts.set("hint", error.hint());
    actor_.explain(step, error, failed);
    if (const auto hint = failed.facts.get_string({"hint"}); !hint.empty())
        failed.facts.set("hint",
                         upgrade::hint_in_run(hint, step.node, step.step == upgrade::k_step_rollback));
    recorder_.record(failed);
    if (step.step == upgrade::k_step_rollback) return;
    const auto lost = actor_.lost_for_good(step, error);
    if (!lost) return;
    // Nobody brings it back: the others go on.
    auto gone = node_event(recorder_, EventKind::skip, step.node, "", std::string(upgrade::k_node_skipped));
    gone.reason = "gone";
    gone.message = "gone: " + lost->message();
    recorder_.record(gone);
}

void StepRunner::release(const std::string& node) {
    const auto lifted =
        with_context([&] { return fmt::format("node {} is still {}", node, upgrade::describe(recorder_.run()).hold); },
                     [&] { return actor_.release(node); });
    auto released = node_event(recorder_, EventKind::observed, node, "");
    const auto before = recorder_.node(node).message;
    released.message = before.empty() ? lifted : before + "; " + lifted;
    released.facts.set("cordon", "");
    recorder_.record(released);
}

void StepRunner::observe(const std::string& node) {
    auto facts = actor_.glance(node);
    auto observed = node_event(recorder_, EventKind::observed, node, "");
    if (!facts.is_null()) observed.facts = std::move(facts);
    recorder_.record(observed);
}

bool StepRunner::confirm() {
    const auto changed = actor_.confirm();
    for (const auto& event : changed) recorder_.record(event);
    return changed.empty();
}

}  // namespace kmm::drive
