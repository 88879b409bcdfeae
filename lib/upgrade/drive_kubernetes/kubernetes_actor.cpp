// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"

#include <algorithm>
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

namespace {

/// Why a node is unavailable.
constexpr const char *k_not_ready = "not ready", *k_cordoned = "cordoned";

/// A version of the record, which was a version when it was written.
Version version_of(const std::string& text) {
    if (const auto version = Version::parse(text)) return *version;
    throw Error(
        Exit::io, "state-damaged",
        fmt::format("the record has the version \"{}\", expected {}", base::escape(text), kubernetes::k_version_form));
}

/// Steps that do nothing on the node itself.
bool is_by_api_alone(const std::string& step) {
    return step == k_step_cordon || step == k_step_drain || step == k_step_uncordon;
}

/// What `kubeadm upgrade node` knows of phases of `kubeadm upgrade apply`, with commas between: it refuses others. Of a
/// worker what does something there.
std::string phases_of_node(const std::string& phases, bool is_control_plane) {
    std::vector<std::string> known;
    for (const auto phase : base::split(phases, ',')) {
        const auto name = base::trim(phase);
        const bool is_known = is_control_plane
                                  ? !name.starts_with("upload-config") && name != "bootstrap-token"
                                  : name == "preflight" || name == "kubelet-config" || name == "post-upgrade";
        if (is_known) known.emplace_back(name);
    }
    return base::join(known, ",");
}

/// What to do about a kubeadm that has refused to begin on node `name`.
void hint_at_preflight(Error& error, const std::string& name) {
    if (error.code() == "preflight-failed")
        error.hint(fmt::format("correct it on the node, then kmm-upgrade retry {}; or pass over it: kmm-upgrade "
                               "retry {} --ignore-preflight-errors NAMES",
                               name, name));
}

std::string message_of(const value::Node& document) {
    const auto message = document.get_string({"message"});
    return document.get_string({"outcome"}) == "already" ? "nothing to do: " + message : message;
}

}  // namespace

KubernetesActor::KubernetesActor(ClusterView& view, cluster::Workloads& workloads, Networking& networking,
                                 cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock,
                                 std::function<bool()> interrupted)
    : view_(view),
      networking_(networking),
      recorder_(recorder),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      subject_(subject_of(recorder.header())),
      agent_(runner, clock, interrupted_,
             [this](const std::string& node, const std::string& text) { tell(node, text); },
             [this](const std::string& node) { require_present(node); }),
      emptier_(workloads, recorder, clock, interrupted_),
      pruner_(agent_, interrupted_, [this](const std::string& node, const std::string& text) { tell(node, text); }) {}

void KubernetesActor::tell(const std::string& node, const std::string& text) {
    auto told = node_event(recorder_, EventKind::observed, node, "");
    told.message = text;
    recorder_.record(told);
}

bool KubernetesActor::is_first(const std::string& name) const {
    return recorder_.look([&](const upgrade::Run& run) {
        const auto* first = first_control_plane(run);
        return first != nullptr && first->name == name;
    });
}

std::string KubernetesActor::backup_name() const {
    return fmt::format("before-{}-{}", recorder_.header().to_version, recorder_.header().lineage.substr(0, 8));
}

std::vector<std::string> KubernetesActor::with_kubeadm(std::vector<std::string> words) const {
    if (!subject_.ignored_preflight.empty())
        words.insert(words.end(), {"--ignore-preflight-errors", subject_.ignored_preflight});
    return with_switch(std::move(words));
}

std::vector<std::string> KubernetesActor::with_switch(std::vector<std::string> words) const {
    if (subject_.way.empty()) return words;
    words.insert(words.end(), {"--switch", subject_.way});
    if (!subject_.directory.empty()) words.insert(words.end(), {"--from", subject_.directory});
    if (!subject_.command.empty()) words.insert(words.end(), {"--command", subject_.command});
    return words;
}

std::vector<std::string> KubernetesActor::kubeadm_options(const std::string& name) const {
    std::vector<std::string> options;
    const auto& given = subject_.worker_options;
    for (std::size_t at = 0; at + 1 < given.size(); at += 2) {
        auto value = given[at + 1];
        if (given[at] == "--skip-phases" && !is_first(name)) value = phases_of_node(value, is_control_plane(name));
        if (!value.empty()) options.insert(options.end(), {given[at], value});
    }
    return options;
}

