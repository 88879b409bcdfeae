// SPDX-License-Identifier: Apache-2.0
// Getting a module onto nodes by kmm-worker, with the labels and entries that KMM's controllers would write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "upgrade/actor_parts/worker_warnings.hpp"
#include "upgrade/drive_module/way.hpp"

namespace kmm::drive {

class WorkerWay final : public Way {
public:
    /// `tools` outlives it.
    explicit WorkerWay(StepTools& tools) : tools_(tools) {}
    [[nodiscard]] LookResult look(const std::string& name, const Deadline& deadline) override;
    [[nodiscard]] std::optional<LiveModule> glance(const std::string& name) override;
    [[nodiscard]] Facts check(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts unload(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts load(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts validate(const std::string& name, const Look& seen) override;
    [[nodiscard]] Facts rollback(const std::string& name, const Look& seen, const Deadline& deadline) override;
    void require_target(const std::string& name, const Look& seen) const override;
    /// A boot that its Node does not tell of yet, or a module that is live again, is no loss.
    [[nodiscard]] std::optional<Loss> loss(const api::Objects& objects, const std::string& name) override;
    [[nodiscard]] bool sets_worker_label() const noexcept override { return true; }

private:
    /// Asks for the status once.
    [[nodiscard]] Reply<Look> look_once(const std::string& name);
    /// What the load wrote is still there: version labels, spec and status. Errors: locked "label-changed" names what
    /// is not.
    void require_undisturbed(const std::string& name);
    /// A look that must succeed: throws the Error of the node, or Leave.
    [[nodiscard]] Look must_look(const std::string& name, const Deadline& deadline);
    [[nodiscard]] Facts check_removal(const std::string& name, const Look& seen);
    /// Proves that nothing of the Module is left on the node.
    [[nodiscard]] Facts validate_removal(const std::string& name, const Look& seen);
    /// Throws checks_failed if the Module or the node's labels want something else by now than what the run was started
    /// for: "node-not-eligible", with the procedure "apply" "goal-changed".
    void require_goal(const std::string& name);
    /// Of an adopted run: finds out which builds the old and the new version are, as far as it is needed to tell what
    /// is live.
    void learn(const std::string& name, const Look& seen, const Deadline& deadline);
    /// The build of the recorded previous version: what is live if the status says so for this boot, else what its
    /// image has.
    [[nodiscard]] upgrade::module::Identity former_identity(const std::string& name, const Look& seen,
                                                            const Deadline& deadline);
    /// The digest that the image of `former` has now. Errors: refused "image-changed" if it is another build than was
    /// live before the run; those of the check.
    [[nodiscard]] std::string former_digest(const std::string& name, const upgrade::module::Node& node,
                                            const api::NodeModule& former, const Deadline& deadline);
    void restore(const std::string& name, const upgrade::module::Node& node, const Look& seen,
                 const Deadline& deadline);

    /// Runs unload until the module is gone. `expected`: what may be unloaded; anything else is an Error.
    void unload_until_gone(const std::string& name, const api::ModuleConfig& config, Look seen,
                           const std::vector<upgrade::module::Identity>& expected, const Deadline& deadline);
    /// Runs load until the module is live; returns its identity and checks it against `expected` (empty: any). With the
    /// image that has `digest` ("": any).
    [[nodiscard]] WorkerResult load_until_live(const std::string& name, const api::NodeModule& entry,
                                               const std::string& boot, const upgrade::module::Identity& expected,
                                               const std::string& digest, const Deadline& deadline);
    /// Watches a question to a node; what people are told once it takes longer than `patience` is recorded, as an
    /// `observed` event.
    [[nodiscard]] Watchdog::Watch watch(const std::string& name, const std::string& what,
                                         std::chrono::milliseconds patience, const Deadline& deadline);
    /// Ends that, and records that the node has answered if people were told that it has not.
    void end_watch(Watchdog::Watch& watched, const std::string& name, std::chrono::milliseconds begin);
    /// Records, as an `observed` event, that a call was lost, and `then`.
    void record_lost(const std::string& name, const Error& error, const std::string& then);
    /// Records, as `observed` events, what a worker warned of there, each once.
    void record_warnings(const std::string& name, const std::vector<std::string>& warnings);
    /// Worker::run, watched; a call that was lost is recorded, and so are warnings.
    [[nodiscard]] Reply<WorkerResult> call(const std::string& verb, const std::string& name, const std::string& text,
                                           const Deadline& deadline);
    /// call of `check`, which changes nothing: asked again, twice at most, once a node whose connection was lost
    /// answers. Throws Leave when that node has rebooted or a person asked to stop.
    [[nodiscard]] Reply<WorkerResult> check_again(const std::string& name, const std::string& text,
                                                  const Deadline& deadline);
    /// Throws checks_failed "image-changed" if a node of this run with the same kernel or image has got another digest:
    /// one version would be two builds.
    void require_same_image(const std::string& name, const NodeFacts& facts, const std::string& image,
                            const std::string& digest) const;
    /// Throws checks_failed "module-changed" if a node of this run has got the version with other settings than
    /// `module` has: those of modprobe, the modules that are removed first, or the image for another kernel than
    /// `facts` has.
    void require_same_settings(const std::string& name, const NodeFacts& facts, const api::Module& module) const;
    [[nodiscard]] std::string input(const api::NodeModule& entry);

    StepTools& tools_;
    WorkerWarnings warnings_;
    Watchdog watchdog_;
};

}  // namespace kmm::drive
