// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/board.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/text.hpp"
#include "cli/text.hpp"
#include "unit/tool_upgrade/make_nodes.hpp"

namespace kmm::tool_upgrade {
namespace {

using test::fail;
using test::make_nodes;
using test::put;

std::string text_of(const std::vector<std::string>& lines) { return base::join(lines, "\n"); }

bool has(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& line) { return line.find(part) != std::string::npos; });
}

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("nodes that fit stand in their order") {
        auto run = make_nodes(3);
        put(run.nodes[0], "done");
        fail(run.nodes[2], "node-unreachable", "no route to host");
        const auto lines = Board(run).lines(80, 10);
        REQUIRE(lines.size() == 4);
        CHECK(lines[0].starts_with("NODE"));
        CHECK(lines[1].starts_with("node-0001"));
        CHECK(lines[3].starts_with("node-0003"));
    }

    TEST_CASE(
        "of more nodes than rows the failed ones are seen, those in flight, the next ones, and how many others there "
        "are") {
        auto run = make_nodes(40);
        for (std::size_t i = 0; i < 14; ++i) put(run.nodes[i], "done");
        put(run.nodes[14], "skipped");
        fail(run.nodes[20], "node-unreachable", "no route to host");
        put(run.nodes[30], "loading");
        put(run.nodes[31], "draining");
        const auto lines = Board(run).lines(80, 9);
        REQUIRE(lines.size() == 9);
        CHECK(lines[1].starts_with("node-0021"));
        CHECK(lines[2].starts_with("node-0031"));
        CHECK(lines[3].starts_with("node-0032"));
        CHECK(lines[4].starts_with("node-0016"));
        CHECK(lines[8] == "… 14 done, 1 skipped, 18 more waiting");
    }

    TEST_CASE("many failed nodes leave room for those in flight, and many of both are counted") {
        auto run = make_nodes(100);
        for (std::size_t i = 0; i < 50; ++i) fail(run.nodes[i], "x", "y");
        for (std::size_t i = 50; i < 90; ++i) put(run.nodes[i], "loading");
        const auto lines = Board(run).lines(80, 10);
        REQUIRE(lines.size() == 10);
        CHECK(lines[4].starts_with("node-0004"));
        CHECK(lines[5].starts_with("node-0051"));
        CHECK(lines[9] == "… 46 more failed, 36 more in flight, 10 waiting");
        put(run.nodes[50], "done");
        for (std::size_t i = 51; i < 90; ++i) put(run.nodes[i], "pending");
        CHECK(text_of(Board(run).lines(80, 10)).find("node-0008") != std::string::npos);
    }

    TEST_CASE("an update moves a node, and gives the lines of a board that is made anew") {
        auto run = make_nodes(30);
        Board board(run);
        const auto step = [&](std::size_t index, const std::string& state) {
            put(run.nodes[index], state, "m");
            board.update(run.nodes[index]);
        };
        for (const auto* state : {"checking", "loading", "done"}) step(3, state);
        for (const auto* state : {"checking", "checking-failed", "skipped", "pending", "checking"}) step(7, state);
        CHECK(board.lines(100, 12) == Board(run).lines(100, 12));
        CHECK(board.finals() == 1);
        CHECK(board.total() == 30);
        upgrade::NodeRecord stranger;
        stranger.name = "stranger";
        board.update(stranger);
        CHECK(board.total() == 30);
    }

    TEST_CASE("every size from 40 columns and 10 rows up is kept to") {
        auto run = make_nodes(200, "production-worker-group-a-{:04}.eu-west-1.compute.internal");
        fail(run.nodes[9], "node-unreachable",
             "ssh: connect to host production-worker-group-a-0010 port 22: No route to host");
        put(run.nodes[20], "validating", "loaded kmm_hello BBBB2222");
        for (const std::size_t width : {39U, 59U, 79U, 119U, 199U}) {
            for (const std::size_t rows : {8U, 22U, 60U}) {
                CAPTURE(width);
                CAPTURE(rows);
                const auto lines = Board(run).lines(width, rows);
                CHECK(lines.size() <= rows);
                for (const auto& line : lines) CHECK(cli::display_width(line) <= width);
                std::set<std::string> names;
                for (std::size_t i = 1; i + 1 < lines.size(); ++i)
                    names.insert(lines[i].substr(0, lines[i].find("  ")));
                CHECK(names.size() == lines.size() - 2);
                CHECK(has(lines, "0010"));
                CHECK(has(lines, "checking-failed"));
            }
        }
    }

    TEST_CASE("the message has room before the kernel has") {
        auto run = make_nodes(2);
        put(run.nodes[0], "validating", "loaded kmm_hello BBBB2222");
        CHECK(Board(run).lines(120, 9)[0] ==
              "NODE       KERNEL          CURRENT  TARGET  STATE       SINCE     MESSAGE");
        CHECK(Board(run).lines(79, 9)[1] ==
              "node-0001  v1       v2      validating  14:14:15  loaded kmm_hello BBBB2222");
    }

    TEST_CASE("names lose their middle, and a common domain first") {
        CHECK(short_name("node-0001", 9) == "node-0001");
        CHECK(short_name("production-worker-0001", 10) == "pro…r-0001");
        std::vector<NodeLine> lines(2);
        lines[0].name = "node-1.eu.example.com";
        lines[1].name = "node-2.eu.example.com";
        lines[0].state = lines[1].state = "done";
        CHECK(format_nodes(lines, 30).find("node-1 ") != std::string::npos);
        CHECK(format_nodes(lines, 0).find("node-1.eu.example.com ") != std::string::npos);
    }

    TEST_CASE("the bar fits, and its count is what stays") {
        auto run = make_nodes(40);
        for (std::size_t i = 0; i < 20; ++i) put(run.nodes[i], "done");
        fail(run.nodes[20], "x", "y");
        const Board board(run);
        CHECK(board.bar(79, "1m2s") == "[############............] 20 of 40 nodes, 1 failed  1m2s");
        for (std::size_t width = 12; width < 100; ++width) {
            CAPTURE(width);
            const auto bar = board.bar(width, "1m2s, about 1m2s to go");
            CHECK(cli::display_width(bar) <= width);
            CHECK(bar.find("20 of 40") != std::string::npos);
        }
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
