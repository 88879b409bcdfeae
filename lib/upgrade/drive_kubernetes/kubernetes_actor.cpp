// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"

#include <any>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using kubernetes::Version;
using upgrade::Event, upgrade::EventKind;
using namespace upgrade::kubernetes;

KubernetesActor::KubernetesActor(ClusterView& view, cluster::Workloads& workloads, Networking& networking,
                                 cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock,
                                 std::function<bool()> interrupted)
    : tools_(view, workloads, runner, recorder, clock, std::move(interrupted)),
      networking_(networking),
      control_plane_(tools_),
      validation_(tools_),
      rollback_(tools_, control_plane_),
      unavailable_(tools_) {}

std::string KubernetesActor::backup_name() const {
    const auto& header = tools_.recorder.header();
    return fmt::format("before-{}-{}", header.to_version, header.lineage.substr(0, 8));
}

Sight KubernetesActor::look(const upgrade::NodeStep& step, const Deadline& deadline) {
    Sight sight;
    if (is_emptying(step.step)) return sight;
    const auto before = tools_.recorder.node(step.node);
    try {
        if (step.step == upgrade::k_step_rollback && tools_.is_gone(step.node)) return sight;
        auto seen = tools_.agent.facts(step.node, deadline);
        if (seen.node && *seen.node != step.node)
            sight.error =
                Error(Exit::config, "node-name-differs",
                      fmt::format("node {}: the kubelet there has the certificate of node {}", step.node,
                                  base::escape(*seen.node)))
                    .hint("correct the name in the ssh configuration or in /etc/hosts: another node was reached");
        if (before.open && !sight.error) {
            auto left = node_event(tools_.recorder, EventKind::observed, step.node, "");
            left.message = fmt::format("looked after the step was cut off: kubelet {}{}",
                                       seen.kubelet ? seen.kubelet->text() : "unknown",
                                       seen.control_plane ? ", control plane " + seen.control_plane->text() : "");
            sight.left = std::move(left);
        }
        sight.seen = std::move(seen);
    } catch (const Leave&) {
        sight.is_interrupted = true;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && tools_.interrupted()) sight.is_interrupted = true;
        else if (cluster::ends_run(error)) throw;
        else sight.error = error;
    }
    return sight;
}

value::Node KubernetesActor::intent(const upgrade::NodeStep& step) {
    if (step.step == upgrade::k_step_cordon) return Cordons::intent();
    auto facts = value::Node::mapping();
    if (step.step == k_step_control_plane || step.step == k_step_kubelet || step.step == upgrade::k_step_rollback)
        facts.set("currentKnown", false);
    return facts;
}

Done KubernetesActor::act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const bool is_cordoned_by_us = step.step == upgrade::k_step_uncordon && tools_.emptier.cordons().is_ours(step.node);
    auto done = act_once(step, sight, deadline);
    if (is_cordoned_by_us) unavailable_.forget_cordon(step.node);
    if (step.step == k_step_validate) unavailable_.forget_unready(step.node);
    return done;
}

Done KubernetesActor::act_once(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const auto& name = step.node;
    if (name.empty()) return upgrade_networking(deadline);
    if (step.step == upgrade::k_step_cordon) return tools_.emptier.cordons().cordon(name);
    if (step.step == upgrade::k_step_drain) return tools_.emptier.drain(name, deadline);
    if (step.step == upgrade::k_step_uncordon) return uncordon(name);
    if (!sight.seen.has_value()) return leave_gone(name);
    const auto& seen = std::any_cast<const NodeSight&>(sight.seen);
    if (step.step == k_step_prepare) return prepare(name, seen, deadline);
    if (step.step == k_step_control_plane) return control_plane_.upgrade(name, seen, deadline);
    if (step.step == k_step_kubelet) return kubelet(name, seen, deadline);
    if (step.step == k_step_validate) return validation_.validate(name, seen, deadline);
    return rollback_.roll_back(name, seen, deadline);
}

std::vector<std::string> KubernetesActor::images_of(const std::string& name) {
    std::vector<std::string> words{"images", "--target", tools_.subject.control_plane};
    // kubeadm pulls what its configuration in the cluster names, and asks nobody for it before.
    const auto sources = kubernetes::configured_images(tools_.view.about(name));
    for (const auto& [option, image] :
         {std::pair("--image-repository", &sources.repository), std::pair("--etcd-image", &sources.etcd),
          std::pair("--dns-image", &sources.dns)})
        if (!image->empty()) words.insert(words.end(), {option, *image});
    return words;
}

Done KubernetesActor::prepare(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    if (seen.is_control_plane != tools_.is_control_plane(name))
        throw Error(
            Exit::checks_failed, "role-differs",
            fmt::format("node {} has {} manifests of a control plane, the cluster says that it is {}", name,
                        seen.is_control_plane ? "the" : "no", seen.is_control_plane ? "a worker" : "a control plane"))
            .hint("correct the label node-role.kubernetes.io/control-plane, or repair the node");
    if (seen.is_control_plane) control_plane_.repair_manifests(name, seen, deadline);
    const auto backup = backup_name();
    std::vector<std::string> words{"backup", "--name", backup};
    if (seen.is_control_plane && !tools_.subject.is_without_snapshot) words.emplace_back("--etcd-snapshot");
    auto message = message_of(tools_.agent.step(name, words, deadline));
    if (seen.is_control_plane && !tools_.subject.control_plane.empty()) {
        message += "; " + message_of(tools_.agent.step(name, tools_.with_switch(images_of(name)), deadline));
    }
    Done done;
    done.facts = value::Node::mapping({{"backup", backup}});
    const auto known = tools_.node(name);
    if (!seen.etcd.empty() && known.etcd.empty()) done.facts.set("etcd", seen.etcd);
    if (!tools_.subject.control_plane.empty() && tools_.is_first(name) && known.cluster_configuration.empty())
        if (const auto text = cluster_configuration_text(tools_.view.about(name)))
            done.facts.set("clusterConfiguration", *text);
    tools_.set_current(seen, done.facts);
    done.message = std::move(message);
    return done;
}

