// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/driver.hpp"

#include <algorithm>
#include <condition_variable>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "sys/local_time.hpp"
#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

using upgrade::Event;
using upgrade::EventKind;
using upgrade::Next;

namespace {

/// How long a wait goes on at most before it is asked whether somebody wants it to end.
constexpr std::chrono::milliseconds k_slice{1000};
/// Steps that are carried out at once: a thread each, which mostly waits.
constexpr std::int64_t k_threads_max = 64;

/// As facts of the event, null for no change.
value::Node facts_of(const Revision& revision) {
    if (!revision.until && revision.subject.is_null()) return {};
    auto facts = value::Node::mapping();
    if (revision.until) facts.set("until", *revision.until);
    if (!revision.subject.is_null()) facts.set("subject", revision.subject);
    return facts;
}

}  // namespace

Driver::Driver(Actor& actor, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted)
    : actor_(actor),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      steps_(actor_, recorder_, clock_, interrupted_) {
    set_pace({});
}

void Driver::set_pace(Pace pace) {
    pace_ = std::move(pace);
    if (!pace_.minute_of_day) pace_.minute_of_day = sys::minute_of_day_in(recorder_.run().options.time_zone);
}

std::optional<Hold> Driver::hold_back(std::set<std::string> busy, std::vector<upgrade::NodeStep>& steps) {
    std::optional<Hold> last;
    const auto& options = recorder_.header().options;
    if (options.between.empty() && !options.count_unavailable) return last;
    for (auto& name : recorder_.look(upgrade::busy_nodes)) busy.insert(std::move(name));
    std::erase_if(steps, [&](const upgrade::NodeStep& step) {
        if (step.node.empty() || step.step == upgrade::k_step_release) return false;
        const auto node = recorder_.node(step.node);
        if (node.touched != 0 && !upgrade::procedure_of(recorder_.header()).table().is_rest(node.state)) return false;
        if (auto hold = hold_of(actor_, clock_, pace_, recorder_.header(), step.node, busy)) {
            last = std::move(hold);
            return true;
        }
        busy.insert(step.node);
        has_begun_ = true;
        held_since_.reset();
        return false;
    });
    return last;
}

bool Driver::wait_for_others(const Hold& hold) {
    if (hold.code == "max-unavailable") {
        if (!held_since_) held_since_ = clock_.monotonic();
        const auto limit = std::chrono::milliseconds(recorder_.header().options.node_timeout_ms);
        // Whoever has just started is there to see it; a walk that is under way waits for a node that may come back.
        if (!has_begun_ || clock_.monotonic() - *held_since_ >= limit) {
            pause(hold.code, hold.message);
            return false;
        }
    }
    if (pace_.notice && told_ != hold.message) pace_.notice("waiting: " + hold.message);
    told_ = hold.message;
    for (auto left = hold.look_again; left.count() > 0 && !interrupted_(); left -= k_slice)
        if (!clock_.sleep_for(std::min(left, k_slice))) break;
    return true;
}

void require_cluster_of(const upgrade::Header& run, cluster::ClusterStore& store) {
    const auto found = store.identity(false);
    if (found == run.cluster_identity) return;
    throw Error(Exit::config, "other-cluster",
                fmt::format("{} is not the cluster this upgrade was started on", store.describe()))
        .detail("started on", run.cluster_place)
        .detail("identity", fmt::format("{}, expected {}", found.empty() ? "none" : found, run.cluster_identity))
        .hint(found.empty() ? "name the right cluster with --cluster; if it is this one and its .kmm-cluster-id was "
                              "lost, write that identity into it again"
                            : "name the right cluster with --cluster");
}

void Driver::record_run(EventKind kind, const std::string& step, const std::string& to, value::Node facts) {
    Event event;
    event.kind = kind;
    event.step = step;
    event.to = to;
    if (!to.empty()) event.from = recorder_.state().state;
    event.facts = std::move(facts);
    recorder_.record(event);
}

void Driver::pause(const std::string& reason, const std::string& message) {
    Event event;
    event.kind = EventKind::paused;
    event.reason = reason;
    event.message = message + recorder_.look(upgrade::cordon_note);
    recorder_.record(event);
}

