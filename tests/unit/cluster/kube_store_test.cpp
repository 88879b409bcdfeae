// SPDX-License-Identifier: Apache-2.0
#include "api/labels.hpp"
#include "cluster/live/kube_store.hpp"
#include "unit/kube/fixture.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using cluster::KubeStore;
using value::Node;

namespace {

const std::string k_kmm_path = "/apis/kmm.sigs.x-k8s.io/v1beta1";

/// A server with the Node node-a and at most one NodeModulesConfig. Watches end at once with what has happened.
class SmallCluster {
public:
    SmallCluster() : server_([this](const FakeRequest& request) { return answer(request); }) {}

    [[nodiscard]] KubeStore store() {
        kube::Connection connection;
        connection.context = "main";
        connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
        kube::ClientOptions options;
        options.retry = {3, milliseconds(5), milliseconds(20), 0.0};
        options.api_timeout = seconds(2);
        return KubeStore(kube::make_client(connection, clock_, random_, options));
    }
    /// As somebody else would.
    void set_label(const std::string& key, const std::string& text) {
        const std::lock_guard lock(mutex_);
        node_.find("metadata")->find("labels")->set(key, text);
        bump();
    }
    [[nodiscard]] std::string label(const std::string& key) {
        const std::lock_guard lock(mutex_);
        return node_.get_string({"metadata", "labels", key});
    }
    [[nodiscard]] Node config() {
        const std::lock_guard lock(mutex_);
        return config_;
    }
    [[nodiscard]] bool is_cordoned() {
        const std::lock_guard lock(mutex_);
        const Node* flag = node_.find_path({"spec", "unschedulable"});
        return flag != nullptr && flag->as_bool().value_or(false);
    }
    [[nodiscard]] std::size_t count(const std::string& text) const { return server_.count(text); }
    std::atomic<bool> has_watch{true};  ///< false: nothing that happens is told
    std::atomic<bool> forbids{false};
    std::atomic<bool> has_kinds{true};  ///< Module and NodeModulesConfig are served

private:
    void bump() {
        node_.find("metadata")->set("resourceVersion", std::to_string(++version_));
        events_ += R"({"type":"MODIFIED","object":)" + value::to_json(node_) + "}\n";
    }
    FakeReply answer(const FakeRequest& request) {
        const std::lock_guard lock(mutex_);
        const std::string path = request.target.substr(0, request.target.find('?'));
        const bool is_watch = request.target.find("watch=true") != std::string::npos;
        if (forbids) { return status_reply(403, "Forbidden", "no"); }
        if (path == k_kmm_path && !has_kinds) { return status_reply(404, "NotFound", "no such group"); }
        if (path == k_kmm_path) {
            return reply(200, R"({"resources":[{"name":"modules"},{"name":"nodemodulesconfigs"}]})");
        }
        if (path == "/api/v1/namespaces/kube-system") {
            return reply(200, R"({"kind":"Namespace","metadata":{"uid":"the-uid"}})");
        }
        if (is_watch) {
            FakeReply stream;
            const bool tells = path == "/api/v1/nodes" && has_watch;
            stream.chunks = {(tells ? std::exchange(events_, "") : "") + "\n"};
            stream.chunk_ms = 5;
            return stream;
        }
        if (path == "/api/v1/nodes") {
            return reply(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[)" +
                                  value::to_json(node_) + "]}");
        }
        if (path == "/api/v1/nodes/node-a") {
            return request.method == "PATCH" ? patch_node(request) : reply(200, value::to_json(node_));
        }
        if (path.starts_with("/api/v1/nodes/")) { return status_reply(404, "NotFound", "no node"); }
        if (path.starts_with(k_kmm_path + "/nodemodulesconfigs/node-a")) { return answer_config(request); }
        if (request.method == "POST") {
            config_ = tree(request.body);
            return reply(201, value::to_json(config_));
        }
        return reply(200, R"({"kind":"SomeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})");
    }
    FakeReply patch_node(const FakeRequest& request) {
        const Node patch = tree(request.body);
        Node labels = *node_.find("metadata")->find("labels");
        for (const auto& step : patch.items()) {
            std::string key = step.get_string({"path"}).substr(std::string("/metadata/labels/").size());
            for (std::size_t at = 0; (at = key.find("~1")) != std::string::npos;) { key.replace(at, 2, "/"); }
            const Node* current = labels.find(key);
            const std::string operation = step.get_string({"op"});
            const bool same =
                current == nullptr ? step.find("value")->is_null() : current->text() == step.get_string({"value"});
            if (operation == "test" && !same) {
                return status_reply(422, "Invalid", "the server rejected our request due to an error in our request");
            }
            if (operation == "add") { labels.set(key, *step.find("value")); }
            if (operation == "remove") { labels.erase(key); }
        }
        if (patch.is_mapping()) { node_.set("spec", *patch.find("spec")); }
        if (const Node* notes = patch.find_path({"metadata", "annotations"}); notes != nullptr) {
            node_.find("metadata")->set("annotations", *notes);
        }
        node_.find("metadata")->set("labels", labels);
        bump();
        return reply(200, value::to_json(node_));
    }
    FakeReply answer_config(const FakeRequest& request) {
        if (config_.is_null()) { return status_reply(404, "NotFound", "no config"); }
        if (request.method == "PATCH") {
            const Node patch = tree(request.body);
            for (const char* part : {"spec", "status"}) {
                if (patch.find(part) != nullptr) { config_.set(part, *patch.find(part)); }
            }
            const Node* labels = patch.find_path({"metadata", "labels"});
            if (labels != nullptr) {
                for (const auto& label : labels->members()) {
                    Node& mine = config_.find("metadata")->find("labels") == nullptr
                                     ? config_.find("metadata")->set("labels", Node::mapping())
                                     : *config_.find("metadata")->find("labels");
                    if (label.value.is_null()) { mine.erase(label.key); } else { mine.set(label.key, label.value); }
                }
            }
        }
        return reply(200, value::to_json(config_));
    }

