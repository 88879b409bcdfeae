// SPDX-License-Identifier: Apache-2.0
// Steps of a rollout and of a removal: objects applied, gated, built on demand, pruned, removed.
#include "api/linux_nodes.hpp"
#include "upgrade/drive_recipe/recipe_actor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/resource/facts.hpp"
#include "upgrade/drive_recipe/apply_order.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "upgrade/drive_recipe/replaced_drivers.hpp"
#include "upgrade/drive_recipe/step_texts.hpp"

namespace kmm::drive {

using upgrade::recipe::id_of;
using upgrade::recipe::State;
using upgrade::recipe::Status;
using value::Node;

namespace {

/// Sets labels of a node and takes away those that are null. False if the node has left the cluster since it was
/// listed.
bool patch_labels(kube::Client& client, const Node& node, Node labels) {
    try {
        static_cast<void>(
            client.merge_patch(kube::resources::k_nodes, {"", node.get_string({"metadata", "name"})},
                               Node::mapping({{"metadata", Node::mapping({{"labels", std::move(labels)}})}})));
        return true;
    } catch (const Error& error) {
        if (error.code() != "object-not-found") throw;
        return false;
    }
}

constexpr const char* k_gate_hint = "kubectl get pods -A -o wide; correct the cause, then kmm-upgrade resume";

/// Resuming applies what is recorded: a chart that was the cause is read by the next start alone.
std::string with_way_to_change(std::string hint, const upgrade::Run& run) {
    if (run.rollback || upgrade::recipe::is_removal(run)) return hint;
    return std::move(hint) + "; after a change of the chart or its values: kmm-upgrade abort, then start recipe again";
}

}  // namespace

HookRun RecipeActor::own_hooks() const {
    const auto& run = recorder_.header();
    return upgrade::recipe::is_removal(run) ? HookRun{} : HookRun{run.lineage, subject_.previous != 0};
}

Done RecipeActor::apply(const std::vector<ReleaseObject>& objects, const HookRun& hooks, const Deadline& deadline,
                        Drivers drivers) {
    const auto is_by_hand = [&](const ReleaseObject& one) {
        return drivers == Drivers::replaced_by_hand && is_driver(one);
    };
    const auto force = subject_.is_forced ? kube::Force::yes : kube::Force::no;
    std::vector<std::string> kernels;
    for (const auto& one : objects) kernels.push_back(one.kernel);
    ApplyOrder order(std::move(kernels));
    std::size_t changed = 0;
    // Of one object: "" once it is applied.
    const auto apply_one = [&](std::size_t place) -> std::string {
        if (interrupted_()) throw Leave{StepEnd::left};
        const auto& one = objects[place];
        if (one.on_demand) return "";
        const auto resource = objects_.resource_of(one.object);
        if (!resource)
            return fmt::format("the API server does not serve kind {} of {}", one.object.get_string({"kind"}),
                               one.object.get_string({"apiVersion"}));
        std::string wait;
        const auto object = placed(is_by_hand(one) ? replaced_by_hand(one.object) : one.object, *resource);
        const auto change = loaded().own.apply(*resource, object, force, kube::DryRun::no, wait, hooks);
        if (change != Change::none) ++changed;
        return wait;
    };
    const auto lacks = [&] {
        const std::lock_guard guard(turn_);
        gates_.look_again();
        const auto gate_one = [&](std::size_t place) {
            return is_by_hand(objects[place]) ? std::string() : gate_problem(objects[place]);
        };
        return base::join(order.advance(apply_one, gate_one), "; ");
    };
    await_clear(clock_, deadline, interrupted_, with_way_to_change(k_gate_hint, recorder_.run()),
                spoken(clock_, deadline, say_, lacks));
    Done done;
    const auto demanded =
        std::count_if(objects.begin(), objects.end(), [](const ReleaseObject& one) { return one.on_demand; });
    done.message = fmt::format("{} of {} changed", changed,
                               base::counted(objects.size() - static_cast<std::size_t>(demanded), "object"));
    return done;
}

std::string RecipeActor::remove_replaced(const State& state, const Deadline& deadline) {
    const std::lock_guard guard(turn_);
    const auto& all = loaded().releases.all;
    const auto& now = loaded().releases.now;
    const auto* previous = loaded().releases.previous(subject_);
    const auto known = previous == nullptr ? std::set<upgrade::recipe::ObjectId>() : previous->ids();
    const auto replaced = [&](const std::set<std::string>& needed) {
        return replaced_drivers(state.objects, known, upgrade::recipe::leftovers(all, now, needed).obsolete);
    };
    if (replaced({}).empty()) return "";
    auto gone = replaced(needed_kernels(client_, subject_, all));
    loaded().own.leave_those_of(now, gone);
    if (gone.empty()) return "";
    const auto removed = loaded().own.remove(gone, deadline);
    return fmt::format(", {} of before removed{}", base::counted(removed.count, "driver"), stays_text(removed));
}

std::vector<std::string> RecipeActor::await_gates(const std::vector<ReleaseObject>& objects,
                                                  const Deadline& deadline) {
    std::vector<std::string> idle;
    const auto lacks = [&] {
        const std::lock_guard guard(turn_);
        gates_.look_again();
        std::vector<std::string> problems;
        for (const auto& one : objects)
            if (auto problem = gate_problem(one); !problem.empty()) problems.push_back(std::move(problem));
        idle = gates_.idle();
        return base::join(problems, "; ");
    };
    await_clear(clock_, deadline, interrupted_, with_way_to_change(k_gate_hint, recorder_.run()),
                spoken(clock_, deadline, say_, lacks));
    return idle;
}

std::string RecipeActor::gate_problem(const ReleaseObject& one) {
    if (one.on_demand || is_passed_over(one.object, own_hooks())) return "";
    std::string problem;
    try {
        problem = gates_.problem(one);
    } catch (const Error& error) {
        if (error.code() != "gate-failed") throw;
        throw Error(error).hint(with_way_to_change(error.hint(), recorder_.run()));
    }
    const auto vendor = problem.empty() ? std::string() : driver_vendor(one.object);
    const auto missing = problem.empty() ? std::string() : gates_.image_problem(one);
    if (missing.empty()) return problem;
    std::vector<std::string> waits;
    bool is_built = false;
    const auto& from = building_ == nullptr ? loaded().releases.now : *building_;
    for (const auto& state : from.states) {
        for (const auto& build : state.objects) {
            const bool builds_it = !vendor.empty() && is_paired_build(build.object) &&
                                   driver_vendor(build.object) == vendor &&
                                   (build.kernel.empty() || build.kernel == one.kernel);
            if (!builds_it) continue;
            is_built = true;
            const auto resource = objects_.resource_of(build.object);
            if (resource && build.on_demand && !demanded_.contains(id_of(build.object))) {
                std::string wait;
                static_cast<void>(loaded().own.apply(*resource, placed(build.object, *resource),
                                                     subject_.is_forced ? kube::Force::yes : kube::Force::no,
                                                     kube::DryRun::no, wait));
                if (wait.empty()) demanded_.insert(id_of(build.object));
                else waits.push_back(std::move(wait));
            }
            if (auto lacks = gates_.readiness(build); !lacks.empty()) waits.push_back(std::move(lacks));
        }
    }
    if (!is_built) return fmt::format("{}; {}; nothing of the recipe builds it", problem, missing);
    return problem + "; " + missing +
           (waits.empty() ? "; it is built, and will be pulled again" : "; " + base::join(waits, "; "));
}

Done RecipeActor::gate(const State& state, const Deadline& deadline) {
    const auto idle = await_gates(state.objects, deadline);
    const auto waited = std::count_if(state.objects.begin(), state.objects.end(), [&](const ReleaseObject& one) {
        return !one.on_demand && !is_passed_over(one.object, own_hooks()) &&
               (is_gated(one.object) || !log_pattern(one.object).empty());
    });
    Done done;
    done.message = waited == 0 ? "applied, no object is waited for"
                               : base::counted(static_cast<std::size_t>(waited), "object") + " ready";
    if (!idle.empty()) done.message += fmt::format(" ({} no Pod)", base::join(idle, ", "));
    const std::lock_guard guard(turn_);
    if (!state.label.empty()) done.message += ", " + base::counted(label_nodes(state), "node") + " labelled";
    done.facts = Node::mapping({{"currentVersion", recorder_.header().to_version}, {"currentKnown", true}});
    return done;
}

bool RecipeActor::lacks_copy(const State& state, const Node& node) {
    const auto is_copy = [](const ReleaseObject& one) { return !one.kernel.empty(); };
    if (std::none_of(state.objects.begin(), state.objects.end(), is_copy)) return false;
    const auto kernel = node.get_string({"status", "nodeInfo", "kernelVersion"});
    const auto is_its = [&](const ReleaseObject& one) { return one.kernel == kernel; };
    if (std::any_of(state.objects.begin(), state.objects.end(), is_its)) return false;
    return std::none_of(loaded().releases.all.begin(), loaded().releases.all.end(), [&](const auto& release) {
        const auto* same = release.find(state.name);
        return (same != nullptr && std::any_of(same->objects.begin(), same->objects.end(), is_its)) ||
               std::any_of(release.kept.begin(), release.kept.end(), is_its);
    });
}

std::size_t RecipeActor::label_nodes(const State& state) {
    const auto is_of_others = [&](const Node& node) {
        return std::any_of(
            loaded().releases.others.begin(), loaded().releases.others.end(), [&](const upgrade::recipe::Release& one) {
                return std::any_of(one.states.begin(), one.states.end(), [&](const State& other) {
                    return other.label == state.label && other.nodes.selects(node);
                });
            });
    };
    std::size_t number = 0;
    for (const auto& node : client_.list_all(kube::resources::k_nodes, {})) {
        const auto* labels = node.find_path({"metadata", "labels"});
        const auto* found = labels == nullptr ? nullptr : labels->find(state.label);
        const bool is_selected =
            state.nodes.selects(node) && api::runs_linux(node) && !lacks_copy(state, node);
        if (is_selected) ++number;
        // A node that an earlier release selected, or that was updated, does not run the state any more.
        if (is_selected ? found != nullptr && found->text() == "Ready" : found == nullptr || is_of_others(node))
            continue;
        auto wanted = Node::mapping();
        wanted.set(state.label, is_selected ? Node("Ready") : Node());
        if (!patch_labels(client_, node, std::move(wanted)) && is_selected) --number;
    }
    return number;
}

void RecipeActor::unlabel_nodes(std::set<std::string> names) {
    for (const auto& other : loaded().releases.others)
        for (const auto& state : other.states) names.erase(state.label);
    if (names.empty()) return;
    for (const auto& node : client_.list_all(kube::resources::k_nodes, {})) {
        auto gone = Node::mapping();
        const auto* labels = node.find_path({"metadata", "labels"});
        for (const auto& name : names)
            if (labels != nullptr && labels->find(name) != nullptr) gone.set(name, Node());
        if (gone.members().empty()) continue;
        static_cast<void>(patch_labels(client_, node, std::move(gone)));
    }
}

Done RecipeActor::prune(const Deadline& deadline) {
    auto& now = loaded().releases.now;
    auto left = upgrade::recipe::leftovers(loaded().releases.all, now,
                                           needed_kernels(client_, subject_, loaded().releases.all));
    loaded().own.leave_those_of(now, left.obsolete);
    // What stays belongs to this release from now on: its removal takes it away.
    now.kept = left.kept;
    store_.put(now);
    const auto removed = loaded().own.remove(left.obsolete, deadline);
    std::set<std::string> labels;
    for (const auto& release : loaded().releases.all)
        for (const auto& state : release.states) labels.insert(state.label);
    labels.erase("");
    for (const auto& state : now.states) labels.erase(state.label);
    unlabel_nodes(labels);
    now.status = Status::deployed;
    store_.put(now);
    for (auto& release : loaded().releases.all) {
        if (release.revision == now.revision) continue;
        if (release.revision != subject_.previous) store_.remove(release);
        else if (release.status != Status::superseded) {
            release.status = Status::superseded;
            store_.put(release);
        }
    }
    Done done;
    done.message = fmt::format(
        "{} removed{}{}", base::counted(removed.count, "obsolete object"),
        left.kept.empty() ? "" : fmt::format(", {} kept for kernels that are still needed", left.kept.size()),
        stays_text(removed));
    return done;
}

Done RecipeActor::remove(const State& state, const Deadline& deadline) {
    std::vector<ReleaseObject> reversed(state.objects.rbegin(), state.objects.rend());
    if (!state.label.empty()) unlabel_nodes({state.label});
    const auto removed = loaded().own.remove(reversed, deadline);
    Done done;
    done.message = base::counted(removed.count, "object") + " removed" + stays_text(removed);
    done.facts = Node::mapping({{"currentVersion", ""}, {"currentKnown", true}});
    return done;
}

Done RecipeActor::verify(const Deadline& deadline) {
    // Another process may have created something since, and what was applied in the last moment may still be ending.
    const auto leftovers = [&] {
        const auto left = loaded().own.labelled(loaded().releases.now);
        return left.empty() ? std::string() : "left over: " + base::join(left, ", ");
    };
    await_clear(clock_, deadline, interrupted_, "delete it, then kmm-upgrade resume",
                spoken(clock_, deadline, say_, leftovers));
    for (const auto& release : loaded().releases.all) store_.remove(release);
    Done done;
    done.message = "no object with the label of the recipe is left";
    return done;
}

}  // namespace kmm::drive
