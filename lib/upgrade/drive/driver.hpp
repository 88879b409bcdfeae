// SPDX-License-Identifier: Apache-2.0
// Walks a run: asks the planner what comes next, carries it out, records it, asks again.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/seam/store.hpp"
#include "upgrade/drive/gate.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/engine/planner.hpp"

namespace kmm::drive {

enum class Ended { complete, aborted, paused, interrupted };

/// Errors: config "other-cluster" (P20) when `store` is another cluster than the one `run` was started on.
void require_cluster_of(const upgrade::Header& run, cluster::ClusterStore& store);

/// What a person changes by going on with a run.
struct Revision {
    std::optional<std::string> until{};  ///< replaces RunState::until
    value::Node subject{};               ///< that of the Recorder's run where it is not the recorded one; else null
};

/// One run at a time; the caller holds the record's lock. Steps on several nodes run in threads of a bounded pool if
/// max_unavailable allows it; all records go through the one Recorder.
class Driver {
public:
    /// `actor`: of the procedure of the run. The references outlive the driver.
    Driver(Actor& actor, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted);

    /// Before walk: the time of day, and who is told what the walk waits for.
    void set_pace(Pace pace);

    /// Goes on until the run ends, pauses, or a person interrupts. A paused run must be resumed before.
    /// Errors: only those of the record and of an unreadable cluster; the run is resumable then.
    [[nodiscard]] Ended walk();
    /// Ends a pause, and sends nodes that failed back to their start (`resume` retries them).
    void resume(const Revision& revision = {});
    /// Exactly one step of one node: `node`, or "" for the next one. Errors: paused "step-not-allowed".
    [[nodiscard]] Ended step(const std::string& node);
    /// What is left of one stage, which must be the one that is under way or comes next. Errors: not_found
    /// "stage-not-found"; paused "step-not-allowed".
    [[nodiscard]] Ended step_stage(const std::string& stage);
    /// Records the abort and walks to its end. Looks at nodes that were cut off. Errors: paused "not-abortable".
    [[nodiscard]] Ended abort(upgrade::Rollback rollback);
    /// Sends one failed node back to its start; "": begins the failed step of the run again. Errors: paused
    /// "not-failed" names the state and the valid command.
    void retry(const std::string& node, const Revision& revision = {});
    /// Gives one failed node up; a cordon of this run is lifted. Errors: as retry; paused "not-skippable"; those of the
    /// store.
    void skip(const std::string& node, const std::string& reason);
    /// Records that the run stops here by a person's will.
    void pause(const std::string& reason, const std::string& message);

private:
    /// Takes the steps that would begin a node, and may not now, out of `steps`; the reason of the last one.
    [[nodiscard]] std::optional<Hold> hold_back(std::set<std::string> busy, std::vector<upgrade::NodeStep>& steps);
    struct Flight;
    /// Begins the failed step of the run again; nothing if there is none.
    void retry_stage();
    /// Runs `step` and takes its node out of the flight, however it ends.
    void carry_out(const upgrade::NodeStep& step, Flight& flight);
    /// Gives as many of `steps` to threads as there are threads; where there is none at all, carries out the first one
    /// itself.
    void begin_steps(const std::vector<upgrade::NodeStep>& steps, Flight& flight, Pool& pool);
    [[nodiscard]] static Ended end_of(const std::string& state);
    /// Records the pause if `move` leads from `state` beyond the state up to which the run was to go, or beyond the one
    /// stage that was asked for. False: it does not.
    [[nodiscard]] bool stops_before(const std::string& state, const upgrade::Event& move);
    /// Waits for a moment because of `hold`. False: the run was paused instead, since nothing can begin for too long.
    [[nodiscard]] bool wait_for_others(const Hold& hold);
    /// Whether nodes that are done are looked at before `move`: before the last walk ends, and before the run is
    /// complete.
    [[nodiscard]] bool is_to_be_confirmed(const upgrade::Event& move) const;
    /// Records a move of the run. Before it says that all nodes are upgraded, those that are done are looked at; if one
    /// is not any more, that is recorded instead.
    void make_move(const upgrade::Event& move);
    void record_run(upgrade::EventKind kind, const std::string& step, const std::string& to, value::Node facts = {});
    /// The step for `node` ("": whatever is next) among those that may run now; nullopt if it may not be stepped.
    [[nodiscard]] static std::optional<upgrade::NodeStep> choose_step(const upgrade::Run& run,
                                                                      const upgrade::Decision& decision,
                                                                      const std::string& node);
    /// Throws step-not-allowed if `stage` is neither under way nor next, stage-not-found if there is none of that name.
    static void require_stage(const upgrade::Run& run, const std::string& stage);
    /// Throws step-not-allowed, which says what is in the way and which step is next.
    [[noreturn]] static void refuse_step(const upgrade::Run& run, const upgrade::Decision& decision,
                                         const std::string& node);
    /// Errors: not_found "node-not-found".
    static void require_known(const upgrade::Run& run, const std::string& node);
    void require_failed(const upgrade::Run& run, const std::string& node, const std::string& verb) const;
    void retry_failed(bool back);

    Actor& actor_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    StepRunner steps_;
    Pace pace_;
    std::string only_stage_;                                 ///< after which the walk stops, "": none
    std::string told_;                                       ///< the last thing said to be waited for
    bool is_confirmed_ = false;                              ///< this process has looked at nodes that are done
    bool has_begun_ = false;                                 ///< this walk has begun a node
    std::optional<std::chrono::milliseconds> held_since_;    ///< since when others keep all nodes from beginning
};

}  // namespace kmm::drive
