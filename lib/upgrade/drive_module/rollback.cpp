// SPDX-License-Identifier: Apache-2.0
// Bringing one node back to what the record says was there before.
#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/names.hpp"
#include "upgrade/drive_module/worker_way.hpp"

namespace kmm::drive {

using upgrade::module::compare;
using upgrade::module::Sameness;

upgrade::module::Identity WorkerWay::former_identity(const std::string& name, const Look& seen,
                                                     const Deadline& deadline) {
    const auto former = api::decode_node_module(tools_.node(name).from_entry);
    const auto status = tools_.fleet.view(name).status;
    if (status && status->boot_id == seen.facts.boot_id && status->version == former.version &&
        status->config == former.config)
        return seen.module.identity;
    const auto checked = check_again(name, input(former), deadline);
    if (checked.error) throw *checked.error;
    return checked.value->identity;
}

void WorkerWay::learn(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto node = tools_.node(name);
    if (!tools_.run().adopted || seen.module.presence != Presence::live) return;
    auto observed = tools_.event(upgrade::EventKind::observed, name, "", node.state);
    if (node.from_identity.empty() && !node.from_entry.is_null())
        observed.facts.set("fromIdentity", upgrade::module::encode(former_identity(name, seen, deadline)));
    if (node.target_identity.empty() && !node.target_entry.is_null()) {
        const auto checked = check_again(name, input(api::decode_node_module(node.target_entry)), deadline);
        // A target that cannot be had any more is no reason not to go back from it, as long as it is not what is live.
        if (checked.value) observed.facts.set("targetIdentity", upgrade::module::encode(checked.value->identity));
    }
    tools_.recorder.record(observed);
}

std::string WorkerWay::former_digest(const std::string& name, const upgrade::module::Node& node,
                                     const api::NodeModule& former, const Deadline& deadline) {
    const auto checked = check_again(name, input(former), deadline);
    if (checked.error) throw *checked.error;
    const auto& found = checked.value->identity;
    if (!node.from_identity.empty() && compare(found, node.from_identity) == Sameness::different)
        throw Error(Exit::refused, "image-changed",
                    fmt::format("{} has {} now, before the run {} was live", former.config->container_image,
                                found.brief(), node.from_identity.brief()))
            .hint("push the former image to that name again; or put the old version back into the Module, abort "
                  "without a rollback and start again");
    return checked.value->digest;
}

void WorkerWay::restore(const std::string& name, const upgrade::module::Node& node, const Look& seen,
                        const Deadline& deadline) {
    auto& fleet = tools_.fleet;
    const auto labels = decode_module_labels(node.from_labels);
    std::optional<api::NodeModule> previous;
    if (!node.from_entry.is_null()) previous = api::decode_node_module(node.from_entry);
    const bool previous_live = previous && seen.module.presence == Presence::live && !node.from_identity.empty() &&
                               compare(seen.module.identity, node.from_identity) == Sameness::same;
    std::string digest;  // asked for before anything is changed
    if (previous && !previous_live) digest = former_digest(name, node, *previous, deadline);
    if (!previous_live && seen.module.presence == Presence::live) fleet.require_unloadable(name, seen.facts.boot_id);
    fleet.set_module(name, labels.module);
    if (!previous_live) {
        fleet.remove_schedule(name);
        fleet.put_spec(name, std::nullopt);
        std::optional<api::ModuleConfig> config;
        if (!node.target_entry.is_null()) config = api::decode_node_module(node.target_entry).config;
        else if (previous) config = previous->config;
        if (seen.module.presence == Presence::live && config)
            unload_until_gone(name, *config, seen, {node.from_identity, node.target_identity}, deadline);
        fleet.put_status(name, std::nullopt);
        fleet.remove_ready(name);
    }
    if (!previous) {
        fleet.add_schedule(name, labels.worker, labels.schedule, labels.device);
        return;
    }
    auto spec = *previous;
    spec.boot_id.clear();
    fleet.add_schedule(name, labels.worker, labels.schedule, labels.device);
    fleet.put_spec(name, spec);
    if (!previous_live)
        static_cast<void>(load_until_live(name, spec, seen.facts.boot_id, node.from_identity, digest, deadline));
    auto status = *previous;
    status.boot_id = seen.facts.boot_id;
    fleet.put_status(name, status);
    fleet.set_ready(name, previous->version);
}

Facts WorkerWay::rollback(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto node = tools_.node(name);
    if (node.from_entry.is_null() && !node.from_version.empty())
        throw Error(
            Exit::refused, "previous-unknown",
            fmt::format("the adopted record does not know which image {} was for this kernel", node.from_version))
            .hint("put the old version back into the Module, abort without a rollback and start again");
    if (!node.from_entry.is_null()) {
        const auto previous = api::decode_node_module(node.from_entry);
        const auto kernel = api::trim_kernel(seen.facts.kernel);
        if (previous.config->kernel_version != kernel)
            throw Error(Exit::refused, "kernel-changed",
                        fmt::format("the node runs kernel {} now, {} was loaded on {}", kernel,
                                    node.from_version.empty() ? "the module" : node.from_version,
                                    previous.config->kernel_version))
                .hint(
                    "boot the node into that kernel again, or put the old version back into the Module and start "
                    "again");
    }
    // A reboot in the middle is no reason to plan anew here: what was there before stays the goal.
    if (seen.facts.boot_id != node.boot_id || seen.facts.kernel != node.kernel) {
        auto observed = tools_.event(upgrade::EventKind::observed, name, "", node.state);
        observed.facts.set("bootID", seen.facts.boot_id);
        observed.facts.set("kernel", seen.facts.kernel);
        tools_.recorder.record(observed);
        tools_.fleet.put_info(name, seen.facts.kernel, seen.facts.boot_id, seen.facts.architecture);
    }
    learn(name, seen, deadline);
    restore(name, tools_.node(name), seen, deadline);
    const auto after = must_look(name, deadline);
    auto facts = value::Node::mapping();
    facts.set("currentKnown", true);
    facts.set("live", upgrade::module::encode(after.module.identity));
    if (node.from_entry.is_null()) {
        if (after.module.presence != Presence::absent)
            throw Error(Exit::unhealthy, "module-still-live",
                        fmt::format("{} is still live", tools_.subject.kernel_module));
        facts.set("currentVersion", "");
        facts.set("message", "rolled back: nothing loaded, as before");
        return facts;
    }
    if (after.module.presence != Presence::live ||
        compare(after.module.identity, node.from_identity) == Sameness::different)
        throw Error(Exit::unhealthy, "module-differs",
                    fmt::format("{} is not what it was before", tools_.subject.kernel_module));
    const auto version = node.from_version.empty() ? std::string("unversioned") : node.from_version;
    facts.set("currentVersion", version);
    facts.set("message", fmt::format("rolled back to {}: {} {}", version, tools_.subject.kernel_module,
                                     after.module.identity.brief()));
    return facts;
}

}  // namespace kmm::drive