    std::mutex mutex_;
    int version_ = 1;
    Node node_ = tree(
        R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"node-a","uid":"uid-a","resourceVersion":"1","labels":{"role":"worker"}}})");
    Node config_;
    std::string events_;
    sys::LinuxClock clock_;
    sys::LinuxRandom random_;
    FakeServer server_;
};

std::optional<std::string> seen_label(KubeStore& store, const std::string& key) {
    const auto snapshot = store.read();
    REQUIRE(snapshot.objects.nodes.size() == 1);
    const auto& labels = snapshot.objects.nodes[0].meta.labels;
    const auto found = labels.find(key);
    return found == labels.end() ? std::nullopt : std::optional(found->second);
}

api::NodeModule entry_of(const std::string& version) {
    api::NodeModule entry;
    entry.name = "hello";
    entry.namespace_ = "drivers";
    entry.version = version;
    entry.config.edit().container_image = "registry.example/hello:" + version;
    entry.config.edit().kernel_version = "6.1";
    entry.config.edit().modprobe.module_name = "hello";
    return entry;
}

}  // namespace

TEST_SUITE("cluster::unit") {

TEST_CASE("a live store: what was written is in the next read, without another list") {
    SmallCluster cluster;
    KubeStore store = cluster.store();
    CHECK(store.describe().starts_with("cluster main (http://127.0.0.1:"));
    CHECK(seen_label(store, "a.b/c") == std::nullopt);
    store.patch_node_labels("node-a", {{"a.b/c", "v1"}, {"role", std::nullopt}}, {{"a.b/c", std::nullopt}});
    CHECK(cluster.label("a.b/c") == "v1");
    CHECK(seen_label(store, "a.b/c") == "v1");
    CHECK(seen_label(store, "role") == std::nullopt);
    CHECK(cluster.count("/api/v1/nodes?limit") == 1);
    store.patch_node_labels("node-a", {{"a.b/c", "v1"}}, {});
    CHECK(cluster.count("/api/v1/nodes/node-a") == 1);
}

TEST_CASE("a live store: one node is read without a request, and everything if it is not there") {
    SmallCluster cluster;
    KubeStore store = cluster.store();
    static_cast<void>(store.read());
    store.put_node_module("node-a", "drivers", "hello", std::optional(std::optional(entry_of("v1"))), std::nullopt);
    auto snapshot = store.read_about({"node-a", "", ""});
    REQUIRE(snapshot.objects.nodes.size() == 1);
    CHECK(snapshot.objects.nodes[0].meta.name == "node-a");
    REQUIRE(snapshot.objects.node_modules_configs.size() == 1);
    CHECK(snapshot.objects.node_modules_configs[0].spec.at(0).version == "v1");
    store.patch_node_labels("node-a", {{"a.b/c", "v1"}}, {{"a.b/c", std::nullopt}});
    CHECK(store.read_about({"node-a", "", ""}).objects.nodes.at(0).meta.labels.at("a.b/c") == "v1");
    snapshot = store.read_about({"node-x", "drivers", "hello"});
    CHECK(snapshot.objects.nodes.size() == 1);
    CHECK(snapshot.objects.modules.empty());
    CHECK(cluster.count("/api/v1/nodes?limit") == 1);
}

TEST_CASE("a live store: a kind that comes later is listed then") {
    SmallCluster cluster;
    cluster.has_kinds = false;
    KubeStore store = cluster.store();
    static_cast<void>(store.read());
    static_cast<void>(store.read());
    CHECK(cluster.count("/nodemodulesconfigs?limit") == 0);
    cluster.has_kinds = true;
    store.client().forget_served();
    static_cast<void>(store.read());
    static_cast<void>(store.read());
    CHECK(cluster.count("/nodemodulesconfigs?limit") == 1);
    CHECK(cluster.count("/modules?limit") == 1);
}

TEST_CASE("a live store: what others change comes by the watch") {
    SmallCluster cluster;
    KubeStore store = cluster.store();
    CHECK(seen_label(store, "new") == std::nullopt);
    cluster.set_label("new", "1");
    std::optional<std::string> found;
    for (int i = 0; i < 500 && !found; ++i) {
        std::this_thread::sleep_for(milliseconds(10));
        found = seen_label(store, "new");
    }
    CHECK(found == "1");
}

TEST_CASE("a live store: a label that somebody changed meanwhile is a conflict, though no watch has told so") {
    SmallCluster cluster;
    cluster.has_watch = false;
    KubeStore store = cluster.store();
    CHECK(seen_label(store, "role") == "worker");
    cluster.set_label("role", "other");
    try {
        store.patch_node_labels("node-a", {{"role", "mine"}}, {{"role", "worker"}});
        FAIL("expected a conflict");
    } catch (const Error& error) {
        CHECK(error.code() == "conflict");
        CHECK(error.is_retryable());
        CHECK(error.message() ==
              "label role of node node-a was changed by somebody else: expected 'worker', found 'other'");
    }
    CHECK(cluster.label("role") == "other");
    // The store has looked at the node: the next decision is based on what is there.
    CHECK(seen_label(store, "role") == "other");
    store.patch_node_labels("node-a", {{"role", "mine"}}, {{"role", "other"}});
    CHECK(cluster.label("role") == "mine");
}

TEST_CASE("a live store: a NodeModulesConfig is made, changed and emptied, with its labels") {
    SmallCluster cluster;
    KubeStore store = cluster.store();
    static_cast<void>(store.read());
    using Change = std::optional<std::optional<api::NodeModule>>;
    store.put_node_module("node-a", "drivers", "hello", Change(entry_of("v1")), std::nullopt);
    CHECK(cluster.config().find_path({"spec", "modules"})->items().size() == 1);
    const std::string in_use = api::label_module_in_use("drivers", "hello");
    CHECK(cluster.config().find_path({"metadata", "labels", in_use}) != nullptr);
    // It goes with its Node, as one of KMM's does.
    const Node made = cluster.config();
    REQUIRE(made.find_path({"metadata", "ownerReferences"}) != nullptr);
    CHECK(value::to_json(*made.find_path({"metadata", "ownerReferences"})) ==
          R"([{"apiVersion":"v1","kind":"Node","name":"node-a","uid":"uid-a"}])");
    store.put_node_module("node-a", "drivers", "hello", std::nullopt, Change(entry_of("v1")));
    const auto snapshot = store.read();
    REQUIRE(snapshot.objects.node_modules_configs.size() == 1);
    CHECK(snapshot.objects.node_modules_configs[0].spec == std::vector<api::NodeModule>{entry_of("v1")});
    CHECK(snapshot.objects.node_modules_configs[0].status.size() == 1);
    store.put_node_module("node-a", "drivers", "hello", Change(std::optional<api::NodeModule>()), std::nullopt);
    CHECK(cluster.config().find_path({"metadata", "labels", in_use}) != nullptr);
    store.put_node_module("node-a", "drivers", "hello", std::nullopt, Change(std::optional<api::NodeModule>()));
    CHECK(cluster.config().find_path({"metadata", "labels", in_use}) == nullptr);
    CHECK(cluster.config().find_path({"spec", "modules"})->items().empty());
}

TEST_CASE("a live store: identity, and nodes that are not there") {
    SmallCluster cluster;
    KubeStore store = cluster.store();
    CHECK(store.identity(false) == "the-uid");
    try {
        store.patch_node_labels("node-x", {{"a", "b"}}, {});
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::not_found);
    }
}

TEST_CASE("a live store: what befalls a watch is the error of the next read, and the one after that tries again") {
    SmallCluster cluster;
    cluster.forbids = true;
    KubeStore store = cluster.store();
    try {
        static_cast<void>(store.read());
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == "forbidden");
    }
    cluster.forbids = false;
    CHECK(seen_label(store, "role") == "worker");
}

}
