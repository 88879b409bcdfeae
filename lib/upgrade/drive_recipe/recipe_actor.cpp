// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/recipe_actor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_recipe/apply_order.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "upgrade/drive_recipe/readiness.hpp"

namespace kmm::drive {

using upgrade::recipe::id_of;
using upgrade::recipe::Release;
using upgrade::recipe::State;
using upgrade::recipe::Status;
using value::Node;

namespace {

constexpr const char* k_gate_hint = "kubectl get pods -A -o wide; correct the cause, then kmm-upgrade resume";

std::string count_text(std::size_t number, const char* word) {
    return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
}

std::string stays_text(const Removed& removed) {
    return removed.stays.empty() ? "" : "; left as they are: " + base::join(removed.stays, "; ");
}

}  // namespace

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
                         bool is_forced)
    : client_(client),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      subject_(upgrade::recipe::subject_of(recorder.header())),
      store_(client, subject_.space),
      objects_(client),
      gates_(client, objects_),
      downgrade_(client, objects_, gates_, clock, interrupted_, recorder.header().cordon_owner()),
      pools_(&client, subject_.pools, recorder.header().cordon_owner()) {
    subject_.is_forced = subject_.is_forced || is_forced;
}

RecipeActor::Loaded& RecipeActor::loaded() {
    if (!loaded_) {
        auto releases = read_releases(store_, recorder_.header());
        OwnObjects own(client_, objects_, clock_, interrupted_, subject_.name, releases.others);
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
    if (step.step == upgrade::k_step_rollback)
        return node ? roll_back_node(step.node, *node, deadline) : roll_back(step.node, step.node, deadline);
    if (node) return act_on_node(step.step, *node, deadline);
    const auto& state = state_of(step.node);
    if (step.step == upgrade::recipe::k_step_apply) return apply(state.objects, deadline);
    if (step.step == upgrade::recipe::k_step_gate) return gate(state, deadline);
    return remove(state, deadline);
}

Done RecipeActor::apply(const std::vector<ReleaseObject>& objects, const Deadline& deadline, Drivers drivers) {
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
        const auto change = loaded().own.apply(*resource, object, force, kube::DryRun::no, wait);
        if (change != Change::none) ++changed;
        return wait;
    };
    await_clear(clock_, deadline, interrupted_, k_gate_hint, [&] {
        gates_.look_again();
        const auto gate_one = [&](std::size_t place) {
            return is_by_hand(objects[place]) ? std::string() : gate_problem(objects[place]);
        };
        return base::join(order.advance(apply_one, gate_one), "; ");
    });
    Done done;
    const auto demanded =
        std::count_if(objects.begin(), objects.end(), [](const ReleaseObject& one) { return one.on_demand; });
    done.message = fmt::format("{} of {} changed", changed,
                               count_text(objects.size() - static_cast<std::size_t>(demanded), "object"));
    return done;
}

void RecipeActor::await_gates(const std::vector<ReleaseObject>& objects, const Deadline& deadline) {
    await_clear(clock_, deadline, interrupted_, k_gate_hint, [&] {
        gates_.look_again();
        std::vector<std::string> problems;
        for (const auto& one : objects)
            if (auto problem = gate_problem(one); !problem.empty()) problems.push_back(std::move(problem));
        return base::join(problems, "; ");
    });
}

std::string RecipeActor::gate_problem(const ReleaseObject& one) {
    if (one.on_demand) return "";
    const auto problem = gates_.problem(one);
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
    await_gates(state.objects, deadline);
    const auto waited = std::count_if(state.objects.begin(), state.objects.end(), [](const ReleaseObject& one) {
        return !one.on_demand && (is_gated(one.object) || !log_pattern(one.object).empty());
    });
    Done done;
    done.message = waited == 0 ? "applied, no object is waited for"
                               : count_text(static_cast<std::size_t>(waited), "object") + " ready";
    if (!gates_.idle().empty()) done.message += fmt::format(" ({} no Pod)", base::join(gates_.idle(), ", "));
    if (!state.label.empty()) done.message += ", " + count_text(label_nodes(state), "node") + " labelled";
    done.facts = Node::mapping({{"currentVersion", recorder_.header().to_version}, {"currentKnown", true}});
    return done;
}

