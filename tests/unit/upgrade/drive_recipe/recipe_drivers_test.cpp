// SPDX-License-Identifier: Apache-2.0
// A recipe whose driver has a copy for each kernel, and nodes that come back with another kernel.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_recipe/recipe_life.hpp"
#include "upgrade/drive_recipe/recipe_drivers.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

const std::string k_old = "6.1.0-1-amd64", k_new = "6.1.0-2-amd64";
const std::string k_kernel_key = "feature.node.kubernetes.io/kernel-version.full";

/// The copy for `kernel`, whose name ends with `suffix`; the DaemonSet for all kernels without one.
rc::ReleaseObject copy_of(const std::string& name, const std::string& kernel, const std::string& suffix,
                          const std::string& image = "driver", const std::string& log = "loaded") {
    const auto full = name + (suffix.empty() ? "" : "-" + suffix);
    const auto selector = "gpu: 'yes'" + (kernel.empty() ? "" : ", " + k_kernel_key + ": " + kernel);
    return {kernel, json("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: " + full +
                         ", namespace: demo, annotations: {specialresource.openshift.io/state: driver-container, "
                         "specialresource.openshift.io/wait-for-logs: " + log +
                         "}}, spec: {template: {metadata: {labels: {app: " + full + "}}, spec: {nodeSelector: {" +
                         selector + "}, containers: [{name: c, image: r/" + image + "}]}}}}")};
}

rc::Release release_of(std::vector<rc::ReleaseObject> objects, std::int64_t revision = 1) {
    rc::Release release;
    release.recipe = "demo";
    release.version = "0.0.1";
    release.lineage = release.created = "t";
    release.revision = revision;
    release.status = rc::Status::deployed;
    release.kernels = {k_old};
    release.states.push_back({"demo/1000-driver", "demo", "", {}, std::move(objects)});
    return release;
}

api::Node node_of(const std::string& name, const std::string& kernel, api::Labels labels) {
    api::Node node;
    node.meta.name = name;
    node.meta.labels = std::move(labels);
    node.kernel_version = kernel;
    return node;
}

struct RecipeScene {
    MemoryApi api;
    IdleClock clock;
    FixedRandom random;
    std::unique_ptr<kube::Client> client;
    RecipeDrivers drivers;

    explicit RecipeScene(std::vector<rc::ReleaseObject> objects)
        : client(client_of(api, clock, random)), drivers(*client, "kube-system") {
        boot("node-a", k_old, true);
        boot("node-b", k_old, true);
        for (auto& one : objects)
            static_cast<void>(client->apply(kube::resources::k_daemon_sets, one.object, kube::Force::no));
        ReleaseStore(*client, "kube-system").put(release_of(std::move(objects)));
    }
    [[nodiscard]] std::vector<std::string> serving(const std::string& node) {
        std::vector<std::string> names;
        for (const auto& [name, containers] : drivers.serving(node)) names.push_back(name);
        return names;
    }
    [[nodiscard]] std::string problem(const std::string& node, const std::string& kernel, const std::string& driver,
                                      const std::string& before = "") {
        return drivers.problem(node, kernel, driver, before);
    }
    /// The node runs `kernel`; the node feature discovery has said so, or not yet.
    void boot(const std::string& name, const std::string& kernel, bool is_labelled) {
        api.put(json("{apiVersion: v1, kind: Node, metadata: {name: " + name + ", labels: {gpu: 'yes'" +
                     (is_labelled ? ", " + k_kernel_key + ": " + kernel : "") +
                     "}}, status: {nodeInfo: {kernelVersion: " + kernel + "}}}"));
        api.settle();
    }
};

}  // namespace

