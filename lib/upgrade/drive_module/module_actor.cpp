// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/module_actor.hpp"

#include <map>

#include <fmt/format.h>

#include "upgrade/actor_parts/cordon_text.hpp"
#include "upgrade/actor_parts/user_check.hpp"
#include "upgrade/drive_module/drain.hpp"
#include "upgrade/drive_module/operator_way.hpp"
#include "upgrade/drive_module/worker_way.hpp"

namespace kmm::drive {

using upgrade::EventKind;

namespace {

value::Node check_document(const StepTools& tools, const upgrade::module::Node& node, const Look& seen) {
    auto document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                          {"kind", "NodeCheck"},
                                          {"node", node.name},
                                          {"kernel", seen.facts.kernel},
                                          {"bootID", seen.facts.boot_id},
                                          {"architecture", seen.facts.architecture},
                                          {"module", tools.subject.full_name()},
                                          {"kernelModule", tools.subject.kernel_module},
                                          {"fromVersion", node.from_version},
                                          {"toVersion", tools.run().to_version},
                                          {"image", node.target_image},
                                          {"digest", node.target_digest}});
    document.set("live", upgrade::module::encode(seen.module.identity));
    return document;
}

/// The message with what was being done, the place of the document it is about, and the first fault where there are
/// several.
std::string told(const Error& error) {
    const auto placed = [&](const std::optional<Position>& place, const std::string& text) {
        return place && (place->line != 0 || !error.diagnostics().empty())
                   ? fmt::format("{}: {}", place->to_string(), text)
                   : text;
    };
    std::size_t faults = 0;
    const Diagnostic* first = nullptr;
    for (const auto& fault : error.diagnostics()) {
        if (fault.severity != Severity::error) continue;
        if (first == nullptr) first = &fault;
        ++faults;
    }
    std::string doing;
    for (const auto& context : error.context()) doing += context + ": ";
    if (faults < 2) return doing + placed(error.position(), error.message());
    return fmt::format("{}{} ({} faults in all)", doing, placed(first->position, first->message), faults);
}

/// What `live` means for the record.
void set_current(const StepTools& tools, const std::string& node, const std::optional<LiveModule>& live,
                 value::Node& facts) {
    const bool is_known = live && live->presence != Presence::moving;
    facts.set("currentKnown", is_known);
    if (!is_known) return;
    facts.set("currentVersion", version_of(tools.run(), tools.node(node), *live));
    facts.set("live", upgrade::module::encode(live->identity));
}

std::unique_ptr<Way> make_way(StepTools& tools) {
    if (tools.run().options.via == upgrade::Via::operator_) return std::make_unique<OperatorWay>(tools);
    return std::make_unique<WorkerWay>(tools);
}

/// `facts` without their "message", which is for people.
Done done_of(Facts facts) {
    Done done;
    if (const auto* message = facts.find("message")) {
        done.message = message->text();
        facts.erase("message");
    }
    done.facts = std::move(facts);
    return done;
}

/// What is said of a node that ends cordoned, though not by this run; "" for one that takes Pods.
std::string cordon_of_others(Fleet& fleet, const std::string& name) {
    try {
        const auto node = fleet.view(name).node;
        if (!node.unschedulable) return "";
        const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
        return ", " + left_cordoned_text(owner == node.meta.annotations.end() ? "" : owner->second);
    } catch (const Error& error) {
        if (error.code() != "node-not-found") throw;
        return "";
    }
}

}  // namespace

ModuleActor::ModuleActor(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner,
                         Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted,
                         std::chrono::milliseconds silence)
    : subject_(upgrade::module::subject_of(recorder.header())),
      worker_(runner),
      fleet_(store, subject_.ns, subject_.name),
      tools_{fleet_, workloads, worker_, recorder, clock, std::move(interrupted), subject_, silence},
      drainer_(workloads, recorder, clock, tools_.interrupted),
      way_(make_way(tools_)) {}

ModuleActor::~ModuleActor() = default;

Sight ModuleActor::look(const upgrade::NodeStep& step, const Deadline& deadline) {
    const auto before = tools_.recorder.node(step.node);
    auto found = way_->look(step.node, deadline);
    Sight sight;
    sight.is_interrupted = !found.look && found.why == NoLook::interrupted;
    if (!found.look && step.step == upgrade::k_step_rollback && found.error && is_gone(step.node, *found.error))
        return sight;
    sight.error = std::move(found.error);
    if (!found.look) return sight;
    if (auto other = other_host(tools_.recorder, fleet_.store(), step.node, found.look->facts.boot_id)) {
        sight.error = std::move(other);
        return sight;
    }
    sight.seen = *found.look;
    if (before.state == upgrade::k_node_pending || step.step == upgrade::k_step_rollback) return sight;
    sight.changed = tools_.reboot_of(step.node, found.look->facts);
    if (sight.changed || !before.open) return sight;
    const auto& live = found.look->module;
    auto left = tools_.event(EventKind::observed, step.node, "");
    left.message = "looked after the step was cut off: " +
                   (live.presence == Presence::absent ? std::string("nothing is live")
                                                      : live.said_version.value_or(live.identity.brief()) + " is live");
    left.facts.set("live", upgrade::module::encode(live.identity));
    sight.left = std::move(left);
    return sight;
}

value::Node ModuleActor::intent(const upgrade::NodeStep& step) {
    if (step.step == upgrade::k_step_cordon) return Cordons::intent();
    auto facts = value::Node::mapping();
    if (step.step == "unload" || step.step == "load" || step.step == upgrade::k_step_rollback)
        facts.set("currentKnown", false);
    return facts;
}

