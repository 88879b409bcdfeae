// SPDX-License-Identifier: Apache-2.0
// A recipe goes to a lower version on two nodes; the program dies at every record and every request.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_recipe/recipe_life.hpp"
#include "upgrade/drive_recipe/downgrade.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

Node node_object(const std::string& name) {
    return json("{apiVersion: v1, kind: Node, metadata: {name: " + name +
                "}, status: {nodeInfo: {kernelVersion: 6.1.0-1}}}");
}

Node driver_object(const std::string& image) {
    return json(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: driver, namespace: demo, annotations: "
        "{specialresource.openshift.io/state: driver-container, "
        "specialresource.openshift.io/wait: 'true', specialresource.openshift.io/wait-for-logs: loaded}}, "
        "spec: {selector: {matchLabels: {app: driver}}, template: {metadata: {labels: {app: driver}}, spec: "
        "{containers: [{name: c, image: 'r/" +
        image + "'}]}}}}");
}

rc::Release release_of(const std::string& version, std::int64_t revision, const std::string& image,
                       const std::string& lineage) {
    rc::Release release;
    release.recipe = "demo";
    release.version = version;
    release.lineage = lineage;
    release.created = "t0";
    release.revision = revision;
    release.status = revision == 1 ? rc::Status::deployed : rc::Status::pending;
    release.states.push_back(
        {"demo/1000-driver", "demo", "specialresource.openshift.io/state-demo-1000", {}, {{"", driver_object(image)}}});
    release.states.push_back(
        {"demo/2000-settings",
         "demo",
         "",
         {},
         {{"", json("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: demo}, data: {version: '" +
                    version + "'}}")}}});
    return release;
}

struct Scene : RecipeLife<IdleClock> {
    int countdown = -1;  ///< points until the program dies; below 0: never
    int points = 0;

    explicit Scene(const std::string& image = "old") {
        for (const auto* name : {"node-a", "node-b"}) api.put(node_object(name));
        api.put(json("{apiVersion: v1, kind: Namespace, metadata: {name: demo}}"));
        for (const auto* node : {"node-a", "node-b"})
            api.put(json(std::string("{apiVersion: v1, kind: Pod, metadata: {name: app-") + node +
                         ", namespace: apps}, spec: {nodeName: " + node + "}, status: {phase: Running}}"));
        api.put(
            json("{apiVersion: v1, kind: Pod, metadata: {name: proxy, namespace: kube-system}, spec: {nodeName: "
                 "node-a, tolerations: [{operator: Exists}]}, "
                 "status: {phase: Running}}"));
        const auto client = this->client();
        // What runs is the release before, 0.0.2.
        auto running = driver_object("new");
        running.find("metadata")->set("labels", json("{kmmtools.dev/recipe: demo}"));
        static_cast<void>(client->apply(kube::resources::k_daemon_sets, running, kube::Force::no));
        ReleaseStore store(*client, "kube-system");
        const auto before = release_of("0.0.2", 1, "new", "first");
        store.put(before);
        auto now = release_of("0.0.1", 2, image, "second");
        tolerate_downgrade(now, &before, true);
        store.put(now);
        Objects objects(*client);
        OwnObjects own(*client, objects, clock, [] { return false; }, [](const auto&) {}, "demo", {});
        const auto nodes = driver_nodes(*client, objects, review(now, *client, objects, own, kube::Force::no, true));
        const auto request = request_of(now, 20'000);
        journal.begin(upgrade::encode(rollout_run(request, now, &before, nodes)));
        api.on_request = [this](const std::string&, bool) { point(); };
    }

    void point() {
        ++points;
        if (countdown >= 0 && countdown-- == 0) throw Killed{};
    }
    /// One process: goes on, or aborts.
    Ended go(std::optional<upgrade::Rollback> abort = std::nullopt) {
        PointedJournal pointed(journal, [this](const Node*) { point(); });
        return live(pointed, abort);
    }
    [[nodiscard]] bool is_tainted() const {
        for (const auto* node : {"nodes//node-a", "nodes//node-b"}) {
            if (api.at(node).find_path({"spec", "taints"}) != nullptr) return true;
            const auto* notes = api.at(node).find_path({"metadata", "annotations"});
            if (notes != nullptr && notes->find(k_downgrade_owner) != nullptr) return true;
        }
        return false;
    }
    [[nodiscard]] std::string image_on(const std::string& node) const {
        return api.at("pods/demo/driver-" + node)
            .find_path({"spec", "containers"})
            ->items()
            .front()
            .get_string({"image"});
    }
};

}  // namespace