TEST_SUITE("recipe_drivers") {
    TEST_CASE("copies for kernels are one driver, whatever their suffix") {
        CHECK(driver_name(copy_of("a-b", k_old, "1f")) == "demo/a-b");
        CHECK(driver_name(copy_of("a-b", "", "")) == "demo/a-b");
    }

    TEST_CASE("a driver without a copy for the next kernel is found before nodes lose it") {
        const std::vector<rc::Release> deployed{release_of(
            {copy_of("a", k_old, "1"), copy_of("b", k_old, "1"), copy_of("b", k_new, "2"), copy_of("c", "", "")})};
        const std::vector<api::Node> nodes{node_of("node-a", k_old, {{"gpu", "yes"}}),
                                           node_of("node-b", k_old, {{"gpu", "yes"}, {k_kernel_key, k_old}}),
                                           node_of("node-c", k_old, {{"gpu", "no"}})};
        const auto findings = missing_copies(deployed, nodes, k_new);
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].code == "recipe-copy-missing");
        CHECK(findings[0].message ==
              "driver demo/a of recipe demo has no copy for kernel 6.1.0-2-amd64, and 2 nodes would come back without "
              "it");
        CHECK(findings[0].hint ==
              "roll that copy out first: kmm-upgrade start recipe demo --next-kernel 6.1.0-2-amd64");
        CHECK(missing_copies(deployed, nodes, k_old).empty());
        CHECK(missing_copies(deployed, std::vector{nodes[2]}, k_new).empty());
        CHECK(missing_copies(deployed, std::vector{node_of("node-a", "5.10.0-1-amd64", {{"gpu", "yes"}})}, k_new)
                  .empty());
        CHECK(selected_drivers(deployed, nodes[0]) == std::vector<std::string>{"demo/a", "demo/b", "demo/c"});
        CHECK(selected_drivers(deployed, nodes[2]).empty());
    }

    TEST_CASE("a DaemonSet for all nodes whose image names a kernel is a driver of that kernel alone") {
        auto plain = copy_of("p", "", "", "driver:" + k_old);
        auto of_pods = plain.object;
        of_pods.set("metadata", json("{name: p, namespace: demo}"));  // nothing says that it is a driver
        const rc::ReleaseObject unmarked{"", std::move(of_pods)};
        for (const auto& one : {plain, unmarked}) {
            const std::vector<rc::Release> deployed{release_of({one})};
            const std::vector<api::Node> nodes{node_of("node-a", k_old, {{"gpu", "yes"}})};
            const auto findings = missing_copies(deployed, nodes, k_new);
            REQUIRE(findings.size() == 1);
            CHECK(findings[0].message ==
                  "driver demo/p of recipe demo has no copy for kernel 6.1.0-2-amd64, and node node-a would come back "
                  "without it");
            CHECK(findings[0].hint ==
                  "it is made for one kernel: annotate it with specialresource.openshift.io/kernel-affine: "
                  "\"true\", and roll that copy out first: kmm-upgrade start recipe demo --next-kernel 6.1.0-2-amd64");
            CHECK(missing_copies(deployed, nodes, k_old).empty());
            CHECK(selected_drivers(deployed, nodes[0]) == std::vector<std::string>{"demo/p"});
        }
        auto other = unmarked;
        other.object = copy_of("p", "", "", "tool:1").object;
        other.object.set("metadata", json("{name: p, namespace: demo}"));
        CHECK(selected_drivers(std::vector{release_of({other})}, node_of("node-a", k_old, {{"gpu", "yes"}})).empty());
    }

    TEST_CASE("a chart that has a DaemonSet for each kernel has its copies") {
        const auto written = [](const std::string& name, const std::string& kernel, const std::string& image) {
            auto one = copy_of(name, kernel, "", image);
            one.kernel.clear();  // the chart wrote the kernel into it
            return one;
        };
        const auto of_old = written("p-1", k_old, "driver:1-" + k_old);
        const auto of_new = written("p-2", k_new, "driver:1-" + k_new);
        const std::vector<api::Node> nodes{node_of("node-a", k_old, {{"gpu", "yes"}, {k_kernel_key, k_old}})};
        CHECK(missing_copies(std::vector{release_of({of_old, of_new})}, nodes, k_new).empty());
        CHECK(selected_drivers(std::vector{release_of({of_old, of_new})}, nodes[0]) ==
              std::vector<std::string>{"demo/p-1"});
        const auto other = written("p-2", k_new, "tool:1-" + k_new);
        CHECK(missing_copies(std::vector{release_of({of_old, other})}, nodes, k_new).size() == 1);
        // Its image has all kernels, the DaemonSet one.
        const auto of_one = written("q-1", k_old, "driver:1"), of_next = written("q-2", k_new, "driver:1");
        CHECK(missing_copies(std::vector{release_of({of_one})}, nodes, k_new).size() == 1);
        CHECK(missing_copies(std::vector{release_of({of_one, of_next})}, nodes, k_new).empty());
        RecipeScene scene({of_old, of_new, of_one});
        CHECK(scene.serving("node-a") == std::vector<std::string>{"demo/p-1", "demo/q-1"});
        scene.boot("node-a", k_new, true);
        CHECK(scene.problem("node-a", k_new, "demo/p-1") == "");
        CHECK(scene.problem("node-a", k_new, "demo/q-1") ==
              "driver demo/q-1 of recipe demo has no copy for kernel 6.1.0-2-amd64");
        scene.api.objects.erase("pods/demo/p-2-node-a");
        CHECK(scene.problem("node-a", k_new, "demo/p-1") == "DaemonSet demo/p-2 has no Pod on node node-a");
    }

    TEST_CASE("copies of releases before count, too") {
        auto release = release_of({copy_of("a", k_new, "2")});
        release.kept = {copy_of("a", k_old, "1")};
        const std::vector<rc::Release> deployed{std::move(release)};
        CHECK(missing_copies(deployed, std::vector{node_of("node-a", k_old, {{"gpu", "yes"}})}, k_new).empty());
        CHECK(missing_copies(deployed, std::vector{node_of("node-a", k_new, {{"gpu", "yes"}})}, k_old).empty());
    }

    TEST_CASE("a node that has rebooted is served once the Pod of its kernel's copy is Ready") {
        RecipeScene scene({copy_of("a", k_old, "1"), copy_of("a", k_new, "2"), copy_of("c", "", "")});
        CHECK(scene.serving("node-a") == std::vector<std::string>{"demo/a", "demo/c"});
        CHECK(scene.problem("node-a", k_old, "demo/a") == "");
        scene.boot("node-a", k_new, false);
        CHECK(scene.serving("node-a") == std::vector<std::string>{"demo/c"});
        CHECK(scene.problem("node-a", k_new, "demo/a") ==
              "DaemonSet demo/a-2: node node-a has no label feature.node.kubernetes.io/kernel-version.full for kernel "
              "6.1.0-2-amd64 yet");
        scene.boot("node-a", k_new, true);
        CHECK(scene.problem("node-a", k_new, "demo/a") == "");
        CHECK(scene.problem("node-a", k_new, "demo/c") == "");
        CHECK(scene.serving("node-b") == std::vector<std::string>{"demo/a", "demo/c"});
    }

    TEST_CASE("what keeps a driver from a node is named") {
        RecipeScene scene({copy_of("a", k_old, "1"), copy_of("b", k_old, "1"), copy_of("b", k_new, "2", "missing"),
                     copy_of("c", k_old, "1"), copy_of("c", k_new, "2", "broken"),
                     copy_of("d", "", "", "driver", "ready")});
        CHECK(scene.problem("node-a", k_old, "demo/d") ==
              "Pod demo/d-node-a: the last 100 bytes of its log do not match \"ready\"");
        scene.boot("node-a", k_new, true);
        CHECK(scene.problem("node-a", k_new, "demo/a") ==
              "driver demo/a of recipe demo has no copy for kernel 6.1.0-2-amd64");
        CHECK(scene.problem("node-a", k_new, "demo/b") ==
              "image r/missing of Pod demo/b-2-node-a cannot be pulled: ErrImagePull: not found");
        CHECK(scene.problem("node-a", k_new, "demo/c") == "Pod demo/c-2-node-a of recipe demo is not Ready");
        scene.api.objects.erase("pods/demo/c-2-node-a");
        CHECK(scene.problem("node-a", k_new, "demo/c") == "DaemonSet demo/c-2 has no Pod on node node-a");
        scene.api.objects.erase("daemonsets/demo/c-2");
        CHECK(scene.problem("node-a", k_new, "demo/c") == "DaemonSet demo/c-2 of recipe demo does not exist");
    }

    TEST_CASE("an evicted Pod beside the one in its place does not speak for the driver") {
        RecipeScene scene({copy_of("driver", k_old, "aa"), copy_of("driver", k_new, "bb")});
        scene.boot("node-a", k_new, true);
        auto evicted = scene.api.at("pods/demo/driver-bb-node-a");
        auto meta = *evicted.find("metadata");
        meta.set("name", "driver-bb-evicted");
        evicted.set("metadata", std::move(meta));
        evicted.set("status", json("{phase: Failed, reason: Evicted, conditions: [{type: Ready, status: 'False'}]}"));
        scene.api.put(evicted);
        CHECK(scene.problem("node-a", k_new, "demo/driver") == "");
    }

    TEST_CASE("what a Pod was before the reboot says nothing of its driver after it") {
        RecipeScene scene({copy_of("c", "", "")});
        const auto runs_in = [&](const std::string& id) {
            auto pod = scene.api.at("pods/demo/c-node-a");
            auto status = *pod.find("status");
            status.set("containerStatuses", json("[{name: c, containerID: '" + id + "'}]"));
            pod.set("status", std::move(status));
            scene.api.put(pod);
        };
        runs_in("containerd://1");
        CHECK(scene.drivers.serving("node-a") == std::map<std::string, std::string>{{"demo/c", "containerd://1"}});
        scene.boot("node-a", k_new, true);
        CHECK(scene.problem("node-a", k_new, "demo/c", "containerd://1") ==
              "Pod demo/c-node-a of recipe demo has not been started since the reboot");
        runs_in("containerd://2");
        CHECK(scene.problem("node-a", k_new, "demo/c", "containerd://1") == "");
    }

    TEST_CASE("a driver that is wanted no more is not waited for") {
        RecipeScene scene({copy_of("a", k_old, "1"), copy_of("a", k_new, "2")});
        CHECK(scene.problem("node-a", k_old, "demo/other") == "");
        scene.api.put(
            json("{apiVersion: v1, kind: Node, metadata: {name: node-a}, status: {nodeInfo: {kernelVersion: " + k_new +
                 "}}}"));
        CHECK(scene.problem("node-a", k_new, "demo/a") == "");
    }
}
