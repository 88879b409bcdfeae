// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/steps.hpp"

namespace kmm::kubeadm {
namespace {

/// How long the restarted kubelet may take to run, and for how long it must then keep the same process.
constexpr std::chrono::milliseconds k_start_time{60'000};
constexpr std::chrono::milliseconds k_steady_time{3'000};
constexpr std::chrono::milliseconds k_look_again{500};

struct Running {
    std::int64_t pid = 0;
    std::optional<kubernetes::Version> version;
};

/// The kubelet that runs; nothing if none or several do, or it is just being replaced.
std::optional<Running> running_kubelet(const Place& place) {
    const auto pids = node_processes(place, "kubelet");
    if (pids.size() != 1) return std::nullopt;
    Running running;
    running.pid = pids.front();
    try {
        running.version = version_of_program(place, {fmt::format("/proc/{}/exe", running.pid), "--version"});
    } catch (const Error&) {
        return std::nullopt;  // it has ended since
    }
    return running;
}

/// The kubelet in PATH and the one that runs are of this version.
bool runs_everywhere(const Place& place, const kubernetes::Version& target) {
    const auto running = running_kubelet(place);
    return running && running->version == target && kubelet_version(place) == target;
}

std::string words_for(const std::optional<Running>& running) {
    return running && running->version ? running->version->text() : std::string("none");
}

/// The kubelet of `target` runs, and is not in a loop of restarts.
void prove(const Node& node, const KubeletOptions& options, StepResult& result) {
    const auto fail = [](const std::string& message) {
        return Error(Exit::unhealthy, "kubelet-not-switched", message).hint("journalctl -u kubelet -n 50");
    };
    if (const auto found = kubelet_version(node.place); found != options.target) {
        throw fail(fmt::format("expected kubelet {} on this node after the switch, found {}", options.target.text(),
                               found.text()));
    }
    SteadyWatch watch(node.clock.monotonic() + k_start_time, k_steady_time);
    for (;;) {
        const auto running = running_kubelet(node.place);
        const bool is_target = running && running->version == options.target;
        const auto pid = is_target ? std::optional(running->pid) : std::nullopt;
        const auto now = node.clock.monotonic();
        const auto verdict = watch.look(pid, now);
        if (verdict == SteadyWatch::Verdict::steady) {
            result.facts.emplace_back("kubelet", options.target.text());
            result.facts.emplace_back("pid", std::to_string(*pid));
            result.message = fmt::format("kubelet {} is running (pid {})", options.target.text(), *pid);
            return;
        }
        if (node.deadline && now >= *node.deadline) {
            throw Error(Exit::timeout, "timeout",
                        fmt::format("--timeout was reached before kubelet {} was seen to keep running; {} is running",
                                    options.target.text(), words_for(running)))
                .hint("the same command looks again")
                .retryable();
        }
        if (verdict == SteadyWatch::Verdict::failed) {
            const bool is_other = running && !is_target;
            throw fail(fmt::format("expected kubelet {} to run and keep running within {}, found {}",
                                   options.target.text(), base::format_duration(k_start_time),
                                   is_other || watch.starts() == 0 ? words_for(running)
                                   : watch.starts() == 1           ? "one that has ended"
                                   : fmt::format("one that restarted {} times", watch.starts() - 1)));
        }
        static_cast<void>(node.clock.sleep_for(k_look_again));
    }
}

/// A kubelet must never be newer than the API servers: its own, at least, can be seen from here.
void gate(const ManifestSet& manifests, const kubernetes::Version& target) {
    if (!manifests.control_plane) return;
    require_whole(manifests);
    const Manifest& apiserver = *manifests.find("kube-apiserver");
    if (*apiserver.version >= target) return;
    throw Error(Exit::checks_failed, "kubelet-newer",
                fmt::format("kubelet {} would be newer than this node's kube-apiserver {}", target.text(),
                            apiserver.version->text()))
        .hint("upgrade every control plane first: kmm-worker kubernetes control-plane");
}

nodejob::JobSpec kubelet_job(const Node& node, const KubeletOptions& options, bool is_worker, StepResult& result) {
    nodejob::JobSpec spec{fmt::format("kubelet {}", options.target.text()), {}};
    const auto append = [&](std::vector<nodejob::Command> commands) {
        spec.commands.insert(spec.commands.end(), commands.begin(), commands.end());
    };
    // A package may be there and not be configured, or not be held: its manager looks for itself.
    const bool by_packages = options.how.way == Switch::Way::packages;
    if (is_worker) {
        if (by_packages || !is_installed(node.place, options.target, "kubeadm"))
            append(placing_commands(node, options.how, options.target, {"kubeadm"}));
        std::vector<std::string> words{"kubeadm", "upgrade", "node"};
        if (!options.ignored_preflight.empty())
            words.push_back("--ignore-preflight-errors=" + options.ignored_preflight);
        if (!options.skipped_phases.empty()) words.push_back("--skip-phases=" + options.skipped_phases);
        // kubeadm remembers none: what they change in the kubelet's configuration would be lost.
        if (!options.patches.empty() && node.place.exists(options.patches))
            words.push_back("--patches=" + options.patches);
        else if (!options.patches.empty())
            result.warnings.push_back(fmt::format(
                "no-patches: {} is not on this node: kubeadm writes the kubelet's configuration without it",
                options.patches));
        spec.commands.push_back({node.place.command(std::move(words)), {}, false});
    }
    std::vector<std::string> programs{"kubelet"};
    if (by_packages && !node.place.find_program("kubectl").empty())
        programs.emplace_back("kubectl");
    if (by_packages || kubelet_version(node.place) != options.target)
        append(placing_commands(node, options.how, options.target, programs));
    spec.commands.push_back({node.place.command({"systemctl", "daemon-reload"}), {}, false});
    spec.commands.push_back({node.place.command({"systemctl", "restart", "kubelet"}), {}, false});
    return spec;
}

}  // namespace

StepResult switch_kubelet(const Node& node, const KubeletOptions& options) {
    StepResult result;
    result.step = "kubelet";
    auto slot = node.slot();
    const std::string key = fmt::format("kubelet {}", options.target.text());
    const auto failed = [](const nodejob::JobView& job, const std::string& output) {
        if (const auto checks = failed_checks(output);
            !checks.empty() && job.commands[job.failed_command].find("kubeadm upgrade") != std::string::npos) {
            Error error(Exit::checks_failed, "preflight-failed",
                        fmt::format("kubeadm refused to upgrade: {}", base::join(checks, ", ")));
            tell_output(error, output);
            return std::move(error).hint("correct it, or name checks in --ignore-preflight-errors");
        }
        Error error(Exit::other, "kubelet-failed",
                    fmt::format("{} failed: {}", job.commands[job.failed_command], how_it_ended(job)));
        tell_output(error, output);
        return std::move(error).hint("correct it, then run the same command again");
    };
    const auto is_in_effect = [&] { return runs_everywhere(node.place, options.target); };
    const auto proof = [&] { prove(node, options, result); };
    if (settle_job(node, slot, slot.adopt(key), result, is_in_effect, failed, proof)) return result;
    require_no_kubeadm(node.place);
    const ManifestSet manifests = read_manifests(node.place);
    gate(manifests, options.target);
    const auto before = slot.look();
    const bool is_lost = before.key == key && before.state == nodejob::JobState::lost;
    // Whether kubeadm has upgraded a worker's configuration cannot be seen: a kubelet that something else has switched
    // is no proof of it.
    const bool is_ours = manifests.control_plane || (before.key == key && before.succeeded());
    if (!is_lost && is_ours && runs_everywhere(node.place, options.target)) {
        prove(node, options, result);
        result.already = true;
        return result;
    }
    run_job(node, slot, kubelet_job(node, options, !manifests.control_plane, result), result, failed);
    prove_job(node, slot, result, proof);
    return result;
}

}  // namespace kmm::kubeadm
