// SPDX-License-Identifier: Apache-2.0
// An API server in memory with the controllers that rollouts of recipes wait for: DaemonSets, taints that evict, Jobs.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "kube/client.hpp"
#include "net/http.hpp"
#include "sandbox/sandbox.hpp"
#include "support/idle_clock.hpp"
#include "sys/random.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::drive::test {

using value::Node;

inline Node json(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_yaml(text, "test", faults);
    return documents.at(0).root;
}

inline Node from_json(const std::string& text) {
    Diagnostics faults;
    return value::read_json(text, "test", faults).at(0).root;
}

class MemoryApi {
public:
    /// PLURAL/NAMESPACE/NAME to the object.
    std::map<std::string, Node> objects;
    std::function<void(const std::string& request, bool is_done)> on_request;  ///< before and after each; may throw
    std::vector<std::string> requests;

    void put(const Node& object) { store(key_of(object), object); }
    [[nodiscard]] const Node& at(const std::string& key) const { return objects.at(key); }
    [[nodiscard]] std::string text_at(const std::string& key, std::initializer_list<std::string_view> path) const {
        const auto* found = at(key).find_path(path);
        return found == nullptr ? "" : found->text();
    }
    /// What controllers would do.
    void settle() {
        for (int round = 0; round < 2; ++round) {
            evict();
            const auto all = objects;
            for (const auto& [key, object] : all) {
                if (key.starts_with("daemonsets/")) run_daemon_set(key);
                if (key.starts_with("jobs/")) set_status(key, json("{conditions: [{type: Complete, status: 'True'}]}"));
            }
        }
    }

