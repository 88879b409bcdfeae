// SPDX-License-Identifier: Apache-2.0
// The last look at a node before it counts as done, and the time for which it is watched.
#include <chrono>

#include <fmt/format.h>

#include "upgrade/actor_parts/user_check.hpp"
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using kubernetes::Version;
using upgrade::kubernetes::read;

void KubernetesActor::require_versions(const std::string& name, const NodeSight& seen) const {
    const auto fail = [&](const std::string& what, const std::optional<Version>& found, const std::string& wanted) {
        return Error(Exit::unhealthy, "version-changed",
                     fmt::format("node {}: the {} runs {}, not {}", name, what,
                                 found ? found->text() : "an unknown version", wanted))
            .hint(fmt::format("find out who changed it; kmm-upgrade retry {} brings it there again", name));
    };
    if (!subject_.control_plane.empty() && is_control_plane(name) &&
        (!seen.control_plane || seen.control_plane->text() != subject_.control_plane))
        throw fail("control plane", seen.control_plane, subject_.control_plane);
    if (!subject_.kubelet.empty() && (!seen.kubelet || seen.kubelet->text() != subject_.kubelet))
        throw fail("kubelet", seen.kubelet, subject_.kubelet);
    if (!subject_.kubelet.empty() && seen.installed_kubelet && seen.installed_kubelet->text() != subject_.kubelet)
        throw fail("kubelet after its next restart", seen.installed_kubelet, subject_.kubelet);
}

Done KubernetesActor::validate(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    require_versions(name, seen);
    if (!subject_.control_plane.empty() && is_control_plane(name))
        prove_control_plane(name, *seen.control_plane, false, deadline);
    if (!subject_.kubelet.empty()) prove_kubelet(name, *seen.kubelet, false, deadline);
    const auto& header = recorder_.header();
    ask_user_check(header.options,
                   value::Node::mapping({{"node", name},
                                         {"from", recorder_.node(name).from_version},
                                         {"to", header.to_version},
                                         {"facts", seen.document}}),
                   deadline, interrupted_);
    const auto pruned = pruner_.prune(name, read(recorder_.node(name)).backup, subject_.keep_backups, deadline);
    const auto* part = subject_.kubelet.empty() ? "control plane" : "kubelet";
    Done done{value::Node::mapping(), fmt::format("{} {}{}", part, header.to_version, pruned), ""};
    set_current(seen, done.facts);
    // Where a cordon is still to be lifted, a validated node is not done; it is watched when its Pods are back.
    if (emptier_.cordons().is_ours(name)) done.state = "validating";
    else watch(name, {});
    return done;
}

void KubernetesActor::watch(const std::string& name, value::Node facts) {
    if (recorder_.header().options.soak_ms == 0) return;
    soak(recorder_, clock_, name, std::move(facts), interrupted_);
    require_versions(
        name,
        agent_.facts(name, Deadline(clock_, std::chrono::milliseconds(recorder_.header().options.node_timeout_ms))));
    if (const auto problem = node_problem(view_.about(name), name); !problem.empty())
        throw Error(Exit::unhealthy, "node-not-ready", problem);
}

}  // namespace kmm::drive