std::vector<std::string> KubernetesActor::kubelet_words(const std::string& name, const Version& version) const {
    std::vector<std::string> words{"kubelet", "--target", version.text()};
    if (is_control_plane(name)) return words;
    // On a worker kubeadm writes the kubelet's configuration in this step, and remembers neither patches nor phases.
    const auto options = kubeadm_options(name);
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

Done KubernetesActor::done_as_seen(const std::string& name, std::string message, const Deadline& deadline) {
    Done done;
    done.message = std::move(message);
    done.facts = value::Node::mapping();
    set_current(agent_.facts(name, deadline), done.facts);
    return done;
}

void KubernetesActor::set_current(const NodeSight& seen, value::Node& facts) const {
    const auto& current = subject_.kubelet.empty() ? seen.control_plane : seen.kubelet;
    facts.set("currentVersion", current ? current->text() : "");
    facts.set("currentKnown", current.has_value());
    if (seen.control_plane) facts.set("controlPlane", seen.control_plane->text());
    if (!seen.etcd.empty()) facts.set("etcdNow", seen.etcd);
    if (!seen.boot_id.empty()) facts.set("bootID", seen.boot_id);
}

Sight KubernetesActor::look(const upgrade::NodeStep& step, const Deadline& deadline) {
    Sight sight;
    if (is_by_api_alone(step.step)) return sight;
    const auto before = recorder_.node(step.node);
    try {
        if (step.step == upgrade::k_step_rollback && is_gone(step.node)) return sight;
        auto seen = agent_.facts(step.node, deadline);
        if (seen.node && *seen.node != step.node)
            sight.error =
                Error(Exit::config, "node-name-differs",
                      fmt::format("node {}: the kubelet there has the certificate of node {}", step.node,
                                  base::escape(*seen.node)))
                    .hint("correct the name in the ssh configuration or in /etc/hosts: another node was reached");
        if (before.open && !sight.error) {
            auto left = node_event(recorder_, EventKind::observed, step.node, "");
            left.message = fmt::format("looked after the step was cut off: kubelet {}{}",
                                       seen.kubelet ? seen.kubelet->text() : "unknown",
                                       seen.control_plane ? ", control plane " + seen.control_plane->text() : "");
            sight.left = std::move(left);
        }
        sight.seen = std::move(seen);
    } catch (const Leave&) {
        sight.is_interrupted = true;
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) sight.is_interrupted = true;
        else if (cluster::ends_run(error)) throw;
        else sight.error = error;
    }
    return sight;
}

value::Node KubernetesActor::intent(const upgrade::NodeStep& step) {
    if (step.step == k_step_cordon) return Cordons::intent();
    auto facts = value::Node::mapping();
    if (step.step == k_step_control_plane || step.step == k_step_kubelet || step.step == upgrade::k_step_rollback)
        facts.set("currentKnown", false);
    return facts;
}

Done KubernetesActor::act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const bool is_cordoned_by_us = step.step == k_step_uncordon && emptier_.cordons().is_ours(step.node);
    auto done = act_once(step, sight, deadline);
    if (is_cordoned_by_us) forget_unavailable(step.node, k_cordoned);
    if (step.step == k_step_validate) forget_unavailable(step.node, k_not_ready);
    return done;
}

Done KubernetesActor::act_once(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) {
    const auto& name = step.node;
    if (name.empty()) return upgrade_networking(deadline);
    if (step.step == k_step_cordon) return emptier_.cordons().cordon(name);
    if (step.step == k_step_drain) return emptier_.drain(name, deadline);
    if (step.step == k_step_uncordon) return uncordon(name);
    if (!sight.seen.has_value()) return leave_gone(name);
    const auto& seen = std::any_cast<const NodeSight&>(sight.seen);
    if (step.step == k_step_prepare) return prepare(name, seen, deadline);
    if (step.step == k_step_control_plane) return control_plane(name, seen, deadline);
    if (step.step == k_step_kubelet) return kubelet(name, seen, deadline);
    if (step.step == k_step_validate) return validate(name, seen, deadline);
    return roll_back(name, seen, deadline);
}