    /// Answers one request: status and body.
    std::pair<int, std::string> answer(const net::Request& request) {
        const std::lock_guard guard(serving_);
        auto path = request.url.substr(request.url.find('/', 8));
        const auto question = path.find('?');
        const auto query = question == std::string::npos ? "" : decoded(path.substr(question + 1));
        path.resize(std::min(question, path.size()));
        const auto name = request.method + " " + path;
        requests.push_back(name);
        if (on_request) on_request(name, false);
        auto reply = serve(request, path, query);
        if (on_request) on_request(name, true);
        return reply;
    }

private:
    struct Kind {
        std::string plural, group, name;
        bool namespaced;
    };
    static const std::vector<Kind>& kinds() {
        static const std::vector<Kind> all = {
            {"nodes", "", "Node", false},
            {"pods", "", "Pod", true},
            {"namespaces", "", "Namespace", false},
            {"secrets", "", "Secret", true},
            {"configmaps", "", "ConfigMap", true},
            {"daemonsets", "apps", "DaemonSet", true},
            {"jobs", "batch", "Job", true},
            {"machineconfigpools", "machineconfiguration.openshift.io", "MachineConfigPool", false}};
        return all;
    }
    static std::string key_of(const Node& object) {
        for (const auto& kind : kinds())
            if (kind.name == object.get_string({"kind"}))
                return kind.plural + "/" + (kind.namespaced ? object.get_string({"metadata", "namespace"}) : "") + "/" +
                       object.get_string({"metadata", "name"});
        FAIL("unknown kind");
        return "";
    }
    static std::string decoded(const std::string& text) {
        std::string made;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') made += text[i];
            else made += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)), i += 2;
        }
        return made;
    }
    static std::string option(const std::string& query, const std::string& name) {
        for (const auto& part : base::split(query, '&'))
            if (part.starts_with(name + "=")) return std::string(part.substr(name.size() + 1));
        return "";
    }
    static Node& member(Node& object, const std::string& name) {
        if (object.find(name) == nullptr) object.set(name, Node::mapping());
        return *object.find(name);
    }
    static void merge(Node& into, const Node& patch) {
        for (const auto& each : patch.members()) {
            if (each.value.is_null()) into.erase(each.key);
            else if (each.value.is_mapping()) {
                if (const auto* there = into.find(each.key); there == nullptr || !there->is_mapping())
                    into.set(each.key, Node::mapping());
                merge(*into.find(each.key), each.value);
            } else into.set(each.key, each.value);
        }
    }
    /// What was applied before and is not any more goes.
    static void drop(Node& from, const Node& before, const Node& now) {
        for (const auto& each : before.members()) {
            const auto* stays = now.find(each.key);
            if (stays == nullptr) from.erase(each.key);
            else if (each.value.is_mapping() && from.find(each.key) != nullptr)
                drop(*from.find(each.key), each.value, *stays);
        }
    }
    void store(const std::string& key, Node object) {
        auto& meta = member(object, "metadata");
        const auto found = objects.find(key);
        if (found != objects.end() && found->second.same_value(object)) return;
        if (meta.find("uid") == nullptr) meta.set("uid", "uid-" + std::to_string(++version_));
        meta.set("resourceVersion", std::to_string(++version_));
        if (key.starts_with("daemonsets/")) {
            const auto number = [](const Node* node) {
                return node == nullptr ? 0 : std::stoi(node->text().empty() ? "0" : node->text());
            };
            const Node none;
            const auto& before = found == objects.end() ? none : found->second;
            const auto* spec = before.find("spec");
            if (spec == nullptr || !spec->same_value(*object.find("spec")))
                meta.set("generation", number(meta.find("generation")) + 1);
            const auto* pods = before.find_path({"spec", "template"});
            auto& notes = member(meta, "annotations");
            if (pods == nullptr || !pods->same_value(*object.find_path({"spec", "template"})))
                notes.set(k_generation, std::to_string(number(notes.find(k_generation)) + 1));
        }
        objects[key] = std::move(object);
    }
    void set_status(const std::string& key, Node status) {
        auto object = objects.at(key);
        object.set("status", std::move(status));
        store(key, std::move(object));
    }
    static bool tolerates(const Node& spec, const std::string& taint) {
        const auto* all = spec.find("tolerations");
        if (all == nullptr) return false;
        for (const auto& each : all->items())
            if (each.get_string({"key"}).empty() || each.get_string({"key"}) == taint) return true;
        return false;
    }
    bool is_kept_off(const Node& spec, const std::string& node) const {
        const auto* taints = at("nodes//" + node).find_path({"spec", "taints"});
        if (taints == nullptr) return false;
        for (const auto& taint : taints->items())
            if (taint.get_string({"effect"}) == "NoExecute" && !tolerates(spec, taint.get_string({"key"}))) return true;
        return false;
    }
    static bool is_selected(const Node& spec, const Node& node) {
        const auto* selector = spec.find("nodeSelector");
        if (selector == nullptr) return true;
        const auto* labels = node.find_path({"metadata", "labels"});
        return std::all_of(selector->members().begin(), selector->members().end(), [&](const value::Member& each) {
            const auto* found = labels == nullptr ? nullptr : labels->find(each.key);
            return found != nullptr && found->text() == each.value.text();
        });
    }
    void evict() {
        std::erase_if(objects, [&](const auto& entry) {
            if (!entry.first.starts_with("pods/")) return false;
            const auto node = entry.second.get_string({"spec", "nodeName"});
            return objects.contains("nodes//" + node) && is_kept_off(*entry.second.find("spec"), node);
        });
    }
    void run_daemon_set(const std::string& key) {
        const auto set = objects.at(key);
        const auto& pods = *set.find_path({"spec", "template"});
        const auto generation = text_at(key, {"metadata", "annotations", k_generation});
        const bool by_hand = set.get_string({"spec", "updateStrategy", "type"}) == "OnDelete";
        int wanted = 0, updated = 0, ready = 0;
        const auto all = objects;
        for (const auto& [node_key, node] : all) {
            if (!node_key.starts_with("nodes/")) continue;
            const auto name = node.get_string({"metadata", "name"});
            const auto pod_name = set.get_string({"metadata", "name"}) + "-" + name;
            const auto pod_key = "pods/" + set.get_string({"metadata", "namespace"}) + "/" + pod_name;
            if (!is_selected(*pods.find("spec"), node)) {
                objects.erase(pod_key);
                continue;
            }
            if (is_kept_off(*pods.find("spec"), name)) continue;
            ++wanted;
            const bool is_there = objects.contains(pod_key);
            if (!is_there ||
                (!by_hand && text_at(pod_key, {"metadata", "labels", "pod-template-generation"}) != generation)) {
                auto labels = *pods.find_path({"metadata", "labels"});
                labels.set("pod-template-generation", generation);
                auto spec = *pods.find("spec");
                spec.set("nodeName", name);
                const bool is_broken =
                    spec.find("containers")->items().front().get_string({"image"}).ends_with("broken");
                objects.erase(pod_key);
                put(Node::mapping(
                    {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata",
                      Node::mapping({{"name", pod_name},
                                     {"namespace", set.get_string({"metadata", "namespace"})},
                                     {"labels", std::move(labels)},
                                     {"ownerReferences", Node::sequence({Node::mapping(
                                                             {{"kind", "DaemonSet"},
                                                              {"name", set.get_string({"metadata", "name"})},
                                                              {"uid", set.get_string({"metadata", "uid"})}})})}})},
                     {"spec", std::move(spec)},
                     {"status", json(std::string("{phase: Running, conditions: [{type: Ready, status: '") +
                                     (is_broken ? "False" : "True") + "'}]}")}}));
            }
            if (pods.find("spec")->find("containers")->items().front().get_string({"image"}).ends_with("missing")) {
                // Its Job builds it.
                auto pod = at(pod_key);
                const bool is_built = std::any_of(objects.begin(), objects.end(),
                                                  [](const auto& entry) { return entry.first.starts_with("jobs/"); });
                pod.set("status", json(is_built ? "{phase: Running, conditions: [{type: Ready, status: 'True'}]}"
                                                : "{phase: Pending, conditions: [{type: Ready, status: 'False'}], "
                                                  "containerStatuses: [{image: r/missing, "
                                                  "state: {waiting: {reason: ErrImagePull, message: not found}}}]}"));
                objects[pod_key] = pod;
            }
            updated += text_at(pod_key, {"metadata", "labels", "pod-template-generation"}) == generation ? 1 : 0;
            ready += at(pod_key).find_path({"status", "conditions"})->items().front().get_string({"status"}) == "True"
                         ? 1
                         : 0;
        }
        set_status(key, Node::mapping({{"observedGeneration", *at(key).find_path({"metadata", "generation"})},
                                       {"desiredNumberScheduled", wanted},
                                       {"updatedNumberScheduled", updated},
                                       {"numberAvailable", ready}}));
    }
    static std::pair<int, std::string> failure(int code, const std::string& reason) {
        return {code, value::to_json(Node::mapping({{"kind", "Status"},
                                                    {"apiVersion", "v1"},
                                                    {"status", "Failure"},
                                                    {"reason", reason},
                                                    {"message", reason},
                                                    {"code", code}}))};
    }
    std::pair<int, std::string> list(const Kind& kind, const std::string& space, const std::string& query) const {
        auto items = Node::sequence();
        const auto field = option(query, "fieldSelector"), selector = option(query, "labelSelector");
        for (const auto& [key, object] : objects) {
            if (!key.starts_with(kind.plural + "/" + (space.empty() ? "" : space + "/"))) continue;
            if (!field.empty() && "spec.nodeName=" + object.get_string({"spec", "nodeName"}) != field) continue;
            const auto equals = selector.find('=');
            const auto* labels = object.find_path({"metadata", "labels"});
            const auto* found = labels == nullptr ? nullptr : labels->find(selector.substr(0, equals));
            if (!selector.empty() &&
                (found == nullptr || (equals != std::string::npos && found->text() != selector.substr(equals + 1))))
                continue;
            items.push_back(object);
        }
        return {200, value::to_json(Node::mapping({{"kind", kind.name + "List"},
                                                   {"apiVersion", "v1"},
                                                   {"metadata", Node::mapping()},
                                                   {"items", std::move(items)}}))};
    }
    std::pair<int, std::string> discover(const std::string& group) const {
        auto resources = Node::sequence();
        for (const auto& kind : kinds())
            if (kind.group == group)
                resources.push_back(
                    Node::mapping({{"name", kind.plural}, {"kind", kind.name}, {"namespaced", kind.namespaced}}));
        if (resources.items().empty()) return failure(404, "NotFound");
        return {200, value::to_json(Node::mapping({{"kind", "APIResourceList"}, {"resources", std::move(resources)}}))};
    }
    std::pair<int, std::string> serve(const net::Request& request, const std::string& path, const std::string& query) {
        std::vector<std::string> parts;
        for (const auto part : base::split(std::string_view(path).substr(1), '/')) parts.emplace_back(part);
        const bool is_core = parts.front() == "api";
        const auto group = is_core ? std::string() : parts[1];
        parts.erase(parts.begin(), parts.begin() + (is_core ? 2 : 3));
        if (parts.empty()) return discover(group);
        std::string space;
        if (parts.front() == "namespaces" && parts.size() > 2) {
            space = parts[1];
            parts.erase(parts.begin(), parts.begin() + 2);
        }
        const Kind* kind = nullptr;
        for (const auto& each : kinds())
            if (each.plural == parts.front() && each.group == group) kind = &each;
        if (kind == nullptr) return failure(404, "NotFound");
        if (parts.size() > 2 && parts[2] == "log") return {200, "modules loaded\n"};
        if (request.method == "GET" && parts.size() == 1) return list(*kind, space, query);
        return change(request, parts, kind->plural + "/" + space + "/" + (parts.size() > 1 ? parts[1] : std::string()),
                      query);
    }
    std::pair<int, std::string> change(const net::Request& request, const std::vector<std::string>& parts,
                                       std::string key, const std::string& query) {
        const auto body = request.body.empty() ? Node() : from_json(request.body);
        if (parts.size() == 1) key += body.get_string({"metadata", "name"});
        const auto found = objects.find(key);
        std::string kind;
        for (const auto& [name, value] : request.headers)
            if (base::to_lower(name) == "content-type") kind = value;
        const bool applies = kind.find("apply-patch") != std::string::npos;
        if (found == objects.end() && request.method != "POST" && !applies) return failure(404, "NotFound");
        if (request.method == "GET") return {200, value::to_json(found->second)};
        if (request.method == "DELETE") {
            const auto reply = value::to_json(found->second);
            objects.erase(found);
            settle();
            return {200, reply};
        }
        auto object = found == objects.end() ? Node::mapping() : found->second;
        const auto wanted = body.get_string({"metadata", "resourceVersion"});
        if (!wanted.empty() && wanted != object.get_string({"metadata", "resourceVersion"}))
            return failure(409, "Conflict");
        if (applies) drop(object, applied_[key], body);
        merge(object, body);
        if (option(query, "dryRun") == "All") return {200, value::to_json(object)};
        if (applies) applied_[key] = body;
        store(key, std::move(object));
        settle();
        return {request.method == "POST" ? 201 : 200,
                value::to_json(objects.contains(key) ? objects.at(key) : Node::mapping())};
    }

    static constexpr const char* k_generation = "deprecated.daemonset.template.generation";
    std::mutex serving_;  ///< one request at a time
    int version_ = 0;
    std::map<std::string, Node> applied_;
};

/// The program dies.
struct Killed {};

/// Every `nth` point is tried, with KMM_FULL all of them; a fifth of that with sanitizers, which take ten times as
/// long.
inline int every(int nth) {
    return std::getenv("KMM_FULL") != nullptr ? 1 : sandbox::is_instrumented() ? 5 * nth : nth;
}

class FixedRandom final : public sys::Random {
public:
    void fill(std::span<std::uint8_t> bytes) override {
        for (auto& byte : bytes) byte = 1;
    }
};

class MemoryHttp final : public net::HttpClient {
public:
    explicit MemoryHttp(MemoryApi& api) : api_(api) {}
    [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
        const auto [status, body] = api_.answer(request);
        net::Response response;
        response.status = status;
        response.headers.emplace_back("content-type", "application/json");
        static_cast<void>(sink(response, body));
        return response;
    }

private:
    MemoryApi& api_;
};

}  // namespace kmm::drive::test
