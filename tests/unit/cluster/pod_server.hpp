// SPDX-License-Identifier: Apache-2.0
// Worker Pods on a server in the test's own process.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cluster/worker/pod_outcome.hpp"
#include "cluster/worker/pod_runner.hpp"
#include "unit/kube/fixture.hpp"
#include "value/writer.hpp"

namespace kmm::worker_pods {

using namespace kmm::kube::test;  // NOLINT: of tests
using cluster::PodRunner;
using cluster::WorkerCall;
using value::Node;

inline constexpr const char* k_done =
    R"({"phase":"Succeeded","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":0,"message":"{\"kind\":\"WorkerResult\",\"outcome\":\"loaded\"}"}}}]})";
inline constexpr const char* k_running =
    R"({"phase":"Running","containerStatuses":[{"name":"worker","state":{"running":{}}}]})";
inline constexpr const char* k_creating =
    R"({"phase":"Pending","containerStatuses":[{"name":"worker","state":{"waiting":{"reason":"ContainerCreating"}}}]})";
/// As a kubelet first tells of it: the Pod's phase follows seconds later.
inline constexpr const char* k_ended =
    R"({"phase":"Running","containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":0,"message":"{\"kind\":\"WorkerResult\",\"outcome\":\"loaded\"}"}}}]})";
inline constexpr const char* k_gone = "";

/// Pods on a server. Each look at a Pod that was created brings the next of `script`, the last one for ever; Pods that
/// are there from the beginning go through `earlier_script`. Watches end at once.
class PodServer {
public:
    explicit PodServer(std::vector<std::string> script)
        : script_(std::move(script)), server_([this](const FakeRequest& request) { return answer(request); }) {
        kube::Connection connection;
        connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
        kube::ClientOptions options;
        options.retry = {3, milliseconds(5), milliseconds(20), 0.0};
        options.api_timeout = seconds(2);
        options.stop_waiting = [this] { return looks_left == 0; };
        client_ = std::make_unique<kube::Client>(
            std::move(connection), kube::Seams{[] { return std::make_unique<net::CurlHttpClient>(); }, clock_, random_},
            std::move(options));
    }

