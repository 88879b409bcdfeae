// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

using Answer = std::optional<cluster::WorkerReply>;

bool on_v2(const World& world, const std::string& node) { return world.nodes.nodes.at(node).live == "BBBB2222"; }
bool on_v1(const World& world, const std::string& node) { return world.nodes.nodes.at(node).live == "AAAA1111"; }

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("one node goes through KMM's label flow in KMM's order") {
    World world(1);
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::complete);
    const std::vector<std::string> expected = {
        "node-a version-module.drivers.kmm-hello=v2",
        "node-a version-schedule-pod.drivers.kmm-hello removed",
        "node-a version-worker-pod.drivers.kmm-hello removed",
        "node-a spec removed",
        "node-a status removed",
        "node-a drivers.kmm-hello.version.ready removed",
        "node-a drivers.kmm-hello.ready removed",
        "node-a version-worker-pod.drivers.kmm-hello=v2",
        "node-a version-schedule-pod.drivers.kmm-hello=v2",
        "node-a spec v2",
        "node-a status v2",
        "node-a drivers.kmm-hello.ready=",
        "node-a drivers.kmm-hello.version.ready=v2",
    };
    CHECK(world.store.writes == expected);
    CHECK(on_v2(world, "node-a"));
    CHECK(drive.recorder.node("node-a").current_version == "v2");
    CHECK(drive.recorder.node("node-a").message == "loaded kmm_hello BBBB2222");
}

TEST_CASE("the old device-plugin label goes with the schedule label") {
    World world(1);
    auto& labels = world.store.objects.nodes[0].meta.labels;
    labels[api::label_version_device_plugin("drivers", "kmm-hello")] = "v1";
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.store.find("node-a").meta.labels.count(api::label_version_device_plugin("drivers", "kmm-hello")) == 0);
}

TEST_CASE("three nodes, never two in flight") {
    World world;
    std::size_t most = 0;
    Drive* running = nullptr;
    Drive drive(world, world.prepare(), [&](const upgrade::Event&, const std::string&) {
        most = std::max(most, running->recorder.look(upgrade::active_nodes).size());
    });
    running = &drive;
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(most == 1);
    for (const auto* node : {"node-a", "node-b", "node-c"}) CHECK(on_v2(world, node));
    SUBCASE("resume of the finished run writes nothing") {
        world.store.writes.clear();
        world.nodes.calls.clear();
        Drive again(world, drive.journal.entries);
        again.driver.resume();
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(world.store.writes.empty());
        CHECK(world.nodes.calls.empty());
        CHECK(again.journal.entries.size() == drive.journal.entries.size());
    }
    SUBCASE("a second upgrade finds everything in place and changes nothing") {
        world.store.writes.clear();
        world.nodes.calls.clear();
        Drive again(world, world.prepare());
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(world.store.writes.empty());
        for (const auto& call : world.nodes.calls) CHECK(call.find("load") == std::string::npos);
    }
}

TEST_CASE("max-unavailable nodes go at the same time, not more") {
    World world(5);
    upgrade::Options options;
    options.max_unavailable = 2;
    std::size_t most = 0;
    Drive* running = nullptr;
    Drive drive(world, world.prepare(options), [&](const upgrade::Event&, const std::string&) {
        most = std::max(most, running->recorder.look(upgrade::active_nodes).size());
    });
    running = &drive;
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(most == 2);
    for (const auto& [name, node] : world.nodes.nodes) CHECK(node.live == "BBBB2222");
}

TEST_CASE("an annotation that came after the start stops the node before it is touched") {
    World world(1);
    Drive drive(world, world.prepare());
    world.store.objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "never";
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "unload-policy");
    CHECK(on_v1(world, "node-a"));
    CHECK(std::count(world.nodes.calls.begin(), world.nodes.calls.end(), "node-a unload") == 0);
    CHECK(world.store.writes.empty());
    SUBCASE("taken away again, the walk goes on") {
        world.store.objects.modules[0].meta.annotations.clear();
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(on_v2(world, "node-a"));
    }
}

TEST_CASE("a document that cannot be read stops the next node before it is touched, and takes none for gone") {
    World world;
    Drive drive(world, world.prepare());
    api::Node removed;
    Diagnostic fault;
    fault.code = "yaml-syntax";
    fault.message = "end of map not found";
    fault.position = Position{"fleet/nodes/node-b.yaml", 7, 2};
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> Answer {
        if (call.args.front() == "load" && removed.meta.name.empty()) {
            world.store.faults.push_back(fault);
            removed = world.store.find("node-b");
            std::erase_if(world.store.objects.nodes, [](const auto& node) { return node.meta.name == "node-b"; });
        }
        return std::nullopt;
    };
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "done");
    CHECK(drive.state("node-b") == "checking-failed");
    CHECK(drive.recorder.node("node-b").reason == "yaml-syntax");
    CHECK(drive.recorder.node("node-b").message == "fleet/nodes/node-b.yaml:7:2: end of map not found");
    CHECK(drive.state("node-c") == "pending");
    world.store.faults.clear();
    world.store.objects.nodes.push_back(removed);
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(on_v2(world, "node-b"));
    CHECK(on_v2(world, "node-c"));
}

