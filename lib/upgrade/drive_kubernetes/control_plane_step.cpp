// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/control_plane_step.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

void ControlPlaneStep::require_backup(const std::string& name, const std::string& fix, const Deadline& deadline) {
    const auto backup = tools_.node(name).backup;
    if (backup.empty()) return;
    try {
        static_cast<void>(tools_.agent.step(name, {"backup", "--name", backup, "--verify"}, deadline));
    } catch (const Error& error) {
        if (error.code() != "backup-damaged" && error.code() != "backup-not-found") throw;
        throw Error(Exit::checks_failed, "checks-failed",
                    fmt::format("node {}: backup-valid fails: {}", name, error.message()))
            .hint(fix);
    }
}

void ControlPlaneStep::repair_manifests(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    if (seen.are_manifests_whole != false) return;
    const auto document = tools_.agent.step(name, {"repair"}, deadline);
    tell(tools_.recorder, name, "repaired: " + message_of(document));
    tools_.await(name, deadline, [&] {
        const auto found = tools_.view.about(name);
        const auto observed = kubernetes::observe(found);
        for (const auto& running : observed.control_plane)
            if (running.node == name && (!running.version || running.pod == nullptr || !running.pod->is_ready))
                return fmt::format("{} on {} is not Ready", running.component, name);
        return node_problem(found, name);
    });
}

void ControlPlaneStep::await_server(const std::string& name, NodeSight seen, const Deadline& deadline) {
    constexpr std::chrono::milliseconds k_patience{120'000};
    const Deadline end(tools_.clock, std::min(k_patience, deadline.left()));
    const auto is_to_be_awaited = [](const NodeSight& sight) {
        // While kubeadm is at work, it is what restarts the server.
        return !sight.server_problem.empty() && sight.are_manifests_whole != false &&
               sight.document.get_string({"job", "state"}) != "running";
    };
    std::chrono::milliseconds wait{1000};
    for (bool is_told = false; is_to_be_awaited(seen);) {
        const bool is_late = end.passed();
        if (!is_told || is_late)
            tell(tools_.recorder, name,
                 fmt::format("{}: {}", is_late ? "going on without its API server" : "waiting for its API server",
                             base::escape(seen.server_problem)));
        if (is_late) return;
        is_told = true;
        tools_.agent.pause(wait);
        seen = tools_.agent.facts(name, deadline);
    }
}

Done ControlPlaneStep::upgrade(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    const auto target = tools_.control_plane_target();
    const bool first = tools_.is_first(name);
    const auto await_again = [&] { await_server(name, tools_.agent.facts(name, deadline), deadline); };
    require_backup(name, "kmm-upgrade abort, then start again: it makes another backup", deadline);
    repair_manifests(name, seen, deadline);
    await_server(name, seen, deadline);
    // kubeadm upgrade node brings whatever kubeadm-config names.
    if (!first)
        await_none(tools_.clock, deadline, tools_.interrupted, name,
                   [&] { return configuration_problem(tools_.view.about(name), target); });
    std::vector<std::string> words{"control-plane", "--target", target.text()};
    if (first) words.emplace_back("--first");
    const auto options = tools_.kubeadm_options(name);
    words.insert(words.end(), options.begin(), options.end());
    words = tools_.with_kubeadm(std::move(words));
    value::Node document;
    const auto step = [&] { return tools_.agent.step(name, words, deadline, {}, await_again); };
    const auto step_twice = [&] {
        try {
            return step();
        } catch (const Error& error) {
            // kubeadm waits 15 s for a Job. A controller manager that has just started may need longer to lead.
            if (error.code() != "preflight-failed" || !error.message().ends_with(": CreateJob")) throw;
            tell(tools_.recorder, name,
                 "the Job of kubeadm's health check did not end in time: kubeadm is run once more");
            return step();
        }
    };
    try {
        document = step_twice();
    } catch (Error& error) {
        hint_at_preflight(error, name);
        // A kubeadm that was killed leaves a gap: kubeadm itself must not run again before it is closed.
        if (error.code() != "manifests-damaged") throw;
        repair_manifests(name, tools_.agent.facts(name, deadline), deadline);
        await_again();
        document = step();
    }
    tools_.prove_control_plane(name, target, first, deadline);
    return tools_.done_as_seen(name, message_of(document), deadline);
}

std::string ControlPlaneStep::lost(const std::string& name, const NodeSight& seen) {
    if (tools_.subject.control_plane.empty() || !tools_.is_control_plane(name)) return "";
    const auto target = tools_.control_plane_target();
    if (seen.are_manifests_whole == false) return "manifests of its control plane are missing or damaged";
    if (seen.control_plane != target)
        return fmt::format("its control plane runs {}", seen.control_plane ? seen.control_plane->text() : "nothing");
    return tools_.is_first(name) ? configuration_problem(tools_.view.about(name), target) : "";
}

}  // namespace kmm::drive