Ended Driver::end_of(const std::string& state) {
    return state == upgrade::k_run_complete ? Ended::complete : Ended::aborted;
}

/// What the walk and its threads share.
struct Driver::Flight {
    std::mutex mutex;
    std::condition_variable ended;
    std::set<std::string> nodes;   ///< a step of which is being carried out
    std::exception_ptr crash;      ///< the first one
    bool left = false;             ///< a step was left because somebody wants the walk to end
    std::size_t endings = 0;       ///< of steps, and of the work of threads that carried them out
};

void Driver::retry_stage() {
    const auto state = recorder_.state().state;
    const auto* stage = upgrade::procedure_of(recorder_.header()).table().stage_of(state);
    if (stage != nullptr && !stage->is_walk() && stage->failed == state)
        record_run(EventKind::intent, stage->name, stage->during);
}

void Driver::carry_out(const upgrade::NodeStep& step, Flight& flight) {
    std::exception_ptr caught;
    StepEnd end = StepEnd::left;
    try {
        end = steps_.run(step);
    } catch (const Error& error) {
        if (error.code() != "interrupted" || !interrupted_()) caught = std::current_exception();
    } catch (...) {
        caught = std::current_exception();
    }
    const std::lock_guard guard(flight.mutex);
    if (caught && !flight.crash) flight.crash = caught;
    if (end == StepEnd::left) flight.left = true;
    flight.nodes.erase(step.node);
    ++flight.endings;
    flight.ended.notify_all();
}

void Driver::begin_steps(const std::vector<upgrade::NodeStep>& steps, Flight& flight, Pool& pool) {
    for (const auto& step : steps) {
        {
            const std::lock_guard guard(flight.mutex);
            flight.nodes.insert(step.node);
        }
        if (pool.try_run([this, step, &flight] { carry_out(step, flight); })) continue;
        if (pool.threads() == 0) {  // the system gives none
            carry_out(step, flight);
            return;
        }
        // It is begun once a thread has nothing to do.
        const std::lock_guard guard(flight.mutex);
        flight.nodes.erase(step.node);
        return;
    }
}

Ended Driver::walk() {
    Flight flight;
    const bool is_serial = recorder_.header().options.max_unavailable == 1;
    // A step may be planned before the thread of the one that ended is free: it is begun once that thread says so.
    const auto on_idle = [&flight] {
        const std::lock_guard guard(flight.mutex);
        ++flight.endings;
        flight.ended.notify_all();
    };
    Pool pool(static_cast<std::size_t>(
                  std::clamp<std::int64_t>(recorder_.header().options.max_unavailable, 1, k_threads_max)),
              on_idle);
    for (;;) {
        std::unique_lock guard(flight.mutex);
        if (flight.crash || flight.left || interrupted_()) {
            flight.ended.wait(guard, [&] { return flight.nodes.empty(); });
            if (flight.crash) std::rethrow_exception(flight.crash);
            // The last step of all may have ended while the stop was asked for.
            const auto state = recorder_.state().state;
            if (upgrade::is_final_run_state(state)) return end_of(state);
            recorder_.save();
            return Ended::interrupted;
        }
        const auto seen = flight.endings;
        const auto await_ending = [&] { flight.ended.wait(guard, [&] { return flight.endings != seen; }); };
        const auto decision = recorder_.next_steps(flight.nodes);
        const auto state = recorder_.state();
        switch (decision.next) {
            case Next::finished: return end_of(state.state);
            case Next::pause:
                if (!state.paused) recorder_.record(decision.event);
                return Ended::paused;
            case Next::move:
                guard.unlock();  // nothing is in flight
                if (stops_before(state.state, decision.event)) return Ended::paused;
                make_move(decision.event);
                break;
            case Next::wait: await_ending(); break;
            case Next::steps: {
                auto steps = decision.steps;
                const auto hold = hold_back(flight.nodes, steps);
                if (steps.empty()) {
                    if (!flight.nodes.empty()) {
                        await_ending();
                        break;
                    }
                    guard.unlock();
                    if (!wait_for_others(*hold)) return Ended::paused;
                    break;
                }
                if (is_serial || state.rollback) {
                    flight.nodes.insert(steps.front().node);
                    guard.unlock();
                    carry_out(steps.front(), flight);
                    break;
                }
                guard.unlock();
                begin_steps(steps, flight, pool);
                guard.lock();
                if (pool.threads() > 0) await_ending();
                break;
            }
        }
    }
}

