// SPDX-License-Identifier: Apache-2.0
// Walks a run: asks the planner what comes next, carries it out, records it, asks again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "drive/gate.hpp"
#include "drive/node_steps.hpp"
#include "drive/pool.hpp"
#include "drive/recorder.hpp"
#include "upgrade/planner.hpp"

namespace kmm::drive {

enum class Ended { complete, aborted, paused, interrupted };

/// Carries out the stages of a procedure that are steps of the run itself.
class StageActor {
public:
    virtual ~StageActor() = default;
    /// Does what `stage` is for and proves it; facts of the `done` event, with "message" for people. It may have been cut off before: it looks
    /// at what is there first. Errors: recorded as the failure of the stage, but for those of cluster::ends_run and "interrupted".
    [[nodiscard]] virtual value::Node act(const std::string& stage, const Deadline& deadline) = 0;
};

/// Errors: config "other-cluster" (P20) when `store` is another cluster than the one `run` was started on.
void require_cluster_of(const upgrade::Header& run, cluster::ClusterStore& store);

/// One run at a time; the caller holds the record's lock. Steps on several nodes run in threads of a bounded pool if
/// max_unavailable allows it; all records go through the one Recorder.
class Driver {
public:
    /// `workloads`: those of the same cluster.
    Driver(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock,
           std::function<bool()> interrupted);

    /// Before walk: the time of day, and who is told what the walk waits for.
    void set_pace(Pace pace);

    /// Before walk: of a procedure with stages that are steps of the run itself. `actor` outlives the driver.
    void set_stage_actor(StageActor& actor) { stage_actor_ = &actor; }

    /// As require_cluster_of.
    void require_same_cluster() { require_cluster_of(recorder_.header(), store_); }
    /// Goes on until the run ends, pauses, or a person interrupts. A paused run must be resumed before.
    /// Errors: only those of the record and of an unreadable cluster; the run is resumable then.
    [[nodiscard]] Ended walk();
    /// Ends a pause, and sends nodes that failed back to their start (`resume` retries them).
    void resume();
    /// Exactly one step of one node: `node`, or "" for the next one. Errors: paused "step-not-allowed".
    [[nodiscard]] Ended step(const std::string& node);
    /// Records the abort and walks to its end. Looks at nodes that were cut off. Errors: paused "not-abortable".
    [[nodiscard]] Ended abort(upgrade::Rollback rollback);
    /// Sends one failed node back to its start; "": begins the failed step of the run again. Errors: paused "not-failed" names the state and the
    /// valid command.
    void retry(const std::string& node);
    /// Gives one failed node up; a cordon of this run is lifted. Errors: as retry, and those of the store.
    void skip(const std::string& node, const std::string& reason);
    /// Records that the run stops here by a person's will.
    void pause(const std::string& reason, const std::string& message);

private:
    /// Takes the steps that would begin a node, and may not now, out of `steps`; the reason of the last one.
    [[nodiscard]] std::optional<Hold> hold_back(std::set<std::string> busy, std::vector<upgrade::NodeStep>& steps);
    struct Flight;
    /// Carries a stage out that is a step of the run itself, and records how it ended.
    [[nodiscard]] StepEnd run_stage(const std::string& stage);
    /// Begins the failed step of the run again; nothing if there is none.
    void retry_stage();
    /// Runs `step` and takes its node out of the flight, however it ends.
    void carry_out(const upgrade::NodeStep& step, Flight& flight);
    /// Gives as many of `steps` to threads as there are threads; where there is none at all, carries out the first one itself.
    void begin_steps(const std::vector<upgrade::NodeStep>& steps, Flight& flight, Pool& pool);
    [[nodiscard]] static Ended end_of(const std::string& state);
    /// Waits for a moment because of `hold`. False: the run was paused instead, since nothing can begin for too long.
    [[nodiscard]] bool wait_for_others(const Hold& hold);
    /// Records a move of the run. Before it says that all nodes are upgraded, those that are done are looked at; if one is not any more,
    /// that is recorded instead.
    void make_move(const upgrade::Event& move);
    void record_run(upgrade::EventKind kind, const std::string& step, const std::string& to, value::Node facts = {});
    /// The step for `node` ("": whatever is next) among those that may run now; nullopt if it may not be stepped.
    [[nodiscard]] static std::optional<upgrade::NodeStep> choose_step(const upgrade::Run& run,
                                                                      const upgrade::Decision& decision,
                                                                      const std::string& node);
    /// Throws step-not-allowed, which says what is in the way and which step is next.
    [[noreturn]] static void refuse_step(const upgrade::Run& run, const upgrade::Decision& decision, const std::string& node);
    /// Errors: not_found "node-not-found".
    static void require_known(const upgrade::Run& run, const std::string& node);
    void require_failed(const upgrade::Run& run, const std::string& node, const std::string& verb) const;
    void retry_failed(bool back);

    cluster::ClusterStore& store_;
    Worker worker_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Fleet fleet_;
    std::unique_ptr<NodeSteps> steps_;  ///< beside an operator: OperatorSteps
    StageActor* stage_actor_ = nullptr;
    Pace pace_;
    std::string told_;                                       ///< the last thing said to be waited for
    bool has_begun_ = false;                                 ///< this walk has begun a node
    std::optional<std::chrono::milliseconds> held_since_;    ///< since when others keep all nodes from beginning
};

}  // namespace kmm::drive
