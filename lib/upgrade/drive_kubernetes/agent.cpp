// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/agent.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/actor.hpp"

namespace kmm::drive {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_first_wait{1000}, k_longest_wait{10'000};
constexpr milliseconds k_question{60'000};  ///< a question takes at most this long; a step as long as there is time
constexpr int k_lost_jobs = 3;

std::optional<std::string> text_in(const value::Node& tree, std::initializer_list<std::string_view> path) {
    const auto* found = tree.find_path(path);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return found->text();
}

std::optional<kubernetes::Version> version_in(const value::Node& tree, std::initializer_list<std::string_view> path) {
    const auto text = text_in(tree, path);
    return text ? kubernetes::Version::parse(*text) : std::nullopt;
}

std::optional<bool> flag_in(const value::Node& tree, std::string_view name) {
    const auto* found = tree.find(name);
    return found == nullptr ? std::nullopt : found->as_bool();
}

/// The lowest version of the manifests of Kubernetes itself; nullopt if one of them has none.
std::optional<kubernetes::Version> lowest_manifest(const value::Node& document) {
    constexpr std::array<std::string_view, 3> k_components{"kube-apiserver", "kube-controller-manager",
                                                           "kube-scheduler"};
    std::optional<kubernetes::Version> lowest;
    const auto* manifests = document.find("manifests");
    if (manifests == nullptr) return std::nullopt;
    std::size_t seen = 0;
    for (const auto& manifest : manifests->items()) {
        if (std::find(k_components.begin(), k_components.end(), manifest.get_string({"component"})) ==
            k_components.end())
            continue;
        const auto version = version_in(manifest, {"version"});
        if (!version) return std::nullopt;
        if (!lowest || *version < *lowest) lowest = version;
        ++seen;
    }
    return seen == k_components.size() ? lowest : std::nullopt;
}

}  // namespace

NodeSight read_sight(value::Node document) {
    NodeSight sight;
    sight.node = text_in(document, {"node"});
    sight.boot_id = text_in(document, {"bootID"}).value_or("");
    sight.is_control_plane = flag_in(document, "controlPlane").value_or(false);
    sight.are_manifests_whole = flag_in(document, "manifestsWhole");
    if (sight.is_control_plane) sight.control_plane = lowest_manifest(document);
    sight.kubelet = version_in(document, {"kubelet", "running"});
    sight.document = std::move(document);
    return sight;
}

void NodeAgent::pause(milliseconds& wait) {
    if (interrupted_() || !clock_.sleep_for(wait) || interrupted_()) throw Leave{StepEnd::left};
    wait = std::min(wait * 2, k_longest_wait);
}

cluster::Reply<value::Node> NodeAgent::facts_once(const std::string& node, milliseconds timeout) {
    const cluster::WorkerCall call{node, {"kubernetes", "facts"}, "", timeout};
    auto reply = runner_.run(call);
    if (auto failed = cluster::failure<value::Node>(reply, call, "KubernetesNodeFacts")) return std::move(*failed);
    cluster::Reply<value::Node> answer;
    answer.value = std::move(reply.document);
    return answer;
}

NodeSight NodeAgent::facts(const std::string& node, const Deadline& deadline) {
    auto wait = k_first_wait;
    for (bool is_told = false;;) {
        auto reply = facts_once(node, std::min(deadline.left(), k_question));
        if (reply.value) return read_sight(std::move(*reply.value));
        if (reply.settled() || deadline.passed()) throw Error(*reply.error);
        if (!is_told) tell_(node, reply.error->message() + "; it is asked again");
        is_told = true;
        pause(wait);
    }
}

value::Node NodeAgent::step(const std::string& node, const std::vector<std::string>& words, const Deadline& deadline) {
    std::vector<std::string> arguments{"kubernetes"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    auto wait = k_first_wait;
    int lost_jobs = 0;
    for (;;) {
        const cluster::WorkerCall call{node, arguments, "", deadline.left()};
        auto reply = runner_.run(call);
        auto failed = cluster::look_for_failure(reply, call, "KubernetesNodeStep");
        if (!failed) return std::move(reply.document);
        const auto& error = *failed->error;
        const bool is_busy = error.code() == "job-running" || error.code() == "kubeadm-running";
        if (failed->end == cluster::CallEnd::completed && failed->has_result && !is_busy) {
            if (error.code() != "job-lost" || ++lost_jobs == k_lost_jobs) throw Error(error);
            tell_(node, error.message() + "; it is begun again");
        } else if (deadline.passed()) {
            if (failed->end != cluster::CallEnd::completed && !is_busy) throw Error(error);
            throw Error(Exit::timeout, "step-timeout",
                        fmt::format("node {}: kubernetes {} is still under way there after the time limit", node,
                                    words.front()))
                .detail("last", error.message())
                .hint("kmm-upgrade resume waits for it; --node-timeout gives it more time");
        } else {
            tell_(node, fmt::format("{}; the step goes on there and is asked for again", error.message()));
        }
        pause(wait);
    }
}

}  // namespace kmm::drive
