// SPDX-License-Identifier: Apache-2.0
// Source: seed of the Special Resource Operator, "Downgrade". Kubernetes' taint manager evicts without asking budgets.
// A DaemonSet's Pods have the label pod-template-generation; the DaemonSet says in an annotation which one is that of
// its template.
#include "upgrade/drive_recipe/downgrade.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive_recipe/readiness.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::DriverNode;
using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;
using upgrade::recipe::State;
using value::Node;

constexpr std::string_view k_effect = "NoExecute", k_value = "true";
constexpr std::size_t k_named_pods = 3;

std::string member_of(const Node& object, std::initializer_list<std::string_view> path, std::string_view name) {
    const auto* map = object.find_path(path);
    const auto* found = map == nullptr ? nullptr : map->find(name);
    return found == nullptr ? "" : found->text();
}

bool is_our_taint(const Node& taint) {
    return taint.get_string({"key"}) == k_downgrade_taint && taint.get_string({"effect"}) == k_effect;
}

Node toleration() { return Node::mapping({{"key", k_downgrade_taint}, {"operator", "Exists"}, {"effect", k_effect}}); }

/// The tolerations of a Pod's spec, with that of the taint.
Node with_toleration(const Node& pod_spec) {
    const auto* before = pod_spec.find("tolerations");
    auto all = before == nullptr || !before->is_sequence() ? Node::sequence() : *before;
    all.push_back(toleration());
    return all;
}

bool is_ending(const Node& object) { return !object.get_string({"metadata", "deletionTimestamp"}).empty(); }

bool is_finished(const Node& pod) {
    const auto phase = pod.get_string({"status", "phase"});
    return phase == "Succeeded" || phase == "Failed";
}

/// Of the kubelet's own files: no taint evicts it.
bool is_static(const Node& pod) {
    return !cluster::annotation_of(pod, "kubernetes.io/config.mirror").empty();
}

kube::Key key_of_text(const std::string& text) {
    const auto slash = text.find('/');
    return slash == std::string::npos ? kube::Key{"", text} : kube::Key{text.substr(0, slash), text.substr(slash + 1)};
}

std::string names_of_pods(const std::vector<Node>& pods) {
    std::vector<std::string> names;
    for (const auto& pod : pods) names.push_back(kube::key_of(pod).to_string());
    return base::join_some(names, k_named_pods);
}

}  // namespace

bool is_driver(const ReleaseObject& one) {
    if (one.object.get_string({"kind"}) != "DaemonSet") return false;
    return !one.kernel.empty() ||
           cluster::annotation_of(one.object, "specialresource.openshift.io/state") == "driver-container";
}

bool tolerates_downgrade(const Node& pod_spec) {
    const auto* all = pod_spec.find("tolerations");
    return all != nullptr && std::any_of(all->items().begin(), all->items().end(), [](const Node& each) {
        const auto key = each.get_string({"key"}), effect = each.get_string({"effect"});
        const bool exists = each.get_string({"operator"}) == "Exists";
        const bool matches =
            key.empty() ? exists : key == k_downgrade_taint && (exists || each.get_string({"value"}) == k_value);
        return matches && (effect.empty() || effect == k_effect) && each.find("tolerationSeconds") == nullptr;
    });
}

void tolerate_downgrade(Release& now, const Release* previous, bool is_downgrade) {
    const auto pod_spec_of = [](const ReleaseObject& one) {
        return one.object.find_path({"spec", "template", "spec"});
    };
    for (auto& state : now.states) {
        for (auto& one : state.objects) {
            const auto* spec = pod_spec_of(one);
            if (!is_driver(one) || spec == nullptr || tolerates_downgrade(*spec)) continue;
            const auto* before = previous == nullptr ? nullptr : previous->find(upgrade::recipe::id_of(one.object));
            const auto* spec_before = before == nullptr ? nullptr : pod_spec_of(*before);
            const bool goes_on = spec_before != nullptr && tolerates_downgrade(*spec_before);
            if (!is_downgrade && !goes_on) continue;
            auto changed_spec = *spec;
            changed_spec.set("tolerations", with_toleration(*spec));
            auto pod_template = *one.object.find_path({"spec", "template"});
            pod_template.set("spec", std::move(changed_spec));
            auto whole = *one.object.find("spec");
            whole.set("template", std::move(pod_template));
            one.object.set("spec", std::move(whole));
        }
    }
}

Node replaced_by_hand(Node daemon_set) {
    const auto* before = daemon_set.find("spec");
    auto spec = before == nullptr ? Node::mapping() : *before;
    spec.set("updateStrategy", Node::mapping({{"type", "OnDelete"}}));
    daemon_set.set("spec", std::move(spec));
    return daemon_set;
}

