// SPDX-License-Identifier: Apache-2.0
// The steps of the recipe procedures: apply, gate and prune of a rollout, remove and verify of a removal, rollback of
// both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/actor_parts/pool_pauses.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive_recipe/downgrade.hpp"
#include "upgrade/drive_recipe/gates.hpp"
#include "upgrade/drive_recipe/own_objects.hpp"
#include "upgrade/drive_recipe/release_store.hpp"
#include "upgrade/recipe/subject.hpp"

namespace kmm::drive {

/// The releases of a run.
struct RunReleases {
    upgrade::recipe::Release now;  ///< of a rollout: what it brings; of a removal: everything that there is
    std::vector<upgrade::recipe::Release> all;       ///< of the recipe, by revision
    std::vector<upgrade::recipe::Release> others;    ///< of other recipes
    [[nodiscard]] const upgrade::recipe::Release* previous(const upgrade::recipe::Subject& subject) const;
};
/// Errors: not_found "release-not-found" for a Secret that is gone; io "state-damaged" for one of another run.
[[nodiscard]] RunReleases read_releases(ReleaseStore& store, const upgrade::Header& run);

/// The references outlive it.
class RecipeActor final : public Actor {
public:
    /// Reads nothing: the releases are read when a step first needs them, so that a run can be aborted without them.
    /// `is_forced`: fields of other managers are taken over, as if the run had been started so.
    /// `say` hears what a long wait still lacks, from several threads.
    RecipeActor(kube::Client& client, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted, Say say,
                bool is_forced);

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline& deadline) override;
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override;
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) override;
    void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) override;
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) override;
    [[nodiscard]] value::Node glance(const std::string& state) override;
    /// States whose workloads are no longer ready ("not-verified").
    [[nodiscard]] std::vector<upgrade::Event> confirm() override;
    void before_move(const upgrade::Event& move) override { pools_.before_move(move, recorder_.header()); }
    [[nodiscard]] std::string release(const std::string& state) override;
    [[nodiscard]] std::map<std::string, std::string> unavailable() override;

private:
    using ReleaseObject = upgrade::recipe::ReleaseObject;
    struct Loaded {
        RunReleases releases;
        OwnObjects own;
    };
    /// Errors: those of read_releases.
    [[nodiscard]] Loaded& loaded();
    [[nodiscard]] const upgrade::recipe::State& state_of(const std::string& name);
    enum class Drivers { as_rendered, replaced_by_hand };
    /// Applies objects in the order of ApplyOrder, and runs `hooks`. Drivers that are replaced by hand are not waited
    /// for.
    [[nodiscard]] Done apply(const std::vector<ReleaseObject>& objects, const HookRun& hooks, const Deadline& deadline,
                             Drivers drivers = Drivers::as_rendered);
    /// Removes drivers of earlier releases that those of the state replace under another name; what came of it, for
    /// people.
    [[nodiscard]] std::string remove_replaced(const upgrade::recipe::State& state, const Deadline& deadline);
    /// The hooks of this run; none of a removal.
    [[nodiscard]] HookRun own_hooks() const;
    /// A step of a node whose drivers go to a lower version.
    [[nodiscard]] Done act_on_node(std::string_view step, const upgrade::recipe::DriverNode& node,
                                   const Deadline& deadline);
    [[nodiscard]] Done roll_back_node(const std::string& member, const upgrade::recipe::DriverNode& node,
                                      const Deadline& deadline);
    [[nodiscard]] Done gate(const upgrade::recipe::State& state, const Deadline& deadline);
    [[nodiscard]] Done prune(const Deadline& deadline);
    [[nodiscard]] Done remove(const upgrade::recipe::State& state, const Deadline& deadline);
    [[nodiscard]] Done verify(const Deadline& deadline);
    /// `member` is the state, or a node of it.
    [[nodiscard]] Done roll_back(const std::string& member, const std::string& state, const Deadline& deadline);
    /// What the object lacks, as Gates::problem. Where the image of a driver cannot be pulled, what builds it is
    /// applied and waited for.
    [[nodiscard]] std::string gate_problem(const ReleaseObject& one);
    /// Returns the DaemonSets that are ready as they want no Pod.
    std::vector<std::string> await_gates(const std::vector<ReleaseObject>& objects, const Deadline& deadline);
    /// Whether `state` has copies for kernels, and neither it nor an earlier release has one for the kernel of `node`:
    /// nothing of it runs there.
    bool lacks_copy(const upgrade::recipe::State& state, const value::Node& node);
    /// Gives the label of the state to the nodes that it selects and has a copy for, and to no others; their number.
    std::size_t label_nodes(const upgrade::recipe::State& state);
    /// Labels that states of other recipes have, too, stay.
    void unlabel_nodes(std::set<std::string> names);
    /// States of the release before that this one does not have, which a prune may have removed.
    void bring_back(const upgrade::recipe::Release& previous, const Deadline& deadline);

    kube::Client& client_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Say say_;
    upgrade::recipe::Subject subject_;
    ReleaseStore store_;
    Objects objects_;
    Gates gates_;
    Downgrade downgrade_;
    PoolPauses pools_;
    std::mutex loading_;
    std::unique_ptr<Loaded> loaded_;
    /// States of one wave take turns with each look at the cluster; nobody has it while he waits for the next one, but
    /// for drivers to be gone.
    std::mutex turn_;
    const upgrade::recipe::Release* building_ =
        nullptr;                                    ///< whose builds are applied, nullptr: those of what the run brings
    std::set<upgrade::recipe::ObjectId> demanded_;  ///< builds that were applied by this process
};

}  // namespace kmm::drive
