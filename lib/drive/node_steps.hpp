// SPDX-License-Identifier: Apache-2.0
// Carries out one step on one node: look, intent, act, look, done. Every action can be repeated: it compares before it
// changes, so that a step cut off anywhere is simply begun again after a look.
#pragma once

#include <functional>
#include <string>

#include "cluster/workloads.hpp"
#include "drive/fleet.hpp"
#include "drive/late_words.hpp"
#include "drive/look.hpp"
#include "drive/recorder.hpp"
#include "drive/worker.hpp"
#include "sys/clock.hpp"
#include "upgrade/planner.hpp"

namespace kmm::drive {

/// How a step ended. `again`: the node was found changed (rebooted, another kernel) and will be planned anew.
/// `left`: a person asked to stop; the step stays open in the record and is settled by the next resume.
enum class StepEnd { done, failed, again, left };

/// What all steps need. The references outlive the object.
struct StepTools {
    Fleet& fleet;
    cluster::Workloads& workloads;
    Worker& worker;
    Recorder& recorder;
    sys::Clock& clock;
    std::function<bool()> interrupted;
    std::chrono::milliseconds silence = k_silence;  ///< how long a node may take to say how it is before that is told
};

/// Thread safe for different nodes.
class NodeSteps {
public:
    explicit NodeSteps(StepTools tools) : tools_(std::move(tools)) {}
    virtual ~NodeSteps() = default;
    NodeSteps(const NodeSteps&) = delete;
    NodeSteps& operator=(const NodeSteps&) = delete;
    /// Runs check, cordon, drain, unload, load, validate, uncordon, rollback or release. What goes wrong on the node or in the
    /// cluster ends as a recorded failure; only a failure of the record itself is thrown, and one of release, which the next
    /// resume tries again.
    [[nodiscard]] StepEnd run(const upgrade::NodeStep& step);
    /// Looks once at a node whose state is open and records what runs there. Never fails the node.
    void observe(const std::string& node);
    /// Looks, once for all, at the labels of the nodes that are done. Those that somebody else has changed since are recorded as failed
    /// ("label-changed"); false if there are such. Errors: those of the store; data if a document that cannot be read hides a node.
    [[nodiscard]] bool confirm_done();

protected:
    /// Facts for the `done` event of a step.
    using Facts = value::Node;
    /// Thrown inside a step to leave it in another way than done or failed.
    struct Leave {
        StepEnd end;
    };

    // What a step does between its intent and its end.
    [[nodiscard]] virtual Facts check(const std::string& name, const Look& seen, const Deadline& deadline);
    [[nodiscard]] virtual Facts unload(const std::string& name, const Look& seen, const Deadline& deadline);
    [[nodiscard]] virtual Facts load(const std::string& name, const Look& seen, const Deadline& deadline);
    [[nodiscard]] virtual Facts validate(const std::string& name, const Look& seen, const Deadline& deadline);
    [[nodiscard]] virtual Facts rollback(const std::string& name, const Look& seen, const Deadline& deadline);
    /// Errors: unhealthy "module-gone", "module-differs".
    virtual void require_target(const std::string& name, const Look& seen) const;
    /// What the load wrote is still there: version labels, spec and status. Errors: locked "label-changed" names what is not.
    void require_undisturbed(const std::string& name);
    /// The administrator's version label of a node that is not begun is still what it was when the run began, or the target already: nobody
    /// else's change is overwritten unseen. Errors: locked "label-changed".
    void require_label(const std::string& name);
    /// Looks until there is an answer, as look_at.
    [[nodiscard]] virtual LookResult look(const std::string& name, const Deadline& deadline);
    /// Looks once; nullopt if there is no answer.
    [[nodiscard]] virtual std::optional<LiveModule> glance(const std::string& name);

