// SPDX-License-Identifier: Apache-2.0
// An API server that is away, a Node that is deleted.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/prepare_module/takeover.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

TEST_SUITE("drive::trouble") {

TEST_CASE("a server that is away for too long fails no node: the step stays open and is gone on with") {
    World calm(2);
    Drive quiet(calm, calm.prepare());
    REQUIRE(quiet.driver.walk() == Ended::complete);
    const auto writes = calm.store.writes.size();
    const auto calls = calm.nodes.calls.size();
    for (std::size_t at = 0; at < writes + calls; ++at) {
        CAPTURE(at);
        World world(2);
        Drive drive(world, world.prepare());
        std::size_t seen = 0;
        bool is_away = false;
        const auto answer = [&] {
            if (seen++ == at) is_away = true;
            if (is_away) throw Error(Exit::unavailable, "api-unreachable", "no answer");
        };
        world.store.on_write = answer;
        world.nodes.fault = [&](const cluster::WorkerCall&, const auto&) -> std::optional<cluster::WorkerReply> {
            answer();
            return std::nullopt;
        };
        try {
            static_cast<void>(drive.driver.walk());
        } catch (const Error& error) {
            CHECK(error.code() == "api-unreachable");
        }
        for (const auto& node : drive.recorder.run().nodes) CHECK_FALSE(upgrade::is_failed_node_state(node.state));
        world.store.on_write = nullptr;
        world.nodes.fault = nullptr;
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.dump() == calm.dump());
    }
}

TEST_CASE("a right that is taken away in the middle fails no node, what admission refuses does") {
    const auto refuse = [](const char* message) {
        return Error(Exit::no_permission, "forbidden", message).cause_http(403);
    };
    World world(2);
    Drive drive(world, world.prepare());
    world.store.on_write = [&] {
        throw refuse(R"(patch nodes node-a: nodes "node-a" is forbidden: User "u" cannot patch resource "nodes")");
    };
    try {
        static_cast<void>(drive.driver.walk());
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == "forbidden");
    }
    CHECK(drive.state("node-a") == "unloading");
    world.store.on_write = [&] {
        throw refuse(R"(patch nodes node-a: admission webhook "no.example" denied the request: not now)");
    };
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "unloading-failed");
    world.store.on_write = nullptr;
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE(
    "a survey, like all preparations, ends with a server that is away or a Lease that is lost, and blames no node") {
    for (const std::string code : {"api-unreachable", "lease-lost", "interrupted"}) {
        CAPTURE(code);
        World world(2);
        world.store.objects.node_modules_configs.clear();
        world.nodes.fault = [&](const cluster::WorkerCall&, const auto&) -> std::optional<cluster::WorkerReply> {
            throw Error(Exit::unavailable, code, "no");
        };
        Worker worker(world.nodes);
        StartRequest request;
        request.name = "kmm-hello";
        request.to_version = "v2";
        const auto code_of = [&](const auto& act) {
            try {
                static_cast<void>(act());
            } catch (const Error& error) {
                return error.code();
            }
            return std::string("none");
        };
        const auto ignore = [](const auto&, const auto&) {};
        CHECK(code_of([&] { return survey_held(world.store.read(), worker, world.clock, request, ignore); }) == code);
        CHECK(code_of([&] { return prepare(world.store.read(), worker, world.clock, request, ignore); }) == code);
        world.nodes.fault = [&](const cluster::WorkerCall&, const auto&) {
            return std::optional(FakeNodes::error(130, "interrupted", "killed there"));
        };
        CHECK(survey_held(world.store.read(), worker, world.clock, request, ignore).front().message ==
              "worker-failed: kmm-worker says: killed there");
    }
}

TEST_CASE("a survey takes no host for two nodes") {
    World world(2);
    world.store.objects.node_modules_configs.clear();
    for (auto& [name, node] : world.nodes.nodes) node.boot = "11111111-2222-4333-8444-555555555555";
    Worker worker(world.nodes);
    StartRequest request;
    request.name = "kmm-hello";
    request.to_version = "v2";
    request.options.via = upgrade::Via::ssh;
    const auto held = survey_held(world.store.read(), worker, world.clock, request, [](const auto&, const auto&) {});
    REQUIRE(held.size() == 2);
    for (const auto& node : held) {
        CHECK(node.holding == Holding::unknown);
        CHECK(node.message.starts_with("node-differs: one host answers as nodes "));
    }
}

