// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/directory_store.hpp"
#include "cluster/live/cluster_workloads.hpp"
#include "cluster/live/kube_store.hpp"
#include "unit/cluster/tree.hpp"
#include "unit/kube/fixture.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kube::test;
using cluster::Cordon;
using cluster::PodEviction;
using value::Node;

namespace {

/// A server with node-a, some Pods on it and a budget; evictions are answered by `on_evict`.
class DrainedCluster {
public:
    DrainedCluster() : server_([this](const FakeRequest& request) { return answer(request); }) {
        kube::Connection connection;
        connection.context = "main";
        connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
        kube::ClientOptions options;
        options.retry = {3, milliseconds(5), milliseconds(20), 0.0};
        options.api_timeout = seconds(2);
        store_.emplace(kube::make_client(connection, clock_, random_, options));
        workloads = cluster::workloads_of(*store_);
    }
    void run_in(kube::OwnPod own) { workloads = cluster::workloads_of(*store_, std::move(own)); }
    [[nodiscard]] Node node() {
        const std::lock_guard lock(mutex_);
        return node_;
    }
    void set_node(const std::string& text) {
        const std::lock_guard lock(mutex_);
        node_ = tree(text);
    }
    [[nodiscard]] std::size_t count(const std::string& text) const { return server_.count(text); }
    void require_rights() { store_->require_rights({}); }

    std::unique_ptr<cluster::Workloads> workloads;
    std::function<FakeReply()> on_evict;
    std::string denied;  ///< resource that access reviews say no to

private:
    FakeReply answer(const FakeRequest& request) {
        const std::lock_guard lock(mutex_);
        const std::string path = request.target.substr(0, request.target.find('?'));
        if (path.ends_with("/eviction")) { return on_evict(); }
        if (path.ends_with("/selfsubjectaccessreviews")) {
            const bool allowed =
                tree(request.body).find_path({"spec", "resourceAttributes"})->get_string({"resource"}) != denied;
            return reply(201, allowed ? R"({"status":{"allowed":true}})" : R"({"status":{"allowed":false}})");
        }
        if (path.ends_with("/selfsubjectreviews")) {
            return reply(201, R"({"status":{"userInfo":{"username":"jane"}}})");
        }
        if (path == "/api/v1/nodes/node-a") {
            if (request.method == "PATCH") { merge(node_, tree(request.body)); }
            return reply(200, value::to_json(node_));
        }
        if (path == "/api/v1/pods") {
            CHECK(request.target.find("fieldSelector=spec.nodeName%3Dnode-a") != std::string::npos);
            return reply(200, R"({"kind":"PodList","metadata":{},"items":[
                {"metadata":{"namespace":"infra","name":"log","uid":"1","ownerReferences":[{"kind":"DaemonSet","name":"log","controller":true}]}},
                {"metadata":{"namespace":"infra","name":"old","uid":"2","ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"old","controller":true}]}},
                {"metadata":{"namespace":"infra","name":"own","uid":"4","ownerReferences":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"DaemonSet","name":"own","controller":true}]}},
                {"metadata":{"namespace":"shop","name":"web","uid":"3"},"spec":{"volumes":[{"name":"a","emptyDir":{}}]}}]})");
        }
        if (path.ends_with("/daemonsets/log")) {
            return reply(200, R"({"kind":"DaemonSet","metadata":{"name":"log"}})");
        }
        if (path.ends_with("/daemonsets/old")) { return status_reply(404, "NotFound", "none"); }
        if (path == "/apis/resource.k8s.io") {
            return reply(200, R"({"preferredVersion":{"version":"v1beta1"},"versions":[{"version":"v1beta1"}]})");
        }
        if (path == "/apis/resource.k8s.io/v1beta1") {
            return reply(200, R"({"resources":[{"name":"resourceclaims"}]})");
        }
        if (path == "/apis/resource.k8s.io/v1beta1/resourceclaims") {
            return reply(200, R"({"kind":"List","metadata":{},"items":[{"metadata":{"namespace":"shop","name":"c"},
                "spec":{"devices":{"requests":[{"name":"a","deviceClassName":"gpus"}]}}}]})");
        }
        if (path == "/apis/policy/v1") { return reply(200, R"({"resources":[{"name":"poddisruptionbudgets"}]})"); }
        if (path.ends_with("/poddisruptionbudgets")) {
            return reply(
                200,
                R"({"kind":"List","metadata":{},"items":[{"metadata":{"namespace":"shop","name":"web"},"spec":{"minAvailable":1}}]})");
        }
        return status_reply(404, "NotFound", "no " + path);
    }
    static void merge(Node& target, const Node& patch) {
        for (const auto& member : patch.members()) {
            if (member.value.is_null()) {
                target.erase(member.key);
            } else if (member.value.is_mapping()) {
                if (target.find(member.key) == nullptr) { target.set(member.key, Node::mapping()); }
                merge(*target.find(member.key), member.value);
            } else {
                target.set(member.key, member.value);
            }
        }
    }
    std::mutex mutex_;
    Node node_ = tree(
        R"({"kind":"Node","metadata":{"name":"node-a","resourceVersion":"1","annotations":{"a":"b"}},"spec":{"podCIDR":"x"}})");
    sys::LinuxClock clock_;
    sys::LinuxRandom random_;
    FakeServer server_;
    std::optional<cluster::KubeStore> store_;
};

}  // namespace

