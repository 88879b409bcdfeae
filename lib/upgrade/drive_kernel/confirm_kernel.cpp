// SPDX-License-Identifier: Apache-2.0
// The look at nodes that are done, before the run says that all of them are: kernel, boot, readiness, drivers.
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/kmm/find_named.hpp"
#include "upgrade/actor_parts/readiness.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/drive_kernel/kernel_actor.hpp"

namespace kmm::drive {

using upgrade::Event;
using upgrade::EventKind;
using namespace upgrade::kernel;

namespace {

constexpr std::chrono::milliseconds k_look_patience{15'000};

}  // namespace

std::optional<Event> KernelActor::find_lost_driver(const upgrade::NodeRecord& node, const std::string& boot) {
    const auto drivers = decode_drivers(drivers_of(node));
    if (drivers.empty()) return std::nullopt;
    try {
        drivers_.prove(node.name, drivers, boot.empty() ? node.boot_id : boot, Deadline(clock_, k_look_patience));
        return std::nullopt;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) throw Leave{StepEnd::left};
        if (cluster::ends_run(error)) throw;
        if (error.exit() == Exit::unavailable || error.exit() == Exit::timeout)
            return silent_event(recorder_, node.name, "validating-failed");
        auto changed = node_event(recorder_, EventKind::observed, node.name, "", "validating-failed");
        changed.reason = error.code();
        changed.message = error.message() + ", after it was done";
        if (!error.hint().empty()) changed.facts.set("hint", error.hint());
        return changed;
    }
}

std::vector<Event> KernelActor::confirm() {
    return find_when_ready(clock_, recorder_, interrupted_, [this] { return find_changed(); });
}

std::optional<Event> KernelActor::find_change(const upgrade::NodeRecord& node, const api::Node& object) {
    auto kernel = object.kernel_version, boot = object.boot_id;
    std::optional<Event> unready;
    if (has_kubelets_) {
        if (object.ready && *object.ready != "True")
            unready = unready_event(recorder_, node.name, "validating-failed",
                                    fmt::format("node {} is not Ready", node.name));
    } else if (const auto seen = agent_.glance(node.name, k_look_patience)) {
        // Its Node says what this run has written.
        kernel = seen->kernel;
        boot = seen->boot_id;
    } else {
        unready = silent_event(recorder_, node.name, "validating-failed");
    }
    if (interrupted_()) throw Leave{StepEnd::left};
    const auto release = recorder_.header().to_version;
    const bool is_same = kernel == release;
    // A reboot takes the modules that nobody but this run loads.
    const bool has_lost = subject_.loader == Loader::worker && !drivers_of(node).empty() && !boot.empty() &&
                          boot != node.boot_id;
    if (is_same && !has_lost) return unready ? unready : find_lost_driver(node, boot);
    auto changed = node_event(recorder_, EventKind::observed, node.name, "", "validating-failed");
    changed.reason = is_same ? "node-rebooted" : "version-changed";
    changed.message = is_same ? "rebooted after it was done, without its drivers"
                              : fmt::format("runs kernel {}, not {}, after it was done", base::escape(kernel), release);
    changed.facts.set("currentKnown", false);
    changed.facts.set("hint", fmt::format("find out {}; kmm-upgrade retry {} {}",
                                          is_same ? "why it went down" : "who changed it", node.name,
                                          is_same ? "loads them again" : "brings it there again"));
    return changed;
}

std::vector<Event> KernelActor::find_changed() {
    const auto run = recorder_.run();
    const auto snapshot = store_.read();
    std::vector<std::pair<const upgrade::NodeRecord*, const api::Node*>> done;
    for (const auto& node : run.nodes) {
        if (node.state != upgrade::k_node_done) continue;
        const auto* found = plan::find_named(snapshot.objects.nodes, node.name);
        if (found == nullptr && has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
        if (found != nullptr) done.emplace_back(&node, found);  // a node that has left the cluster runs nothing
    }
    std::vector<std::optional<Event>> changes(done.size());
    for_each_at_once(done.size(), [&](std::size_t index) {
        changes[index] = find_change(*done[index].first, *done[index].second);
    });
    std::vector<Event> events;
    for (auto& change : changes)
        if (change) events.push_back(std::move(*change));
    return events;
}

}  // namespace kmm::drive
