// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/node_rollback.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/finding.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using kubernetes::Version;

namespace {

/// The etcd that runs has written what that of the backup cannot read.
bool is_etcd_newer(const upgrade::kubernetes::Node& node, const NodeSight& seen) {
    return node.is_control_plane && !node.etcd.empty() && !seen.etcd.empty() && seen.etcd != node.etcd;
}

/// Whether a manifest of its control plane is another one than before the run. kubeadm swaps one after the other, etcd
/// first: where it was stopped, the lowest of them is still the old one.
bool has_changed_control_plane(const upgrade::kubernetes::Node& node, const NodeSight& seen) {
    if (!node.is_control_plane) return false;
    const auto before = Version::parse(node.from_control_plane);
    if (seen.control_plane != before) return true;
    // Nothing was changed by a run that has made no backup: versions differed before it.
    return !node.backup.empty() &&
           (is_etcd_newer(node, seen) || std::any_of(seen.manifests.begin(), seen.manifests.end(),
                                                     [&](const Version& version) { return version != before; }));
}

/// Whether another kubelet than before the run runs, or will after the next restart: a step that was stopped may have
/// put it there and not started it.
bool has_other_kubelet(const NodeSight& seen, const Version& before) {
    return seen.kubelet != before || seen.installed_kubelet.value_or(before) != before;
}

/// `way` is what can be done instead.
Error etcd_differs(std::string message, std::string_view way, const upgrade::Run& run) {
    const bool is_without_snapshot = upgrade::kubernetes::subject_of(run).is_without_snapshot;
    return Error(Exit::checks_failed, "etcd-differs", std::move(message))
        .hint(fmt::format("an older etcd cannot read what a newer one has written{}: {}{}{}",
                          is_without_snapshot ? ", and there is no snapshot" : "", way,
                          is_without_snapshot ? ""
                                              : "; or go back to the snapshot and lose what was written since: "
                                                "kmm-upgrade abort --rollback all --restore-etcd",
                          !is_without_snapshot && upgrade::kubernetes::has_changed_kubelet(run)
                              ? ", once the kubelets that were changed are back"
                              : ""));
}

}  // namespace

void NodeRollback::require_old_kubelets(const std::vector<std::string>& nodes) const {
    const auto kubelet = Version::parse(tools_.subject.kubelet);
    if (!kubelet) return;
    const auto goes_back = [&](const std::string& name) {
        return std::find(nodes.begin(), nodes.end(), name) != nodes.end();
    };
    std::vector<std::string> older, staying;
    for (const auto& record : tools_.recorder.run().nodes) {
        const auto node = upgrade::kubernetes::read(record);
        const auto control_plane = Version::parse(node.from_control_plane);
        if (!goes_back(node.name)) {
            if (node.state == upgrade::k_node_done) staying.push_back(node.name);
        } else if (control_plane && kubernetes::minors_behind(*control_plane, *kubelet) > 0) {
            older.push_back(node.name);
        }
    }
    if (older.empty() || staying.empty()) return;
    throw Error(Exit::checks_failed, "kubelet-newer",
                fmt::format("kubelets {} of nodes that are done would be newer than API servers that go back: {}; {}",
                            kubelet->text(), kubernetes::name_some(staying), kubernetes::name_some(older)))
        .hint("kmm-upgrade abort --rollback all brings every node back; or kmm-upgrade resume");
}

void NodeRollback::require_way_back(const std::vector<std::string>& nodes) {
    if (tools_.subject.control_plane.empty()) return;
    require_old_kubelets(nodes);
    constexpr std::chrono::milliseconds k_patience{15'000};
    const Deadline patience(tools_.clock, std::chrono::milliseconds(tools_.recorder.header().options.node_timeout_ms));
    std::vector<std::string> found;
    for (const auto& name : nodes) {
        const auto node = tools_.node(name);
        if (!node.is_control_plane || node.etcd.empty()) continue;
        auto reply = tools_.agent.facts_once(name, k_patience);
        if (!reply.value) continue;
        // kubeadm may be about to change etcd.
        const auto seen = tools_.await_job(name, read_sight(std::move(*reply.value)), patience);
        if (is_etcd_newer(node, seen))
            found.push_back(fmt::format("{} runs etcd {}, its backup is of etcd {}", name, base::escape(seen.etcd),
                                        base::escape(node.etcd)));
    }
    if (!found.empty())
        throw etcd_differs(fmt::format("there is no way back: {}", base::join(found, "; ")),
                           "kmm-upgrade resume goes on to the target", tools_.recorder.run());
}

void NodeRollback::bring_back_other_kubelets(const std::string& name, const Version& control_plane,
                                             const Deadline& deadline) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    const auto kubelet = Version::parse(tools_.subject.kubelet);
    if (!kubelet || kubernetes::minors_behind(control_plane, *kubelet) <= 0) return;
    for (const auto& record : tools_.recorder.run().nodes) {
        const auto other = upgrade::kubernetes::read(record);
        const auto before = Version::parse(other.from_version);
        const bool goes_back = record.touched != 0 && record.state != upgrade::k_node_rolled_back;
        if (other.name == name || !other.is_control_plane || !goes_back || !before) continue;
        auto reply = tools_.agent.facts_once(other.name, k_patience);
        if (!reply.value) {
            tell(tools_.recorder, other.name, "no answer: its kubelet is not brought back before other control planes");
            continue;
        }
        const auto seen = tools_.await_job(other.name, read_sight(std::move(*reply.value)), deadline);
        if (!has_other_kubelet(seen, *before)) continue;
        tell(tools_.recorder, other.name, fmt::format("its kubelet goes back before the API server of {}", name));
        const auto words = tools_.with_kubeadm(tools_.kubelet_words(other.name, *before));
        static_cast<void>(tools_.agent.step(other.name, words, deadline));
        tools_.prove_kubelet(other.name, *before, true, deadline);
    }
}