void Driver::retry_failed(bool back) {
    const auto run = recorder_.run();
    for (const auto& node : run.nodes) {
        if (!upgrade::is_failed_node_state(node.state) || (node.state == "rolling-back-failed") != back) continue;
        Event event;
        event.kind = EventKind::retry;
        event.node = node.name;
        event.from = node.state;
        event.to = upgrade::procedure_of(run).restart_state(run, node);
        recorder_.record(event);
    }
}

void Driver::resume(const Revision& revision) {
    const auto run = recorder_.run();
    if (upgrade::is_final_run_state(run.state)) return;
    const bool aborting = run.rollback.has_value();
    record_run(EventKind::resumed, "", "", facts_of(revision));
    if (run.rollback != upgrade::Rollback::none) retry_failed(aborting);
    retry_stage();
    if (run.state == "upgrade-aborting-failed")
        record_run(
            EventKind::intent, "abort", "upgrade-aborting",
            value::Node::mapping({{"rollback", upgrade::to_string(run.rollback.value_or(upgrade::Rollback::none))}}));
}

std::optional<upgrade::NodeStep> Driver::choose_step(const upgrade::Run& run, const upgrade::Decision& decision,
                                                     const std::string& node) {
    for (const auto& candidate : decision.steps)
        if (node.empty() || candidate.node == node) return candidate;
    const auto* wanted = run.find(node);
    const auto active = static_cast<std::int64_t>(upgrade::busy_nodes(run).size());
    const auto& procedure = upgrade::procedure_of(run);
    const auto* stage = procedure.table().stage_of(run.state);
    if (wanted == nullptr || stage == nullptr || !stage->is_walk() || wanted->touched != 0) return std::nullopt;
    if (active >= procedure.members(run, *stage).limit(run)) return std::nullopt;
    return upgrade::NodeStep{node, procedure.next_step(run, *wanted, *stage)};
}

void Driver::refuse_step(const upgrade::Run& run, const upgrade::Decision& decision, const std::string& node) {
    const auto* wanted = run.find(node);
    const auto next = decision.steps.empty() ? std::string() : decision.steps.front().node;
    auto hint = next.empty() ? std::string("kmm-upgrade show") : "kmm-upgrade step --node " + next;
    std::string message = "no step can be taken now";
    if (wanted != nullptr && upgrade::is_final_node_state(wanted->state)) {
        message = fmt::format("node {} is {}, no step of it is left", node, wanted->state);
    } else if (wanted != nullptr && upgrade::is_failed_node_state(wanted->state)) {
        message = fmt::format("node {} is {}, a failed node is not stepped", node, wanted->state);
        hint = fmt::format("kmm-upgrade retry {}", node);
    } else if (wanted != nullptr) {
        const auto active = upgrade::busy_nodes(run).size();
        const auto& procedure = upgrade::procedure_of(run);
        const auto* stage = procedure.table().stage_of(run.state);
        const auto limit = stage != nullptr && stage->is_walk() ? procedure.members(run, *stage).limit(run)
                                                                : run.options.max_unavailable;
        message = fmt::format("node {} is {}{}{}", node, wanted->state,
                              next.empty() ? "" : fmt::format(", and {} comes before it", next),
                              active == 0 ? "" : fmt::format(": {} in flight, at most {}", active, limit));
    }
    throw Error(Exit::paused, "step-not-allowed", message).hint(hint);
}