std::vector<DriverNode> driver_nodes(kube::Client& client, Objects& objects, const std::vector<Judged>& judged) {
    std::vector<DriverNode> all;
    std::string state;
    std::map<std::string, std::vector<std::string>> on;  // of `state`: node to drivers
    const auto finish = [&] {
        for (auto& [node, drivers] : on) all.push_back({node, state, std::move(drivers)});
        on.clear();
    };
    for (const auto& one : judged) {
        if (one.state->name != state) {
            finish();
            state = one.state->name;
        }
        if (one.change != Change::change || !is_driver(*one.object)) continue;
        const auto object = placed(one.object->object, kube::resources::k_daemon_sets);
        const auto live = objects.find(kube::resources::k_daemon_sets, object);
        if (!live) continue;
        const auto space = object.get_string({"metadata", "namespace"});
        const auto driver = space + "/" + object.get_string({"metadata", "name"});
        for (const auto& pod : client.list_all(kube::resources::k_pods, {space, "", ""})) {
            const auto node = pod.get_string({"spec", "nodeName"});
            if (node.empty() || !is_owned_by(pod, *live)) continue;
            auto& drivers = on[node];
            if (drivers.empty() || drivers.back() != driver) drivers.push_back(driver);
        }
    }
    finish();
    return all;
}

Downgrade::Downgrade(kube::Client& client, Objects& objects, Gates& gates, sys::Clock& clock,
                     std::function<bool()> interrupted, Say say, std::string owner)
    : client_(client),
      objects_(objects),
      gates_(gates),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      say_(std::move(say)),
      owner_(std::move(owner)) {}

std::vector<Node> Downgrade::pods_on(const std::string& node) {
    return client_.list_all(kube::resources::k_pods, {"", "", "spec.nodeName=" + node});
}

Downgrade::Taint Downgrade::taint(const DriverNode& node) {
    const auto there = client_.find(kube::resources::k_nodes, {"", node.node});
    if (!there) return Taint::gone;
    // Only additions to the tolerations of a Pod that runs are allowed.
    std::vector<std::string> uids;
    for (const auto& driver : node.drivers)
        if (const auto live = client_.find(kube::resources::k_daemon_sets, key_of_text(driver)))
            uids.push_back(live->get_string({"metadata", "uid"}));
    for (const auto& pod : pods_on(node.node)) {
        const auto* spec = pod.find("spec");
        const auto* owners = pod.find_path({"metadata", "ownerReferences"});
        const bool is_ours =
            owners != nullptr && std::any_of(owners->items().begin(), owners->items().end(), [&](const Node& each) {
                return std::find(uids.begin(), uids.end(), each.get_string({"uid"})) != uids.end();
            });
        if (!is_ours || is_ending(pod) || spec == nullptr || tolerates_downgrade(*spec)) continue;
        static_cast<void>(
            client_.merge_patch(kube::resources::k_pods, kube::key_of(pod),
                                Node::mapping({{"spec", Node::mapping({{"tolerations", with_toleration(*spec)}})}})));
    }
    auto whose = Taint::ours;
    static_cast<void>(
        client_.change(kube::resources::k_nodes, {"", node.node}, [&](const Node& current) -> std::optional<Node> {
            const auto* taints = current.find_path({"spec", "taints"});
            auto all = taints == nullptr || !taints->is_sequence() ? Node::sequence() : *taints;
            if (std::any_of(all.items().begin(), all.items().end(), is_our_taint)) {
                whose = cluster::annotation_of(current, k_downgrade_owner) == owner_ ? Taint::ours
                                                                                                     : Taint::foreign;
                return std::nullopt;
            }
            whose = Taint::ours;
            all.push_back(Node::mapping({{"key", k_downgrade_taint}, {"value", k_value}, {"effect", k_effect}}));
            auto annotations = Node::mapping();
            annotations.set(std::string(k_downgrade_owner), owner_);
            return Node::mapping({{"metadata", Node::mapping({{"annotations", std::move(annotations)}})},
                                  {"spec", Node::mapping({{"taints", std::move(all)}})}});
        }));
    return whose;
}

std::size_t Downgrade::await_evictions(const std::string& node, const Deadline& deadline) {
    std::optional<std::size_t> first;
    try {
        const auto evicted = [&] {
            auto pods = pods_on(node);
            std::erase_if(pods, [](const Node& pod) {
                const auto* spec = pod.find("spec");
                return is_finished(pod) || is_static(pod) || (spec != nullptr && tolerates_downgrade(*spec));
            });
            if (!first) first = pods.size();
            if (pods.empty()) return std::string();
            return fmt::format("{} that the taint evicts {} still on node {}: {}",
                               pods.size() == 1 ? "1 Pod" : fmt::format("{} Pods", pods.size()),
                               pods.size() == 1 ? "is" : "are", node, names_of_pods(pods));
        };
        await_clear(clock_, deadline, interrupted_, "", spoken(clock_, deadline, say_, evicted));
    } catch (const Error& error) {
        if (error.code() != "not-verified") throw;
        throw Error(Exit::timeout, "drain-timeout", error.message())
            .hint(fmt::format("kubectl get pods -A --field-selector spec.nodeName={}", node));
    }
    return first.value_or(0);
}

