// SPDX-License-Identifier: Apache-2.0
#include "drive/node_steps.hpp"

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "upgrade/procedure.hpp"

namespace kmm::drive {

using upgrade::compare;
using upgrade::EventKind;
using upgrade::Sameness;

namespace {

/// A file that an editor or git replaces is not there for a moment.
constexpr std::chrono::milliseconds k_replaced_within{200};

std::string shown(const std::string& version) { return version.empty() ? "unversioned" : version; }

/// The value of a version label; none for a Module without versions.
std::optional<std::string> label_value(const std::string& version) {
    return version.empty() ? std::nullopt : std::optional<std::string>(version);
}

/// Another worker is still changing modules of the node: its end is waited for, then the node is asked.
bool is_busy(const std::optional<Error>& error) { return error && error->code() == "node-busy"; }

/// The message with what was being done, the place of the document it is about, and the first fault where there are several.
std::string told(const Error& error) {
    const auto placed = [&](const std::optional<Position>& place, const std::string& text) {
        return place && (place->line != 0 || !error.diagnostics().empty()) ? fmt::format("{}: {}", place->to_string(), text) : text;
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

/// The error that there is no such Node in the cluster, or nullopt, also where a document cannot be read. Throws only what is wrong with an
/// API server.
std::optional<Error> absence_of(Fleet& fleet, const std::string& node) {
    try {
        static_cast<void>(fleet.view(node));
        return std::nullopt;
    } catch (const Error& error) {
        if (cluster::is_server_trouble(error)) throw;
        return error.code() == "node-not-found" ? std::optional<Error>(error) : std::nullopt;
    }
}

/// Nothing, for members that are to become empty.
value::Node empty_identity() { return value::Node::mapping(); }

}  // namespace

std::string version_of(const upgrade::Header& run, const upgrade::NodeRecord& node, const LiveModule& live) {
    if (live.presence == Presence::absent) return "";
    if (live.said_version) return shown(*live.said_version);
    if (compare(live.identity, node.target_identity) == Sameness::same) return shown(run.to_version);
    if (!node.from_entry.is_null() && compare(live.identity, node.from_identity) == Sameness::same)
        return shown(node.from_version);
    return "unknown";
}

upgrade::Event NodeSteps::event(EventKind kind, const std::string& node, const std::string& step, const std::string& to) const {
    upgrade::Event made;
    made.kind = kind;
    made.node = node;
    made.step = step;
    made.from = tools_.recorder.node(node).state;
    made.to = to;
    made.facts = value::Node::mapping();
    return made;
}

void NodeSteps::record_failure(const upgrade::NodeStep& step, const Error& error) {
    const auto* data = upgrade::procedure_of(tools_.recorder.header()).table().find_step(step.step);
    auto failed = event(EventKind::failed, step.node, step.step, data->failed);
    failed.reason = error.code();
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
    if (!error.hint().empty()) failed.facts.set("hint", error.hint());
    if (step.step == "cordon" || step.step == "drain") {
        // Nothing was changed on the node: it goes back to work.
        try {
            // A cordon that was refused has to be lifted as well where the refusal may not be the last word, but it is not reported.
            const bool was_cordoned = step.step != "cordon" || is_cordoned_by_run(step.node);
            const auto lifted = lift(step.node);
            failed.facts.set("cordon", "");
            if (!lifted.empty() && was_cordoned) failed.message += "; " + lifted;
        } catch (const Error& kept) {
            failed.message += "; still cordoned: " + kept.message();
        }
    }
    if (step.step != "check" && error.code() != "node-not-found") {
        // What runs there now: only a look can tell.
        const auto live = glance(step.node);
        const bool known = live && live->presence != Presence::moving;
        failed.facts.set("currentKnown", known);
        if (known) {
            failed.facts.set("currentVersion", version_of(tools_.recorder.header(), tools_.recorder.node(step.node), *live));
            failed.facts.set("live", upgrade::encode(live->identity));
        }
    }
    tools_.recorder.record(failed);
    if (step.step == "rollback") return;
    const auto absence = error.code() == "node-not-found" ? std::optional<Error>(error) : absence_of(tools_.fleet, step.node);
    if (!absence || !is_still_gone(step.node)) return;
    // Nobody brings it back: the others go on.
    auto gone = event(EventKind::skip, step.node, "", "skipped");
    gone.reason = "gone";
    gone.message = "gone: " + absence->message();
    tools_.recorder.record(gone);
}

bool NodeSteps::is_still_gone(const std::string& name) {
    static_cast<void>(tools_.clock.sleep_for(k_replaced_within));
    try {
        return absence_of(tools_.fleet, name).has_value();
    } catch (const Error&) {
        return false;
    }
}

LookResult NodeSteps::look(const std::string& name, const Deadline& deadline) {
    // A Pod for a node that was deleted would be waited for in vain.
    if (auto gone = absence_of(tools_.fleet, name); gone && is_still_gone(name)) {
        LookResult result;
        result.why = NoLook::refused;
        result.error = std::move(gone);
        return result;
    }
    const auto begin = tools_.clock.monotonic();
    auto watched = watch(name, "status", tools_.silence, deadline);
    auto result = look_at(tools_.worker, tools_.clock, name, tools_.recorder.header().kernel_module, deadline, tools_.interrupted);
    if (result.look) end_watch(watched, name, begin);
    if (result.look && result.lost) record_lost(name, *result.lost, "answers again");
    return result;
}

std::optional<LiveModule> NodeSteps::glance(const std::string& name) {
    try {
        const auto status = tools_.worker.status(name, tools_.recorder.header().kernel_module, std::chrono::seconds(30));
        return status.value ? std::optional(status.value->module) : std::nullopt;
    } catch (const Error& error) {
        if (!cluster::is_server_trouble(error) && error.code() != "interrupted") throw;
        return std::nullopt;
    }
}

Look NodeSteps::must_look(const std::string& name, const Deadline& deadline) {
    const auto result = look(name, deadline);
    if (result.look) return *result.look;
    if (result.why == NoLook::interrupted) throw Leave{StepEnd::left};
    throw *result.error;
}

bool NodeSteps::same_boot(const std::string& name, const NodeFacts& facts) {
    const auto node = tools_.recorder.node(name);
    if (node.boot_id == facts.boot_id && node.kernel == facts.kernel) return true;
    auto observed = event(EventKind::observed, name, "", "pending");
    observed.reason = "node-rebooted";
    observed.message = node.kernel == facts.kernel
                           ? "the node rebooted, it is planned anew"
                           : fmt::format("the node rebooted into kernel {}, it is planned anew", facts.kernel);
    observed.facts.set("kernel", facts.kernel);
    observed.facts.set("bootID", facts.boot_id);
    tools_.recorder.record(observed);
    return false;
}

std::string NodeSteps::input(const api::NodeModule& entry) {
    const auto secret = tools_.fleet.secret(entry.image_repo_secret);
    return worker_input(entry.config, secret ? &*secret : nullptr);
}

void NodeSteps::record_look(const std::string& name, const Look& seen) {
    auto observed = event(EventKind::observed, name, "", tools_.recorder.node(name).state);
    observed.message = "looked after the step was cut off: " + (seen.module.presence == Presence::absent
                                                                     ? std::string("nothing is live")
                                                                     : seen.module.said_version.value_or(seen.module.identity.brief()) + " is live");
    observed.facts.set("live", upgrade::encode(seen.module.identity));
    tools_.recorder.record(observed);
}

NodeSteps::Facts NodeSteps::act(const upgrade::NodeStep& step, const Look& seen, const Deadline& deadline) {
    if (step.step == "check") return check(step.node, seen, deadline);
    if (step.step == "cordon") return cordon(step.node);
    if (step.step == "drain") return drain(step.node, deadline);
    if (step.step == "unload") return unload(step.node, seen, deadline);
    if (step.step == "load") return load(step.node, seen, deadline);
    if (step.step == "validate") return validate(step.node, seen, deadline);
    if (step.step == "uncordon") return uncordon(step.node);
    return rollback(step.node, seen, deadline);
}

StepEnd NodeSteps::run(const upgrade::NodeStep& step) {
    if (step.step == upgrade::k_step_release) {
        release(step.node);
        return StepEnd::done;
    }
    const auto before = tools_.recorder.node(step.node);
    const Deadline deadline(tools_.clock, std::chrono::milliseconds(tools_.recorder.header().options.node_timeout_ms));
    const auto* data = upgrade::procedure_of(tools_.recorder.header()).table().find_step(step.step);
    if (data == nullptr || data->scope != upgrade::Scope::node) throw bug(fmt::format("{} is no step of a node", step.step));
    const auto seen = look(step.node, deadline);
    if (!seen.look && seen.why == NoLook::interrupted) return StepEnd::left;
    const bool begun = before.state != upgrade::k_node_pending;
    if (seen.look && begun && step.step != "rollback") {
        if (!same_boot(step.node, seen.look->facts)) return StepEnd::again;
        if (before.open) record_look(step.node, *seen.look);
    }
    auto intent = event(EventKind::intent, step.node, step.step, data->during);
    if (step.step == "unload" || step.step == "load" || step.step == "rollback") intent.facts.set("currentKnown", false);
    if (step.step == "cordon") intent.facts.set("cordon", upgrade::k_cordon_ours);  // until it is known whose it is
    tools_.recorder.record(intent);
    Facts facts;
    try {
        if (!seen.look) throw *seen.error;
        facts = act(step, *seen.look, deadline);
    } catch (const Leave& leave) {
        return leave.end;
    } catch (const Error& error) {
        if (error.code() == "bug" || error.code() == "state-damaged" || error.code() == "state-changed") throw;
        if (error.code() == "interrupted" && tools_.interrupted()) {
            auto word = event(EventKind::observed, step.node, "", tools_.recorder.node(step.node).state);
            word.message = error.message();
            tools_.recorder.record(word);
            return StepEnd::left;
        }
        if (cluster::ends_run(error)) throw;
        record_failure(step, error);
        return StepEnd::failed;
    }
    const bool is_cordoned = step.step == "validate" && tools_.recorder.node(step.node).cordon == upgrade::k_cordon_ours;
    auto done = event(EventKind::done, step.node, step.step, is_cordoned ? data->during : data->done);
    if (const auto* message = facts.find("message")) {
        done.message = message->text();
        facts.erase("message");
    }
    done.facts = std::move(facts);
    tools_.recorder.record(done);
    return StepEnd::done;
}

void NodeSteps::observe(const std::string& name) {
    const auto& run = tools_.recorder.header();
    const auto node = tools_.recorder.node(name);
    const auto live = glance(name);
    auto observed = event(EventKind::observed, name, "", node.state);
    const bool known = live && live->presence != Presence::moving;
    observed.facts.set("currentKnown", known);
    if (known) {
        observed.facts.set("currentVersion", version_of(run, node, *live));
        observed.facts.set("live", upgrade::encode(live->identity));
    }
    tools_.recorder.record(observed);
}

void NodeSteps::require_same_image(const std::string& name, const NodeFacts& facts, const std::string& image,
                                   const std::string& digest) const {
    const auto& run = tools_.recorder.header();
    tools_.recorder.look([&](const upgrade::Run& now) {
    for (const auto& other : now.nodes) {
        if (other.name == name || other.goal == upgrade::k_goal_absent || other.architecture != facts.architecture) continue;
        if (other.target_image != image && other.kernel != facts.kernel) continue;
        if (other.target_digest.empty() || digest.empty() || other.target_digest == digest) continue;
        // One that has not got it, or failed with it, may well be the reason why the image was built anew.
        const bool has_it = other.current_known && other.current_version == shown(run.to_version) &&
                            compare(other.live, other.target_identity) == Sameness::same;
        const bool is_idle = other.touched == 0 || upgrade::is_final_node_state(other.state) || upgrade::is_failed_node_state(other.state) ||
                             other.state == upgrade::k_node_pending || (other.step == "check" && other.open);
        if (!has_it && is_idle) continue;
        throw Error(Exit::checks_failed, "image-changed",
                    fmt::format("{} is {} now, but node {} {} {} as {}", image, digest, other.name, has_it ? "has" : "is to get",
                                other.target_digest, shown(run.to_version)))
            .hint(fmt::format("let it be the former image again, then kmm-upgrade retry {}; or kmm-upgrade abort, then start again, which "
                              "brings every node to the new one", name));
    }
    });
}

NodeSteps::Facts NodeSteps::check(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.recorder.header();
    const auto node = tools_.recorder.node(name);
    tools_.fleet.require_readable(name);  // an unload must not be followed by a write that fails
    tools_.fleet.put_info(name, seen.facts.kernel, seen.facts.boot_id, seen.facts.architecture);
    require_goal(name);
    if (node.goal == upgrade::k_goal_absent) return check_removal(name, seen);
    const auto module = tools_.fleet.module();
    require_version(module, run.to_version);
    require_name(module, run.kernel_module);
    require_name(tools_.fleet.view(name), run.module(), run.kernel_module);
    require_label(name);
    const auto entry = resolve_entry(module, seen.facts.kernel);
    const auto checked = check_again(name, input(entry), deadline);
    if (checked.error) throw *checked.error;
    require_same_image(name, seen.facts, entry.config.container_image, checked.value->digest);
    const auto& target = checked.value->identity;
    const auto view = tools_.fleet.view(name);
    const bool is_target = seen.module.presence == Presence::live && compare(seen.module.identity, target) == Sameness::same;
    const bool is_live = seen.module.presence == Presence::live;
    if (is_live && !is_target && !view.status && node.from_entry.is_null() && !view.spec)
        throw Error(Exit::checks_failed, "module-unmanaged",
                    fmt::format("node {}: {} is live, but the cluster says nothing of it", name, run.kernel_module))
            .hint("unload it on the node, or add what loaded it to status.modules of its NodeModulesConfig");
    const bool unloads = begins_with_unload(view, entry, run.to_version, is_live, is_target);
    const bool in_place = is_target && is_in_place(view, entry, run.to_version, seen.facts.boot_id);
    if (!in_place && unloads && is_live) tools_.fleet.require_unloadable(name, seen.facts.boot_id);
    if (!in_place) tools_.fleet.require_loadable(name, seen.facts.boot_id);
    auto facts = value::Node::mapping();
    facts.set("next", in_place ? "validate" : unloads ? "unload" : "load");
    facts.set("kernel", seen.facts.kernel);
    facts.set("bootID", seen.facts.boot_id);
    facts.set("architecture", seen.facts.architecture);
    facts.set("targetEntry", api::encode(entry));
    facts.set("targetIdentity", upgrade::encode(target));
    facts.set("targetImage", entry.config.container_image);
    facts.set("targetDigest", checked.value->digest);
    facts.set("live", upgrade::encode(seen.module.identity));
    auto updated = node;
    updated.target_identity = target;
    if (is_live && !is_target && run.adopted && node.from_identity.empty() && !node.from_entry.is_null()) {
        updated.from_identity = former_identity(name, seen, deadline);
        facts.set("fromIdentity", upgrade::encode(updated.from_identity));
    }
    facts.set("currentVersion", version_of(run, updated, seen.module));
    facts.set("currentKnown", true);
    facts.set("message", fmt::format("{} {} can be loaded", shown(run.to_version), target.brief()));
    return facts;
}

void NodeSteps::unload_until_gone(const std::string& name, const api::ModuleConfig& config, Look seen,
                                  const std::vector<upgrade::Identity>& expected, const Deadline& deadline) {
    const auto boot = seen.facts.boot_id;
    while (seen.module.presence != Presence::absent) {
        bool ours = false;
        for (const auto& identity : expected)
            ours = ours || (!identity.empty() && compare(seen.module.identity, identity) != Sameness::different);
        if (!ours)
            throw Error(Exit::refused, "module-differs",
                        fmt::format("the live module {} is neither the old nor the new one", seen.module.identity.brief()))
                .hint("find out on the node what loaded it: kmm-worker status");
        const auto reply = call("unload", name, worker_input(config, nullptr), deadline);
        const bool again = !reply.settled() || !reply.has_result || is_busy(reply.error);
        if (reply.error && (!again || deadline.passed())) throw *reply.error;
        if (again && tools_.interrupted()) throw Leave{StepEnd::left};
        seen = must_look(name, deadline);
        if (seen.facts.boot_id != boot) {
            static_cast<void>(same_boot(name, seen.facts));
            throw Leave{StepEnd::again};
        }
        if (!reply.has_result && seen.module.presence != Presence::absent) throw *reply.error;
        if (!again && seen.module.presence == Presence::live)
            throw Error(Exit::busy, "module-still-live", "the worker unloaded the module, but it is live")
                .hint("something on the node loads it again: look for a udev rule or a unit");
    }
}

WorkerResult NodeSteps::load_until_live(const std::string& name, const api::NodeModule& entry, const std::string& boot,
                                        const upgrade::Identity& expected, const std::string& digest, const Deadline& deadline) {
    auto pinned = entry;
    pinned.config.container_image = pinned_image(entry.config.container_image, digest);
    const auto text = input(pinned);
    const auto prove = [&](const upgrade::Identity& live) {
        if (expected.empty() || compare(live, expected) != Sameness::different) return;
        throw Error(Exit::refused, "identity-mismatch",
                    fmt::format("the live module is {}, expected {}", live.brief(), expected.brief()))
            .hint("the image changed after it was checked, or another build is loaded: kmm-worker status");
    };
    for (;;) {
        const auto reply = call("load", name, text, deadline);
        if (reply.settled() && reply.has_result && reply.error && !is_busy(reply.error)) throw *reply.error;
        if (reply.value) {
            if (!reply.value->boot_id.empty() && reply.value->boot_id != boot) {
                const auto seen = must_look(name, deadline);
                static_cast<void>(same_boot(name, seen.facts));
                throw Leave{StepEnd::again};
            }
            require_digest(name, entry.config.container_image, digest, reply.value->digest);
            if (!reply.value->identity.empty()) {
                prove(reply.value->identity);
                return *reply.value;
            }
        }
        // The connection was lost, or the result names no build: whatever happened there, the node knows.
        const auto seen = must_look(name, deadline);
        if (seen.facts.boot_id != boot) {
            static_cast<void>(same_boot(name, seen.facts));
            throw Leave{StepEnd::again};
        }
        if (seen.module.presence == Presence::live) {
            prove(seen.module.identity);
            WorkerResult result;
            result.outcome = "loaded";
            result.identity = seen.module.identity;
            return result;
        }
        if (reply.value)
            throw Error(Exit::unhealthy, "module-gone", fmt::format("{} is not live, though the worker says {}", tools_.recorder.header().kernel_module,
                                                                    base::escape(reply.value->outcome)))
                .hint("find out on the node what has unloaded it: kmm-worker status");
        if (deadline.passed() || !reply.has_result) throw *reply.error;
        if (tools_.interrupted()) throw Leave{StepEnd::left};
    }
}

NodeSteps::Facts NodeSteps::unload(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.recorder.header();
    const auto node = tools_.recorder.node(name);
    if (seen.module.presence == Presence::live) tools_.fleet.require_unloadable(name, seen.facts.boot_id);
    const bool is_removal = node.goal == upgrade::k_goal_absent;
    tools_.fleet.set_module(name, is_removal ? std::nullopt : label_value(run.to_version));
    tools_.fleet.remove_schedule(name);
    // Without version labels it is the ready label alone that keeps device plugins on the node.
    if (is_removal || run.to_version.empty()) tools_.fleet.remove_ready(name);
    if (is_removal) tools_.fleet.remove_plugin_labels(name);
    tools_.fleet.put_spec(name, std::nullopt);
    const auto view = tools_.fleet.view(name);
    // The module went with the boot it was loaded in (R11): nothing to unload, and not with an old kernel's image.
    const bool gone_with_boot = view.status && !view.status->boot_id.empty() && view.status->boot_id != node.boot_id;
    std::optional<api::ModuleConfig> config;
    if (view.status) config = view.status->config;
    else if (!node.from_entry.is_null()) config = api::decode_node_module(node.from_entry).config;
    else if (!node.target_entry.is_null()) config = api::decode_node_module(node.target_entry).config;
    if (config && !gone_with_boot)
        unload_until_gone(name, *config, seen, {node.from_identity, node.target_identity}, deadline);
    else if (seen.module.presence == Presence::live)
        throw Error(Exit::refused, "module-differs",
                    fmt::format("{} is live although nothing has loaded it since the node booted", run.kernel_module))
            .hint("unload it on the node, then retry");
    tools_.fleet.put_status(name, std::nullopt);
    tools_.fleet.remove_ready(name);
    auto facts = value::Node::mapping();
    facts.set("currentVersion", "");
    facts.set("currentKnown", true);
    facts.set("live", empty_identity());
    facts.set("message", gone_with_boot ? "gone since the reboot" : fmt::format("unloaded {}", run.kernel_module));
    return facts;
}

NodeSteps::Facts NodeSteps::load(const std::string& name, const Look& /*seen*/, const Deadline& deadline) {
    const auto& run = tools_.recorder.header();
    const auto node = tools_.recorder.node(name);
    const auto entry = api::decode_node_module(node.target_entry);
    const auto view = tools_.fleet.view(name);
    auto status = entry;
    status.boot_id = node.boot_id;
    if (view.status != status) tools_.fleet.remove_ready(name);  // facts KMM 8.1: W is added only without a ready label
    const auto label = label_value(run.to_version);
    tools_.fleet.set_module(name, label);
    tools_.fleet.add_schedule(name, label, label, std::nullopt);
    tools_.fleet.put_spec(name, entry);
    const auto result = load_until_live(name, entry, node.boot_id, node.target_identity, node.target_digest, deadline);
    tools_.fleet.put_status(name, status);
    tools_.fleet.set_ready(name, run.to_version);
    auto facts = value::Node::mapping();
    facts.set("currentVersion", shown(run.to_version));
    facts.set("currentKnown", true);
    facts.set("live", upgrade::encode(result.identity));
    facts.set("message", fmt::format("loaded {} {}", run.kernel_module, result.identity.brief()));
    return facts;
}

NodeSteps::Facts NodeSteps::validate(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.recorder.header();
    if (tools_.recorder.node(name).goal == upgrade::k_goal_absent) return validate_removal(name, seen);
    require_target(name, seen);
    require_undisturbed(name);
    ask_check(name, seen, deadline);
    // A node that was drained is watched when its Pods are back.
    if (tools_.recorder.node(name).cordon != upgrade::k_cordon_ours) soak(name);
    auto facts = value::Node::mapping();
    facts.set("currentVersion", shown(run.to_version));
    facts.set("currentKnown", true);
    facts.set("live", upgrade::encode(seen.module.identity));
    facts.set("message", fmt::format("loaded {} {}", run.kernel_module, seen.module.identity.brief()));
    return facts;
}

}  // namespace kmm::drive