Ended Driver::step(const std::string& node) {
    if (!node.empty()) require_known(recorder_.run(), node);
    auto going_on = recorder_.run();
    going_on.paused = false;
    const auto first = upgrade::next_steps(going_on, {});
    if (first.next == Next::steps && !choose_step(going_on, first, node)) refuse_step(going_on, first, node);
    if (recorder_.run().paused) record_run(EventKind::resumed, "", "");
    std::optional<std::string> stepped;  // the node of the step that was done, "" for one of the run
    for (;;) {
        const auto run = recorder_.run();
        const auto decision = upgrade::next_steps(run, {});
        if (decision.next == Next::finished) return end_of(run.state);
        if (decision.next == Next::pause) {
            if (!run.paused) recorder_.record(decision.event);
            return Ended::paused;
        }
        if (decision.next == Next::move) {
            if (interrupted_()) return Ended::interrupted;
            // Who asks for a step in that very state passes it.
            if (stepped && stops_before(run.state, decision.event)) return Ended::paused;
            make_move(decision.event);
            continue;
        }
        if (stepped) {
            // With a failure budget, or others in flight, the run would go on after a failure.
            const auto* node_then = run.find(*stepped);
            if (node_then != nullptr && upgrade::is_failed_node_state(node_then->state))
                pause("node-failed", fmt::format("{}: {}", *stepped, node_then->reason));
            else pause("manual", "one step was asked for");
            return Ended::paused;
        }
        if (interrupted_()) return Ended::interrupted;
        const auto chosen = choose_step(run, decision, node);
        if (!chosen) {
            pause("manual", "one step was asked for");
            refuse_step(run, decision, node);
        }
        const auto end = steps_.run(*chosen);
        if (end == StepEnd::left) return Ended::interrupted;
        if (end != StepEnd::again) stepped = chosen->node;
    }
}

bool Driver::stops_before(const std::string& state, const Event& move) {
    if (const auto why = recorder_.look([&](const upgrade::Run& run) { return upgrade::until_note(run, move); });
        !why.empty()) {
        pause(std::string(upgrade::k_pause_until), why);
        return true;
    }
    if (only_stage_.empty() || move.step == upgrade::k_step_complete) return false;
    if (upgrade::procedure_of(recorder_.header()).table().find_stage(only_stage_)->done != state) return false;
    pause("manual", "one stage was asked for");
    return true;
}

void Driver::require_stage(const upgrade::Run& run, const std::string& name) {
    const auto& table = upgrade::procedure_of(run).table();
    if (table.find_stage(name) == nullptr) {
        std::vector<std::string> names;
        for (const auto& stage : table.stages()) names.push_back(stage.name);
        const auto stages = base::join(names, ", ");
        for (const auto& node : run.nodes) names.push_back(node.name);
        const auto near = base::nearest(name, names);
        throw Error(Exit::not_found, "stage-not-found",
                    fmt::format("{} is neither a stage nor a node of this upgrade", base::escape(name)))
            .hint(near ? "did you mean " + *near + "?" : "the stages are " + stages);
    }
    auto going_on = run;
    going_on.paused = false;
    going_on.resumed_in = run.state;
    const auto next = upgrade::next_steps(going_on, {});
    const auto* under_way = table.stage_of(run.state);
    if (under_way != nullptr && run.state == under_way->done) under_way = nullptr;
    if (under_way == nullptr && next.next == Next::move && next.event.kind == EventKind::intent)
        under_way = table.find_stage(next.event.step);
    if (under_way != nullptr && under_way->name == name) return;
    throw Error(Exit::paused, "step-not-allowed",
                fmt::format("stage {} is not next: the run is in {}", name, run.state))
        .hint(under_way == nullptr || run.state == under_way->failed ? upgrade::next_commands(run).front()
                                                                     : "kmm-upgrade step " + under_way->name);
}

Ended Driver::step_stage(const std::string& name) {
    const auto run = recorder_.run();
    if (upgrade::is_final_run_state(run.state)) return end_of(run.state);
    require_stage(run, name);
    if (run.paused) record_run(EventKind::resumed, "", "");
    retry_stage();
    only_stage_ = name;
    const auto ended = walk();
    only_stage_.clear();
    return ended;
}

