// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/network_canary.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/object_facts.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/objects.hpp"

namespace kmm::drive {
namespace {

using value::Node;

constexpr const char* k_canary_namespace = "kube-system";
constexpr const char* k_canary_label = "app.kubernetes.io/name";
constexpr const char* k_canary_name = "kmm-upgrade-canary";
/// The Pods end by themselves, whoever has died.
constexpr std::int64_t k_canary_seconds = 300;
constexpr std::chrono::milliseconds k_canary_patience{180'000}, k_removal_patience{60'000};

const kube::Resource k_services{"", "v1", "services", "Service", kube::Scope::namespaced};

/// Tells everyone who asks what only this Pod knows.
constexpr const char* k_listen = R"sh(while :; do echo "$TOKEN" | nc -l -p "$PORT"; done)sh";

/// Exit 0 once the listener has told what it knows and the name has the address; 1 with what is wrong after some tries.
constexpr const char* k_ask = R"sh(set -f
tries=0
while :; do
  wrong=
  found=$(nc -w 5 "$PEER" "$PORT" </dev/null 2>&1)
  [ "$found" = "$TOKEN" ] || wrong="; no answer of the Pod at $PEER${found:+: }$found"
  found=$(nslookup "$NAME" 2>&1)
  echo "$found" | grep -qwF "$ADDRESS" || wrong="$wrong; DNS does not say $ADDRESS for $NAME: $(echo $found)"
  [ -n "$wrong" ] || exit 0
  tries=$((tries + 1))
  [ $tries -lt 6 ] || break
  sleep 2
done
echo "${wrong#; }"
exit 1
)sh";

/// Of listener `number`. Runs differ: where Pods share the network of a host, they do not meet.
std::string port_of(const CanaryRequest& request, std::size_t number) {
    constexpr std::uint32_t k_first = 20000, k_pairs = 5000;
    std::uint32_t mixed = 0;
    for (const char c : request.lineage) mixed = mixed * 31 + static_cast<unsigned char>(c);
    return std::to_string(k_first + mixed % k_pairs * 2 + number);
}

Node variable(const std::string& name, const std::string& text) {
    return Node::mapping({{"name", name}, {"value", text}});
}

Node canary_security() {
    return Node::mapping({{"allowPrivilegeEscalation", false},
                          {"capabilities", Node::mapping({{"drop", Node::strings({"ALL"})}})},
                          {"readOnlyRootFilesystem", true},
                          {"seccompProfile", Node::mapping({{"type", "RuntimeDefault"}})}});
}

/// A Pod that runs `script` on `node`. It needs nothing of the cluster but its network, and waits for no scheduler.
Node pod_of(const CanaryRequest& request, const std::string& role, std::size_t number, const std::string& node,
            const char* script, std::vector<Node> variables) {
    auto container = Node::mapping({{"name", role},
                                    {"image", request.image},
                                    {"imagePullPolicy", "IfNotPresent"},
                                    {"command", Node::strings(std::vector<std::string>{"sh", "-c", script})},
                                    {"env", Node::sequence(std::move(variables))},
                                    {"terminationMessagePolicy", "FallbackToLogsOnError"},
                                    {"securityContext", canary_security()}});
    auto spec = Node::mapping({{"nodeName", node},
                               {"restartPolicy", "Never"},
                               {"activeDeadlineSeconds", k_canary_seconds},
                               {"terminationGracePeriodSeconds", std::int64_t{1}},
                               {"automountServiceAccountToken", false},
                               {"enableServiceLinks", false},
                               {"tolerations", Node::sequence({Node::mapping({{"operator", "Exists"}})})},
                               {"containers", Node::sequence({std::move(container)})}});
    auto labels = Node::mapping({{k_canary_label, k_canary_name}, {"app.kubernetes.io/managed-by", "kmm-upgrade"}});
    auto metadata =
        Node::mapping({{"name", fmt::format("{}-{}-{}-{}", k_canary_name, request.lineage.substr(0, 8), role, number)},
                       {"namespace", k_canary_namespace},
                       {"labels", std::move(labels)}});
    return Node::mapping(
        {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
}

kube::Key pod_key(const Node& pod) {
    return {pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"})};
}

/// The state of the only container: waiting, running or terminated; null before there is one.
Node container_state(const Node& pod) {
    const auto* all = pod.find_path({"status", "containerStatuses"});
    if (all == nullptr || all->items().empty()) return {};
    const auto* state = all->items().front().find("state");
    return state == nullptr ? Node() : *state;
}

std::string where(const Node& pod) {
    return fmt::format("Pod {} on node {}", pod.get_string({"metadata", "name"}), pod.get_string({"spec", "nodeName"}));
}

Error canary_failed(std::string message) {
    return Error(Exit::unhealthy, "network-canary-failed", std::move(message))
        .hint("look at the Pods of the network add-on, kube-proxy and CoreDNS on these nodes, then kmm-upgrade retry");
}

/// What the kubelet says of a Pod that has not come as far as it should.
std::string waiting_text(const Node& pod) {
    const auto state = container_state(pod);
    const auto reason = state.get_string({"waiting", "reason"});
    const auto message = state.get_string({"waiting", "message"});
    if (reason.empty()) return fmt::format("{} is {}", where(pod), pod.get_string({"status", "phase"}));
    auto text = base::escape(fmt::format("{}: {}{}", where(pod), reason, message.empty() ? "" : ": " + message));
    // The kubelet has tried, and waiting brings no image to a cluster that cannot pull.
    if (reason == "ImagePullBackOff" || reason == "InvalidImageName") throw canary_failed(std::move(text));
    return text;
}

std::string listening_problem(const Node& pod) {
    const auto state = container_state(pod);
    if (state.find("terminated") != nullptr || pod.get_string({"status", "phase"}) == "Failed")
        throw canary_failed(base::escape(fmt::format("{} has ended: {} {}", where(pod),
                                                     state.get_string({"terminated", "reason"}),
                                                     state.get_string({"terminated", "message"}))));
    if (state.find("running") != nullptr && !pod.get_string({"status", "podIP"}).empty()) return "";
    return waiting_text(pod);
}

std::string asking_problem(const Node& pod) {
    const auto state = container_state(pod);
    const auto* ended = state.find("terminated");
    if (ended == nullptr) {
        if (pod.get_string({"status", "phase"}) == "Failed")
            throw canary_failed(base::escape(
                fmt::format("{} has failed: {}", where(pod), pod.get_string({"status", "message"}))));
        return state.find("running") == nullptr ? waiting_text(pod) : where(pod) + " still tries";
    }
    const auto* code = ended->find("exitCode");
    if (code != nullptr && code->as_int() == 0) return "";
    const std::string message(base::trim(ended->get_string({"message"})));
    throw canary_failed(base::escape(
        fmt::format("{}: {}", where(pod), message.empty() ? ended->get_string({"reason"}) : message)));
}

}  // namespace

std::vector<kube::Rule> NetworkCanary::rules() {
    std::vector<kube::Rule> rules;
    for (const char* verb : {"create", "get", "list", "delete"})
        rules.push_back({verb, "", "pods", "", k_canary_namespace, ""});
    rules.push_back({"get", "", "services", "", "default", "kubernetes"});
    return rules;
}

void NetworkCanary::remove(const Deadline& deadline, const std::function<bool()>& interrupted) {
    kube::ListQuery query;
    query.namespace_ = k_canary_namespace;
    query.label_selector = fmt::format("{}={}", k_canary_label, k_canary_name);
    await_clear(clock_, deadline, interrupted, "kubectl get pods -n kube-system -l " + query.label_selector, [&] {
        std::string left;
        for (const auto& pod : client_.list_all(kube::resources::k_pods, query)) {
            left = where(pod) + " is not removed";
            if (!pod.get_string({"metadata", "deletionTimestamp"}).empty()) continue;
            kube::DeleteOptions options;
            options.uid = pod.get_string({"metadata", "uid"});
            static_cast<void>(client_.remove(kube::resources::k_pods, pod_key(pod), options));
        }
        return left;
    });
}

std::vector<std::string> NetworkCanary::choose_nodes() {
    std::string first, last;
    for (const auto& node : client_.list_all(kube::resources::k_nodes, {})) {
        if (!cluster::is_ready(node)) continue;
        const auto name = node.get_string({"metadata", "name"});
        const auto* labels = node.find_path({"metadata", "labels"});
        const bool is_control_plane =
            labels != nullptr && labels->find("node-role.kubernetes.io/control-plane") != nullptr;
        if (is_control_plane && first.empty()) first = name;
        else last = name;
    }
    if (first.empty()) throw canary_failed("no control plane is Ready");
    return {first, last.empty() ? first : last};
}

std::vector<Node> NetworkCanary::make(const std::vector<Node>& pods, const Deadline& deadline,
                                      const std::function<bool()>& interrupted,
                                      const std::function<std::string(const Node&)>& problem) {
    std::vector<Node> seen;
    for (const auto& pod : pods) seen.push_back(client_.create(kube::resources::k_pods, pod));
    for (auto& pod : seen) {
        try {
            await_clear(clock_, deadline, interrupted, "", [&] {
                pod = client_.get(kube::resources::k_pods, pod_key(pod));
                return problem(pod);
            });
        } catch (const Error& error) {
            if (error.code() != "not-verified") throw;
            throw canary_failed(error.message());
        }
    }
    return seen;
}

std::string NetworkCanary::try_network(const CanaryRequest& request, const Deadline& deadline,
                                       const std::function<bool()>& interrupted) {
    const auto address =
        client_.get(k_services, {"default", "kubernetes"}).get_string({"spec", "clusterIP"});
    const auto nodes = choose_nodes();
    const auto token = [&](std::size_t number) { return fmt::format("{}-{}", request.lineage, number); };
    std::vector<Node> listeners, askers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        listeners.push_back(pod_of(request, "listen", i, nodes[i], k_listen,
                                   {variable("PORT", port_of(request, i)), variable("TOKEN", token(i))}));
    listeners = make(listeners, deadline, interrupted, listening_problem);
    const auto name = fmt::format("kubernetes.default.svc.{}.", request.domain);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto other = nodes.size() - 1 - i;
        askers.push_back(pod_of(request, "ask", i, nodes[i], k_ask,
                                {variable("PEER", listeners[other].get_string({"status", "podIP"})),
                                 variable("PORT", port_of(request, other)), variable("TOKEN", token(other)),
                                 variable("NAME", name), variable("ADDRESS", address)}));
    }
    static_cast<void>(make(askers, deadline, interrupted, asking_problem));
    return nodes[0] == nodes[1]
               ? fmt::format("Pods on {} reach each other and DNS; there is no second node that is Ready", nodes[0])
               : fmt::format("Pods on {} and {} reach each other and DNS", nodes[0], nodes[1]);
}

std::string NetworkCanary::run(const CanaryRequest& request, const Deadline& deadline,
                               const std::function<bool()>& interrupted) {
    const auto within = [&](std::chrono::milliseconds patience) {
        return Deadline(clock_, std::min(patience, deadline.left()));
    };
    remove(within(k_removal_patience), interrupted);
    std::string tried;
    try {
        tried = try_network(request, within(k_canary_patience), interrupted);
    } catch (...) {
        try {
            // Also for somebody who wants it to end: what is left is taken away before.
            remove(Deadline(clock_, k_removal_patience), [] { return false; });
        } catch (...) {
            // The next call removes them, and they end by themselves; the first fault is the one to report.
        }
        throw;
    }
    remove(Deadline(clock_, k_removal_patience), [] { return false; });
    return tried;
}

}  // namespace kmm::drive
