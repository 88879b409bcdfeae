// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/progress.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include <doctest/doctest.h>

#include "unit/tool_upgrade/make_nodes.hpp"

namespace kmm::tool_upgrade {
namespace {

using test::make_nodes;
using test::put;

struct World {
    cli::BufferConsole console;
    cli::Program program;
    cli::Verb verb;
    cli::Context context{console, program, verb, "table"};
};

upgrade::Event event_of(const std::string& node, const std::string& message) {
    upgrade::Event event;
    event.kind = upgrade::EventKind::failed;
    event.node = node;
    event.from = "checking";
    event.to = "checking-failed";
    event.reason = "node-unreachable";
    event.message = message;
    return event;
}

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("event lines say a long cause once") {
        World world;
        const auto run = make_nodes(3);
        Progress progress(world.context, run);
        const auto observer = progress.observer();
        for (const auto& node : run.nodes)
            observer(event_of(node.name, node.name + ": " + std::string(80, 'x')), "2026-09-21T14:13:00Z");
        progress.stop();
        CHECK(world.console.err_text ==
              "14:13:00 node-0001 checking -> checking-failed  node-unreachable: node-0001: " + std::string(80, 'x') +
                  "\n" +
                  "14:13:00 node-0002 checking -> checking-failed  node-unreachable: as node-0001\n"
                  "14:13:00 node-0003 checking -> checking-failed  node-unreachable: as node-0001\n");
    }

    TEST_CASE("a live table ends in the bar, shows what is in flight, and notes stand above it") {
        World world;
        world.console.terminal = true;
        world.console.columns = 40;
        world.console.rows = 10;
        auto run = make_nodes(2000);
        put(run.nodes[1500], "unloaded");
        run.nodes[1500].from_version = "v1";
        Progress progress(world.context, run);
        const auto observer = progress.observer();
        upgrade::Event event;
        event.node = run.nodes[1500].name;
        event.step = "load";
        event.from = "unloaded";
        event.to = "loading";
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        observer(event, "2026-09-21T14:13:00Z");
        progress.note("note: the API server is away");
        const auto text = world.console.err_text;
        const auto last = text.substr(text.rfind("\x1b[J"));
        CHECK(last.find("note: the API server is away\nNODE ") == 3);
        CHECK(last.find("\nnode-1501  ") != std::string::npos);
        CHECK(last.find("0 of 2000 nodes") != std::string::npos);
        CHECK(std::count(last.begin(), last.end(), '\n') == 10);  // the note and nine rows
        progress.stop();
        CHECK(world.console.err_text.ends_with("\x1b[J"));
    }

    TEST_CASE("ten thousand events of two thousand nodes cost a fraction of a second") {
        World world;
        world.console.terminal = true;
        auto run = make_nodes(2000);
        Board board(run);
        const std::clock_t begin = std::clock();
        for (int i = 0; i < 10'000; ++i) {
            auto& node = run.nodes[static_cast<std::size_t>(i) % 2000];
            put(node, i < 8000 ? "loading" : "done");
            board.update(node);
        }
        for (int i = 0; i < 100; ++i) static_cast<void>(board.lines(79, 22));
        CHECK(std::clock() - begin < 2 * CLOCKS_PER_SEC);
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
