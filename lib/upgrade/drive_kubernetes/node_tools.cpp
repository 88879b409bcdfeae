// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/node_tools.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {

using kubernetes::Version;

namespace {

/// A version of the record, which was a version when it was written.
Version version_of(const std::string& text) {
    if (const auto version = Version::parse(text)) return *version;
    throw Error(
        Exit::io, "state-damaged",
        fmt::format("the record has the version \"{}\", expected {}", base::escape(text), kubernetes::k_version_form));
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

}  // namespace

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

NodeTools::NodeTools(ClusterView& seen, cluster::Workloads& workloads, cluster::NodeRunner& runner, Recorder& run,
                     sys::Clock& time, std::function<bool()> is_interrupted)
    : view(seen),
      recorder(run),
      clock(time),
      interrupted(std::move(is_interrupted)),
      subject(upgrade::kubernetes::subject_of(run.header())),
      agent(runner, time, interrupted, teller(run), [this](const std::string& node) { require_present(node); }),
      emptier(workloads, run, time, interrupted) {}

Version NodeTools::control_plane_target() const { return version_of(subject.control_plane); }

Version NodeTools::kubelet_target() const { return version_of(subject.kubelet); }

void NodeTools::await(const std::string& name, const Deadline& deadline, const std::function<std::string()>& problem) {
    await_none(clock, deadline, interrupted, name, problem);
}

bool NodeTools::is_first(const std::string& name) const {
    return recorder.look([&](const upgrade::Run& run) {
        const auto* first = upgrade::kubernetes::first_control_plane(run);
        return first != nullptr && first->name == name;
    });
}

std::vector<std::string> NodeTools::with_kubeadm(std::vector<std::string> words) const {
    if (!subject.ignored_preflight.empty())
        words.insert(words.end(), {"--ignore-preflight-errors", subject.ignored_preflight});
    return with_switch(std::move(words));
}

std::vector<std::string> NodeTools::with_switch(std::vector<std::string> words) const {
    if (subject.way.empty()) return words;
    words.insert(words.end(), {"--switch", subject.way});
    if (!subject.directory.empty()) words.insert(words.end(), {"--from", subject.directory});
    if (!subject.command.empty()) words.insert(words.end(), {"--command", subject.command});
    return words;
}

std::vector<std::string> NodeTools::kubeadm_options(const std::string& name) const {
    std::vector<std::string> options;
    const auto& given = subject.worker_options;
    for (std::size_t at = 0; at + 1 < given.size(); at += 2) {
        auto value = given[at + 1];
        if (given[at] == "--skip-phases" && !is_first(name)) value = phases_of_node(value, is_control_plane(name));
        if (!value.empty()) options.insert(options.end(), {given[at], value});
    }
    return options;
}

std::vector<std::string> NodeTools::kubelet_words(const std::string& name, const Version& version) const {
    std::vector<std::string> words{"kubelet", "--target", version.text()};
    if (is_control_plane(name)) return words;
    // On a worker kubeadm writes the kubelet's configuration in this step, and remembers neither patches nor phases.
    const auto options = kubeadm_options(name);
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

Done NodeTools::done_as_seen(const std::string& name, std::string message, const Deadline& deadline) {
    Done done;
    done.message = std::move(message);
    done.facts = value::Node::mapping();
    set_current(agent.facts(name, deadline), done.facts);
    return done;
}

void NodeTools::set_current(const NodeSight& seen, value::Node& facts) const {
    const auto& current = subject.kubelet.empty() ? seen.control_plane : seen.kubelet;
    facts.set("currentVersion", current ? current->text() : "");
    facts.set("currentKnown", current.has_value());
    if (seen.control_plane) facts.set("controlPlane", seen.control_plane->text());
    if (!seen.etcd.empty()) facts.set("etcdNow", seen.etcd);
    if (!seen.boot_id.empty()) facts.set("bootID", seen.boot_id);
}

NodeSight NodeTools::await_job(const std::string& name, NodeSight seen, const Deadline& deadline) {
    std::chrono::milliseconds wait{1000};
    for (bool is_told = false;;) {
        const auto job = running_on(seen);
        if (job.empty()) return seen;
        if (deadline.passed())
            throw Error(Exit::timeout, "step-timeout",
                        fmt::format("node {}: {} is still under way there after the time limit", name, job))
                .hint("kmm-upgrade resume waits for it; --node-timeout gives it more time");
        if (!is_told) tell(recorder, name, fmt::format("{} is still under way there: waiting for its end", job));
        is_told = true;
        agent.pause(wait);
        seen = agent.facts(name, deadline);
    }
}

void NodeTools::prove_control_plane(const std::string& name, const Version& version, bool first,
                                    const Deadline& deadline) {
    await(name, deadline, [&] {
        if (auto problem = view.unready_reason(); !problem.empty()) return problem;
        const auto found = view.about(name);
        if (auto problem = node_problem(found, name); !problem.empty()) return problem;
        if (auto problem = control_plane_problem(found, name, version); !problem.empty()) return problem;
        return first ? configuration_problem(found, version) : std::string();
    });
}

void NodeTools::prove_kubelet(const std::string& name, const Version& version, bool was_restarted,
                              const Deadline& deadline) {
    const auto before = was_restarted ? view.renewal(name) : std::nullopt;
    await(name, deadline, [&] {
        const auto found = view.about(name);
        if (auto problem = kubelet_problem(found, name, version); !problem.empty()) return problem;
        if (auto problem = node_problem(found, name); !problem.empty()) return problem;
        const bool is_silent = before && view.renewal(name) == before;
        return is_silent ? fmt::format("the kubelet of {} has not renewed its Lease since its restart", name)
                         : std::string();
    });
}

bool NodeTools::is_gone(const std::string& name) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    return !is_control_plane(name) && view.about(name).nodes.empty() && !agent.facts_once(name, k_patience).value &&
           !interrupted();
}

void NodeTools::require_present(const std::string& name) {
    try {
        if (!view.about(name).nodes.empty()) return;
    } catch (const Error&) {
        return;  // the API server may be the one of this very node
    }
    throw node_gone(name, hint_if_gone(name));
}

std::string NodeTools::hint_if_gone(const std::string& name) {
    return fmt::format("if it has left the cluster: kmm-upgrade abort, then start again with --ignore-checks "
                       "versions-uniform; else join it to the cluster, then kmm-upgrade retry {}",
                       name);
}

}  // namespace kmm::drive
