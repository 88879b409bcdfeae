// SPDX-License-Identifier: Apache-2.0
// The look at nodes that are done, before the run says that all of them are: what each runs, and whether it is Ready.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/actor_parts/readiness.hpp"
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using upgrade::Event, upgrade::EventKind;

std::string KubernetesActor::other_version(const upgrade::NodeRecord& node, const kubernetes::Observation& observed,
                                           const kubernetes::NodeObject& object) const {
    if (!subject_.control_plane.empty() && upgrade::kubernetes::is_control_plane(node)) {
        const auto version = observed.control_plane_of(node.name);
        if (!version || version->text() != subject_.control_plane)
            return fmt::format("its control plane runs {}", version ? version->text() : "an unknown version");
    }
    if (!subject_.kubelet.empty() && object.kubelet != subject_.kubelet)
        return fmt::format("its kubelet runs {}", base::escape(object.kubelet));
    return "";
}

std::optional<Event> KubernetesActor::find_changed_configuration() {
    const auto target = kubernetes::Version::parse(subject_.control_plane);
    const auto run = recorder_.run();
    const auto* first = upgrade::kubernetes::first_control_plane(run);
    if (!target || first == nullptr || first->state != upgrade::k_node_done) return std::nullopt;
    const auto seen = view_.about(first->name);
    const auto problem = seen.nodes.empty() ? "" : configuration_problem(seen, *target);
    if (problem.empty()) return std::nullopt;
    return changed_event(first->name, problem + ", after it was done");
}

Event KubernetesActor::changed_event(const std::string& node, std::string message) const {
    auto changed = node_event(recorder_, EventKind::observed, node, "", "validating-failed");
    changed.reason = "version-changed";
    changed.message = std::move(message);
    changed.facts.set("currentKnown", false);
    changed.facts.set("hint",
                      fmt::format("find out who changed it; kmm-upgrade retry {} brings it there again", node));
    return changed;
}

std::vector<Event> KubernetesActor::find_changed() {
    const auto run = recorder_.run();
    const auto seen = view_.read(ReadExtent::control_plane);
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
            events.push_back(unready_event(recorder_, node.name, "validating-failed", problem));
    }
    return events;
}

std::vector<Event> KubernetesActor::confirm() {
    return find_when_ready(clock_, recorder_, interrupted_, [this] {
        auto events = find_changed();
        if (auto changed = find_changed_configuration();
            changed && (events.empty() || events.front().node != changed->node))
            events.insert(events.begin(), std::move(*changed));
        return events;
    });
}

}  // namespace kmm::drive
