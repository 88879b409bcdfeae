// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/text.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

std::vector<std::string> words_of(const MortalJournal& journal, const std::string& kind) {
    std::vector<std::string> words;
    for (const auto& entry : journal.entries)
        if (entry.get_string({"event"}) == kind) words.push_back(entry.get_string({"message"}));
    return words;
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a node is watched before it is done, and the next one begins later") {
    World world(2);
    upgrade::Options options;
    options.soak_ms = 600'000;
    Drive drive(world, world.prepare(options));
    const auto start = world.clock.monotonic();
    SUBCASE("all stays well") {
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.clock.monotonic() - start >= std::chrono::minutes(20));
        CHECK(words_of(drive.journal, "observed") ==
              std::vector<std::string>{"watched for 10m0s", "watched for 10m0s"});
    }
    SUBCASE("the module goes away meanwhile") {
        world.clock.on_sleep = [&] { world.nodes.nodes.at("node-a").live.clear(); };
        CHECK(drive.driver.walk() == Ended::paused);
        CHECK(drive.state("node-a") == "validating-failed");
        CHECK(drive.recorder.node("node-a").reason == "module-gone");
        CHECK(drive.state("node-b") == "pending");
    }
    SUBCASE("another build takes its place") {
        world.clock.on_sleep = [&] { world.nodes.nodes.at("node-a").live = "CCCC3333"; };
        CHECK(drive.driver.walk() == Ended::paused);
        CHECK(drive.recorder.node("node-a").reason == "module-differs");
    }
    SUBCASE("the node reboots meanwhile and is planned anew") {
        world.clock.on_sleep = [&] {
            world.clock.on_sleep = nullptr;
            world.nodes.nodes.at("node-a").boot = "boot-2";
            world.nodes.nodes.at("node-a").live.clear();
        };
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes.at("node-a").live == "BBBB2222");
    }
    SUBCASE("an interruption leaves the node to the next resume") {
        world.clock.on_sleep = [&] { drive.stop = true; };
        CHECK(drive.driver.walk() == Ended::interrupted);
        CHECK(drive.state("node-a") == "validating");
        world.clock.on_sleep = nullptr;
        drive.stop = false;
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
    }
}

TEST_CASE("a drained node is watched when its Pods may be back") {
    World world(1);
    upgrade::Options options;
    options.drain = true;
    options.soak_ms = 60'000;
    Drive drive(world, world.prepare(options));
    world.clock.on_sleep = [&] {
        CHECK_FALSE(world.workloads.cordons["node-a"].unschedulable);
        CHECK(upgrade::cordoned_nodes(drive.recorder.run()).empty());
    };
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.clock.monotonic() >= std::chrono::minutes(1));
}

TEST_CASE("the user's check decides, gets the facts of the node, and is not read by a shell") {
    World world(2);
    upgrade::Options options;
    struct Row {
        const char *check, *message;  ///< message "": all is well
    };
    for (const auto& row :
         {Row{"true", ""}, Row{"sh -c 'read -r x; case $x in *node-?*BBBB2222*) exit 0; esac; exit 1'", ""},
          Row{"sh -c 'echo one; echo two >&2; echo three; echo four; exit 3'",
              "the check sh exited with 3: three | four | two"},
          Row{"sh -c 'printf \"\\033[31mred\\033[0m \\377\"; exit 1'",
              "the check sh exited with 1: \x1b[31mred\x1b[0m \xff"},
          Row{"sh -c 'yes noise | head -c 3000000; echo; echo the end; exit 1'",
              "the check sh exited with 1: noise | noise | the end"},
          Row{"false", "the check false exited with 1"},
          Row{"sh -c 'kill -9 $$'", "the check sh was ended by signal 9"}, Row{"echo $(exit 1)", ""}}) {
        CAPTURE(row.check);
        World fresh(2);
        options.check = row.check;
        Drive drive(fresh, fresh.prepare(options));
        CHECK(drive.driver.walk() == (*row.message == 0 ? Ended::complete : Ended::paused));
        if (*row.message == 0) continue;
        CHECK(drive.state("node-a") == "validating-failed");
        CHECK(drive.recorder.node("node-a").reason == "check-failed");
        CHECK(drive.recorder.node("node-a").message == row.message);
        CHECK(drive.recorder.node("node-a").current_version == "v2");
        CHECK(drive.state("node-b") == "pending");
    }
    options.check = "no-such-command-at-all";
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "command-not-found");
}

TEST_CASE("of lines that a check prints only so much is recorded as fits on a screen") {
    World world(1);
    upgrade::Options options;
    options.check = "sh -c 'head -c 3000000 /dev/zero | tr \"\\0\" x; echo; head -c 3000000 /dev/zero; exit 1'";
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    const auto message = drive.recorder.node("node-a").message;
    CHECK(message.size() < 700);
    CHECK(kmm::base::escape(message).size() < 700);
    CHECK(message.find("xxx... | ") == std::string::npos);  // its end: a stream of one line has no other
    CHECK(message.ends_with("..."));
}

TEST_CASE("a check that takes long is ended when somebody wants to stop, and is no failure") {
    World world(1);
    upgrade::Options options;
    options.check = "sh -c 'echo begun; sleep 60'";
    Drive* running = nullptr;
    Drive drive(world, world.prepare(options), [&](const upgrade::Event& event, const std::string&) {
        if (event.to == "validating") running->stop = true;
    });
    running = &drive;
    CHECK(drive.driver.walk() == Ended::interrupted);
    CHECK(drive.state("node-a") == "validating");
    CHECK(drive.recorder.run().find("node-a")->reason.empty());
}