TEST_CASE("a node that a file was replaced under is not gone, one that stays away is") {
    for (const bool returns : {true, false}) {
        CAPTURE(returns);
        World world(2);
        Drive drive(world, world.prepare());
        const auto kept = world.store.find("node-b");
        std::erase_if(world.store.objects.nodes, [](const auto& node) { return node.meta.name == "node-b"; });
        world.clock.on_sleep = [&] {
            if (returns && world.store.objects.nodes.size() == 1) world.store.objects.nodes.push_back(kept);
        };
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(drive.state("node-b") == (returns ? "done" : "skipped"));
    }
}

TEST_CASE("a node that the Module does not select any more is left as it is") {
    World world(2);
    Drive drive(world, world.prepare());
    world.store.find("node-b").meta.labels["role"] = "other";
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-b").reason == "node-not-eligible");
    CHECK(on_v1(world, "node-b"));
}

TEST_CASE("an answer in another format is not an answer") {
    World world(1);
    Drive drive(world, world.prepare());
    world.nodes.fault = [&](const cluster::WorkerCall&, const auto& act) -> Answer {
        auto reply = act();
        reply.document.set("apiVersion", "kmmtools/v2");
        return reply;
    };
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "worker-failed");
    CHECK(drive.recorder.node("node-a").message.find("kmmtools/v2") != std::string::npos);
    CHECK(on_v1(world, "node-a"));
}

TEST_CASE("a first install only loads") {
    World world(1, false);
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(on_v2(world, "node-a"));
    CHECK(std::count(world.nodes.calls.begin(), world.nodes.calls.end(), "node-a unload") == 0);
    CHECK(world.store.writes.front() == "node-a version-module.drivers.kmm-hello=v2");
}

TEST_CASE("a module the kernel refuses stops at the first node") {
    World world;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> Answer {
        if (call.args.front() != "load" || call.stdin_text.find(":v2") == std::string::npos) return std::nullopt;
        return FakeNodes::error(13, "module-refused", "the kernel refused kmm_hello",
                                {{"errno", "ENODEV"}, {"kernel", "kmm_hello: no device found"}});
    };
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::paused);
    auto run = drive.recorder.run();
    CHECK(run.state == "upgrading-nodes-failed");
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "loading-failed");
    CHECK(node.reason == "module-refused");
    CHECK(upgrade::module::text_of(node, "kernelLine") == "kmm_hello: no device found");
    CHECK(node.current_version.empty());
    CHECK(node.current_known);
    CHECK(on_v1(world, "node-b"));
    CHECK(drive.state("node-b") == "pending");

    SUBCASE("abort --rollback current brings it back") {
        const World before;
        CHECK(drive.driver.abort(upgrade::Rollback::current) == Ended::aborted);
        CHECK(on_v1(world, "node-a"));
        CHECK(drive.state("node-a") == "rolled-back");
        CHECK(drive.recorder.node("node-a").current_version == "v1");
        CHECK(world.dump() == before.dump());
        world.store.writes.clear();
        CHECK(drive.driver.abort(upgrade::Rollback::current) == Ended::aborted);
        CHECK(world.store.writes.empty());
    }
    SUBCASE("retry after mending goes to the end") {
        world.nodes.fault = nullptr;
        drive.driver.retry("node-a");
        CHECK(drive.driver.walk() == Ended::complete);
        for (const auto& [name, item] : world.nodes.nodes) CHECK(item.live == "BBBB2222");
    }
    SUBCASE("skip leaves it and resume does the others") {
        world.nodes.fault = nullptr;
        drive.driver.skip("node-a", "broken card");
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(drive.state("node-a") == "skipped");
        CHECK(on_v2(world, "node-b"));
        CHECK(world.nodes.nodes.at("node-a").live.empty());
    }
    SUBCASE("abort --rollback none says what runs") {
        CHECK(drive.driver.abort(upgrade::Rollback::none) == Ended::aborted);
        CHECK(drive.recorder.node("node-a").current_version.empty());
        CHECK(drive.recorder.node("node-a").current_known);
    }
}

