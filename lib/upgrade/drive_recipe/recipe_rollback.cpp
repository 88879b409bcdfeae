// SPDX-License-Identifier: Apache-2.0
// Steps that bring something back: drivers of one node after the other to a lower version, rollbacks.
#include "upgrade/drive_recipe/recipe_actor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_recipe/replaced_drivers.hpp"
#include "upgrade/drive_recipe/step_texts.hpp"

namespace kmm::drive {

using upgrade::recipe::id_of;
using upgrade::recipe::Release;
using upgrade::recipe::State;
using value::Node;

Done RecipeActor::act_on_node(std::string_view step, const upgrade::recipe::DriverNode& node,
                              const Deadline& deadline) {
    Done done;
    if (step == upgrade::recipe::k_step_taint) {
        const auto whose = downgrade_.taint(node);
        const bool is_ours = whose == Downgrade::Taint::ours;
        done.facts = Node::mapping({{"cordon", is_ours ? upgrade::k_cordon_ours : upgrade::k_cordon_foreign}});
        done.message = is_ours                           ? "tainted"
                       : whose == Downgrade::Taint::gone ? "the node is gone"
                                                         : "tainted by someone else, stays so";
    } else if (step == upgrade::recipe::k_step_evict) {
        const auto evicted = downgrade_.await_evictions(node.node, deadline);
        done.message = evicted == 0 ? "no Pod left to evict" : base::counted(evicted, "Pod") + " evicted";
    } else if (step == upgrade::recipe::k_step_restart) {
        const auto& state = state_of(node.state);
        const auto replaced = remove_replaced(state, deadline);
        static_cast<void>(apply(state.objects, own_hooks(), deadline, Drivers::replaced_by_hand));
        done.message = base::counted(downgrade_.restart(node, state, deadline), "driver Pod") + " replaced" + replaced;
    } else {
        const auto lifted = downgrade_.untaint(node.node);
        done.message = "drivers restarted" + (lifted.empty() ? "" : ", " + lifted);
        done.facts =
            Node::mapping({{"cordon", ""}, {"currentVersion", recorder_.header().to_version}, {"currentKnown", true}});
    }
    return done;
}

Done RecipeActor::roll_back_node(const std::string& member, const upgrade::recipe::DriverNode& node,
                                 const Deadline& deadline) {
    const auto lifted = downgrade_.untaint(node.node);
    auto done = roll_back(member, node.state, deadline);
    if (!lifted.empty()) done.message = lifted + "; " + done.message;
    done.facts.set("cordon", "");
    // A DaemonSet has one template: the other nodes have the release before again, too.
    const auto run = recorder_.run();
    for (const auto& other : run.nodes) {
        const auto place = upgrade::recipe::driver_node_of(other);
        if (!place || place->state != node.state || other.name == member || other.current_version == other.from_version)
            continue;
        auto changed = node_event(recorder_, upgrade::EventKind::observed, other.name, "");
        changed.message = "its drivers were brought back with those of " + node.node;
        changed.facts = Node::mapping({{"currentVersion", other.from_version}, {"currentKnown", true}});
        recorder_.record(changed);
    }
    return done;
}

Done RecipeActor::roll_back(const std::string& member, const std::string& name, const Deadline& deadline) {
    const auto& state = state_of(name);
    Done done;
    const auto facts = [&](const std::string& version) {
        return Node::mapping({{"currentVersion", version}, {"currentKnown", true}});
    };
    const auto before = recorder_.node(member).from_version;
    if (upgrade::recipe::is_removal(recorder_.header())) {
        done = apply(state.objects, {}, deadline);
        static_cast<void>(await_gates(state.objects, deadline));
        if (!state.label.empty()) static_cast<void>(label_nodes(state));
        done.facts = facts(before);
        return done;
    }
    const HookRun rolled_back_hooks{"", subject_.previous != 0};
    const auto* previous = loaded().releases.previous(subject_);
    building_ = previous;
    const auto* old = previous == nullptr ? nullptr : previous->find(name);
    auto wanted = old == nullptr ? std::vector<ReleaseObject>() : old->objects;
    std::vector<ReleaseObject> gone;
    for (auto one = state.objects.rbegin(); one != state.objects.rend(); ++one) {
        const auto id = id_of(one->object);
        const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                           [&](const ReleaseObject& each) { return id_of(each.object) == id; });
        if (is_wanted) continue;
        // It may have been in another state.
        const auto* moved = previous == nullptr ? nullptr : previous->find(id);
        if (moved != nullptr) wanted.push_back(*moved);
        else gone.push_back(*one);
    }
    Removed removed;
    if (previous != nullptr) {
        // Drivers that this state has replaced come back, whichever state they were of; none of both meets the other.
        const auto& now = loaded().releases.now;
        for (auto& one : replaced_drivers(state.objects, previous->ids(), drivers_only_in(*previous, now)))
            if (std::none_of(wanted.begin(), wanted.end(),
                             [&](const auto& each) { return id_of(each.object) == id_of(one.object); }))
                wanted.push_back(std::move(one));
        auto first = replaced_drivers(wanted, now.ids(), drivers_only_in(now, *previous));
        loaded().own.leave_those_of(*previous, first);
        removed = loaded().own.remove(first, deadline);
        loaded().own.leave_those_of(*previous, gone);
    }
    done = apply(wanted, rolled_back_hooks, deadline);
    const auto behind = loaded().own.remove(gone, deadline);
    removed.count += behind.count;
    removed.stays.insert(removed.stays.end(), behind.stays.begin(), behind.stays.end());
    static_cast<void>(await_gates(wanted, deadline));
    const auto keeps_label = [&](const Release& release) {
        return std::any_of(release.states.begin(), release.states.end(),
                           [&](const State& each) { return each.label == state.label; });
    };
    if (!state.label.empty() && (previous == nullptr || !keeps_label(*previous))) unlabel_nodes({state.label});
    if (old != nullptr && !old->label.empty()) static_cast<void>(label_nodes(*old));
    // The first state is the last one that is rolled back.
    if (previous != nullptr &&
        recorder_.look([&](const upgrade::Run& run) { return run.nodes.front().name == member; }))
        bring_back(*previous, deadline);
    done.message += fmt::format(", {} removed{}", removed.count, stays_text(removed));
    done.facts = facts(before);
    return done;
}

void RecipeActor::bring_back(const Release& previous, const Deadline& deadline) {
    for (const auto& state : previous.states) {
        if (loaded().releases.now.find(state.name) != nullptr) continue;
        static_cast<void>(apply(state.objects, HookRun{"", true}, deadline));
        static_cast<void>(await_gates(state.objects, deadline));
        if (!state.label.empty()) static_cast<void>(label_nodes(state));
    }
}

}  // namespace kmm::drive
