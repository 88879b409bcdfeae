// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/worker_way.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "upgrade/engine/procedure.hpp"
#include "upgrade/module_nodes/wanted.hpp"

namespace kmm::drive {

using upgrade::module::compare;
using upgrade::module::Sameness;

namespace {

/// The value of a version label; none for a Module without versions.
std::optional<std::string> label_value(const std::string& version) {
    return version.empty() ? std::nullopt : std::optional<std::string>(version);
}

/// Another worker is still changing modules of the node: its end is waited for, then the node is asked.
bool is_busy(const std::optional<Error>& error) { return error && error->code() == "node-busy"; }

/// What two configurations of one build differ in, of what a load does.
std::vector<std::string> different_settings(const api::ModuleConfig& left, const api::ModuleConfig& right) {
    std::vector<std::string> names;
    const auto compare_member = [&](const char* name, const auto& one, const auto& other) {
        if (one != other) names.emplace_back(name);
    };
    const auto& a = left.modprobe;
    const auto& b = right.modprobe;
    compare_member("modprobe.parameters", a.parameters, b.parameters);
    compare_member("modprobe.dirName", a.dir_name, b.dir_name);
    compare_member("modprobe.args", a.args, b.args);
    compare_member("modprobe.rawArgs", a.raw_args, b.raw_args);
    compare_member("modprobe.firmwarePath", a.firmware_path, b.firmware_path);
    compare_member("modprobe.modulesLoadingOrder", a.modules_loading_order, b.modules_loading_order);
    compare_member("modprobe.modprobedDir", a.modprobed_dir, b.modprobed_dir);
    compare_member("inTreeModulesToRemove", left.in_tree_modules_to_remove, right.in_tree_modules_to_remove);
    compare_member("inTreeModuleToRemove", left.in_tree_module_to_remove, right.in_tree_module_to_remove);
    return names;
}

/// The configuration that `module` has for a kernel, or nullopt: whoever checks a node of that kernel says why.
std::optional<api::ModuleConfig> config_for(const api::Module& module, const std::string& kernel) {
    try {
        return *resolve_entry(module, kernel).config;
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Nothing, for members that are to become empty.
value::Node empty_identity() { return value::Node::mapping(); }

}  // namespace

LookResult WorkerWay::look(const std::string& name, const Deadline& deadline) {
    // A Pod for a node that was deleted would be waited for in vain.
    if (auto gone = tools_.absence_of(name)) {
        LookResult result;
        result.why = NoLook::refused;
        result.error = std::move(gone);
        return result;
    }
    const auto begin = tools_.clock.monotonic();
    auto watched = watch(name, "status", tools_.silence, deadline);
    auto result =
        look_at(tools_.worker, tools_.clock, name, tools_.subject.kernel_module, deadline, tools_.interrupted);
    if (result.look) end_watch(watched, name, begin);
    if (result.look && result.lost) record_lost(name, *result.lost, "answers again");
    return result;
}

Reply<Look> WorkerWay::look_once(const std::string& name) {
    return tools_.worker.status(name, tools_.subject.kernel_module, std::chrono::seconds(30));
}

std::optional<LiveModule> WorkerWay::glance(const std::string& name) {
    try {
        const auto status = look_once(name);
        return status.value ? std::optional(status.value->module) : std::nullopt;
    } catch (const Error& error) {
        if (!cluster::is_server_trouble(error) && error.code() != "interrupted") throw;
        return std::nullopt;
    }
}

Look WorkerWay::must_look(const std::string& name, const Deadline& deadline) {
    const auto result = look(name, deadline);
    if (result.look) return *result.look;
    if (result.why == NoLook::interrupted) throw Leave{StepEnd::left};
    throw *result.error;
}

std::string WorkerWay::input(const api::NodeModule& entry) {
    const auto secret = tools_.fleet.secret(entry.image_repo_secret);
    return worker_input(entry.config, secret ? &*secret : nullptr);
}

void WorkerWay::require_same_image(const std::string& name, const NodeFacts& facts, const std::string& image,
                                   const std::string& digest) const {
    if (digest.empty()) return;
    const auto& run = tools_.run();
    tools_.recorder.look([&](const upgrade::Run& now) {
    for (const auto& record : now.nodes) {
        // Of all nodes: what most of them have comes first.
        const auto& other_digest = upgrade::module::text_of(record, "targetDigest");
        if (other_digest == digest || other_digest.empty()) continue;
        if (record.name == name || record.architecture != facts.architecture || upgrade::module::goes_away(record))
            continue;
        const auto other = upgrade::module::read(record);
        if (other.target_image != image && other.kernel != facts.kernel) continue;
        // One that has not got it, or failed with it, may well be the reason why the image was built anew.
        const bool has_it = other.current_known && other.current_version == shown(run.to_version) &&
                            compare(other.live, other.target_identity) == Sameness::same;
        const bool is_idle = other.touched == 0 || upgrade::is_final_node_state(other.state) ||
                             upgrade::is_failed_node_state(other.state) || other.state == upgrade::k_node_pending ||
                             (other.step == "check" && other.open);
        if (!has_it && is_idle) continue;
        throw Error(Exit::checks_failed, "image-changed",
                    fmt::format("{} is {} now, but node {} {} {} as {}", image, digest, other.name,
                                has_it ? "has" : "is to get", other.target_digest, shown(run.to_version)))
            .hint(fmt::format("let it be the former image again, then kmm-upgrade retry {}; or kmm-upgrade abort, then "
                              "start again, which brings every node to the new one",
                              name));
    }
    });
}

void WorkerWay::require_same_settings(const std::string& name, const NodeFacts& facts,
                                      const api::Module& module) const {
    std::set<std::pair<std::string, std::string>> seen;  // kernel and architecture: nodes of one agree with each other
    tools_.recorder.look([&](const upgrade::Run& now) {
        for (const auto& record : now.nodes) {
            if (record.name == name || record.state != upgrade::k_node_done || upgrade::module::goes_away(record))
                continue;
            if (!seen.emplace(record.kernel, record.architecture).second) continue;
            const auto other = upgrade::module::read(record);
            const auto config = config_for(module, other.kernel);
            if (other.target_entry.is_null() || !config) continue;
            const auto given = api::decode_node_module(other.target_entry);
            auto names = different_settings(*given.config, *config);
            // Images for the node's own kernel have digests to compare: require_same_image().
            if ((other.kernel != facts.kernel || record.architecture != facts.architecture) &&
                given.config->container_image != config->container_image)
                names.emplace_back("containerImage");
            if (names.empty()) continue;
            throw Error(Exit::checks_failed, "module-changed",
                        fmt::format("Module {} was changed during this run: node {} has another {}",
                                    module.full_name(), other.name, base::join(names, ", ")))
                .at(module.meta.origin)
                .hint(fmt::format("give the Module its former settings back, then kmm-upgrade retry {}; or kmm-upgrade "
                                  "abort, then start again, which brings every node to the new ones",
                                  name));
        }
    });
}

Facts WorkerWay::check(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.run();
    const auto node = tools_.node(name);
    tools_.fleet.require_readable(name);  // an unload must not be followed by a write that fails
    tools_.fleet.put_info(name, seen.facts.kernel, seen.facts.boot_id, seen.facts.architecture);
    require_goal(name);
    if (node.goal == upgrade::module::k_goal_absent) return check_removal(name, seen);
    const auto module = tools_.fleet.module();
    require_still_wanted(module, name);
    require_version(module, run.to_version);
    require_name(module, tools_.subject.kernel_module);
    require_name(tools_.fleet.view(name), tools_.subject.full_name(), tools_.subject.kernel_module);
    tools_.require_label(name);
    require_same_settings(name, seen.facts, module);
    const auto entry = resolve_entry(module, seen.facts.kernel);
    const auto checked = check_again(name, input(entry), deadline);
    if (checked.error) throw *checked.error;
    require_same_image(name, seen.facts, entry.config->container_image, checked.value->digest);
    const auto& target = checked.value->identity;
    const auto view = tools_.fleet.view(name);
    const bool is_target =
        seen.module.presence == Presence::live && compare(seen.module.identity, target) == Sameness::same;
    const bool is_live = seen.module.presence == Presence::live;
    if (is_live && !is_target && !view.status && node.from_entry.is_null() && !view.spec)
        throw Error(
            Exit::checks_failed, "module-unmanaged",
            fmt::format("node {}: {} is live, but the cluster says nothing of it", name, tools_.subject.kernel_module))
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
    facts.set("targetIdentity", upgrade::module::encode(target));
    facts.set("targetImage", entry.config->container_image);
    facts.set("targetDigest", checked.value->digest);
    facts.set("live", upgrade::module::encode(seen.module.identity));
    auto updated = node;
    updated.target_identity = target;
    if (is_live && !is_target && run.adopted && node.from_identity.empty() && !node.from_entry.is_null()) {
        updated.from_identity = former_identity(name, seen, deadline);
        facts.set("fromIdentity", upgrade::module::encode(updated.from_identity));
    }
    facts.set("currentVersion", version_of(run, updated, seen.module));
    facts.set("currentKnown", true);
    facts.set("message", fmt::format("{} {} can be loaded", shown(run.to_version), target.brief()));
    return facts;
}

void WorkerWay::unload_until_gone(const std::string& name, const api::ModuleConfig& config, Look seen,
                                  const std::vector<upgrade::module::Identity>& expected, const Deadline& deadline) {
    const auto boot = seen.facts.boot_id;
    while (seen.module.presence != Presence::absent) {
        bool ours = false;
        for (const auto& identity : expected)
            ours = ours || (!identity.empty() && compare(seen.module.identity, identity) != Sameness::different);
        if (!ours)
            throw Error(
                Exit::refused, "module-differs",
                fmt::format("the live module {} is neither the old nor the new one", seen.module.identity.brief()))
                .hint("find out on the node what loaded it: kmm-worker status");
        const auto reply = call("unload", name, worker_input(config, nullptr), deadline);
        const bool again = !reply.settled() || !reply.has_result || is_busy(reply.error);
        if (reply.error && (!again || deadline.passed())) throw *reply.error;
        if (again && tools_.interrupted()) throw Leave{StepEnd::left};
        seen = must_look(name, deadline);
        if (seen.facts.boot_id != boot) {
            tools_.plan_again(name, seen.facts);
        }
        if (!reply.has_result && seen.module.presence != Presence::absent) throw *reply.error;
        if (!again && seen.module.presence == Presence::live)
            throw Error(Exit::busy, "module-still-live", "the worker unloaded the module, but it is live")
                .hint("something on the node loads it again: look for a udev rule or a unit");
    }
}

WorkerResult WorkerWay::load_until_live(const std::string& name, const api::NodeModule& entry, const std::string& boot,
                                        const upgrade::module::Identity& expected, const std::string& digest,
                                        const Deadline& deadline) {
    auto pinned = entry;
    pinned.config.edit().container_image = pinned_image(entry.config->container_image, digest);
    const auto text = input(pinned);
    const auto prove = [&](const upgrade::module::Identity& live) {
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
                tools_.plan_again(name, seen.facts);
            }
            require_digest(name, entry.config->container_image, digest, reply.value->digest);
            if (!reply.value->identity.empty()) {
                prove(reply.value->identity);
                return *reply.value;
            }
        }
        // The connection was lost, or the result names no build: whatever happened there, the node knows.
        const auto seen = must_look(name, deadline);
        if (seen.facts.boot_id != boot) {
            tools_.plan_again(name, seen.facts);
        }
        if (seen.module.presence == Presence::live) {
            prove(seen.module.identity);
            WorkerResult result;
            result.outcome = "loaded";
            result.identity = seen.module.identity;
            return result;
        }
        if (reply.value)
            throw Error(Exit::unhealthy, "module-gone",
                        fmt::format("{} is not live, though the worker says {}", tools_.subject.kernel_module,
                                    base::escape(reply.value->outcome)))
                .hint("find out on the node what has unloaded it: kmm-worker status");
        if (deadline.passed() || !reply.has_result) throw *reply.error;
        if (tools_.interrupted()) throw Leave{StepEnd::left};
    }
}

Facts WorkerWay::unload(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.run();
    const auto node = tools_.node(name);
    tools_.require_label(name);
    if (seen.module.presence == Presence::live) tools_.fleet.require_unloadable(name, seen.facts.boot_id);
    const bool is_removal = node.goal == upgrade::module::k_goal_absent;
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
                    fmt::format("{} is live although nothing has loaded it since the node booted",
                                tools_.subject.kernel_module))
            .hint("unload it on the node, then retry");
    tools_.fleet.put_status(name, std::nullopt);
    tools_.fleet.remove_ready(name);
    auto facts = value::Node::mapping();
    facts.set("currentVersion", "");
    facts.set("currentKnown", true);
    facts.set("live", empty_identity());
    facts.set("message",
              gone_with_boot ? "gone since the reboot" : fmt::format("unloaded {}", tools_.subject.kernel_module));
    return facts;
}

Facts WorkerWay::load(const std::string& name, const Look& /*seen*/, const Deadline& deadline) {
    const auto& run = tools_.run();
    const auto node = tools_.node(name);
    tools_.require_label(name);
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
    facts.set("live", upgrade::module::encode(result.identity));
    facts.set("message", fmt::format("loaded {} {}", tools_.subject.kernel_module, result.identity.brief()));
    return facts;
}

Facts WorkerWay::validate(const std::string& name, const Look& seen) {
    const auto& run = tools_.run();
    if (tools_.node(name).goal == upgrade::module::k_goal_absent) return validate_removal(name, seen);
    require_target(name, seen);
    require_undisturbed(name);
    auto facts = value::Node::mapping();
    facts.set("currentVersion", shown(run.to_version));
    facts.set("currentKnown", true);
    facts.set("live", upgrade::module::encode(seen.module.identity));
    facts.set("message", fmt::format("loaded {} {}", tools_.subject.kernel_module, seen.module.identity.brief()));
    return facts;
}

}  // namespace kmm::drive