TEST_CASE("abort --rollback all walks back in reverse order") {
    World world;
    const World before;
    upgrade::Options options;
    options.canary = 2;
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    world.nodes.calls.clear();
    CHECK(drive.driver.abort(upgrade::Rollback::all) == Ended::aborted);
    CHECK(world.dump() == before.dump());
    std::vector<std::string> loads;
    for (const auto& call : world.nodes.calls)
        if (call.find(" load") != std::string::npos) loads.push_back(call);
    CHECK(loads == std::vector<std::string>{"node-b load", "node-a load"});
}

TEST_CASE("rollback of a first install leaves nothing loaded and no labels") {
    World world(2, false);
    const World before(2, false);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.driver.abort(upgrade::Rollback::all) == Ended::aborted);
    CHECK(world.dump() == before.dump());
}

TEST_CASE("a load that does not say what it loaded is looked at before the cluster is told") {
    for (const std::string live : {"CCCC3333", "", "BBBB2222"}) {
        CAPTURE(live);
        World world(1);
        Drive drive(world, world.prepare());
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto& act) -> Answer {
            if (call.args.front() != "load") return std::nullopt;
            auto reply = act();
            reply.document.erase("modules");
            world.nodes.nodes.at("node-a").live = live;
            return reply;
        };
        const auto ended = drive.driver.walk();
        const auto& labels = world.store.find("node-a").meta.labels;
        const bool is_right = live == "BBBB2222";
        CHECK((ended == Ended::complete) == is_right);
        CHECK(labels.contains(api::label_ready("drivers", "kmm-hello")) == is_right);
        CHECK(world.store.objects.node_modules_configs.at(0).status.empty() != is_right);
        if (is_right) continue;
        CHECK(drive.state("node-a") == "loading-failed");
        CHECK(drive.recorder.node("node-a").reason == (live.empty() ? "module-gone" : "identity-mismatch"));
    }
}

TEST_CASE("a busy module pauses the run with v1 still live") {
    World world;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> Answer {
        if (call.args.front() != "unload") return std::nullopt;
        return FakeNodes::error(14, "module-in-use", "module kmm_hello is in use", {{"holders", "kmm_user"}});
    };
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "unloading-failed");
    CHECK(drive.recorder.node("node-a").reason == "module-in-use");
    CHECK(drive.recorder.node("node-a").message == "kmm-worker says: module kmm_hello is in use (held by kmm_user)");
    CHECK(drive.recorder.node("node-a").current_version == "v1");
    world.nodes.fault = nullptr;
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("a lost connection is settled by asking the node") {
    for (const std::string verb : {"load", "unload"}) {
        for (const bool carried_out : {true, false}) {
            CAPTURE(verb);
            CAPTURE(carried_out);
            World world;
            int losses = 0;
            world.nodes.fault = [&](const cluster::WorkerCall& call, const auto& act) -> Answer {
                if (call.args.front() != verb || ++losses > 2) return std::nullopt;
                if (carried_out) static_cast<void>(act());
                return FakeNodes::lost(cluster::CallEnd::unknown);
            };
            Drive drive(world, world.prepare());
            CHECK(drive.driver.walk() == Ended::complete);
            CHECK(losses >= 2);
            for (const auto& [name, node] : world.nodes.nodes) CHECK(node.live == "BBBB2222");
        }
    }
}

TEST_CASE("a worker that is still at work on the node is waited for, not overtaken") {
    for (const std::string verb : {"load", "unload", "status"}) {
        CAPTURE(verb);
        World world(1);
        auto run = world.prepare();
        int busy = 3;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto& act) -> Answer {
            if (call.args.front() != verb || busy-- <= 0) return std::nullopt;
            if (verb != "status") return FakeNodes::error(75, "node-busy", "another kmm-worker is running");
            auto reply = act();
            reply.document.set("busy", true);
            return reply;
        };
        Drive drive(world, run);
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(busy < 0);
        CHECK(on_v2(world, "node-a"));
    }
}

TEST_CASE("a node that stays silent fails alone after its timeout, others are untouched") {
    World world;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> Answer {
        if (call.args.front() == "unload") world.nodes.nodes.at(call.node).reachable = false;
        return std::nullopt;
    };
    upgrade::Options options;
    options.node_timeout_ms = 60'000;
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "unloading-failed");
    CHECK(drive.recorder.node("node-a").reason == "node-unreachable");
    CHECK_FALSE(drive.recorder.node("node-a").current_known);
    CHECK(drive.state("node-b") == "pending");
    CHECK(world.clock.monotonic() >= std::chrono::seconds(60));
    CHECK(world.clock.monotonic() < std::chrono::seconds(90));
}