    [[nodiscard]] cluster::PodRunnerOptions options() {
        return {"drivers", "hello", "registry.example/worker:v1",
                "loader",  "run-1", [this](const std::string& line) { warnings.push_back(line); }};
    }
    [[nodiscard]] kube::Client& client() { return *client_; }
    [[nodiscard]] PodRunner runner() { return PodRunner(*client_, options()); }
    /// As an earlier process left it, for the Module `module`. Its name is `left` then.
    void leave(const std::string& module, const std::string& run, const std::string& verb,
               const std::vector<std::string>& script, const std::string& own_name = "",
               const std::string& created = "") {
        render::WorkerTask task;
        task.namespace_ = "drivers";
        task.module = module;
        task.node = "node-a";
        task.args = {verb};
        task.run = run;
        const std::string name = own_name.empty() ? render::worker_task_name(task) : own_name;
        left = name;
        Node pod =
            tree(R"({"kind":"Pod","apiVersion":"v1","spec":{"activeDeadlineSeconds":600,"nodeName":"node-a"}})");
        pod.set("metadata", Node::mapping({{"name", name},
                                           {"namespace", "drivers"},
                                           {"uid", "old-" + name},
                                           {"creationTimestamp", created}}));
        pod.find("metadata")
            ->set("labels",
                  Node::mapping(
                      {{"kmmtools.dev/module", module}, {"kmmtools.dev/run", run}, {"kmmtools.dev/verb", verb}}));
        set_status(pod, script.front());
        earlier_ = pod;
        earlier_script_ = script;
    }
    [[nodiscard]] std::vector<std::string> changes() const {
        std::vector<std::string> result;
        for (const auto& request : server_.requests()) {
            if (request.method != "GET") {
                result.push_back(request.method + " " + request.target.substr(0, request.target.find('?')));
            }
        }
        return result;
    }
    [[nodiscard]] std::string body_of(const std::string& method) const {
        for (const auto& request : server_.requests()) {
            if (request.method == method) { return request.body; }
        }
        return "";
    }
    std::string node_ready = "Unknown";  ///< the node's condition
    std::atomic<int> looks_left{-1};     ///< at a Pod, before somebody wants to stop; below zero: for ever
    FakeReply refusal;  ///< answer to POST if its status is not 200
    FakeReply removal;  ///< answer to DELETE if its status is not 200
    std::vector<std::string> warnings;  ///< of the runner
    std::string left;      ///< name of the Pod that was there from the beginning
    std::string squatter;  ///< metadata of a Pod that has every name

private:
    static void set_status(Node& pod, const std::string& text) { pod.set("status", tree(text)); }
    FakeReply look(Node& pod, std::vector<std::string>& script) {
        if (looks_left > 0) { --looks_left; }
        const std::string now = script.front();
        if (script.size() > 1) { script.erase(script.begin()); }
        if (now == k_gone) {
            pod = Node();
            return status_reply(404, "NotFound", "no such Pod");
        }
        set_status(pod, now);
        return reply(200, value::to_json(pod));
    }
    FakeReply answer(const FakeRequest& request) {
        const std::lock_guard lock(mutex_);
        const std::string path = request.target.substr(0, request.target.find('?'));
        if (request.target.find("watch=true") != std::string::npos) {
            FakeReply stream;
            stream.chunks = {"\n"};
            return stream;
        }
        if (path == "/api/v1/nodes/node-a") {
            return reply(
                200,
                R"({"kind":"Node","metadata":{"name":"node-a"},"status":{"conditions":[{"type":"Ready","status":")" +
                    node_ready +
                    R"(","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}]}})");
        }
        if (path == "/api/v1/namespaces/drivers/pods" && request.method == "GET") {
            const std::string items = earlier_.is_null() ? "" : value::to_json(earlier_);
            return reply(200, R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[)" +
                                  items + "]}");
        }
        if (request.method == "POST") {
            if (refusal.status != 200) { return refusal; }
            if (!squatter.empty()) { return status_reply(409, "AlreadyExists", "pods already exists"); }
            created_ = tree(request.body);
            created_.find("metadata")->set("uid", "new");
            return reply(201, value::to_json(created_));
        }
        if (!squatter.empty()) { return reply(200, R"({"kind":"Pod","apiVersion":"v1","metadata":)" + squatter + "}"); }
        const bool is_earlier = !earlier_.is_null() && path.ends_with("/" + earlier_.get_string({"metadata", "name"}));
        Node& pod = is_earlier ? earlier_ : created_;
        if (pod.is_null() || !path.ends_with("/" + pod.get_string({"metadata", "name"}))) {
            return status_reply(404, "NotFound", "no such Pod");
        }
        if (request.method == "DELETE") {
            if (removal.status != 200) { return removal; }
            const Node there = std::exchange(pod, Node());
            return reply(200, value::to_json(there));
        }
        return look(pod, is_earlier ? earlier_script_ : script_);
    }

    std::mutex mutex_;
    std::vector<std::string> script_, earlier_script_;
    Node created_, earlier_;
    SleepyClock clock_;
    EvenRandom random_;
    FakeServer server_;
    std::unique_ptr<kube::Client> client_;
};

inline const std::string k_input =
    "containerImage: registry.example/hello:v1\nkernelVersion: 6.1\nmodprobe:\n  moduleName: hello\n---\n"
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: pull\n  namespace: drivers\ntype: "
    "kubernetes.io/dockerconfigjson\ndata:\n"
    "  .dockerconfigjson: e30=\n";

inline WorkerCall load_call(milliseconds timeout = seconds(60)) {
    return {"node-a", {"load", "-", "--input-size", std::to_string(k_input.size())}, k_input, timeout};
}
inline WorkerCall status_call() { return {"node-a", {"status", "hello", "--settle", "500ms"}, "", seconds(30)}; }

inline const std::string k_pods = "/api/v1/namespaces/drivers/pods";

}  // namespace kmm::worker_pods
