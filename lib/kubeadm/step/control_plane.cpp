// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/etcd_restore.hpp"
#include "kubeadm/step/steps.hpp"

namespace kmm::kubeadm {
namespace {

std::string key_of(const ControlPlaneOptions& options) {
    return fmt::format("control-plane {}{}", options.target.text(), options.first ? " first" : "");
}

Error kubeadm_error(const Node& node, const nodejob::JobView& job, const std::string& output) {
    const auto checks = failed_checks(output);
    const std::string command = job.failed_command < job.commands.size() ? job.commands[job.failed_command] : job.key;
    Error error = checks.empty()
                      ? Error(Exit::other, "kubeadm-failed", fmt::format("{} failed: {}", command, how_it_ended(job)))
                      : Error(Exit::checks_failed, "preflight-failed",
                              fmt::format("kubeadm refused to upgrade: {}", base::join(checks, ", ")));
    tell_output(error, output);
    const std::string problems = read_manifests(node.place).problems();
    if (!problems.empty()) {
        error.detail("manifests", problems).hint("kmm-worker kubernetes repair, then the same command again");
    } else if (checks.empty()) {
        error.hint("correct what kubeadm names, then run the same command again: it goes on where kubeadm stopped");
    } else {
        error.hint("correct it, or name checks in --ignore-preflight-errors");
    }
    return error;
}

/// The components of Kubernetes that are not of `target`, as "kube-scheduler v1.34.4"; "" if all are.
std::string others_than(const ManifestSet& manifests, const kubernetes::Version& target) {
    std::vector<std::string> others;
    for (const Manifest& pod : manifests.pods) {
        if (pod.component != "etcd" && pod.version != target)
            others.push_back(
                fmt::format("{} {}", pod.component, pod.version ? pod.version->text() : "without version"));
    }
    return base::join(others, ", ");
}

/// kubeadm's success is that a Pod has changed and some Pod of its label runs; where it takes the node for a worker, it
/// is nothing at all.
void prove(const Node& node, const ControlPlaneOptions& options, StepResult& result) {
    const ManifestSet manifests = read_manifests(node.place);
    const std::string problems = manifests.problems();
    const std::string others = others_than(manifests, options.target);
    if (!problems.empty() || !others.empty()) {
        throw Error(Exit::unhealthy, "not-upgraded",
                    fmt::format("kubeadm reported success, but the control plane of this node is not {}: {}",
                                options.target.text(), problems.empty() ? others : problems))
            .hint(problems.empty() ? "run the same command again"
                                   : "kmm-worker kubernetes repair, then the same command again");
    }
    std::string etcd = "elsewhere";
    for (const Manifest& pod : manifests.pods) {
        if (pod.expected) result.facts.emplace_back(pod.component, pod.tag);
        if (pod.expected && pod.component == "etcd") etcd = pod.tag;
    }
    result.message = fmt::format("the manifests of the control plane are at {} (etcd {})", options.target.text(), etcd);
}

nodejob::JobSpec kubeadm_job(const Node& node, const ControlPlaneOptions& options) {
    std::vector<std::string> words{"kubeadm", "upgrade"};
    if (options.first) {
        words.insert(words.end(), {"apply", options.target.text(), "--yes"});
    } else {
        words.emplace_back("node");
    }
    words.insert(words.end(), options.extra.begin(), options.extra.end());
    return {key_of(options), {{node.place.command(std::move(words)), {}, false}}};
}

}  // namespace

std::vector<std::string> failed_checks(const std::string& output) {
    std::set<std::string> names;
    constexpr std::string_view mark = "[ERROR ";
    for (const std::string_view line : base::split(output, '\n')) {
        const std::string_view text = base::trim(line);
        if (!text.starts_with(mark)) continue;
        const std::size_t end = text.find(']');
        if (end != std::string_view::npos) names.insert(std::string(text.substr(mark.size(), end - mark.size())));
    }
    return {names.begin(), names.end()};
}

StepResult upgrade_control_plane(const Node& node, const ControlPlaneOptions& options) {
    StepResult result;
    result.step = "control-plane";
    auto slot = node.slot();
    const auto failed = [&](const nodejob::JobView& job, const std::string& output) {
        return kubeadm_error(node, job, output);
    };
    const auto now = slot.look();
    const bool is_placing = now.state == nodejob::JobState::running && now.key == placing_key(options.target);
    const auto job = is_placing ? std::nullopt : slot.adopt(key_of(options));
    const auto is_in_effect = [&] { return others_than(read_manifests(node.place), options.target).empty(); };
    const auto proof = [&] { prove(node, options, result); };
    if (settle_job(node, slot, job, result, is_in_effect, failed, proof)) return result;
    const ManifestSet manifests = read_manifests(node.place);
    require_control_plane(manifests);
    require_no_kubeadm(node.place);
    require_no_etcd_restore(node.place);
    require_whole(manifests);
    const auto before = slot.look();
    // The manifests alone do not tell whether kubeadm has come to its end: it writes its ConfigMaps after them.
    if (before.key == key_of(options) && before.succeeded() && others_than(manifests, options.target).empty()) {
        result.already = true;
        result.job = before;
        prove(node, options, result);
        return result;
    }
    require_kubeadm(node, options.kubeadm, options.target, result);
    run_job(node, slot, kubeadm_job(node, options), result, failed);
    prove_job(node, slot, result, proof);
    return result;
}

}  // namespace kmm::kubeadm
