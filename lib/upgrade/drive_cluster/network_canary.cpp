// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/network_canary.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/actor.hpp"

namespace kmm::drive {
namespace {

using value::Node;

constexpr const char* k_canary_namespace = "kube-system";
constexpr const char* k_canary_label = "app.kubernetes.io/name";
constexpr const char* k_canary_name = "kmm-upgrade-canary";
/// The Pods end by themselves, whoever has died; listeners last as long as both patiences.
constexpr std::int64_t k_canary_seconds = 420;
/// An image is pulled in the first one. k_ask gives up after some 100 s in the second one.
constexpr std::chrono::milliseconds k_listen_patience{240'000}, k_ask_patience{150'000}, k_removal_patience{60'000};
/// For the others once a Pod has failed.
constexpr std::chrono::milliseconds k_late_patience{30'000};
/// A Pod that is still there so long after its deletion is on a node that is dead, or whose network add-on does not let
/// its sandbox go.
constexpr std::chrono::milliseconds k_force_after{20'000};
/// Any but root, as Pod security `restricted` demands.
constexpr std::int64_t k_nobody = 65534;

const kube::Resource k_services{"", "v1", "services", "Service", kube::Scope::namespaced};

/// Tells everyone who asks what only this Pod knows.
constexpr const char* k_listen = R"sh(while :; do echo "$TOKEN" | nc -l -p "$PORT"; done)sh";

constexpr std::string_view k_peer_node = "@PEER_NODE@";
/// Exit 0 once the listener has told what it knows and the name has the address; 1 with what is wrong after some tries.
constexpr const char* k_ask = R"sh(set -f
tries=0
while :; do
  wrong=
  found=$(nc -w 5 "$PEER" "$PORT" </dev/null 2>&1)
  [ "$found" = "$TOKEN" ] ||
    wrong="; no answer from the Pod on node @PEER_NODE@ at $PEER port $PORT${found:+: }$(echo $found)"
  found=$(nslookup "$NAME" 2>&1)
  echo "$found" | grep -qwF "$ADDRESS" || wrong="$wrong; DNS does not return $ADDRESS for $NAME: $(echo $found)"
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
                          {"runAsNonRoot", true},
                          {"runAsUser", k_nobody},
                          {"seccompProfile", Node::mapping({{"type", "RuntimeDefault"}})}});
}

/// A Pod that runs `script` on `node`. It needs nothing of the cluster but its network, and waits for no scheduler.
Node pod_of(const CanaryRequest& request, const std::string& role, std::size_t number, const std::string& node,
            const std::string& script, std::vector<Node> variables) {
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

Error canary_failed(std::string message, const char* hint) {
    return Error(Exit::unhealthy, "network-canary-failed", base::escape(message)).hint(hint);
}

constexpr const char* k_network_hint =
    "look at the Pods of the network add-on, kube-proxy and CoreDNS on these nodes, then kmm-upgrade resume";
constexpr const char* k_image_hint =
    "load the image on these nodes, then kmm-upgrade resume; or kmm-upgrade resume --canary-image IMAGE";

/// "REASON: MESSAGE", or what there is of both.
std::string both(const std::string& reason, const std::string& message) {
    return message.empty() ? reason : reason.empty() || reason == "Error" ? message : reason + ": " + message;
}

/// Why a Pod has ended. What the kubelet has refused has no container.
std::string ended_text(const Node& pod) {
    const auto state = container_state(pod);
    const auto text = both(state.get_string({"terminated", "reason"}),
                           std::string(base::trim(state.get_string({"terminated", "message"}))));
    return text.empty() ? both(pod.get_string({"status", "reason"}), pod.get_string({"status", "message"})) : text;
}

bool has_ended(const Node& pod) {
    return container_state(pod).find("terminated") != nullptr || pod.get_string({"status", "phase"}) == "Failed";
}

/// What the kubelet says of a Pod that has not started; never "".
std::string waiting_text(const Node& pod) {
    const auto state = container_state(pod);
    const auto text = both(state.get_string({"waiting", "reason"}), state.get_string({"waiting", "message"}));
    if (!text.empty()) return text;
    const auto phase = pod.get_string({"status", "phase"});
    return phase.empty() ? "was not seen by its kubelet" : "is " + phase;
}

/// The kubelet has tried, and waiting brings no image to a cluster that cannot pull.
bool lacks_image(const Node& pod) {
    const auto reason = container_state(pod).get_string({"waiting", "reason"});
    return reason == "ImagePullBackOff" || reason == "InvalidImageName";
}

/// What a listener still lacks, "" if it listens; `fault` is why it never will.
std::string judge_listener(const Node& pod, std::string& fault) {
    if (has_ended(pod)) fault = "has ended: " + ended_text(pod);
    else if (lacks_image(pod)) fault = waiting_text(pod);
    if (!fault.empty()) return "";
    if (container_state(pod).find("running") == nullptr) return waiting_text(pod);
    return pod.get_string({"status", "podIP"}).empty() ? "has no address" : "";
}

/// The same of an asker, which is to end with 0.
std::string judge_asker(const Node& pod, std::string& fault) {
    const auto state = container_state(pod);
    if (has_ended(pod)) {
        const auto* code = state.find_path({"terminated", "exitCode"});
        if (code == nullptr || code->as_int() != 0) fault = ended_text(pod);
        return "";
    }
    if (lacks_image(pod)) fault = waiting_text(pod);
    if (!fault.empty()) return "";
    return state.find("running") == nullptr ? waiting_text(pod) : "is still trying";
}

/// The name of a Node that runs Linux, else "": the containers are of Linux.
std::string linux_name(const Node& node) {
    return api::runs_linux(node) ? node.get_string({"metadata", "name"}) : "";
}

/// What a Node that is not Ready says of it: of a network add-on that does not work, that.
std::string unready_text(const Node& node) {
    std::string text;
    if (const auto* all = node.find_path({"status", "conditions"}))
        for (const auto& condition : all->items())
            if (condition.get_string({"type"}) == "Ready") text = condition.get_string({"message"});
    const auto name = node.get_string({"metadata", "name"});
    return text.empty() ? fmt::format("node {} is not Ready", name) : fmt::format("node {}: {}", name, text);
}

}  // namespace

std::vector<kube::Rule> NetworkCanary::rules() {
    std::vector<kube::Rule> rules;
    for (const char* verb : {"create", "get", "list", "delete"})
        rules.push_back({verb, "", "pods", "", k_canary_namespace, ""});
    rules.push_back({"list", "", "events", "", k_canary_namespace, ""});
    rules.push_back({"get", "", "services", "", "default", "kubernetes"});
    return rules;
}

void NetworkCanary::remove(const Deadline& deadline, const std::function<bool()>& interrupted) {
    kube::ListQuery query;
    query.namespace_ = k_canary_namespace;
    query.label_selector = fmt::format("{}={}", k_canary_label, k_canary_name);
    const Deadline patience(clock_, k_force_after);
    await_clear(clock_, deadline, interrupted, "kubectl get pods -n kube-system -l " + query.label_selector, [&] {
        std::string left;
        for (const auto& pod : client_.list_all(kube::resources::k_pods, query)) {
            left = where(pod) + " is not removed";
            const bool is_going = !pod.get_string({"metadata", "deletionTimestamp"}).empty();
            if (is_going && !patience.passed()) continue;
            kube::DeleteOptions options;
            if (is_going) options.grace_seconds = 0;
            options.uid = pod.get_string({"metadata", "uid"});
            static_cast<void>(client_.remove(kube::resources::k_pods, kube::key_of(pod), options));
        }
        return left;
    });
}

std::string NetworkCanary::still_wrong(const Deadline& deadline, const std::function<bool()>& interrupted,
                                       const std::function<std::string()>& problem) {
    try {
        await_clear(clock_, deadline, interrupted, "", spoken(clock_, deadline, say_, problem));
        return "";
    } catch (const Error& error) {
        if (error.code() != "not-verified") throw;
        return error.message();
    }
}

std::vector<std::string> NetworkCanary::choose_nodes(const CanaryRequest& request, const Deadline& deadline,
                                                     const std::function<bool()>& interrupted) {
    std::string first, last;
    const auto problem = [&] {
        std::string unready;
        first = last = "";
        for (const auto& node : client_.list_all(kube::resources::k_nodes, {})) {
            const auto name = linux_name(node);
            const auto& out = request.left_out;
            if (name.empty() || std::find(out.begin(), out.end(), name) != out.end()) continue;
            if (!cluster::is_ready(node)) {
                unready += (unready.empty() ? "" : "; ") + unready_text(node);
                continue;
            }
            const auto* labels = node.find_path({"metadata", "labels"});
            const bool is_control_plane =
                labels != nullptr && labels->find("node-role.kubernetes.io/control-plane") != nullptr;
            if (is_control_plane && first.empty()) first = name;
            else last = name;
        }
        if (first.empty()) return "no control plane is Ready" + (unready.empty() ? "" : ": " + unready);
        return last.empty() && !unready.empty() ? "no second node is Ready: " + unready : std::string();
    };
    if (auto text = still_wrong(deadline, interrupted, problem); !text.empty())
        throw canary_failed(std::move(text), k_network_hint);
    return {first, last.empty() ? first : last};
}

std::string NetworkCanary::last_event(const Node& pod) {
    kube::ListQuery query;
    query.namespace_ = k_canary_namespace;
    query.field_selector = "involvedObject.uid=" + pod.get_string({"metadata", "uid"});
    std::pair<bool, std::string> last;  // a warning says more than what the kubelet does about it
    std::string text;
    try {
        for (const auto& event : client_.list_all(kube::resources::k_events, query)) {
            auto time = event.get_string({"lastTimestamp"});
            if (time.empty()) time = event.get_string({"eventTime"});
            std::pair<bool, std::string> place(event.get_string({"type"}) == "Warning", std::move(time));
            if (place < last) continue;
            last = std::move(place);
            text = both(event.get_string({"reason"}), event.get_string({"message"}));
        }
    } catch (const Error&) {
        // Events explain a fault that is known without them.
    }
    return text.empty() ? "" : " (last event: " + text + ")";
}

std::vector<Node> NetworkCanary::make(const std::vector<Node>& pods, const Deadline& deadline,
                                      const std::function<bool()>& interrupted, const Judge& judge) {
    std::vector<Node> seen;
    for (const auto& pod : pods) seen.push_back(client_.create(kube::resources::k_pods, pod));
    std::vector<std::string> faults;
    std::optional<Deadline> soon;
    const char* hint = k_network_hint;
    for (auto& pod : seen) {
        std::string fault;
        const auto late = still_wrong(soon ? *soon : deadline, interrupted, [&] {
            pod = client_.get(kube::resources::k_pods, kube::key_of(pod));
            const auto lacks = judge(pod, fault);
            return lacks.empty() ? lacks : fmt::format("{}: {}", where(pod), lacks);
        });
        if (fault.empty() && late.empty()) continue;
        faults.push_back(late.empty() ? fmt::format("{}: {}", where(pod), fault) : late + last_event(pod));
        if (lacks_image(pod)) hint = k_image_hint;
        if (!soon) soon.emplace(clock_, std::min(k_late_patience, deadline.left()));
    }
    if (!faults.empty()) throw canary_failed(base::join(faults, "; "), hint);
    return seen;
}

std::string NetworkCanary::try_network(const CanaryRequest& request, const Deadline& deadline,
                                       const std::function<bool()>& interrupted) {
    const auto within = [&](std::chrono::milliseconds patience) {
        return Deadline(clock_, std::min(patience, deadline.left()));
    };
    const auto address =
        client_.get(k_services, {"default", "kubernetes"}).get_string({"spec", "clusterIP"});
    const auto nodes = choose_nodes(request, within(k_listen_patience), interrupted);
    const auto token = [&](std::size_t number) { return fmt::format("{}-{}", request.lineage, number); };
    std::vector<Node> listeners, askers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        listeners.push_back(pod_of(request, "listen", i, nodes[i], k_listen,
                                   {variable("PORT", port_of(request, i)), variable("TOKEN", token(i))}));
    listeners = make(listeners, within(k_listen_patience), interrupted, judge_listener);
    const auto name = fmt::format("kubernetes.default.svc.{}.", request.domain);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto other = nodes.size() - 1 - i;
        // Not by a variable: manifests/admission knows those that a canary has.
        std::string script = k_ask;
        script.replace(script.find(k_peer_node), k_peer_node.size(), nodes[other]);
        askers.push_back(pod_of(request, "ask", i, nodes[i], script,
                                {variable("PEER", listeners[other].get_string({"status", "podIP"})),
                                 variable("PORT", port_of(request, other)), variable("TOKEN", token(other)),
                                 variable("NAME", name), variable("ADDRESS", address)}));
    }
    static_cast<void>(make(askers, within(k_ask_patience), interrupted, judge_asker));
    return nodes[0] == nodes[1]
               ? fmt::format("Pods on {} reach each other and DNS; there is no second node that is Ready", nodes[0])
               : fmt::format("Pods on {} and {} reach each other and DNS", nodes[0], nodes[1]);
}

std::string NetworkCanary::run(const CanaryRequest& request, const Deadline& deadline,
                               const std::function<bool()>& interrupted) {
    remove(Deadline(clock_, std::min(k_removal_patience, deadline.left())), interrupted);
    std::string tried;
    try {
        tried = try_network(request, deadline, interrupted);
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