TEST_SUITE("cluster::unit") {

TEST_CASE("workloads of a server: a cordon and who made it are one write; others' cordons are left alone") {
    DrainedCluster cluster;
    auto& workloads = *cluster.workloads;
    CHECK(workloads.cordon("node-a", "me") == Cordon{true, "me"});
    CHECK(cluster.count("fieldManager") == 1);
    CHECK(cluster.node().find_path({"spec", "unschedulable"})->as_bool() == true);
    CHECK(cluster.node().get_string({"metadata", "annotations", "kmmtools.dev/cordoned-by"}) == "me");
    CHECK(workloads.cordon("node-a", "me") == Cordon{true, "me"});
    CHECK(workloads.cordon("node-a", "you") == Cordon{true, "me"});
    CHECK(workloads.uncordon("node-a", "you") == Cordon{true, "me"});
    CHECK(cluster.count("fieldManager") == 1);
    CHECK(workloads.uncordon("node-a", "me") == Cordon{});
    CHECK(cluster.node().find_path({"spec", "unschedulable"}) == nullptr);
    CHECK(cluster.node().find_path({"metadata", "annotations", "kmmtools.dev/cordoned-by"}) == nullptr);
    CHECK(cluster.node().get_string({"metadata", "annotations", "a"}) == "b");
    CHECK(cluster.node().get_string({"spec", "podCIDR"}) == "x");
    cluster.set_node(R"({"kind":"Node","metadata":{"name":"node-a"},"spec":{"unschedulable":true}})");
    CHECK(workloads.cordon("node-a", "me") == Cordon{true, ""});
    CHECK(workloads.uncordon("node-a", "me") == Cordon{true, ""});
    CHECK(cluster.count("fieldManager") == 2);
    CHECK_THROWS_AS(workloads.cordon("node-x", "me"), Error);
}

TEST_CASE("workloads of a server: a cordon that others have set after ours was lifted is theirs") {
    const auto node_with = [](const std::string& manager) {
        return R"({"kind":"Node","metadata":{"name":"node-a","annotations":{"a":"b","kmmtools.dev/cordoned-by":"me"},"managedFields":[
            {"manager":"kubelet","operation":"Update","fieldsV1":{"f:metadata":{}}},
            {"manager":")" +
               manager +
               R"(","operation":"Update","fieldsV1":{"f:spec":{"f:unschedulable":{}}}}]},"spec":{"unschedulable":true}})";
    };
    DrainedCluster cluster;
    cluster.set_node(node_with("kubectl-cordon"));
    CHECK(cluster.workloads->uncordon("node-a", "me") == Cordon{true, ""});
    CHECK(cluster.node().find_path({"spec", "unschedulable"})->as_bool() == true);
    CHECK(cluster.node().get_string({"metadata", "annotations", "a"}) == "b");
    cluster.set_node(node_with("kubectl-cordon"));
    CHECK(cluster.workloads->cordon("node-a", "me") == Cordon{true, ""});
    cluster.set_node(node_with("kmm-tools"));
    CHECK(cluster.workloads->cordon("node-a", "me") == Cordon{true, "me"});
    CHECK(cluster.workloads->uncordon("node-a", "me") == Cordon{});
}

TEST_CASE("workloads of a server: Pods of a node, and which DaemonSets are gone, asked once each") {
    DrainedCluster cluster;
    static_cast<void>(cluster.workloads->pods("node-a"));
    const auto pods = cluster.workloads->pods("node-a");
    REQUIRE(pods.size() == 4);
    CHECK_FALSE(pods[0].is_controller_gone);
    CHECK(pods[1].is_controller_gone);
    CHECK_FALSE(pods[2].is_controller_gone);
    CHECK(pods[3].has_empty_dir);
    CHECK(cluster.count("/daemonsets/") == 2);
    const auto budgets = cluster.workloads->budgets();
    REQUIRE(budgets.size() == 1);
    CHECK(budgets[0].min_available == "1");
    const auto claims = cluster.workloads->claims();
    REQUIRE(claims.size() == 1);
    CHECK(claims[0].classes == std::vector<std::string>{"gpus"});
}

TEST_CASE("workloads of a server: the Pod of this process is marked, by its uid if that is known") {
    struct Row {
        kube::OwnPod own;
        int marked;  ///< -1: none
    };
    for (const auto& row :
         {Row{{"shop", "web", "3", ""}, 3}, Row{{"shop", "web", "", ""}, 3}, Row{{"shop", "web", "9", ""}, -1},
          Row{{"infra", "web", "", ""}, -1}, Row{{"other", "name", "1", ""}, 0}}) {
        CAPTURE(row.own.uid);
        DrainedCluster cluster;
        cluster.run_in(row.own);
        const auto pods = cluster.workloads->pods("node-a");
        REQUIRE(pods.size() == 4);
        for (int i = 0; i < 4; ++i) CHECK(pods[static_cast<std::size_t>(i)].is_self == (i == row.marked));
    }
}

