// SPDX-License-Identifier: Apache-2.0
// Which step does what, and what a run reads of its releases.
#include "upgrade/drive_recipe/recipe_actor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"

namespace kmm::drive {

using upgrade::recipe::Release;
using upgrade::recipe::State;
using value::Node;

const Release* RunReleases::previous(const upgrade::recipe::Subject& subject) const {
    return subject.previous == 0 ? nullptr : revision_of(all, subject.previous);
}

RunReleases read_releases(ReleaseStore& store, const upgrade::Header& run) {
    const auto subject = upgrade::recipe::subject_of(run);
    RunReleases found;
    found.all = store.of(subject.name);
    found.others = store.of_others(subject.name);
    const auto require = [&](std::int64_t revision) -> const Release& {
        if (const auto* release = revision_of(found.all, revision)) return *release;
        throw Error(
            Exit::not_found, "release-not-found",
            fmt::format("release {} of recipe {} has no Secret in namespace {}", revision, subject.name, subject.space))
            .hint(fmt::format("kmm-upgrade abort, then kmm-upgrade start recipe {}", subject.name));
    };
    if (upgrade::recipe::is_removal(run)) {
        if (!found.all.empty()) found.now = upgrade::recipe::merged(found.all);
        found.now.recipe = subject.name;
        return found;
    }
    found.now = require(subject.revision);
    if (found.now.lineage != run.lineage)
        throw Error(Exit::io, "state-damaged",
                    fmt::format("release {} of recipe {} is that of another run", subject.revision, subject.name))
            .hint("somebody has started the same recipe from another host: look who, then kmm-upgrade abort");
    if (subject.previous != 0) static_cast<void>(require(subject.previous));
    return found;
}

RecipeActor::RecipeActor(kube::Client& client, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted,
                         Say say, bool is_forced)
    : client_(client),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      say_(std::move(say)),
      subject_(upgrade::recipe::subject_of(recorder.header())),
      store_(client, subject_.space),
      objects_(client),
      gates_(client, objects_),
      downgrade_(client, objects_, gates_, clock, interrupted_, say_, recorder.header().cordon_owner()),
      pools_(&client, subject_.pools, recorder.header().cordon_owner()) {
    subject_.is_forced = subject_.is_forced || is_forced;
}

RecipeActor::Loaded& RecipeActor::loaded() {
    const std::lock_guard guard(loading_);
    if (!loaded_) {
        auto releases = read_releases(store_, recorder_.header());
        OwnObjects own(client_, objects_, clock_, interrupted_, say_, subject_.name, releases.others);
        loaded_ = std::make_unique<Loaded>(Loaded{std::move(releases), std::move(own)});
    }
    return *loaded_;
}

Sight RecipeActor::look(const upgrade::NodeStep& step, const Deadline& /*deadline*/) {
    Sight sight;
    if (!recorder_.node(step.node).open) return sight;
    auto left = node_event(recorder_, upgrade::EventKind::observed, step.node, "");
    left.message = "begun again: the step was cut off";
    sight.left = std::move(left);
    return sight;
}

Node RecipeActor::intent(const upgrade::NodeStep& step) {
    const auto& name = step.step;
    if (name == upgrade::recipe::k_step_taint) return Node::mapping({{"cordon", upgrade::k_cordon_ours}});
    if (name == upgrade::recipe::k_step_gate || name == upgrade::recipe::k_step_evict ||
        name == upgrade::recipe::k_step_untaint)
        return Node::mapping();
    return Node::mapping({{"currentKnown", false}});
}

const State& RecipeActor::state_of(const std::string& name) {
    if (const auto* state = loaded().releases.now.find(name)) return *state;
    throw Error(Exit::io, "state-damaged",
                fmt::format("release {} has no state {}", loaded().releases.now.revision, base::escape(name)))
        .hint("kmm-upgrade abort, then the same command again");
}

Done RecipeActor::act(const upgrade::NodeStep& step, const Sight& /*sight*/, const Deadline& deadline) {
    if (step.step == upgrade::k_stage_pause_pools || step.step == upgrade::k_stage_unpause_pools)
        return pools_.act(step.step);
    if (step.node.empty()) return step.step == upgrade::recipe::k_stage_prune ? prune(deadline) : verify(deadline);
    const auto node = upgrade::recipe::driver_node_of(recorder_.node(step.node));
    if (step.step == upgrade::k_step_rollback) {
        pools_.hold();
        return node ? roll_back_node(step.node, *node, deadline) : roll_back(step.node, step.node, deadline);
    }
    if (node) return act_on_node(step.step, *node, deadline);
    const auto& state = state_of(step.node);
    if (step.step == upgrade::recipe::k_step_apply) {
        const auto replaced = remove_replaced(state, deadline);
        auto done = apply(state.objects, own_hooks(), deadline);
        done.message += replaced;
        return done;
    }
    if (step.step == upgrade::recipe::k_step_gate) return gate(state, deadline);
    return remove(state, deadline);
}

void RecipeActor::explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) {
    const auto node = step.node.empty() ? std::nullopt : upgrade::recipe::driver_node_of(recorder_.node(step.node));
    if (node) {
        try {
            const auto lifted = downgrade_.untaint(node->node);
            failed.facts.set("cordon", "");
            if (!lifted.empty()) failed.message += "; " + lifted;
        } catch (const Error& kept) {
            failed.message += "; still tainted: " + kept.message();
        }
    }
    if (error.code() != "field-conflict") return;
    std::vector<std::string> owners;
    for (const auto& [manager, field] : error.details()) owners.push_back(fmt::format("{} owns {}", manager, field));
    failed.message = fmt::format("{}: {}{}", error.message(), base::join(owners, ", "),
                                 failed.message.substr(error.message().size()));
}

std::optional<Error> RecipeActor::lost_for_good(const upgrade::NodeStep& /*step*/, const Error& /*error*/) {
    return std::nullopt;
}

Node RecipeActor::glance(const std::string& /*state*/) { return Node::mapping(); }

std::vector<upgrade::Event> RecipeActor::confirm() {
    std::vector<upgrade::Event> events;
    const auto run = recorder_.run();
    if (upgrade::recipe::is_removal(run)) return events;
    gates_.look_again();
    for (const auto& node : run.nodes) {
        if (node.state != upgrade::k_node_done || upgrade::recipe::driver_node_of(node)) continue;
        std::vector<std::string> problems;
        for (const auto& one : state_of(node.name).objects)
            if (auto problem = gates_.lasting_problem(one); !problem.empty()) problems.push_back(std::move(problem));
        if (problems.empty()) continue;
        auto changed = node_event(recorder_, upgrade::EventKind::observed, node.name, "", "gating-failed");
        changed.reason = "not-verified";
        changed.message = base::join(problems, "; ") + ", after it was ready";
        changed.facts.set("hint", fmt::format("find out why; kmm-upgrade retry {} waits for it again", node.name));
        events.push_back(std::move(changed));
    }
    return events;
}

std::string RecipeActor::release(const std::string& member) {
    const auto node = upgrade::recipe::driver_node_of(recorder_.node(member));
    return node ? downgrade_.untaint(node->node) : "";
}

std::map<std::string, std::string> RecipeActor::unavailable() { return {}; }

}  // namespace kmm::drive