std::vector<std::string> KubernetesActor::images_of(const std::string& name) {
    std::vector<std::string> words{"images", "--target", subject_.control_plane};
    // kubeadm pulls what its configuration in the cluster names, and asks nobody for it before.
    const auto sources = kubernetes::configured_images(view_.about(name));
    for (const auto& [option, image] :
         {std::pair("--image-repository", &sources.repository), std::pair("--etcd-image", &sources.etcd),
          std::pair("--dns-image", &sources.dns)})
        if (!image->empty()) words.insert(words.end(), {option, *image});
    return words;
}

Done KubernetesActor::prepare(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    if (seen.is_control_plane != is_control_plane(name))
        throw Error(
            Exit::checks_failed, "role-differs",
            fmt::format("node {} has {} manifests of a control plane, the cluster says that it is {}", name,
                        seen.is_control_plane ? "the" : "no", seen.is_control_plane ? "a worker" : "a control plane"))
            .hint("correct the label node-role.kubernetes.io/control-plane, or repair the node");
    if (seen.is_control_plane) repair_manifests(name, seen, deadline);
    const auto backup = backup_name();
    std::vector<std::string> words{"backup", "--name", backup};
    if (seen.is_control_plane && !subject_.is_without_snapshot) words.emplace_back("--etcd-snapshot");
    auto message = message_of(agent_.step(name, words, deadline));
    if (seen.is_control_plane && !subject_.control_plane.empty()) {
        message += "; " + message_of(agent_.step(name, with_switch(images_of(name)), deadline));
    }
    Done done;
    done.facts = value::Node::mapping({{"backup", backup}});
    if (!seen.etcd.empty() && read(recorder_.node(name)).etcd.empty()) done.facts.set("etcd", seen.etcd);
    if (!subject_.control_plane.empty() && is_first(name) && read(recorder_.node(name)).cluster_configuration.empty())
        if (const auto text = cluster_configuration_text(view_.about(name)))
            done.facts.set("clusterConfiguration", *text);
    set_current(seen, done.facts);
    done.message = std::move(message);
    return done;
}

void KubernetesActor::repair_manifests(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    if (seen.are_manifests_whole != false) return;
    const auto document = agent_.step(name, {"repair"}, deadline);
    tell(name, "repaired: " + message_of(document));
    await_none(clock_, deadline, interrupted_, name, [&] {
        const auto found = view_.about(name);
        const auto observed = kubernetes::observe(found);
        for (const auto& running : observed.control_plane)
            if (running.node == name && (!running.version || running.pod == nullptr || !running.pod->is_ready))
                return fmt::format("{} on {} is not Ready", running.component, name);
        return node_problem(found, name);
    });
}

