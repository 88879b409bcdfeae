// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

/// The code of what keeps prepare_apply from a run: of the whole, and the words about the first node.
std::pair<std::string, std::string> refused(World& world) {
    try {
        static_cast<void>(world.prepare_apply());
    } catch (const Error& error) {
        CHECK(world.store.writes.empty());
        return {error.code(), error.details().empty() ? "" : error.details().front().second};
    }
    return {};
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("apply replaces, loads and removes, and touches nothing else") {
    World world(3);
    world.without_versions();
    // node-b is right already.
    world.nodes.nodes["node-b"].live = "BBBB2222";
    auto right = resolve_entry(world.store.objects.modules.back(), "6.1.0-56-amd64");
    world.store.objects.node_modules_configs[1].spec = {right};
    right.boot_id = "boot-1";
    world.store.objects.node_modules_configs[1].status = {right};
    Drive drive(world, world.prepare_apply());
    CHECK(drive.driver.walk() == Ended::complete);
    const std::vector<std::string> expected = {
        "node-a drivers.kmm-hello.ready removed", "node-a spec removed", "node-a status removed",
        "node-a spec ", "node-a status ", "node-a drivers.kmm-hello.ready=",
        "node-c drivers.kmm-hello.ready removed", "node-c spec removed", "node-c status removed",
    };
    CHECK(world.store.writes == expected);
    CHECK(world.nodes.nodes["node-a"].live == "BBBB2222");
    CHECK(world.nodes.nodes["node-c"].live.empty());
    for (const auto& call : world.nodes.calls) CHECK(call.find("node-b") == std::string::npos);
    const auto run = drive.recorder.run();
    CHECK(run.procedure == upgrade::module::k_procedure_apply);
    CHECK(run.from_version == "unversioned");
    CHECK(run.find("node-c")->message == "unloaded kmm_hello");
}

TEST_CASE("a module that is live again on a node that has lost it is reported at the end") {
    World world(2);
    world.without_versions();
    Drive drive(world, world.prepare_apply());
    bool is_back = false;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) {
        if (call.node == "node-b" && drive.state("node-b") == "done" && !std::exchange(is_back, true))
            world.nodes.nodes["node-b"].live = "AAAA1111";
        return std::optional<cluster::WorkerReply>();
    };
    CHECK(drive.driver.walk() == Ended::paused);
    const auto record = drive.recorder.node("node-b");
    CHECK(record.reason == "module-still-live");
    CHECK(record.message == "kmm_hello is live again, after it was unloaded");
    drive.driver.retry("node-b");
    world.nodes.nodes["node-b"].live = "";
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("a deleted Module with versions leaves no label") {
    World world(1);
    world.store.objects.modules.clear();
    Drive drive(world, world.prepare_apply());
    CHECK(upgrade::describe(drive.recorder.run()).to == "removed");
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.store.find("node-a").meta.labels == api::Labels{{"role", "gpu"}});
    CHECK(world.store.objects.node_modules_configs.front().spec.empty());
    CHECK(world.store.objects.node_modules_configs.front().status.empty());
    CHECK(world.nodes.nodes["node-a"].live.empty());
}

TEST_CASE("what changes after the start stops the node before it is touched") {
    World world(2);
    world.without_versions();
    Drive drive(world, world.prepare_apply());
    const char* failed = "node-a";
    SUBCASE("a node that should get it is not selected any more") { world.store.objects.nodes[0].meta.labels.clear(); }
    SUBCASE("a node that should lose it is wanted again") {
        world.store.objects.nodes[1].meta.labels["role"] = "gpu";
        failed = "node-b";
    }
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node(failed).reason == "goal-changed");
    CHECK(world.nodes.nodes[failed].live == "AAAA1111");
}

TEST_CASE("apply refuses before anything is changed") {
    World world(2);
    world.without_versions();
    auto& modules = world.store.objects.modules;
    auto& configs = world.store.objects.node_modules_configs;
    SUBCASE("no image") {
        world.nodes.images.erase("reg/hello:");
        world.nodes.images.erase("reg/hello:v2");
        CHECK(refused(world).second == "image-not-found: kmm-worker says: image not found");
    }
    SUBCASE("another kernel module") {
        modules.back().module_loader->container.modprobe.module_name = "kmm-other";
        CHECK(refused(world).second ==
              "module-renamed: Module drivers/kmm-hello has loaded kmm_hello, expected kmm_other");
    }
    SUBCASE("another Module has the same kernel module loaded") {
        auto other = configs[1].status.front();
        other.name = "another";
        configs[1].status.push_back(other);
        configs[1].spec.push_back(other);
        modules.push_back(modules.front());
        modules.back().meta.name = "another";
        modules.back().module_loader->container.container_image = "reg/hello:v1";
        modules.back().selector = {{"other", "yes"}};
        world.store.objects.nodes[1].meta.labels["other"] = "yes";
        CHECK(refused(world).second == "module-shared: kmm_hello is also loaded for Module drivers/another");
    }
    SUBCASE("loaded before the last boot, and live") {
        configs[1].status.front().boot_id = "boot-0";
        CHECK(refused(world).second.starts_with("module-unmanaged"));
    }
}

TEST_CASE("nodes are asked what their Nodes do not know") {
    World world(3);
    world.nodes.nodes["node-a"].boot = "boot-2";
    world.nodes.nodes["node-c"].reachable = false;
    auto& all = world.store.objects.nodes;
    all[1].kernel_version.clear();
    auto objects = world.store.read().objects;
    Worker worker(world.nodes);
    const auto notes =
        ask_nodes(objects, worker, world.clock, {}, plan::apply_work(objects, plan::complete({}, objects)),
                  [](const std::string&, const std::string&) {});
    CHECK(objects.nodes[0].boot_id == "boot-2");
    CHECK(objects.nodes[1].kernel_version == "6.1.0-56-amd64");
    CHECK(objects.nodes[2].boot_id == "boot-1");
    REQUIRE(notes.size() == 1);
    CHECK(notes.front().find("node-c cannot be asked") != std::string::npos);
    CHECK(world.store.writes.empty());
}

TEST_CASE("a narrowed apply") {
    World world(3);
    world.without_versions();
    const auto objects = world.store.read().objects;
    const auto work = plan::apply_work(objects, plan::complete({}, objects)).front();
    StartRequest request;
    request.nodes = {"node-a", "node-c"};
    const auto narrowed = narrow(work, objects, request);
    CHECK(narrowed.load == std::vector<std::string>{"node-a"});
    CHECK(narrowed.unload == std::vector<std::string>{"node-c"});
    request.selector = cluster::Selector::parse("role=gpu");
    CHECK(narrow(work, objects, request).unload.empty());
    request.nodes = {"node-x"};
    CHECK_THROWS_WITH_AS(static_cast<void>(narrow(work, objects, request)), "node node-x is not in the cluster", Error);
}

}