Done ModuleActor::act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const auto& name = step.node;
    if (!sight.seen.has_value()) return leave_gone(name);
    const auto& seen = std::any_cast<const Look&>(sight.seen);
    if (step.step == "check") return done_of(way_->check(name, seen, deadline));
    if (step.step == upgrade::k_step_cordon) return tools_.cordons.cordon(name);
    if (step.step == upgrade::k_step_drain) {
        Done done;
        done.message = drainer_.drain(
            name, drain_rules_of(tools_.run().options, fleet_.module_or_name(), tools_.workloads), deadline);
        return done;
    }
    if (step.step == "unload") return done_of(way_->unload(name, seen, deadline));
    if (step.step == "load") return done_of(way_->load(name, seen, deadline));
    if (step.step == "validate") return validate(name, seen, deadline);
    if (step.step == upgrade::k_step_uncordon) return uncordon(name);
    return roll_back(name, seen, deadline);
}

Done ModuleActor::validate(const std::string& name, const Look& seen, const Deadline& deadline) {
    auto done = done_of(way_->validate(name, seen));
    const bool is_cordoned = tools_.cordons.is_ours(name);
    if (!upgrade::module::goes_away(tools_.recorder.node(name))) {
        ask_user_check(tools_.run().options, check_document(tools_, tools_.node(name), seen), deadline,
                       tools_.interrupted);
        // A node that was drained is watched when its Pods are back.
        if (!is_cordoned) watch(name, {});
    }
    if (!is_cordoned) done.message += cordon_of_others(fleet_, name);
    // Where a cordon is still to be lifted, a validated node is not done.
    if (is_cordoned) done.state = "validating";
    return done;
}

void ModuleActor::watch(const std::string& name, value::Node facts) {
    const auto node = tools_.node(name);
    const auto& options = tools_.run().options;
    if (options.soak_ms == 0 || node.next == "validate" || node.goal == upgrade::module::k_goal_absent)
        return;  // nothing new runs there
    soak(tools_.recorder, tools_.clock, name, std::move(facts), tools_.interrupted);
    const auto found = way_->look(name, Deadline(tools_.clock, std::chrono::milliseconds(options.node_timeout_ms)));
    if (!found.look && found.why == NoLook::interrupted) throw Leave{StepEnd::left};
    if (!found.look) throw Error(*found.error);
    tools_.require_same_boot(name, found.look->facts);
    way_->require_target(name, *found.look);
}

Done ModuleActor::uncordon(const std::string& name) {
    return tools_.cordons.uncordon(
        name, [&](value::Node facts) { watch(name, std::move(facts)); },
        [&] {
            const auto node = tools_.node(name);
            if (node.goal == upgrade::module::k_goal_absent) return "unloaded " + subject_.kernel_module;
            const auto build = node.live.brief();
            return fmt::format("loaded {} {}", subject_.kernel_module, build.empty() ? tools_.run().to_version : build);
        });
}

bool ModuleActor::is_gone(const std::string& name, const Error& why) {
    if (why.code() != "node-not-found") return false;
    try {
        return !way_->glance(name) && !tools_.interrupted();
    } catch (const Error& error) {
        if (error.code() != "node-not-found") throw;
        return true;
    }
}

Done ModuleActor::roll_back(const std::string& name, const Look& seen, const Deadline& deadline) {
    auto done = done_of(way_->rollback(name, seen, deadline));
    const auto lifted = tools_.cordons.lift(name);
    if (!tools_.recorder.node(name).cordon.empty()) done.facts.set("cordon", "");
    done.message += lifted.empty() ? cordon_of_others(fleet_, name) : ", " + lifted;
    return done;
}

void ModuleActor::explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) {
    failed.message = told(error);
    for (const auto& [key, text] : error.details()) {
        if (key == "transport") failed.message = fmt::format("{}: {}", error.message(), text);
        if (key == "kernel") failed.facts.set("kernelLine", text);
        if (key == "errno" && error.message().find(text) == std::string::npos)
            failed.message = fmt::format("{}: {}", text, error.message());
        if (key == "holders") failed.message = fmt::format("{} (held by {})", error.message(), text);
    }
    if (error.code() == "check-failed" && !error.details().empty())
        failed.message = fmt::format("{}: {}", error.message(), error.details().front().second);
    if (step.step == upgrade::k_step_cordon || step.step == upgrade::k_step_drain) {
        // A cordon that was refused has to be lifted as well where the refusal may not be the last word, but it is not
        // reported.
        tools_.cordons.give_back(
            step.node, [&] { return step.step != upgrade::k_step_cordon || is_cordoned_by_run(step.node); }, failed);
    }
    // What runs there now: only a look can tell.
    if (step.step != "check" && error.code() != "node-not-found")
        set_current(tools_, step.node, way_->glance(step.node), failed.facts);
}

bool ModuleActor::is_cordoned_by_run(const std::string& name) {
    const auto node = fleet_.view(name).node;
    const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
    return node.unschedulable && owner != node.meta.annotations.end() && owner->second == tools_.run().cordon_owner();
}

std::optional<Error> ModuleActor::lost_for_good(const upgrade::NodeStep& step, const Error& error) {
    auto absence = tools_.absence_of(step.node);
    if (absence && error.code() == "node-not-found") return error;
    return absence;
}

value::Node ModuleActor::glance(const std::string& node) {
    auto facts = value::Node::mapping();
    set_current(tools_, node, way_->glance(node), facts);
    return facts;
}

std::string ModuleActor::release(const std::string& node) { return tools_.cordons.lift(node); }

std::map<std::string, std::string> ModuleActor::unavailable() { return fleet_.unavailable(); }

}  // namespace kmm::drive
