// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/view.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/text.hpp"
#include "cli/text.hpp"
#include "unit/tool_upgrade/make_nodes.hpp"

namespace kmm::tool_upgrade {
namespace {

using test::fail;
using test::make_nodes;
using test::put;

constexpr const char* k_hint = "give this machine a key that the node accepts, then kmm-upgrade retry node-0001";

upgrade::Run sixty_without_key() {
    auto run = make_nodes(60);
    for (auto& node : run.nodes)
        fail(node, "node-unreachable", "Permission denied (publickey)", "ssh " + node.name);
    return run;
}

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("one cause of sixty nodes is one line, then the names") {
        const auto text = properties(sixty_without_key());
        CHECK(text.find("failed     60 nodes: node-unreachable: Permission denied (publickey)\n"
                        "           node-0001, node-0002, node-0003, node-0004, node-0005, node-0006, node-0007, "
                        "node-0008, node-0009, node-0010, node-0011, node-0012 and 48 more\n"
                        "hint       ssh NODE\n") != std::string::npos);
        CHECK(std::count(text.begin(), text.end(), '\n') == 6);
    }

    TEST_CASE("one failed node stands with its own words") {
        auto run = make_nodes(2);
        fail(run.nodes[0], "node-unreachable", "no route to host", k_hint);
        const auto text = properties(run);
        CHECK(text.find("failed     node-0001: node-unreachable  no route to host\n") != std::string::npos);
        CHECK(text.find(std::string("hint       ") + k_hint + "\n") != std::string::npos);
        CHECK(text.find("next       kmm-upgrade retry node-0001  or: kmm-upgrade skip node-0001 --reason TEXT, "
                        "kmm-upgrade abort "
                        "--rollback current\n") != std::string::npos);
    }

    TEST_CASE("a step of the run that has failed stands with its own words") {
        auto run = make_nodes(2);
        run.paused = true;
        run.pause_reason = "step-failed";
        run.pause_message = "fetch: refused";
        run.step_reason = "refused";
        run.step_message = "the depot is closed";
        run.step_hint = "open it, then kmm-upgrade resume";
        const auto text = properties(run);
        CHECK(text.find("paused     fetch: refused  ") != std::string::npos);
        CHECK(text.find("  the depot is closed\nhint       open it, then kmm-upgrade resume\n") != std::string::npos);
    }

    TEST_CASE("lines that are too wide are broken at blanks, under their column") {
        auto run = make_nodes(2);
        fail(run.nodes[0], "drain-timeout",
             "3 Pods still there after 8.0s: budget default/web (needs 3, has 3) keeps 3 Pods: web-a, web-b, 1 more; "
             "uncordoned");
        for (const std::size_t width : {40U, 80U}) {
            CAPTURE(width);
            const auto text = properties(run, std::nullopt, width);
            std::string joined;
            for (const auto line : base::split(text, '\n')) {
                CHECK(cli::display_width(line) <= width);
                joined.append(base::trim(line)).append(" ");
            }
            CHECK(joined.find("3 Pods still there after 8.0s: budget default/web (needs 3, has 3) keeps 3 Pods: web-a, "
                              "web-b, 1 more; uncordoned") != std::string::npos);
            CHECK(text.find("\n           3 Pods still there") != std::string::npos);
        }
    }

    TEST_CASE("who watches is not told to watch") {
        const record::Owner owner{};
        CHECK(properties(make_nodes(1), owner).find("kmm-upgrade show --watch") != std::string::npos);
        CHECK(properties(make_nodes(1), owner, 0, "").find("next") == std::string::npos);
    }

    TEST_CASE("a table has every node: in its order, or for a person the failed ones first, then those in flight") {
        auto run = make_nodes(4);
        put(run.nodes[0], "done");
        put(run.nodes[1], "loading");
        fail(run.nodes[3], "x", "y");
        const auto order = [&](std::size_t width) {
            std::string names;
            const auto table = node_table(run, width);
            for (const auto line : base::split(table, '\n'))
                if (line.starts_with("node-")) names += line[8];
            return names;
        };
        CHECK(order(0) == "1234");
        CHECK(order(80) == "4213");
    }

    TEST_CASE("a table has a long message once") {
        auto run = make_nodes(3);
        for (auto& node : run.nodes) fail(node, "pod-refused", node.name + ": " + std::string(900, 'x'));
        const auto table = node_table(run, 0);
        CHECK(table.size() < 1600);
        CHECK(table.find("as node-0001\n") != std::string::npos);
    }

    TEST_CASE("times that are known to the second") {
        CHECK(seconds_text(std::chrono::seconds(0)) == "<1s");
        CHECK(seconds_text(std::chrono::seconds(59)) == "59s");
        CHECK(seconds_text(std::chrono::seconds(61)) == "1m1s");
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
