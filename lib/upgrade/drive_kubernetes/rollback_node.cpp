// SPDX-License-Identifier: Apache-2.0
// The way back of one node: its kubelet, then the files of its control plane from the backup that was made before
// anything changed.
#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"

namespace kmm::drive {

using kubernetes::Version;

Done KubernetesActor::roll_back(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    const auto node = upgrade::kubernetes::read(recorder_.node(name));
    std::vector<std::string> told;
    const auto say = [&](const value::Node& document) { told.push_back(document.get_string({"message"})); };
    const auto before = Version::parse(node.from_version);
    if (!subject_.kubelet.empty() && before && seen.kubelet != before) {
        // Its kubelet first: it must never be newer than its API server.
        say(agent_.step(name, with_switch({"kubelet", "--target", before->text()}), deadline));
        prove_kubelet(name, *before, true, deadline);
    }
    const auto control_plane = Version::parse(node.from_control_plane);
    auto found = seen.control_plane;
    if (node.is_control_plane && seen.are_manifests_whole == false) {
        repair_manifests(name, seen, deadline);
        found = agent_.facts(name, deadline).control_plane;
        told.emplace_back("manifests repaired");
    }
    const bool is_changed = node.is_control_plane && found != control_plane;
    if (!subject_.control_plane.empty() && control_plane && is_changed) {
        if (node.backup.empty())
            throw Error(Exit::checks_failed, "backup-not-found",
                        fmt::format("node {} was changed and the record names no backup of it", name))
                .hint(fmt::format("kmm-worker kubernetes restore on {}, with the backup that is there", name));
        say(agent_.step(name, {"restore", "--name", node.backup}, deadline));
        prove_control_plane(name, *control_plane, false, deadline);
        if (is_first(name))
            told.push_back(
                fmt::format("kubeadm-config still names {}: kubeadm init phase upload-config kubeadm writes it again",
                            subject_.control_plane));
    }
    const auto lifted = cordons_.lift(name);
    if (!lifted.empty()) told.push_back(lifted);
    auto done = done_as_seen(name, told.empty() ? "nothing had been changed" : base::join(told, "; "), deadline);
    if (!recorder_.node(name).cordon.empty()) done.facts.set("cordon", "");
    return done;
}

}  // namespace kmm::drive