Done KubernetesActor::kubelet(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    const auto target = tools_.kubelet_target();
    if (const auto lost = control_plane_.lost(name, seen); !lost.empty()) {
        tell(tools_.recorder, name, fmt::format("{}: it is brought to {} again", lost, tools_.subject.control_plane));
        static_cast<void>(control_plane_.upgrade(name, seen, deadline));
    }
    // A kubelet must never be newer than any API server it may talk to.
    if (const auto older = older_control_planes(tools_.view.control_planes(), target); !older.empty())
        throw Error(Exit::checks_failed, "kubelet-newer",
                    fmt::format("a kubelet of {} would be newer than a control plane: {}", target.text(), older))
            .hint(fmt::format("on those nodes: kmm-worker kubernetes repair, kmm-worker kubernetes control-plane "
                              "--target {}; then kmm-upgrade retry {}",
                              target.text(), name));
    // Where the switch is under way already, or done, Pods that have come back are beside it.
    if (seen.kubelet != target && running_on(seen).empty())
        tools_.emptier.empty_again(
            name,
            [&] {
                const auto found = tools_.view.about(name).nodes;
                return !found.empty() && !found.front().unschedulable;
            },
            deadline);
    value::Node document;
    try {
        document = tools_.agent.step(name, tools_.with_kubeadm(tools_.kubelet_words(name, target)), deadline);
    } catch (Error& error) {
        hint_at_preflight(error, name);
        throw;
    }
    tools_.prove_kubelet(name, target, document.get_string({"outcome"}) != "already", deadline);
    return tools_.done_as_seen(name, message_of(document), deadline);
}

Done KubernetesActor::uncordon(const std::string& name) {
    return tools_.emptier.cordons().uncordon(
        name, [&](value::Node facts) { validation_.watch(name, std::move(facts)); },
        [&] { return "kubelet " + tools_.recorder.header().to_version; });
}

Done KubernetesActor::upgrade_networking(const Deadline& deadline) {
    Done done;
    done.message = networking_.apply(tools_.recorder.header(), tools_.subject, deadline, tools_.interrupted);
    return done;
}

void KubernetesActor::explain(const upgrade::NodeStep& step, const Error& error, Event& failed) {
    unavailable_.forget();
    for (const auto& [key, text] : error.details()) {
        if (key == "transport") failed.message = error.message() + transport_cause(error);
        if (key == "output") failed.message = fmt::format("{}: {}", error.message(), text);
    }
    if (error.code() == "node-not-found") failed.facts.set("hint", tools_.hint_if_gone(step.node));
    if (step.step == upgrade::k_step_cordon || step.step == upgrade::k_step_drain) {
        tools_.emptier.cordons().give_back(step.node, [] { return true; }, failed);
        return;
    }
    // The step itself closes the gap that a killed kubeadm leaves.
    const auto& code = error.code();
    if (step.step == k_step_control_plane &&
        (code == "kubeadm-failed" || code == "manifests-damaged" || code == "job-lost"))
        failed.facts.set("hint", fmt::format("kmm-upgrade retry {} repairs the manifests first, then tries again; see "
                                             "kmm-worker kubernetes facts on the node",
                                             step.node));
    if (code == "kubelet-failed" || code == "kubelet-not-switched")
        failed.facts.set("hint", fmt::format("journalctl -u kubelet -n 50 on the node; correct it, then kmm-upgrade "
                                             "retry {}", step.node));
    // What runs there now: only a look can tell.
    if (step.node.empty() || is_emptying(step.step) || code == "node-unreachable" || code == "node-name-differs" ||
        code == "node-gone")
        return;
    const auto facts = glance(step.node);
    for (const auto& member : facts.members()) failed.facts.set(member.key, member.value);
    // Where another kubelet than the one that runs is installed, there is more to do than to look at it.
    if (code == "version-changed" && facts.get_string({"currentVersion"}) == tools_.subject.kubelet)
        failed.facts.set("currentKnown", false);
}

std::optional<Error> KubernetesActor::lost_for_good(const upgrade::NodeStep& step, const Error& /*error*/) {
    if (tools_.is_control_plane(step.node) || !tools_.view.about(step.node).nodes.empty()) return std::nullopt;
    return Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", step.node));
}

value::Node KubernetesActor::glance(const std::string& node) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    auto facts = value::Node::mapping();
    try {
        auto reply = tools_.agent.facts_once(node, k_patience);
        if (!reply.value) return facts;
        const auto seen = read_sight(std::move(*reply.value));
        tools_.set_current(seen, facts);
        if (const auto job = running_on(seen); !job.empty()) {
            tell(tools_.recorder, node, job + " is still under way there, and goes on");
            facts.set("currentKnown", false);
        }
    } catch (const Error&) {
        return facts;  // it stays unknown
    }
    return facts;
}

std::string KubernetesActor::release(const std::string& node) {
    auto lifted = tools_.emptier.cordons().lift(node);
    unavailable_.forget();
    return lifted;
}

}  // namespace kmm::drive