TEST_CASE("an interrupted wait for a worker leaves the step open, says so, and another process goes on") {
    for (const std::string verb : {"status", "check", "unload", "load"}) {
        CAPTURE(verb);
        World world(2);
        Drive drive(world, world.prepare());
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() != verb || drive.stop) return std::nullopt;
            drive.stop = true;
            throw Error(Exit::interrupted, "interrupted", "interrupted while waiting");
        };
        CHECK(drive.driver.walk() == Ended::interrupted);
        for (const auto& node : drive.recorder.run().nodes) CHECK_FALSE(upgrade::is_failed_node_state(node.state));
        world.nodes.fault = nullptr;
        Drive again(world, drive.journal.entries);
        again.driver.resume();
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes.at("node-b").live == "BBBB2222");
    }
}

TEST_CASE("a node that is deleted in mid-step is skipped, and the others go on") {
    for (const std::string verb : {"check", "unload", "load"}) {
        CAPTURE(verb);
        World world(2);
        Drive drive(world, world.prepare());
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.node != "node-a") return std::nullopt;
            if (call.args.front() == verb)
                std::erase_if(world.store.objects.nodes,
                              [](const api::Node& node) { return node.meta.name == "node-a"; });
            if (world.store.objects.nodes.size() == 2) return std::nullopt;
            return FakeNodes::lost(cluster::CallEnd::unknown);  // Pods of a node that is gone are collected
        };
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(drive.state("node-a") == "skipped");
        CHECK(drive.recorder.node("node-a").reason == "gone");
        CHECK(world.nodes.nodes.at("node-b").live == "BBBB2222");
        CHECK(world.clock.monotonic() < std::chrono::seconds(60));
    }
}

TEST_CASE("a Module that names another kernel module in the middle stops the next node before it is touched") {
    World world(2);
    Drive drive(world, world.prepare());
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.node == "node-b")
            world.store.objects.modules.back().module_loader->container.modprobe.module_name = "kmm-other";
        return std::nullopt;
    };
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").state == "done");
    CHECK(drive.recorder.node("node-b").state == "checking-failed");
    CHECK(drive.recorder.node("node-b").reason == "module-renamed");
    CHECK(drive.recorder.node("node-b").message ==
          "Module drivers/kmm-hello names kmm_other now, and this run covers kmm_hello");
    CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
}

TEST_CASE("an interrupt while the server is away leaves the step open") {
    World world(1);
    Drive drive(world, world.prepare());
    world.store.on_write = [&] {
        drive.stop = true;
        throw Error(Exit::interrupted, "interrupted", "interrupted while waiting for the API server");
    };
    CHECK(drive.driver.walk() == Ended::interrupted);
    CHECK(drive.state("node-a") == "unloading");
    world.store.on_write = nullptr;
    drive.stop = false;
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("a result that is another verb's, or names no build, is no success") {
    for (const std::string verb : {"check", "load"}) {
        CAPTURE(verb);
        World world(1);
        Drive drive(world, world.prepare());
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() != verb) return std::nullopt;
            cluster::WorkerReply reply;
            const char* said = verb == "load" ? "check" : "";
            reply.document = value::Node::mapping({{"kind", "WorkerResult"}, {"verb", said}, {"outcome", "passed"}});
            return reply;
        };
        CHECK(drive.driver.walk() == Ended::paused);
        CHECK(drive.recorder.node("node-a").reason == "worker-failed");
        CHECK(world.store.find("node-a").meta.labels.count(api::label_version_ready("drivers", "kmm-hello")) ==
              (verb == "check" ? 1 : 0));
    }
}