TEST_SUITE("upgrade::drive_recipe") {

TEST_CASE("a downgrade restarts drivers one node after the other while nothing else is there") {
    Scene scene;
    // Whenever a driver Pod of the newer release goes, its node is tainted, and nothing is there that does not tolerate
    // it; the other node is not.
    scene.api.on_request = [&](const std::string& request, bool is_done) {
        if (is_done || !request.starts_with("DELETE /api/v1/namespaces/demo/pods/driver-")) return;
        const auto node = request.substr(request.rfind("node-"));
        CHECK(scene.api.at("nodes//" + node).find_path({"spec", "taints"}) != nullptr);
        CHECK_FALSE(scene.api.objects.contains("pods/apps/app-" + node));
        const auto* other = node == "node-a" ? "nodes//node-b" : "nodes//node-a";
        CHECK(scene.api.at(other).find_path({"spec", "taints"}) == nullptr);
    };
    CHECK(scene.go() == Ended::complete);
    const auto run = scene.replayed();
    REQUIRE(run.nodes.size() == 4);
    CHECK(run.nodes[0].name == "demo/1000-driver/node-a");
    CHECK(run.nodes[0].current_version == "0.0.1");
    CHECK(run.nodes[2].name == "demo/1000-driver");
    CHECK_FALSE(scene.is_tainted());
    CHECK(scene.image_on("node-a") == "r/old");
    CHECK(scene.image_on("node-b") == "r/old");
    CHECK(scene.api.objects.contains("pods/kube-system/proxy"));
    // The strategy is the rendered one again.
    CHECK(scene.api.at("daemonsets/demo/driver").find_path({"spec", "updateStrategy"}) == nullptr);
}

TEST_CASE("killed anywhere, a downgrade that is resumed has the same end and leaves no taint") {
    Scene whole;
    REQUIRE(whole.go() == Ended::complete);
    for (int at = 0; at < whole.points; at += every(1)) {
        CAPTURE(at);
        Scene scene;
        scene.countdown = at;
        CHECK_THROWS_AS(static_cast<void>(scene.go()), Killed);
        CHECK(scene.go() == Ended::complete);
        CHECK_FALSE(scene.is_tainted());
        CHECK(scene.image_on("node-a") == "r/old");
        CHECK(scene.image_on("node-b") == "r/old");
        CHECK(scene.api.at("daemonsets/demo/driver").find_path({"spec", "updateStrategy"}) == nullptr);
    }
}

TEST_CASE("killed anywhere, a downgrade that is aborted leaves no taint, and rolled back it has the release before") {
    Scene whole;
    REQUIRE(whole.go() == Ended::complete);
    for (const auto rollback : {upgrade::Rollback::none, upgrade::Rollback::current, upgrade::Rollback::all}) {
        for (int at = static_cast<int>(rollback); at < whole.points; at += every(3)) {
            CAPTURE(at);
            CAPTURE(std::string(to_string(rollback)));
            Scene scene;
            scene.countdown = at;
            CHECK_THROWS_AS(static_cast<void>(scene.go()), Killed);
            if (scene.replayed().state == "upgrade-complete") continue;
            CHECK(scene.go(rollback) == Ended::aborted);
            CHECK_FALSE(scene.is_tainted());
            if (rollback != upgrade::Rollback::all) continue;
            CHECK(scene.image_on("node-a") == "r/new");
            CHECK(scene.image_on("node-b") == "r/new");
            CHECK(scene.api.at("daemonsets/demo/driver").find_path({"spec", "updateStrategy"}) == nullptr);
        }
    }
}

TEST_CASE("an abort that is killed anywhere and resumed leaves no taint") {
    const auto tainted_point = [] {
        Scene scene;
        int found = -1;
        scene.api.on_request = [&](const std::string& request, bool is_done) {
            scene.point();
            if (is_done && found < 0 && request == "PATCH /api/v1/nodes/node-a") found = scene.points;
        };
        static_cast<void>(scene.go());
        return found;
    }();
    REQUIRE(tainted_point > 0);
    for (int at = 0;; ++at) {
        CAPTURE(at);
        Scene scene;
        scene.countdown = tainted_point;
        CHECK_THROWS_AS(static_cast<void>(scene.go()), Killed);
        CHECK(scene.is_tainted());
        scene.countdown = at;
        try {
            const auto ended = scene.go(upgrade::Rollback::current);
            CHECK(ended == Ended::aborted);
            CHECK(at > 4);
            break;
        } catch (const Killed&) {
            scene.countdown = -1;
            const bool is_begun = scene.replayed().rollback.has_value();
            CHECK((is_begun ? scene.go() : scene.go(upgrade::Rollback::none)) == Ended::aborted);
        }
        CHECK_FALSE(scene.is_tainted());
    }
}

TEST_CASE("a driver that does not come up fails on the first node, which is untainted; the other one is not touched") {
    Scene scene("broken");
    CHECK(scene.go() == Ended::paused);
    const auto run = scene.replayed();
    CHECK(run.nodes[0].state == "restarting-failed");
    CHECK(run.nodes[0].message.find("Pod demo/driver-node-a is not ready") != std::string::npos);
    CHECK(run.nodes[0].message.ends_with("; untainted"));
    CHECK(run.nodes[1].touched == 0);
    CHECK_FALSE(scene.is_tainted());
    CHECK(scene.image_on("node-b") == "r/new");
    CHECK(scene.go(upgrade::Rollback::all) == Ended::aborted);
    CHECK(scene.image_on("node-a") == "r/new");
}

TEST_CASE("the taint of someone else stays") {
    Scene scene;
    auto node = scene.api.at("nodes//node-a");
    node.set("spec",
             json("{taints: [{key: specialresource.openshift.io/downgrade, value: 'true', effect: NoExecute}]}"));
    scene.api.put(node);
    scene.api.settle();
    CHECK(scene.go() == Ended::complete);
    CHECK(scene.api.at("nodes//node-a").find_path({"spec", "taints"}) != nullptr);
    CHECK(scene.replayed().nodes[0].message == "drivers restarted");
}

TEST_CASE("Pods that the taint does not move end the step with their names") {
    Scene scene;
    scene.api.put(
        json("{apiVersion: v1, kind: Pod, metadata: {name: slow, namespace: apps}, spec: {nodeName: node-a, "
             "tolerations: [{key: "
             "specialresource.openshift.io/downgrade, operator: Exists, tolerationSeconds: 3600}]}, status: {phase: "
             "Running}}"));
    CHECK(scene.go() == Ended::paused);
    const auto run = scene.replayed();
    CHECK(run.nodes[0].state == "evicting-failed");
    CHECK(run.nodes[0].reason == "drain-timeout");
    CHECK(run.nodes[0].message.find("1 Pod that the taint evicts is still on node node-a: apps/slow") == 0);
    CHECK_FALSE(scene.is_tainted());
}

TEST_CASE("the toleration stays as long as the release before had it") {
    auto before = release_of("0.0.2", 1, "new", "a");
    auto now = release_of("0.0.3", 2, "newer", "b");
    tolerate_downgrade(now, &before, false);
    CHECK(now.states[0].objects[0].object.find_path({"spec", "template", "spec", "tolerations"}) == nullptr);
    tolerate_downgrade(before, nullptr, true);
    tolerate_downgrade(now, &before, false);
    CHECK(tolerates_downgrade(*now.states[0].objects[0].object.find_path({"spec", "template", "spec"})));
}

}