TEST_CASE("no node begins outside the window; what has begun goes on") {
    World world(2);
    upgrade::Options options;
    options.between = "22:00-04:00";
    options.time_zone = "UTC";
    Drive drive(world, world.prepare(options));
    std::vector<std::string> notices;
    const auto start = world.clock.now_unix();
    Pace pace;
    // The clock of this world begins at 21:00.
    pace.minute_of_day = [start](std::int64_t now) { return static_cast<int>((21 * 60 + (now - start) / 60) % 1440); };
    pace.notice = [&](const std::string& text) { notices.push_back(text); };
    drive.driver.set_pace(pace);
    SUBCASE("waits for it") {
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.clock.now_unix() - start >= 3600);
        CHECK(notices == std::vector<std::string>{"waiting: no node begins before 22:00 UTC: --between 22:00-04:00"});
    }
    SUBCASE("an interruption while waiting is safe") {
        world.clock.on_sleep = [&] { drive.stop = true; };
        CHECK(drive.driver.walk() == Ended::interrupted);
        CHECK(drive.state("node-a") == "pending");
    }
    SUBCASE("the second node waits a day when the first one took the rest of the night") {
        bool is_first = true;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() == "load" && std::exchange(is_first, false))
                world.clock.sleep_for(std::chrono::hours(8));
            return std::nullopt;
        };
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.clock.now_unix() - start >= 25 * 3600);
        CHECK(notices.size() == 1);
    }
}

TEST_CASE("nodes that others made unavailable count, when asked for") {
    World world(3);
    upgrade::Options options;
    options.count_unavailable = true;
    SUBCASE("a cordoned node keeps the others from being begun") {
        world.store.find("node-c").unschedulable = true;
        Drive drive(world, world.prepare(options));
        CHECK(drive.driver.walk() == Ended::paused);
        CHECK(drive.recorder.run().pause_reason == "max-unavailable");
        CHECK(drive.recorder.run().pause_message == "at most 1 may be unavailable, and node-c is cordoned");
        CHECK(drive.state("node-a") == "pending");
        world.store.find("node-c").unschedulable = false;
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
    }
    SUBCASE("a node that goes away meanwhile is waited for, as long as a node may take") {
        Drive drive(world, world.prepare(options));
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.node == "node-a" && call.args.front() == "load") world.store.find("node-c").ready = "Unknown";
            return std::nullopt;
        };
        std::vector<std::string> notices;
        Pace pace;
        pace.notice = [&](const std::string& text) { notices.push_back(text); };
        drive.driver.set_pace(pace);
        SUBCASE("and comes back") {
            world.clock.on_sleep = [&] {
                if (world.clock.monotonic() > std::chrono::minutes(5)) world.store.find("node-c").ready = "True";
            };
            CHECK(drive.driver.walk() == Ended::complete);
        }
        SUBCASE("and does not") {
            CHECK(drive.driver.walk() == Ended::paused);
            CHECK(drive.state("node-a") == "done");
            CHECK(drive.state("node-b") == "pending");
        }
        CHECK(notices == std::vector<std::string>{"waiting: at most 1 may be unavailable, and node-c is not ready"});
    }
    SUBCASE("nodes of other Modules do not") {
        world.store.find("node-c").unschedulable = true;
        world.store.find("node-c").meta.labels["role"] = "other";
        Drive drive(world, world.prepare(options));
        CHECK(drive.driver.walk() == Ended::complete);
    }
    SUBCASE("nor does any without the option") {
        world.store.find("node-c").unschedulable = true;
        Drive drive(world, world.prepare());
        CHECK(drive.driver.walk() == Ended::complete);
    }
}

TEST_CASE("the order by zones") {
    World world(4);
    for (const auto& [name, zone] : {std::pair{"node-a", "west"}, {"node-b", "east"}, {"node-d", "east"}})
        world.store.find(name).meta.labels["topology.kubernetes.io/zone"] = zone;
    upgrade::Options options;
    options.order = "zone";
    const auto run = world.prepare(options);
    std::vector<std::string> names;
    for (const auto& node : run.nodes) names.push_back(node.name + " " + node.zone);
    CHECK(names == std::vector<std::string>{"node-b east", "node-d east", "node-a west", "node-c "});
}

TEST_CASE("a step that fails is no stop that was asked for, even where the run could go on with other nodes") {
    for (const bool has_budget : {true, false}) {
        CAPTURE(has_budget);
        World world;
        auto run = world.prepare();
        if (has_budget) run.options.failure_budget = 1;
        else run.options.max_unavailable = 2;
        Drive drive(world, std::move(run));
        drive.driver.pause("manual", "");
        world.nodes.fault = [](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.node != "node-a" || call.args.front() != "check") return std::nullopt;
            return FakeNodes::error(66, "image-not-found", "image not found");
        };
        if (!has_budget) CHECK(drive.driver.step("node-b") == Ended::paused);
        CHECK(drive.recorder.run().pause_reason == "manual");
        CHECK(drive.driver.step("node-a") == Ended::paused);
        CHECK(drive.state("node-a") == "checking-failed");
        CHECK(drive.recorder.run().pause_reason == "node-failed");
        try {
            static_cast<void>(drive.driver.step("node-a"));
            FAIL("not refused");
        } catch (const Error& error) {
            CHECK(error.hint() == "kmm-upgrade retry node-a");
        }
    }
}
}