TEST_CASE("workloads of a server: every answer to an eviction") {
    DrainedCluster cluster;
    api::WorkloadPod pod;
    pod.namespace_ = "shop";
    pod.name = "web";
    struct Row {
        int status;
        const char* body;
        PodEviction::Outcome outcome;
        const char* reason;
    };
    using Outcome = PodEviction::Outcome;
    for (
        const auto& row :
        {Row{201, R"({"kind":"Status","status":"Success"})", Outcome::evicted, ""},
         Row{404, R"({"kind":"Status","reason":"NotFound","code":404,"message":"gone"})", Outcome::gone, "gone"},
         Row{429,
             R"({"kind":"Status","code":429,"message":"no","details":{"causes":[{"reason":"DisruptionBudget","message":"web needs 2"}]}})",
             Outcome::blocked, "web needs 2"},
         Row{500,
             R"({"kind":"Status","code":500,"message":"This pod has more than one PodDisruptionBudget, which is bad"})",
             Outcome::never, "This pod has more than one PodDisruptionBudget, which is bad"},
         Row{403,
             R"({"kind":"Status","code":403,"reason":"Forbidden","message":"x","details":{"causes":[{"reason":"NamespaceTerminating"}]}})",
             Outcome::ending, "x"}}) {
        CAPTURE(row.status);
        cluster.on_evict = [&] { return reply(row.status, row.body); };
        const auto eviction = cluster.workloads->evict(pod, 5);
        CHECK(eviction.outcome == row.outcome);
        CHECK(eviction.reason == row.reason);
    }
}

TEST_CASE("workloads of a server: the rights of a drain are asked for with those of the store") {
    using Leaving = cluster::Workloads::Leaving;
    const auto missing = [](const std::string& denied, std::optional<Leaving> leaving) -> std::string {
        DrainedCluster cluster;
        if (leaving) cluster.workloads->expect_rights(*leaving);
        cluster.denied = denied;
        try {
            cluster.require_rights();
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::no_permission);
            return error.hint();
        }
        return "";
    };
    CHECK(missing("none", Leaving::users).empty());
    CHECK(missing("resourceclaims", Leaving::all).empty());
    CHECK(missing("poddisruptionbudgets", std::nullopt).empty());
    CHECK(missing("resourceclaims", Leaving::users).find("resourceclaims") != std::string::npos);
    CHECK(missing("poddisruptionbudgets", Leaving::all).find("poddisruptionbudgets") != std::string::npos);
}

TEST_CASE("workloads of a directory: the Node's file says who cordoned it; nothing is left of it") {
    const test::Tree tree;
    const std::string before = "kind: Node\napiVersion: v1\nmetadata:\n  name: node-a # mine\n";
    tree.put("nodes/a.yaml", before);
    sys::LinuxFileOps ops;
    cluster::DirectoryStore store(tree.path(), ops);
    const auto workloads = cluster::workloads_of(store);
    CHECK(workloads->cordon("node-a", "me") == Cordon{true, "me"});
    const auto text = tree.get("nodes/a.yaml");
    CHECK(text.find("unschedulable: true") != std::string::npos);
    CHECK(text.find("kmmtools.dev/cordoned-by: me") != std::string::npos);
    REQUIRE(store.read().objects.nodes.size() == 1);
    const auto taints = store.read().objects.nodes[0].taints;
    REQUIRE(taints.size() == 1);
    CHECK(taints[0].key == "node.kubernetes.io/unschedulable");
    CHECK(taints[0].effect == "NoSchedule");
    CHECK(workloads->cordon("node-a", "you") == Cordon{true, "me"});
    CHECK(workloads->uncordon("node-a", "you") == Cordon{true, "me"});
    CHECK(tree.get("nodes/a.yaml") == text);
    CHECK(workloads->uncordon("node-a", "me") == Cordon{});
    CHECK(tree.get("nodes/a.yaml") == before);
    CHECK(workloads->pods("node-a").empty());
    CHECK_THROWS_AS(workloads->cordon("node-x", "me"), Error);
}

TEST_CASE("workloads of a directory: other taints and fields of the Node stay as they are") {
    const test::Tree tree;
    const std::string before =
        "kind: Node\napiVersion: v1\nmetadata:\n  name: node-a\nspec:\n  podCIDR: x\n  taints:\n    - key: gpu\n      "
        "effect: NoSchedule\n";
    tree.put("nodes/a.yaml", before);
    sys::LinuxFileOps ops;
    cluster::DirectoryStore store(tree.path(), ops);
    const auto workloads = cluster::workloads_of(store);
    static_cast<void>(workloads->cordon("node-a", "me"));
    REQUIRE(store.read().objects.nodes[0].taints.size() == 2);
    static_cast<void>(workloads->uncordon("node-a", "me"));
    const auto node = store.read().objects.nodes[0];
    REQUIRE(node.taints.size() == 1);
    CHECK(node.taints[0].key == "gpu");
    CHECK_FALSE(node.unschedulable);
    CHECK(tree.get("nodes/a.yaml").find("podCIDR: x") != std::string::npos);
}
}
