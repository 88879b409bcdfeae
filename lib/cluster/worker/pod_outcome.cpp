// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/pod_outcome.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "cluster/seam/worker_process.hpp"

namespace kmm::cluster {

namespace {

using value::Node;

constexpr int k_killed = 137;      // SIGKILL
constexpr int k_terminated = 143;  // SIGTERM
constexpr int k_hung_up = 129;     // SIGHUP
constexpr int k_lost = 255;        // what container runtimes say of a container that a reboot ended

/// Waiting reasons of the kubelet that do not mend themselves soon.
constexpr std::array<std::string_view, 7> k_hopeless{
    "ImagePullBackOff", "ErrImageNeverPull",          "InvalidImageName", "ImageInspectError",
    "CreateContainerError", "CreateContainerConfigError", "SignatureValidationFailed",
};

/// Status of the container "worker", nullptr while there is none.
const Node* worker_status(const Node& pod) {
    const Node* list = pod.find_path({"status", "containerStatuses"});
    if (list == nullptr) { return nullptr; }
    for (const auto& status : list->items()) {
        if (status.get_string({"name"}) == "worker") { return &status; }
    }
    return nullptr;
}

const Node* worker_state(const Node& pod, std::string_view state) {
    const Node* status = worker_status(pod);
    return status == nullptr ? nullptr : status->find_path({"state", state});
}

std::string reason_and_message(const Node& node) {
    const std::string reason = node.get_string({"reason"});
    const std::string message(base::trim(node.get_string({"message"})));
    if (reason.empty() || message.empty()) { return base::escape(reason + message); }
    return base::escape(reason + ": " + message);
}

std::string starting_hint(std::string_view reason) {
    const bool is_image =
        reason.find("Image") != std::string_view::npos || reason.find("Pull") != std::string_view::npos;
    if (is_image) { return "push the image, or name another with --worker-image, then try again"; }
    if (reason.starts_with("OutOf")) { return "the node is full: make room there, then try again"; }
    return "repair what the kubelet reports, then try again";
}

WorkerReply not_started(const Node& pod, std::string_view reason, const std::string& text) {
    return error_reply(Error(Exit::unavailable, "worker-not-started",
                             fmt::format("worker Pod {} was not started: {}", pod_title(pod), text))
                           .hint(starting_hint(reason)));
}

WorkerReply killed(const Node& pod, const std::string& text) {
    WorkerReply reply;
    reply.end = CallEnd::unknown;
    reply.transport = fmt::format("worker Pod {}: {}", pod_title(pod), text);
    return reply;
}

WorkerReply ended(const Node& pod, const Node& terminated) {
    const std::string reason = terminated.get_string({"reason"});
    const std::string message = terminated.get_string({"message"});
    const Node* code = terminated.find("exitCode");
    const int exit_code = static_cast<int>(code == nullptr ? 1 : code->as_int().value_or(1));
    if (reason == "StartError" || reason == "ContainerCannotRun") {
        return not_started(pod, reason, reason_and_message(terminated));
    }
    Node document = worker_document(message);
    if (document.is_null()) {
        const bool is_killed = exit_code == k_killed || exit_code == k_terminated || exit_code == k_hung_up ||
                               exit_code == k_lost || reason == "Unknown" || reason == "ContainerStatusUnknown";
        if (is_killed && reason != "OOMKilled") {
            const std::string why = reason_and_message(*pod.find("status"));
            return killed(pod, fmt::format("the worker was killed{}{}", why.empty() ? "" : ": ", why));
        }
    }
    WorkerReply reply;
    reply.exit_code = exit_code;
    if (document.is_null()) {
        reply.transport = fmt::format("worker Pod {}: {}", pod_title(pod), reason_and_message(terminated));
    } else {
        reply.document = std::move(document);
    }
    return reply;
}

/// What the kubelet itself refuses leaves no container status.
bool is_refused_by_kubelet(const std::string& reason) {
    constexpr std::array<std::string_view, 8> k_refusals{"NodeAffinity", "UnexpectedAdmissionError", "NodePorts",
                                                         "AppArmor",     "PodOSNotSupported",        "InvalidNodeInfo",
                                                         "Forbidden",    "TaintToleration"};
    return reason.starts_with("OutOf") || std::find(k_refusals.begin(), k_refusals.end(), reason) != k_refusals.end();
}

}  // namespace

bool is_pod_over(const Node& pod) {
    const std::string phase = pod.get_string({"status", "phase"});
    return phase == "Succeeded" || phase == "Failed" || worker_state(pod, "terminated") != nullptr;
}

bool is_pod_unstarted(const Node& pod) {
    if (is_pod_over(pod)) { return false; }
    const Node* status = worker_status(pod);
    return status == nullptr || (status->find_path({"state", "running"}) == nullptr &&
                                 status->find_path({"state", "terminated"}) == nullptr);
}

bool is_pod_starting(const Node& pod) {
    const Node* waiting = is_pod_over(pod) ? nullptr : worker_state(pod, "waiting");
    return waiting != nullptr && waiting->get_string({"reason"}) == "ContainerCreating";
}

std::string pod_title(const Node& pod) {
    return fmt::format("{}/{}", pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"}));
}

std::string pod_situation(const Node& pod) {
    std::string text = base::escape(pod.get_string({"status", "phase"}));
    if (text.empty()) { text = "Pending"; }
    if (const Node* waiting = worker_state(pod, "waiting"); waiting != nullptr) {
        return fmt::format("{} ({})", text, reason_and_message(*waiting));
    }
    return text;
}

std::optional<WorkerReply> PodOutcome::take(const Node& pod) {
    if (const Node* terminated = worker_state(pod, "terminated"); terminated != nullptr) {
        return ended(pod, *terminated);
    }
    if (is_pod_over(pod)) {
        const Node& status = *pod.find("status");
        const std::string reason = status.get_string({"reason"});
        const std::string text = reason_and_message(status);
        if (worker_state(pod, "running") == nullptr && is_refused_by_kubelet(reason)) {
            return not_started(pod, reason, text);
        }
        return killed(pod, text.empty() ? "it ended without saying how" : text);
    }
    const Node* waiting = worker_state(pod, "waiting");
    if (waiting == nullptr) { return std::nullopt; }
    const std::string reason = waiting->get_string({"reason"});
    if (reason == "ErrImagePull") { pull_failure_ = reason_and_message(*waiting); }
    if (std::find(k_hopeless.begin(), k_hopeless.end(), reason) == k_hopeless.end()) { return std::nullopt; }
    std::string text = reason_and_message(*waiting);
    if (reason == "ImagePullBackOff") {
        const auto cause = text.find("ErrImagePull: ");  // newer kubelets repeat it
        if (cause != std::string::npos) { text.erase(0, cause); }
        else if (!pull_failure_.empty()) { text = pull_failure_; }
    }
    return not_started(pod, reason, text);
}

}  // namespace kmm::cluster
