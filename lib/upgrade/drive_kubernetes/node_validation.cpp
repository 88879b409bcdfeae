// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/node_validation.hpp"

#include <chrono>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/actor_parts/readiness.hpp"
#include "upgrade/actor_parts/user_check.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using kubernetes::Version;
using upgrade::Event, upgrade::EventKind;

void NodeValidation::require_versions(const std::string& name, const NodeSight& seen) const {
    const auto& subject = tools_.subject;
    const auto fail = [&](const std::string& what, const std::optional<Version>& found, const std::string& wanted) {
        return Error(Exit::unhealthy, "version-changed",
                     fmt::format("node {}: the {} runs {}, not {}", name, what,
                                 found ? found->text() : "an unknown version", wanted))
            .hint(fmt::format("find out who changed it; kmm-upgrade retry {} brings it there again", name));
    };
    if (!subject.control_plane.empty() && tools_.is_control_plane(name) &&
        (!seen.control_plane || seen.control_plane->text() != subject.control_plane))
        throw fail("control plane", seen.control_plane, subject.control_plane);
    if (!subject.kubelet.empty() && (!seen.kubelet || seen.kubelet->text() != subject.kubelet))
        throw fail("kubelet", seen.kubelet, subject.kubelet);
    if (!subject.kubelet.empty() && seen.installed_kubelet && seen.installed_kubelet->text() != subject.kubelet)
        throw fail("kubelet after its next restart", seen.installed_kubelet, subject.kubelet);
}

Done NodeValidation::validate(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    require_versions(name, seen);
    if (!tools_.subject.control_plane.empty() && tools_.is_control_plane(name))
        tools_.prove_control_plane(name, *seen.control_plane, false, deadline);
    if (!tools_.subject.kubelet.empty()) tools_.prove_kubelet(name, *seen.kubelet, false, deadline);
    const auto& header = tools_.recorder.header();
    ask_user_check(header.options,
                   value::Node::mapping({{"node", name},
                                         {"from", tools_.recorder.node(name).from_version},
                                         {"to", header.to_version},
                                         {"facts", seen.document}}),
                   deadline, tools_.interrupted);
    const auto pruned = pruner_.prune(name, tools_.node(name).backup, tools_.subject.keep_backups, deadline);
    const auto* part = tools_.subject.kubelet.empty() ? "control plane" : "kubelet";
    Done done{value::Node::mapping(), fmt::format("{} {}{}", part, header.to_version, pruned), ""};
    tools_.set_current(seen, done.facts);
    // Where a cordon is still to be lifted, a validated node is not done; it is watched when its Pods are back.
    if (tools_.emptier.cordons().is_ours(name)) done.state = "validating";
    else watch(name, {});
    return done;
}

void NodeValidation::watch(const std::string& name, value::Node facts) {
    const auto& options = tools_.recorder.header().options;
    if (options.soak_ms == 0) return;
    soak(tools_.recorder, tools_.clock, name, std::move(facts), tools_.interrupted);
    const Deadline deadline(tools_.clock, std::chrono::milliseconds(options.node_timeout_ms));
    require_versions(name, tools_.agent.facts(name, deadline));
    if (const auto problem = node_problem(tools_.view.about(name), name); !problem.empty())
        throw Error(Exit::unhealthy, "node-not-ready", problem);
}

std::string NodeValidation::other_version(const upgrade::NodeRecord& node, const kubernetes::Observation& observed,
                                          const kubernetes::NodeObject& object) const {
    if (!tools_.subject.control_plane.empty() && upgrade::kubernetes::is_control_plane(node)) {
        const auto version = observed.control_plane_of(node.name);
        if (!version || version->text() != tools_.subject.control_plane)
            return fmt::format("its control plane runs {}", version ? version->text() : "an unknown version");
    }
    if (!tools_.subject.kubelet.empty() && object.kubelet != tools_.subject.kubelet)
        return fmt::format("its kubelet runs {}", base::escape(object.kubelet));
    return "";
}

std::optional<Event> NodeValidation::find_changed_configuration() {
    const auto target = kubernetes::Version::parse(tools_.subject.control_plane);
    const auto run = tools_.recorder.run();
    const auto* first = upgrade::kubernetes::first_control_plane(run);
    if (!target || first == nullptr || first->state != upgrade::k_node_done) return std::nullopt;
    const auto seen = tools_.view.about(first->name);
    const auto problem = seen.nodes.empty() ? "" : configuration_problem(seen, *target);
    if (problem.empty()) return std::nullopt;
    return changed_event(first->name, problem + ", after it was done");
}

Event NodeValidation::changed_event(const std::string& node, std::string message) const {
    auto changed = node_event(tools_.recorder, EventKind::observed, node, "", "validating-failed");
    changed.reason = "version-changed";
    changed.message = std::move(message);
    changed.facts.set("currentKnown", false);
    changed.facts.set("hint",
                      fmt::format("find out who changed it; kmm-upgrade retry {} brings it there again", node));
    return changed;
}

std::vector<Event> NodeValidation::find_changed() {
    const auto run = tools_.recorder.run();
    const auto seen = tools_.view.read(ReadExtent::control_plane);
    const auto observed = kubernetes::observe(seen);
    std::map<std::string, const kubernetes::NodeObject*> present;
    for (const auto& node : seen.nodes) present.emplace(node.meta.name, &node);
    std::vector<Event> events;
    for (const auto& node : run.nodes) {
        const auto found = present.find(node.name);
        if (node.state != upgrade::k_node_done || found == present.end())
            continue;  // a node that has left the cluster runs nothing
        if (const auto problem = other_version(node, observed, *found->second); !problem.empty()) {
            events.push_back(
                changed_event(node.name, fmt::format("{}, not {}, after it was done", problem, run.to_version)));
            continue;
        }
        const bool is_control_plane = upgrade::kubernetes::is_control_plane(node);
        if (const auto problem = readiness_problem(*found->second, observed, is_control_plane); !problem.empty())
            events.push_back(unready_event(tools_.recorder, node.name, "validating-failed", problem));
    }
    return events;
}

std::vector<Event> NodeValidation::confirm() {
    return find_when_ready(tools_.clock, tools_.recorder, tools_.interrupted, [this] {
        auto events = find_changed();
        if (auto changed = find_changed_configuration();
            changed && (events.empty() || events.front().node != changed->node))
            events.insert(events.begin(), std::move(*changed));
        return events;
    });
}

}  // namespace kmm::drive