Ended Driver::abort(upgrade::Rollback rollback) try {
    const auto run = recorder_.run();
    if (run.state == "upgrade-aborted") return Ended::aborted;
    if (run.state == "upgrade-complete")
        throw Error(Exit::paused, "not-abortable", "the upgrade is complete").hint("kmm-upgrade delete");
    if (!run.rollback) actor_.require_way_back(upgrade::rollback_nodes(run, rollback));
    if (run.paused || run.state == "upgrade-aborting-failed") record_run(EventKind::resumed, "", "");
    // Without a rollback the nodes that could not be rolled back stay on record as such.
    if (run.state == "upgrade-aborting-failed" && rollback != upgrade::Rollback::none) retry_failed(true);
    if (rollback == upgrade::Rollback::none)
        for (const auto& name : upgrade::active_nodes(run)) steps_.observe(name);
    if (run.state != "upgrade-aborting")
        record_run(EventKind::intent, "abort", "upgrade-aborting",
                   value::Node::mapping({{"rollback", upgrade::to_string(rollback)}}));
    return walk();
} catch (const Leave&) { return Ended::interrupted; }

void Driver::require_known(const upgrade::Run& run, const std::string& node) {
    if (run.find(node) != nullptr) return;
    std::vector<std::string> names;
    for (const auto& item : run.nodes) names.push_back(item.name);
    const auto near = base::nearest(node, names);
    throw Error(Exit::not_found, "node-not-found", fmt::format("node {} is not in this upgrade", node))
        .hint(near ? "did you mean " + *near + "?" : "kmm-upgrade nodes lists them");
}

void Driver::require_failed(const upgrade::Run& run, const std::string& node, const std::string& verb) const {
    require_known(run, node);
    const auto* found = run.find(node);
    if (run.rollback)
        throw Error(Exit::paused, "aborting", fmt::format("the upgrade is being aborted, {} is not possible", verb))
            .hint("kmm-upgrade resume");
    if (!upgrade::is_failed_node_state(found->state))
        throw Error(Exit::paused, "not-failed",
                    fmt::format("node {} is {}, {} is for a failed node", node, found->state, verb))
            .hint(upgrade::next_commands(run).front());
}

void Driver::retry(const std::string& node, const Revision& revision) {
    const auto run = recorder_.run();
    if (node.empty()) {
        const bool has_failed_node = std::any_of(run.nodes.begin(), run.nodes.end(), [](const auto& one) {
            return upgrade::is_failed_node_state(one.state);
        });
        const auto* stage = upgrade::procedure_of(run).table().stage_of(run.state);
        if (stage == nullptr || stage->is_walk() || stage->failed != run.state)
            throw Error(Exit::paused, "not-failed",
                        fmt::format("the upgrade is in state {}: {}", run.state,
                                    has_failed_node ? "a node has failed, expected its name"
                                                    : "no step of the run has failed"))
                .hint(upgrade::next_commands(run).front());
        record_run(EventKind::resumed, "", "", facts_of(revision));
        return retry_stage();
    }
    require_failed(run, node, "retry");
    Event event;
    event.kind = EventKind::retry;
    event.node = node;
    event.from = run.find(node)->state;
    event.to = upgrade::procedure_of(run).restart_state(run, *run.find(node));
    recorder_.record(event);
    record_run(EventKind::resumed, "", "", facts_of(revision));
}

void Driver::skip(const std::string& node, const std::string& reason) {
    const auto run = recorder_.run();
    require_failed(run, node, "skip");
    if (const auto why = upgrade::procedure_of(run).skip_refusal(run, *run.find(node)); !why.empty())
        throw Error(Exit::paused, "not-skippable", fmt::format("node {} cannot be left out: {}", node, why))
            .hint(fmt::format("kmm-upgrade retry {}, or kmm-upgrade abort", node));
    Event event;
    event.kind = EventKind::skip;
    event.node = node;
    event.from = run.find(node)->state;
    event.to = "skipped";
    event.reason = "skipped";
    event.message = reason;
    recorder_.record(event);
    if (run.find(node)->cordon == upgrade::k_cordon_ours)
        static_cast<void>(steps_.run(upgrade::NodeStep{node, std::string(upgrade::k_step_release)}));
}

}  // namespace kmm::drive
