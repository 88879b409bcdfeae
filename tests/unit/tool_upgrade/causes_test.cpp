// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/causes.hpp"

#include <doctest/doctest.h>

#include "unit/tool_upgrade/make_nodes.hpp"

namespace kmm::tool_upgrade {
namespace {

using test::fail;
using test::make_nodes;

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("nodes with one cause are one, but for their names; others are not") {
        auto run = make_nodes(5);
        fail(run.nodes[0], "node-unreachable", "node-0001: Permission denied (publickey)", "ssh node-0001");
        fail(run.nodes[1], "node-unreachable", "node-0002: Permission denied (publickey)", "ssh node-0002");
        fail(run.nodes[2], "node-unreachable", "node-0001: Permission denied (publickey)", "ssh node-0003");
        fail(run.nodes[4], "module-in-use", "node-0005: in use", "ssh node-0005");
        const auto causes = causes_of(run);
        REQUIRE(causes.size() == 3);
        CHECK(causes[0].message == "NODE: Permission denied (publickey)");
        CHECK(causes[0].hint == "ssh NODE");
        CHECK(causes[0].nodes == std::vector<std::string>{"node-0001", "node-0002"});
        CHECK(causes[1].nodes == std::vector<std::string>{"node-0003"});
        CHECK(causes[1].message == "node-0001: Permission denied (publickey)");
        CHECK(causes[2].message == "node-0005: in use");
        CHECK(causes[2].hint == "ssh node-0005");
        CHECK(causes_of(make_nodes(3)).empty());
    }

    TEST_CASE("worker Pods of several nodes that are refused for one cause are one cause") {
        auto run = make_nodes(2);
        fail(run.nodes[0], "worker-refused", "pods \"kmm-upgrade-load-node-0001-kmm-hello-ps4gt\" is forbidden");
        fail(run.nodes[1], "worker-refused", "pods \"kmm-upgrade-load-node-0002-kmm-hello-cq49m\" is forbidden");
        const auto causes = causes_of(run);
        REQUIRE(causes.size() == 1);
        CHECK(causes[0].message == "pods \"kmm-upgrade-load-NODE-kmm-hello-…\" is forbidden");
    }

    TEST_CASE("a long message is said once for each code and cause") {
        const std::string tail(80, 'x');
        SaidCauses said;
        CHECK(said.text("a", "c", "a: " + tail) == "a: " + tail);
        CHECK(said.text("b", "c", "b: " + tail) == "as a");
        CHECK(said.text("a", "c", "a: " + tail) == "a: " + tail);
        CHECK(said.text("b", "d", "b: " + tail) == "b: " + tail);
        CHECK(said.text("b", "c", "b: x") == "b: x");
        CHECK(said.text("c", "c", "c: x") == "c: x");
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
