// SPDX-License-Identifier: Apache-2.0
#include "drive/driver.hpp"

#include <condition_variable>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/text.hpp"
#include "drive/operator_steps.hpp"
#include "sys/local_time.hpp"
#include "upgrade/procedure.hpp"

namespace kmm::drive {

using upgrade::Event;
using upgrade::EventKind;
using upgrade::Next;

namespace {

/// How long a wait goes on at most before it is asked whether somebody wants it to end.
constexpr std::chrono::milliseconds k_slice{1000};

std::unique_ptr<NodeSteps> make_steps(StepTools tools) {
    if (tools.recorder.run().options.runner == upgrade::k_runner_operator) return std::make_unique<OperatorSteps>(std::move(tools));
    return std::make_unique<NodeSteps>(std::move(tools));
}

}  // namespace

cluster::Snapshot SharedStore::read() {
    const auto guard = lock();
    return inner_.read();
}

cluster::Snapshot SharedStore::read_about(const cluster::Subject& subject) {
    const auto guard = lock();
    return inner_.read_about(subject);
}

void SharedStore::patch_node_labels(const std::string& node, const cluster::LabelChange& change,
                                    const cluster::LabelChange& expected) {
    const auto guard = lock();
    inner_.patch_node_labels(node, change, expected);
}

void SharedStore::put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                                  const std::optional<std::optional<api::NodeModule>>& spec,
                                  const std::optional<std::optional<api::NodeModule>>& status) {
    const auto guard = lock();
    inner_.put_node_module(node, ns, name, spec, status);
}

void SharedStore::put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                                const std::string& architecture) {
    const auto guard = lock();
    inner_.put_node_info(node, kernel, boot_id, architecture);
}

std::string SharedStore::identity(bool create) {
    const auto guard = lock();
    return inner_.identity(create);
}

Driver::Driver(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner, Recorder& recorder,
               sys::Clock& clock, std::function<bool()> interrupted)
    : store_(store),
      worker_(runner),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      fleet_(store_, recorder.run().module_namespace, recorder.run().module_name),
      steps_(make_steps(StepTools{fleet_, workloads, worker_, recorder_, clock_, interrupted_})) {
    set_pace({});
}

void Driver::set_pace(Pace pace) {
    pace_ = std::move(pace);
    if (!pace_.minute_of_day) pace_.minute_of_day = sys::minute_of_day;
}