std::string Downgrade::restart_one(const std::string& driver, const std::string& node, const Node& labels,
                                   const std::string& pattern, std::vector<std::string>& deleted) {
    const auto live = client_.find(kube::resources::k_daemon_sets, key_of_text(driver));
    if (!live) return fmt::format("DaemonSet {} does not exist", driver);
    if (!selects(*live, labels, Label::every)) return "";
    if (auto problem = controller_problem(*live); !problem.empty()) return problem;
    const auto wanted = cluster::annotation_of(*live, "deprecated.daemonset.template.generation");
    const Node* current = nullptr;
    const auto pods =
        client_.list_all(kube::resources::k_pods, {key_of_text(driver).namespace_, "", "spec.nodeName=" + node});
    std::string old;
    for (const auto& pod : pods) {
        if (!is_owned_by(pod, *live)) continue;
        if (!wanted.empty() && member_of(pod, {"metadata", "labels"}, "pod-template-generation") == wanted &&
            !is_ending(pod)) {
            current = &pod;
            continue;
        }
        old = kube::key_of(pod).to_string();
        const auto uid = pod.get_string({"metadata", "uid"});
        if (is_ending(pod) || wanted.empty()) continue;
        kube::DeleteOptions options;
        options.uid = uid;
        static_cast<void>(client_.remove(kube::resources::k_pods, kube::key_of(pod), options));
        if (std::find(deleted.begin(), deleted.end(), uid) == deleted.end()) deleted.push_back(uid);
    }
    if (wanted.empty())
        return fmt::format(
            "DaemonSet {} has no annotation deprecated.daemonset.template.generation: which Pods are new cannot be "
            "seen",
            driver);
    if (!old.empty()) return fmt::format("Pod {} of the release before is not gone", old);
    if (current == nullptr) return fmt::format("DaemonSet {} has no Pod on node {}", driver, node);
    if (!cluster::is_ready(*current)) return fmt::format("Pod {} is not ready", kube::key_of(*current).to_string());
    return pattern.empty() ? "" : gates_.log_problem_of_pod(*current, pattern);
}

std::size_t Downgrade::restart(const DriverNode& node, const State& state, const Deadline& deadline) {
    std::vector<std::string> deleted;
    const auto restarted = [&] {
        const auto there = client_.find(kube::resources::k_nodes, {"", node.node});
        if (!there) return std::string();
        const auto* labels = there->find_path({"metadata", "labels"});
        std::vector<std::string> problems;
        for (const auto& driver : node.drivers) {
            const auto wanted =
                std::find_if(state.objects.begin(), state.objects.end(), [&](const ReleaseObject& one) {
                    return is_driver(one) &&
                           kube::key_of(placed(one.object, kube::resources::k_daemon_sets)).to_string() == driver;
                });
            const auto pattern = wanted == state.objects.end() ? std::string() : log_pattern(wanted->object);
            if (auto problem =
                    restart_one(driver, node.node, labels == nullptr ? Node::mapping() : *labels, pattern, deleted);
                !problem.empty())
                problems.push_back(std::move(problem));
        }
        return base::join(problems, "; ");
    };
    await_clear(clock_, deadline, interrupted_,
                fmt::format("kubectl get pods -A --field-selector spec.nodeName={}", node.node),
                spoken(clock_, deadline, say_, restarted));
    return deleted.size();
}

std::string Downgrade::untaint(const std::string& node) {
    if (!client_.find(kube::resources::k_nodes, {"", node})) return "the node is gone";
    bool is_removed = false;
    static_cast<void>(
        client_.change(kube::resources::k_nodes, {"", node}, [&](const Node& current) -> std::optional<Node> {
            if (cluster::annotation_of(current, k_downgrade_owner) != owner_) return std::nullopt;
            is_removed = true;
            auto rest = Node::sequence();
            if (const auto* taints = current.find_path({"spec", "taints"}))
                for (const auto& taint : taints->items())
                    if (!is_our_taint(taint)) rest.push_back(taint);
            auto annotations = Node::mapping();
            annotations.set(std::string(k_downgrade_owner), Node());
            return Node::mapping(
                {{"metadata", Node::mapping({{"annotations", std::move(annotations)}})},
                 {"spec", Node::mapping({{"taints", rest.items().empty() ? Node() : std::move(rest)}})}});
        }));
    return is_removed ? "untainted" : "";
}

std::vector<kube::Rule> Downgrade::rules() {
    std::vector<kube::Rule> rules;
    for (const auto* verb : {"list", "patch", "delete"}) rules.push_back({verb, "", "pods", "", "", ""});
    return rules;
}

}  // namespace kmm::drive