Done NodeRollback::roll_back(const std::string& name, const NodeSight& found, const Deadline& deadline) {
    // What a step has begun goes on without its caller: what it leaves is to be brought back, too.
    const auto seen = tools_.await_job(name, found, deadline);
    const auto node = tools_.node(name);
    // Nothing is half done: the kubelet would be back, its control plane could not follow.
    if (!tools_.subject.control_plane.empty() && is_etcd_newer(node, seen))
        throw etcd_differs(fmt::format("node {} runs etcd {}, its backup is of etcd {}", name, base::escape(seen.etcd),
                                       base::escape(node.etcd)),
                           "kmm-upgrade abort --rollback none, then start again with --ignore-checks "
                           "versions-uniform,kubernetes-version-cm",
                           tools_.recorder.run());
    // Neither is its kubelet, then.
    if (!tools_.subject.control_plane.empty() && has_changed_control_plane(node, seen))
        control_plane_.require_backup(
            name,
            fmt::format("kmm-worker kubernetes backup --name {} --verify on {} names the file: bring it back, then "
                        "kmm-upgrade resume",
                        node.backup, name),
            deadline);
    std::vector<std::string> told;
    const auto say = [&](const value::Node& document) { told.push_back(document.get_string({"message"})); };
    const auto before = Version::parse(node.from_version);
    const bool is_kubelet_switched = !tools_.subject.kubelet.empty() && before && has_other_kubelet(seen, *before);
    if (is_kubelet_switched) {
        // Its kubelet first: it must never be newer than its API server.
        say(tools_.agent.step(name, tools_.with_kubeadm(tools_.kubelet_words(name, *before)), deadline));
        tools_.prove_kubelet(name, *before, true, deadline);
    }
    const auto control_plane = Version::parse(node.from_control_plane);
    bool is_changed = has_changed_control_plane(node, seen);
    if (node.is_control_plane && seen.are_manifests_whole == false) {
        control_plane_.repair_manifests(name, seen, deadline);
        is_changed = has_changed_control_plane(node, tools_.agent.facts(name, deadline));
        told.emplace_back("manifests repaired");
    }
    if (!tools_.subject.control_plane.empty() && control_plane && is_changed) {
        if (node.backup.empty())
            throw Error(Exit::checks_failed, "backup-not-found",
                        fmt::format("node {} was changed and the record names no backup of it", name))
                .hint(fmt::format("kmm-worker kubernetes restore on {}, with the backup that is there", name));
        bring_back_other_kubelets(name, *control_plane, deadline);
        const auto restored = tools_.agent.step(name, {"restore", "--name", node.backup}, deadline);
        say(restored);
        // The kubelet was started with those of the other version.
        if (is_kubelet_switched && restored.get_string({"verified", "kubeletFilesChanged"}) == "true")
            told.emplace_back("its kubelet reads its restored files when it is restarted: systemctl restart kubelet");
        // Where the files are those of the backup already, their versions may have differed before the run.
        if (restored.get_string({"outcome"}) != "already" || seen.control_plane != control_plane)
            tools_.prove_control_plane(name, *control_plane, false, deadline);
    }
    // Its files are back already: the restore of etcd has started its API server, and others are to be proven Ready.
    if (!tools_.subject.control_plane.empty() && control_plane && !is_changed && !node.etcd_restore.empty()) {
        tools_.prove_control_plane(name, *control_plane, false, deadline);
        told.emplace_back("its etcd has the data of the snapshot");
    }
    // The first control plane is the last that goes back.
    if (!tools_.subject.control_plane.empty() && control_plane && tools_.is_first(name))
        if (auto text = roll_back_configuration(node, deadline); !text.empty()) told.push_back(std::move(text));
    const auto lifted = tools_.emptier.cordons().lift(name);
    if (!lifted.empty()) told.push_back(lifted);
    auto done = tools_.done_as_seen(name, told.empty() ? "nothing had been changed" : base::join(told, "; "), deadline);
    if (!tools_.recorder.node(name).cordon.empty()) done.facts.set("cordon", "");
    return done;
}

std::string NodeRollback::roll_back_configuration(const upgrade::kubernetes::Node& node, const Deadline& deadline) {
    const auto& saved = node.cluster_configuration;
    const auto seen = tools_.view.about(node.name);
    if (saved.empty()) {
        const auto named = kubernetes::configured_version(seen);
        if (!named || named == Version::parse(node.from_control_plane)) return "";
        return fmt::format("kubeadm-config still names {}: kubeadm init phase upload-config kubeadm writes it again",
                           named->text());
    }
    if (cluster_configuration_text(seen) == saved) return "";
    tools_.view.put_cluster_configuration(saved);
    std::string named;
    tools_.await(node.name, deadline, [&]() -> std::string {
        const auto now = tools_.view.about(node.name);
        if (const auto version = kubernetes::configured_version(now)) named = version->text();
        return cluster_configuration_text(now) == saved ? "" : "ConfigMap kubeadm-config is not what was written to it";
    });
    return fmt::format("kubeadm-config names {} again", named.empty() ? "no version" : named);
}

}  // namespace kmm::drive