TEST_CASE(
    "what others change while a node is brought to its version is no success of this run, and a retry sets it again") {
    const auto key = api::label_version_module("drivers", "kmm-hello");
    struct Row {
        std::function<void(World&)> change;
        const char* message;
    };
    const Row rows[] = {
        {[&](World& world) { world.store.find("node-a").meta.labels[key] = "v9"; },
         "someone else changed label version-module to v9 during the upgrade to v2"},
        {[&](World& world) {
             world.store.find("node-a").meta.labels.erase(api::label_version_worker_pod("drivers", "kmm-hello"));
         },
         "someone else changed label version-worker-pod to nothing during the upgrade to v2"},
        {[](World& world) {
             world.store.objects.node_modules_configs.at(0).spec.at(0).config.edit().container_image = "reg/other:1";
         },
         "someone else changed spec of its NodeModulesConfig to reg/other:1 during the upgrade to v2"},
        {[](World& world) { world.store.objects.node_modules_configs.at(0).status.clear(); },
         "someone else changed status of its NodeModulesConfig to nothing during the upgrade to v2"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.message);
        World world(1);
        bool has_loaded = false;
        Drive drive(world, world.prepare());
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() == "status" && drive.recorder.node("node-a").state == "loaded" &&
                !std::exchange(has_loaded, true))
                row.change(world);
            return std::nullopt;
        };
        CHECK(drive.driver.walk() == Ended::paused);
        CHECK(drive.recorder.node("node-a").reason == "label-changed");
        CHECK(drive.recorder.node("node-a").message == row.message);
        drive.driver.retry("node-a");
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.store.find("node-a").meta.labels.at(key) == "v2");
        CHECK(world.store.objects.node_modules_configs.at(0).spec.at(0).config->container_image == "reg/hello:v2");
        CHECK(world.store.objects.node_modules_configs.at(0).status.size() == 1);
    }
}

TEST_CASE("a node that was done and was changed by somebody else later is not done at the end") {
    const auto module_key = api::label_version_module("drivers", "kmm-hello"),
               worker_key = api::label_version_worker_pod("drivers", "kmm-hello");
    enum class Way { resume, skip, step };
    struct Row {
        std::function<void(api::Labels&)> change;
        std::string what;  ///< "" for nothing to tell
        Way way = Way::resume;
    };
    const auto other = [&](api::Labels& labels) { labels[module_key] = "v1"; };
    for (const auto& row : std::vector<Row>{
             {other, "label version-module to v1", Way::resume},
             {other, "label version-module to v1", Way::skip},
             {other, "label version-module to v1", Way::step},
             {[&](api::Labels& labels) { labels.erase(module_key); }, "label version-module to nothing"},
             {[&](api::Labels& labels) { labels[module_key] = "v1", labels[worker_key] = "v1"; },
              "label version-module to v1, label version-worker-pod to v1"},
             {[&](api::Labels& labels) { labels["role.example/other"] = "x"; }, ""},
         }) {
        CAPTURE(row.what);
        World world(2);
        bool has_changed = false;
        Drive drive(world, world.prepare());
        auto& labels = world.store.find("node-a").meta.labels;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.node == "node-b" && !std::exchange(has_changed, true)) row.change(labels);
            return std::nullopt;
        };
        if (row.what.empty()) {
            CHECK(drive.driver.walk() == Ended::complete);
            continue;
        }
        CHECK(drive.driver.walk() == Ended::paused);
        const auto node = drive.recorder.node("node-a");
        CHECK(node.state == "validating-failed");
        CHECK(node.reason == "label-changed");
        CHECK(node.message == "someone else changed " + row.what + " after the upgrade to v2");
        CHECK(node.hint.find("kmm-upgrade retry node-a") != std::string::npos);
        CHECK(drive.state("node-b") == "done");
        CHECK(drive.recorder.run().state == "upgrading-nodes-failed");
        Drive again(world, drive.journal.entries);  // as another process that reads the journal
        if (row.way == Way::skip) {
            again.driver.skip("node-a", "wanted so");
            again.driver.resume();
            CHECK(again.driver.walk() == Ended::complete);
            CHECK(again.state("node-a") == "skipped");
            CHECK(labels.at(module_key) == "v1");
            continue;
        }
        if (row.way == Way::step) {
            again.driver.retry("node-a");
            for (int steps = 0; steps < 10 && again.driver.step("") == Ended::paused; ++steps) {}
            CHECK(again.recorder.run().state == "upgrade-complete");
        } else {
            again.driver.resume();
            CHECK(again.driver.walk() == Ended::complete);
        }
        CHECK(labels.at(module_key) == "v2");
        CHECK(labels.at(worker_key) == "v2");
        CHECK(world.nodes.nodes.at("node-a").live == "BBBB2222");
    }
}