std::size_t RecipeActor::label_nodes(const State& state) {
    std::size_t number = 0;
    for (const auto& node : client_.list_all(kube::resources::k_nodes, {})) {
        if (!state.nodes.selects(node)) continue;
        ++number;
        const auto* labels = node.find_path({"metadata", "labels"});
        const auto* found = labels == nullptr ? nullptr : labels->find(state.label);
        if (found != nullptr && found->text() == "Ready") continue;
        auto wanted = Node::mapping();
        wanted.set(state.label, "Ready");
        static_cast<void>(
            client_.merge_patch(kube::resources::k_nodes, {"", node.get_string({"metadata", "name"})},
                                Node::mapping({{"metadata", Node::mapping({{"labels", std::move(wanted)}})}})));
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
        static_cast<void>(
            client_.merge_patch(kube::resources::k_nodes, {"", node.get_string({"metadata", "name"})},
                                Node::mapping({{"metadata", Node::mapping({{"labels", std::move(gone)}})}})));
    }
}

Done RecipeActor::prune(const Deadline& deadline) {
    auto& now = loaded().releases.now;
    auto left = upgrade::recipe::leftovers(loaded().releases.all, now,
                                           needed_kernels(client_, subject_, loaded().releases.all));
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
        "{} removed{}{}", count_text(removed.count, "obsolete object"),
        left.kept.empty() ? "" : fmt::format(", {} kept for kernels that are still needed", left.kept.size()),
        stays_text(removed));
    return done;
}

Done RecipeActor::remove(const State& state, const Deadline& deadline) {
    std::vector<ReleaseObject> reversed(state.objects.rbegin(), state.objects.rend());
    if (!state.label.empty()) unlabel_nodes({state.label});
    const auto removed = loaded().own.remove(reversed, deadline);
    Done done;
    done.message = count_text(removed.count, "object") + " removed" + stays_text(removed);
    done.facts = Node::mapping({{"currentVersion", ""}, {"currentKnown", true}});
    return done;
}

Done RecipeActor::verify(const Deadline& deadline) {
    // Another process may have created something since, and what was applied in the last moment may still be ending.
    await_clear(clock_, deadline, interrupted_, "delete it, then kmm-upgrade resume", [&] {
        const auto left = loaded().own.labelled(loaded().releases.now);
        return left.empty() ? std::string() : "left over: " + base::join(left, ", ");
    });
    for (const auto& release : loaded().releases.all) store_.remove(release);
    Done done;
    done.message = "no object with the label of the recipe is left";
    return done;
}

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
        done.message = evicted == 0 ? "no Pod left to evict" : count_text(evicted, "Pod") + " evicted";
    } else if (step == upgrade::recipe::k_step_restart) {
        const auto& state = state_of(node.state);
        static_cast<void>(apply(state.objects, deadline, Drivers::replaced_by_hand));
        done.message = count_text(downgrade_.restart(node, state, deadline), "driver Pod") + " replaced";
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
        done = apply(state.objects, deadline);
        await_gates(state.objects, deadline);
        if (!state.label.empty()) static_cast<void>(label_nodes(state));
        done.facts = facts(before);
        return done;
    }
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
    done = apply(wanted, deadline);
    const auto removed = loaded().own.remove(gone, deadline);
    await_gates(wanted, deadline);
    const auto keeps_label = [&](const Release& release) {
        return std::any_of(release.states.begin(), release.states.end(),
                           [&](const State& each) { return each.label == state.label; });
    };
    if (!state.label.empty() && (previous == nullptr || !keeps_label(*previous))) unlabel_nodes({state.label});
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
        static_cast<void>(apply(state.objects, deadline));
        await_gates(state.objects, deadline);
        if (!state.label.empty()) static_cast<void>(label_nodes(state));
    }
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