void KubernetesActor::await_server(const std::string& name, NodeSight seen, const Deadline& deadline) {
    constexpr std::chrono::milliseconds k_patience{120'000};
    const Deadline end(clock_, std::min(k_patience, deadline.left()));
    const auto is_to_be_awaited = [](const NodeSight& sight) {
        // While kubeadm is at work, it is what restarts the server.
        return !sight.server_problem.empty() && sight.are_manifests_whole != false &&
               sight.document.get_string({"job", "state"}) != "running";
    };
    std::chrono::milliseconds wait{1000};
    for (bool is_told = false; is_to_be_awaited(seen);) {
        const bool is_late = end.passed();
        if (!is_told || is_late)
            tell(name, fmt::format("{}: {}", is_late ? "going on without its API server" : "waiting for its API server",
                                   base::escape(seen.server_problem)));
        if (is_late) return;
        is_told = true;
        agent_.pause(wait);
        seen = agent_.facts(name, deadline);
    }
}

Done KubernetesActor::control_plane(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    const auto target = version_of(subject_.control_plane);
    const bool first = is_first(name);
    const auto await_again = [&] { await_server(name, agent_.facts(name, deadline), deadline); };
    require_backup(name, "kmm-upgrade abort, then start again: it makes another backup", deadline);
    repair_manifests(name, seen, deadline);
    await_server(name, seen, deadline);
    // kubeadm upgrade node brings whatever kubeadm-config names.
    if (!first)
        await_none(clock_, deadline, interrupted_, name,
                   [&] { return configuration_problem(view_.about(name), target); });
    std::vector<std::string> words{"control-plane", "--target", target.text()};
    if (first) words.emplace_back("--first");
    const auto options = kubeadm_options(name);
    words.insert(words.end(), options.begin(), options.end());
    words = with_kubeadm(std::move(words));
    value::Node document;
    const auto step = [&] { return agent_.step(name, words, deadline, {}, await_again); };
    const auto step_twice = [&] {
        try {
            return step();
        } catch (const Error& error) {
            // kubeadm waits 15 s for a Job. A controller manager that has just started may need longer to lead.
            if (error.code() != "preflight-failed" || !error.message().ends_with(": CreateJob")) throw;
            tell(name, "the Job of kubeadm's health check did not end in time: kubeadm is run once more");
            return step();
        }
    };
    try {
        document = step_twice();
    } catch (Error& error) {
        hint_at_preflight(error, name);
        // A kubeadm that was killed leaves a gap: kubeadm itself must not run again before it is closed.
        if (error.code() != "manifests-damaged") throw;
        repair_manifests(name, agent_.facts(name, deadline), deadline);
        await_again();
        document = step();
    }
    prove_control_plane(name, target, first, deadline);
    return done_as_seen(name, message_of(document), deadline);
}

void KubernetesActor::prove_control_plane(const std::string& name, const Version& version, bool first,
                                          const Deadline& deadline) {
    await_none(clock_, deadline, interrupted_, name, [&] {
        if (auto problem = view_.unready_reason(); !problem.empty()) return problem;
        const auto found = view_.about(name);
        if (auto problem = node_problem(found, name); !problem.empty()) return problem;
        if (auto problem = control_plane_problem(found, name, version); !problem.empty()) return problem;
        return first ? configuration_problem(found, version) : std::string();
    });
}

std::string KubernetesActor::lost_control_plane(const std::string& name, const NodeSight& seen) {
    if (subject_.control_plane.empty() || !is_control_plane(name)) return "";
    const auto target = version_of(subject_.control_plane);
    if (seen.are_manifests_whole == false) return "manifests of its control plane are missing or damaged";
    if (seen.control_plane != target)
        return fmt::format("its control plane runs {}", seen.control_plane ? seen.control_plane->text() : "nothing");
    return is_first(name) ? configuration_problem(view_.about(name), target) : "";
}

Done KubernetesActor::kubelet(const std::string& name, const NodeSight& seen, const Deadline& deadline) {
    const auto target = version_of(subject_.kubelet);
    if (const auto lost = lost_control_plane(name, seen); !lost.empty()) {
        tell(name, fmt::format("{}: it is brought to {} again", lost, subject_.control_plane));
        static_cast<void>(control_plane(name, seen, deadline));
    }
    // A kubelet must never be newer than any API server it may talk to.
    if (const auto older = older_control_planes(view_.control_planes(), target); !older.empty())
        throw Error(Exit::checks_failed, "kubelet-newer",
                    fmt::format("a kubelet of {} would be newer than a control plane: {}", target.text(), older))
            .hint(fmt::format("on those nodes: kmm-worker kubernetes repair, kmm-worker kubernetes control-plane "
                              "--target {}; then kmm-upgrade retry {}",
                              target.text(), name));
    // Where the switch is under way already, or done, Pods that have come back are beside it.
    if (seen.kubelet != target && running_on(seen).empty())
        emptier_.empty_again(
            name,
            [&] {
                const auto found = view_.about(name).nodes;
                return !found.empty() && !found.front().unschedulable;
            },
            deadline);
    value::Node document;
    try {
        document = agent_.step(name, with_kubeadm(kubelet_words(name, target)), deadline);
    } catch (Error& error) {
        hint_at_preflight(error, name);
        throw;
    }
    prove_kubelet(name, target, document.get_string({"outcome"}) != "already", deadline);
    return done_as_seen(name, message_of(document), deadline);
}

void KubernetesActor::prove_kubelet(const std::string& name, const Version& version, bool was_restarted,
                                    const Deadline& deadline) {
    const auto before = was_restarted ? view_.renewal(name) : std::nullopt;
    await_none(clock_, deadline, interrupted_, name, [&] {
        const auto found = view_.about(name);
        if (auto problem = kubelet_problem(found, name, version); !problem.empty()) return problem;
        if (auto problem = node_problem(found, name); !problem.empty()) return problem;
        const bool is_silent = before && view_.renewal(name) == before;
        return is_silent ? fmt::format("the kubelet of {} has not renewed its Lease since its restart", name)
                         : std::string();
    });
}

Done KubernetesActor::uncordon(const std::string& name) {
    const auto lifted = emptier_.cordons().lift(name);
    watch(name, recorder_.node(name).cordon.empty() ? value::Node() : value::Node::mapping({{"cordon", ""}}));
    Done done;
    done.facts = value::Node::mapping({{"cordon", ""}});
    done.message = fmt::format("kubelet {}{}", recorder_.header().to_version, lifted.empty() ? "" : ", " + lifted);
    return done;
}

Done KubernetesActor::upgrade_networking(const Deadline& deadline) {
    Done done;
    done.message = networking_.apply(recorder_.header(), subject_, deadline, interrupted_);
    return done;
}

void KubernetesActor::explain(const upgrade::NodeStep& step, const Error& error, Event& failed) {
    forget_unavailable();
    for (const auto& [key, text] : error.details()) {
        if (key == "transport")
            failed.message = fmt::format("{}: {}", error.message(), text.substr(text.rfind('\n') + 1));
        if (key == "output") failed.message = fmt::format("{}: {}", error.message(), text);
    }
    if (error.code() == "node-not-found") failed.facts.set("hint", hint_if_gone(step.node));
    if (step.step == k_step_cordon || step.step == k_step_drain) {
        emptier_.cordons().give_back(step.node, [] { return true; }, failed);
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
    if (step.node.empty() || is_by_api_alone(step.step) || code == "node-unreachable" || code == "node-name-differs" ||
        code == "node-gone")
        return;
    const auto facts = glance(step.node);
    for (const auto& member : facts.members()) failed.facts.set(member.key, member.value);
    // Where another kubelet than the one that runs is installed, there is more to do than to look at it.
    if (code == "version-changed" && facts.get_string({"currentVersion"}) == subject_.kubelet)
        failed.facts.set("currentKnown", false);
}

std::optional<Error> KubernetesActor::lost_for_good(const upgrade::NodeStep& step, const Error& /*error*/) {
    if (is_control_plane(step.node) || !view_.about(step.node).nodes.empty()) return std::nullopt;
    return Error(Exit::not_found, "node-not-found", fmt::format("there is no Node {}", step.node));
}

value::Node KubernetesActor::glance(const std::string& node) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    auto facts = value::Node::mapping();
    try {
        auto reply = agent_.facts_once(node, k_patience);
        if (!reply.value) return facts;
        const auto seen = read_sight(std::move(*reply.value));
        set_current(seen, facts);
        if (const auto job = running_on(seen); !job.empty()) {
            tell(node, job + " is still under way there, and goes on");
            facts.set("currentKnown", false);
        }
    } catch (const Error&) {
        return facts;  // it stays unknown
    }
    return facts;
}

std::string KubernetesActor::release(const std::string& node) {
    auto lifted = emptier_.cordons().lift(node);
    forget_unavailable();
    return lifted;
}

void KubernetesActor::forget_unavailable(const std::string& node, std::string_view reason) {
    const std::lock_guard lock(unavailable_mutex_);
    if (!unavailable_) return;
    const auto found = unavailable_->find(node);
    if (found != unavailable_->end() && found->second == reason) unavailable_->erase(found);
}

void KubernetesActor::forget_unavailable() {
    const std::lock_guard lock(unavailable_mutex_);
    unavailable_.reset();
}

std::map<std::string, std::string> KubernetesActor::unavailable() {
    constexpr std::chrono::seconds k_fresh{5};  // shorter than what a walk waits until it asks again
    const std::lock_guard lock(unavailable_mutex_);
    const auto now = clock_.monotonic();
    if (unavailable_ && now - unavailable_since_ < k_fresh) return *unavailable_;
    std::map<std::string, std::string> names;
    auto seen = view_.read(ReadExtent::nodes);
    leave_out(seen, left_out_names(recorder_.header()));
    for (const auto& node : seen.nodes) {
        if (!node_problem(seen, node.meta.name).empty()) names[node.meta.name] = k_not_ready;
        else if (node.unschedulable) names[node.meta.name] = k_cordoned;
    }
    unavailable_since_ = now;
    unavailable_ = names;
    return names;
}

}  // namespace kmm::drive