TEST_CASE("a node that was done is done as long as the module is live there") {
    struct Row {
        std::string boot, registered, live;  ///< what it runs, what its Node tells of, and the module there
        bool is_silent;
        std::string reason, message;  ///< "" for nothing to tell
    };
    for (const auto& row : std::vector<Row>{
             {"boot-2", "boot-2", "", false, "node-rebooted",
              "rebooted after it was done: kmm_hello is not live any more"},
             {"boot-2", "boot-2", "AAAA1111", false, "node-rebooted",
              "rebooted after it was done: the live module is AAAA1111, expected BBBB2222"},
             {"boot-2", "boot-2", "BBBB2222", false, "", ""},
             {"boot-2", "boot-2", "", true, "node-not-ready", "node node-a gives no answer, after it was done"},
             {"boot-1", "boot-0", "BBBB2222", false, "", ""},  // its kubelet has not registered the last boot yet
             {"boot-2", "boot-1", "", false, "node-rebooted",
              "rebooted after it was done: kmm_hello is not live any more"},
             // Somebody has unloaded it, or loaded another build.
             {"boot-1", "boot-1", "", false, "module-gone", "kmm_hello is not live any more, after it was done"},
             {"boot-1", "boot-1", "AAAA1111", false, "module-differs",
              "the live module is AAAA1111, expected BBBB2222, after it was done"},
             {"boot-1", "boot-1", "", true, "node-not-ready", "node node-a gives no answer, after it was done"},
         }) {
        CAPTURE(row.message);
        World world(2);
        upgrade::Options options;
        options.pause_after = 1;
        Drive drive(world, world.prepare(options));
        REQUIRE(drive.driver.walk() == Ended::paused);
        auto& node = world.nodes.nodes.at("node-a");
        node.boot = row.boot;
        node.live = row.live;
        world.store.find("node-a").boot_id = row.registered;
        node.reachable = !row.is_silent;
        drive.driver.resume();
        CHECK(drive.driver.walk() == (row.message.empty() ? Ended::complete : Ended::paused));
        if (row.message.empty()) continue;
        const auto record = drive.recorder.node("node-a");
        CHECK(record.state == "validating-failed");
        CHECK(record.reason == row.reason);
        CHECK_FALSE(record.current_known);
        CHECK(record.message == row.message);
        node.reachable = true;
        world.store.find("node-a").boot_id = row.boot;
        Drive again(world, drive.journal.entries);
        again.driver.retry("node-a");
        if (row.live == "AAAA1111") node.live = "";
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(node.live == "BBBB2222");
        CHECK(world.store.objects.node_modules_configs.at(0).status.at(0).boot_id == row.boot);
    }
}

TEST_CASE("many nodes that were done and have been changed are set again in turns") {
    const auto key = api::label_version_module("drivers", "kmm-hello");
    for (const int max : {1, 2}) {
        for (const bool one : {false, true}) {
            CAPTURE(max);
            CAPTURE(one);
            World world(5);
            upgrade::Options options;
            options.max_unavailable = max;
            options.pause_after = 4;
            std::size_t most = 0;
            Drive drive(world, world.prepare(options));
            REQUIRE(drive.driver.walk() == Ended::paused);
            for (auto& node : world.store.objects.nodes)
                if (drive.state(node.meta.name) == "done") node.meta.labels[key] = "v1";
            drive.driver.resume();
            REQUIRE(drive.driver.walk() == Ended::paused);
            REQUIRE(upgrade::count(drive.recorder.run()).failed == 4);
            Drive* running = nullptr;
            Drive again(world, drive.journal.entries, [&](const upgrade::Event&, const std::string&) {
                most = std::max(most, running->recorder.look([](const upgrade::Run& run) {
                    return static_cast<std::size_t>(
                        std::count_if(run.nodes.begin(), run.nodes.end(), [](const auto& node) { return node.open; }));
                }));
            });
            running = &again;
            if (one) {
                again.driver.retry("node-b");
                CHECK(again.driver.walk() == Ended::paused);
                CHECK(again.state("node-b") == "done");
                CHECK(again.state("node-a") == "validating-failed");
            }
            again.driver.resume();
            CHECK(again.driver.walk() == Ended::complete);
            CHECK(most <= static_cast<std::size_t>(max));
            for (const auto& node : world.store.objects.nodes) CHECK(node.meta.labels.at(key) == "v2");
        }
    }
}