    /// The user's own check, if there is one. Errors: unhealthy "check-failed" with the last lines of what it printed.
    void ask_check(const std::string& name, const Look& seen, const Deadline& deadline);
    /// Waits as long as the run asks for and looks again. Errors: as require_target; those of the node.
    void soak(const std::string& name);
    /// A look that must succeed: throws the Error of the node, or Leave.
    [[nodiscard]] Look must_look(const std::string& name, const Deadline& deadline);
    /// True if the node still runs the boot and kernel the record knows; else records that it is planned anew.
    [[nodiscard]] bool same_boot(const std::string& name, const NodeFacts& facts);
    /// Lifts the run's own cordon, if the node has one; what came of it, for people: "uncordoned", "" if there was none.
    [[nodiscard]] std::string lift(const std::string& name);
    [[nodiscard]] upgrade::Event event(upgrade::EventKind kind, const std::string& node, const std::string& step,
                                       const std::string& to) const;
    [[nodiscard]] const StepTools& tools() const noexcept { return tools_; }

private:
    [[nodiscard]] Facts check_removal(const std::string& name, const Look& seen);
    /// Proves that nothing of the Module is left on the node.
    [[nodiscard]] Facts validate_removal(const std::string& name, const Look& seen);
    /// Throws checks_failed if the Module or the node's labels want something else by now than what the run was started for:
    /// "node-not-eligible", with the procedure "apply" "goal-changed".
    void require_goal(const std::string& name);
    [[nodiscard]] Facts cordon(const std::string& name);
    [[nodiscard]] Facts drain(const std::string& name, const Deadline& deadline);
    [[nodiscard]] Facts uncordon(const std::string& name);
    void release(const std::string& name);
    [[nodiscard]] bool is_cordoned_by_run(const std::string& name);
    [[nodiscard]] Facts act(const upgrade::NodeStep& step, const Look& seen, const Deadline& deadline);
    /// Of an adopted run: finds out which builds the old and the new version are, as far as it is needed to tell what is live.
    void learn(const std::string& name, const Look& seen, const Deadline& deadline);
    /// The build of the recorded previous version: what is live if the status says so for this boot, else what its image has.
    [[nodiscard]] upgrade::Identity former_identity(const std::string& name, const Look& seen, const Deadline& deadline);
    void restore(const std::string& name, const upgrade::NodeRecord& node, const Look& seen, const Deadline& deadline);

    /// Records what a look found in the middle of a step that was cut off.
    void record_look(const std::string& name, const Look& seen);
    /// Runs unload until the module is gone. `expected`: what may be unloaded; anything else is an Error.
    void unload_until_gone(const std::string& name, const api::ModuleConfig& config, Look seen,
                           const std::vector<upgrade::Identity>& expected, const Deadline& deadline);
    /// Runs load until the module is live; returns its identity and checks it against `expected` (empty: any). With the image that has `digest` ("": any).
    [[nodiscard]] WorkerResult load_until_live(const std::string& name, const api::NodeModule& entry, const std::string& boot,
                                               const upgrade::Identity& expected, const std::string& digest, const Deadline& deadline);
    /// Watches a question to a node; what people are told once it takes longer than `patience` is recorded, as an `observed` event.
    [[nodiscard]] LateWords::Watch watch(const std::string& name, const std::string& what, std::chrono::milliseconds patience,
                                         const Deadline& deadline);
    /// Ends that, and records that the node has answered if people were told that it has not.
    void end_watch(LateWords::Watch& watched, const std::string& name, std::chrono::milliseconds begin);
    /// Records, as an `observed` event, that a call was lost, and `then`.
    void record_lost(const std::string& name, const Error& error, const std::string& then);
    /// Worker::run, watched; a call that was lost is recorded.
    [[nodiscard]] Reply<WorkerResult> call(const std::string& verb, const std::string& name, const std::string& text,
                                           const Deadline& deadline);
    /// call of `check`, which changes nothing: asked again, twice at most, once a node whose connection was lost answers. Throws Leave when
    /// that node has rebooted or a person asked to stop.
    [[nodiscard]] Reply<WorkerResult> check_again(const std::string& name, const std::string& text, const Deadline& deadline);
    /// Throws checks_failed "image-changed" if a node of this run with the same kernel or image has got another digest: one version would
    /// be two builds.
    void require_same_image(const std::string& name, const NodeFacts& facts, const std::string& image,
                            const std::string& digest) const;
    void record_failure(const upgrade::NodeStep& step, const Error& error);
    /// Looks for the Node once more, a moment later.
    [[nodiscard]] bool is_still_gone(const std::string& name);
    [[nodiscard]] std::string input(const api::NodeModule& entry);

    StepTools tools_;
    LateWords late_;
};

/// What runs on the node, in words of the record: the target's or the previous version, "" for nothing, "unknown".
[[nodiscard]] std::string version_of(const upgrade::Header& run, const upgrade::NodeRecord& node, const LiveModule& live);

}  // namespace kmm::drive