TEST_CASE("a node that rebooted in mid-step is planned anew and not unloaded with an old config") {
    for (const std::string verb : {"unload", "load", "status"}) {
        CAPTURE(verb);
        World world(2);
        auto run = world.prepare();
        int seen = 0;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> Answer {
            if (call.args.front() != verb || call.node != "node-a" || ++seen != (verb == "status" ? 4 : 1))
                return std::nullopt;
            auto& node = world.nodes.nodes.at(call.node);
            node.boot = "boot-2";
            node.live.clear();
            return FakeNodes::lost(cluster::CallEnd::unknown);
        };
        Drive drive(world, run);
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(on_v2(world, "node-a"));
        CHECK(world.store.find("node-a").boot_id == "boot-2");
        CHECK(drive.recorder.node("node-a").attempts == 2);
    }
}

TEST_CASE("a reboot into a kernel without mapping pauses that node with a reason") {
    World world(2);
    auto run = world.prepare();
    world.nodes.nodes.at("node-a").boot = "boot-2";
    world.nodes.nodes.at("node-a").kernel = "7.0.0";
    world.nodes.nodes.at("node-a").live.clear();
    Drive drive(world, run);
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "checking-failed");
    CHECK(drive.recorder.node("node-a").reason == "no-mapping");
    CHECK(world.store.writes == std::vector<std::string>{"node-a info"});
}

TEST_CASE("an interrupt ends after the step, resume goes on to the same end") {
    World world;
    World undisturbed;
    Drive reference(undisturbed, undisturbed.prepare());
    CHECK(reference.driver.walk() == Ended::complete);
    Drive* running = nullptr;
    Drive drive(world, world.prepare(), [&](const upgrade::Event& event, const std::string&) {
        if (event.kind == upgrade::EventKind::intent && event.step == "unload") running->stop = true;
    });
    running = &drive;
    CHECK(drive.driver.walk() == Ended::interrupted);
    CHECK(drive.state("node-a") == "unloaded");
    Drive again(world, drive.journal.entries);
    again.driver.resume();
    CHECK(again.driver.walk() == Ended::complete);
    CHECK(world.dump() == undisturbed.dump());
}

TEST_CASE("an interrupt after the last step of all is no interruption") {
    World world;
    Drive* running = nullptr;
    Drive drive(world, world.prepare(), [&](const upgrade::Event& event, const std::string&) {
        if (event.node.empty() && upgrade::is_final_run_state(event.to)) running->stop = true;
    });
    running = &drive;
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("step does one step; step --node only where the table allows it") {
    World world;
    Drive drive(world, world.prepare());
    drive.driver.pause("manual", "");
    for (const auto* state : {"checking", "unloaded", "loaded", "done"}) {
        CHECK(drive.driver.step("") == Ended::paused);
        CHECK(drive.state("node-a") == state);
    }
    CHECK(drive.driver.step("node-c") == Ended::paused);
    CHECK(drive.state("node-c") == "checking");
    CHECK(drive.state("node-b") == "pending");
    const auto recorded = drive.journal.entries.size();
    CHECK_THROWS_AS(static_cast<void>(drive.driver.step("node-b")), Error);
    CHECK_THROWS_AS(static_cast<void>(drive.driver.step("nobody")), Error);
    CHECK(drive.journal.entries.size() == recorded);  // what was refused is not recorded
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("another cluster is refused") {
    World world;
    Drive drive(world, world.prepare());
    CHECK_NOTHROW(require_cluster_of(drive.recorder.header(), world.store));
    world.store.id = "cluster-2";
    try {
        require_cluster_of(drive.recorder.header(), world.store);
        FAIL("not refused");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::config);
        CHECK(error.code() == "other-cluster");
        CHECK(error.hint() == "name the right cluster with --cluster");
    }
    world.store.id = "";
    try {
        require_cluster_of(drive.recorder.header(), world.store);
        FAIL("not refused");
    } catch (const Error& error) {
        CHECK(error.hint().find("its .kmm-cluster-id was lost") != std::string::npos);
    }
}

TEST_CASE("a dry run shows every action and does none") {
    World world(1);
    const World before(1);
    std::vector<std::string> actions;
    const auto sink = [&](const std::string& node, const std::string& action) {
        actions.push_back(node + " " + action);
    };
    DryStore store(world.store, sink);
    DryRunner runner(world.nodes, sink);
    MemoryJournal journal;
    Recorder recorder(world.prepare(), journal, world.clock, {});
    const auto never = [] { return false; };
    ModuleActor actor(store, world.workloads, runner, recorder, world.clock, never);
    Driver driver(actor, recorder, world.clock, never);
    CHECK(driver.walk() == Ended::complete);
    CHECK(world.dump() == before.dump());
    CHECK(world.store.writes.empty());
    CHECK(actions.size() == 15);
    CHECK(std::count(actions.begin(), actions.end(), "node-a kmm-worker load reg/hello:v2") == 1);
}
}