TEST_CASE("at the end of a run a node that has left the cluster is not in the way, one that is hidden is") {
    for (const bool hidden : {false, true}) {
        CAPTURE(hidden);
        World world(2);
        Drive drive(world, world.prepare());
        std::vector<api::Node> removed;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.node != "node-b" || drive.state("node-b") != "loaded" || !removed.empty()) return std::nullopt;
            removed.push_back(world.store.find("node-a"));
            std::erase_if(world.store.objects.nodes, [](const auto& node) { return node.meta.name == "node-a"; });
            if (hidden) world.store.faults.emplace_back();
            return std::nullopt;
        };
        if (!hidden) {
            CHECK(drive.driver.walk() == Ended::complete);
            continue;
        }
        CHECK_THROWS_AS(static_cast<void>(drive.driver.walk()), Error);
        CHECK(drive.recorder.run().state == "upgrading-nodes");
        world.store.faults.clear();
        world.store.objects.nodes.push_back(removed.front());
        Drive again(world, drive.journal.entries);
        again.driver.resume();
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(again.state("node-a") == "done");
    }
}

TEST_CASE("a check whose connection is lost is asked again, twice at most") {
    for (const int lost : {1, 2, 3}) {
        CAPTURE(lost);
        World world(1);
        auto run = world.prepare();
        int checks = 0;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() != "check" || ++checks > lost) return std::nullopt;
            return FakeNodes::lost(cluster::CallEnd::unknown);
        };
        Drive drive(world, run);
        CHECK(drive.driver.walk() == (lost < 3 ? Ended::complete : Ended::paused));
        CHECK(checks == std::min(lost + 1, 3));
        CHECK(world.nodes.nodes.at("node-a").live == (lost < 3 ? "BBBB2222" : "AAAA1111"));
    }
}

TEST_CASE("a module that is being loaded when the run ends is waited for") {
    for (const int answers : {3, 1000}) {
        CAPTURE(answers);
        World world(1);
        Drive drive(world, world.prepare());
        int left = answers;
        using MaybeReply = std::optional<cluster::WorkerReply>;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto& act) -> MaybeReply {
            if (drive.state("node-a") != "done" || call.args.front() != "status" || left-- <= 0) return std::nullopt;
            auto reply = act();
            reply.document.set("busy", true);
            return reply;
        };
        CHECK(drive.driver.walk() == (answers == 3 ? Ended::complete : Ended::paused));
        if (answers == 3) continue;
        CHECK(drive.recorder.node("node-a").reason == "loader-hung");
        CHECK(drive.recorder.node("node-a").message ==
              "kmm_hello is still being loaded or unloaded, after it was done");
    }
}

TEST_CASE("a node that reboots while its check is asked again is planned anew") {
    World world(1);
    auto run = world.prepare();
    int checks = 0;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() != "check" || ++checks > 1) return std::nullopt;
        auto& node = world.nodes.nodes.at(call.node);
        node.boot = "boot-2";
        node.live.clear();
        return FakeNodes::lost(cluster::CallEnd::unknown);
    };
    Drive drive(world, run);
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(checks == 2);
    CHECK(drive.recorder.node("node-a").boot_id == "boot-2");
    CHECK(world.nodes.nodes.at("node-a").live == "BBBB2222");
}

}  // TEST_SUITE