std::optional<Hold> Driver::hold_back(const upgrade::Run& run, std::set<std::string> busy, std::vector<upgrade::NodeStep>& steps) {
    std::optional<Hold> last;
    for (auto& name : upgrade::busy_nodes(run)) busy.insert(std::move(name));
    std::erase_if(steps, [&](const upgrade::NodeStep& step) {
        if (step.step != "check" || run.find(step.node)->touched != 0) return false;
        if (auto hold = hold_of(fleet_, clock_, pace_, run, step.node, busy)) {
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
        const auto limit = std::chrono::milliseconds(recorder_.run().options.node_timeout_ms);
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

void require_cluster_of(const upgrade::Run& run, cluster::ClusterStore& store) {
    const auto found = store.identity(false);
    if (found == run.cluster_identity) return;
    throw Error(Exit::config, "other-cluster",
                fmt::format("{} is not the cluster this upgrade was started on", store.describe()))
        .detail("started on", run.cluster_place)
        .detail("identity", fmt::format("{}, expected {}", found.empty() ? "none" : found, run.cluster_identity))
        .hint(found.empty() ? "name the right cluster with --cluster; if it is this one and its .kmm-cluster-id was lost, write that identity into it again"
                            : "name the right cluster with --cluster");
}

void Driver::record_run(EventKind kind, const std::string& step, const std::string& to, value::Node facts) {
    Event event;
    event.kind = kind;
    event.step = step;
    event.to = to;
    if (!to.empty()) event.from = recorder_.run().state;
    event.facts = std::move(facts);
    recorder_.record(event);
}

void Driver::pause(const std::string& reason, const std::string& message) {
    Event event;
    event.kind = EventKind::paused;
    event.reason = reason;
    event.message = message + upgrade::cordon_note(recorder_.run());
    recorder_.record(event);
}

void Driver::make_move(const Event& move) {
    if (move.kind == EventKind::done && move.step == "nodes") {
        try {
            if (!steps_->confirm_done()) return;  // what comes next is asked again
        } catch (const Error& error) {
            if (error.code() == "interrupted" && interrupted_()) return;
            throw;
        }
    }
    recorder_.record(move);
}

Ended Driver::walk() {
    std::mutex mutex;
    std::condition_variable ended;
    std::set<std::string> in_flight;
    std::exception_ptr crash;
    bool left = false;
    std::size_t endings = 0;
    std::map<std::string, std::jthread> threads;  // joined on every way out
    const auto run_step = [&](const upgrade::NodeStep& step) {
        std::exception_ptr caught;
        StepEnd end = StepEnd::left;
        try {
            end = steps_->run(step);
        } catch (const Error& error) {
            if (error.code() != "interrupted" || !interrupted_()) caught = std::current_exception();
        } catch (...) {
            caught = std::current_exception();
        }
        const std::lock_guard guard(mutex);
        if (caught && !crash) crash = caught;
        if (end == StepEnd::left) left = true;
        in_flight.erase(step.node);
        ++endings;
        ended.notify_all();
    };
    for (;;) {
        std::unique_lock guard(mutex);
        const bool stop = crash || left || interrupted_();
        if (stop) {
            if (!in_flight.empty()) {
                ended.wait(guard, [&] { return in_flight.empty(); });
                continue;
            }
            if (crash) {
                guard.unlock();
                threads.clear();
                std::rethrow_exception(crash);
            }
            // The last step of all may have ended while the stop was asked for.
            const auto state = recorder_.run().state;
            if (!upgrade::is_final_run_state(state)) {
                recorder_.save();
                return Ended::interrupted;
            }
            return state == "upgrade-complete" ? Ended::complete : Ended::aborted;
        }
        const auto seen = endings;
        const auto run = recorder_.run();
        const auto decision = upgrade::next_steps(run, in_flight);
        switch (decision.next) {
            case Next::finished: return run.state == "upgrade-complete" ? Ended::complete : Ended::aborted;
            case Next::pause:
                if (!run.paused) recorder_.record(decision.event);
                return Ended::paused;
            case Next::move:
                guard.unlock();  // nothing is in flight
                make_move(decision.event);
                break;
            case Next::wait: ended.wait(guard, [&] { return endings != seen; }); break;
            case Next::steps: {
                auto steps = decision.steps;
                const auto hold = hold_back(run, in_flight, steps);
                if (steps.empty()) {
                    if (!in_flight.empty()) {
                        ended.wait(guard, [&] { return endings != seen; });
                        break;
                    }
                    guard.unlock();
                    if (!wait_for_others(*hold)) return Ended::paused;
                    break;
                }
                if (run.options.max_unavailable == 1 || run.rollback) {
                    in_flight.insert(steps.front().node);
                    guard.unlock();
                    run_step(steps.front());
                    break;
                }
                for (const auto& step : steps) {
                    in_flight.insert(step.node);
                    guard.unlock();
                    threads.erase(step.node);  // that thread has ended: its node was not in flight
                    guard.lock();
                    threads.emplace(step.node, std::jthread(run_step, step));
                }
                ended.wait(guard, [&] { return endings != seen; });
                break;
            }
        }
    }
}

void Driver::retry_failed(bool back) {
    for (const auto& node : recorder_.run().nodes) {
        if (!upgrade::is_failed_node_state(node.state) || (node.state == "rolling-back-failed") != back) continue;
        Event event;
        event.kind = EventKind::retry;
        event.node = node.name;
        event.from = node.state;
        event.to = "pending";
        recorder_.record(event);
    }
}

void Driver::resume() {
    const auto run = recorder_.run();
    if (upgrade::is_final_run_state(run.state)) return;
    const bool aborting = run.rollback.has_value();
    record_run(EventKind::resumed, "", "");
    if (run.rollback != upgrade::Rollback::none) retry_failed(aborting);
    if (run.state == "upgrade-aborting-failed")
        record_run(EventKind::intent, "abort", "upgrade-aborting",
                   value::Node::mapping({{"rollback", upgrade::to_string(run.rollback.value_or(upgrade::Rollback::none))}}));
}

std::optional<upgrade::NodeStep> Driver::choose_step(const upgrade::Run& run, const upgrade::Decision& decision,
                                                     const std::string& node) {
    for (const auto& candidate : decision.steps)
        if (node.empty() || candidate.node == node) return candidate;
    const auto* wanted = run.find(node);
    const auto active = static_cast<std::int64_t>(upgrade::busy_nodes(run).size());
    if (wanted != nullptr && wanted->touched == 0 && wanted->state == "pending" && active < run.options.max_unavailable)
        return upgrade::NodeStep{node, "check"};
    return std::nullopt;
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
        message = fmt::format("node {} is {} while {} of {} nodes may be in flight", node, wanted->state, upgrade::busy_nodes(run).size(),
                              run.options.max_unavailable);
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
    std::string stepped;  // the node of the step that was done
    for (;;) {
        const auto run = recorder_.run();
        const auto decision = upgrade::next_steps(run, {});
        if (decision.next == Next::finished) return run.state == "upgrade-complete" ? Ended::complete : Ended::aborted;
        if (decision.next == Next::pause) {
            if (!run.paused) recorder_.record(decision.event);
            return Ended::paused;
        }
        if (decision.next == Next::move) {
            if (interrupted_()) return Ended::interrupted;
            make_move(decision.event);
            continue;
        }
        if (!stepped.empty()) {
            // With a failure budget, or others in flight, the run would go on after a failure.
            const auto& node_then = *run.find(stepped);
            if (upgrade::is_failed_node_state(node_then.state)) pause("node-failed", fmt::format("{}: {}", stepped, node_then.reason));
            else pause("manual", "one step was asked for");
            return Ended::paused;
        }
        if (interrupted_()) return Ended::interrupted;
        const auto chosen = choose_step(run, decision, node);
        if (!chosen) {
            pause("manual", "one step was asked for");
            refuse_step(run, decision, node);
        }
        const auto end = steps_->run(*chosen);
        if (end == StepEnd::left) return Ended::interrupted;
        if (end != StepEnd::again) stepped = chosen->node;
    }
}

Ended Driver::abort(upgrade::Rollback rollback) {
    const auto run = recorder_.run();
    if (run.state == "upgrade-aborted") return Ended::aborted;
    if (run.state == "upgrade-complete")
        throw Error(Exit::paused, "not-abortable", "the upgrade is complete").hint("kmm-upgrade delete");
    if (run.paused || run.state == "upgrade-aborting-failed") record_run(EventKind::resumed, "", "");
    // Without a rollback the nodes that could not be rolled back stay on record as such.
    if (run.state == "upgrade-aborting-failed" && rollback != upgrade::Rollback::none) retry_failed(true);
    if (rollback == upgrade::Rollback::none)
        for (const auto& name : upgrade::active_nodes(run)) steps_->observe(name);
    if (run.state != "upgrade-aborting")
        record_run(EventKind::intent, "abort", "upgrade-aborting",
                   value::Node::mapping({{"rollback", upgrade::to_string(rollback)}}));
    return walk();
}

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
        throw Error(Exit::paused, "not-failed", fmt::format("node {} is {}, {} is for a failed node", node, found->state, verb))
            .hint(upgrade::next_commands(run).front());
}

void Driver::retry(const std::string& node) {
    const auto run = recorder_.run();
    require_failed(run, node, "retry");
    Event event;
    event.kind = EventKind::retry;
    event.node = node;
    event.from = run.find(node)->state;
    event.to = "pending";
    recorder_.record(event);
    record_run(EventKind::resumed, "", "");
}

void Driver::skip(const std::string& node, const std::string& reason) {
    const auto run = recorder_.run();
    require_failed(run, node, "skip");
    Event event;
    event.kind = EventKind::skip;
    event.node = node;
    event.from = run.find(node)->state;
    event.to = "skipped";
    event.reason = "skipped";
    event.message = reason;
    recorder_.record(event);
    if (run.find(node)->cordon == upgrade::k_cordon_ours)
        static_cast<void>(steps_->run(upgrade::NodeStep{node, std::string(upgrade::k_step_release)}));
}

}  // namespace kmm::drive
