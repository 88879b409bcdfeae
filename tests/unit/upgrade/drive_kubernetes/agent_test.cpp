// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/agent.hpp"

#include <doctest/doctest.h>

namespace kmm::drive {
namespace {

TEST_CASE("what a node says of its API server") {
    const auto problem = [](value::Node server) {
        auto document = value::Node::mapping({{"controlPlane", true}});
        document.set("apiServer", std::move(server));
        return read_sight(std::move(document)).server_problem;
    };
    CHECK(problem(value::Node::mapping({{"ready", true}})).empty());
    CHECK(problem(value::Node::mapping({{"ready", false}, {"problem", "/readyz answers 403"}})) ==
          "/readyz answers 403");
    CHECK(problem(value::Node::mapping({{"ready", false}})) == "it is not ready");
    // A worker, or what could not be read.
    CHECK(problem(value::Node()).empty());
    CHECK(read_sight(value::Node::mapping({})).server_problem.empty());
}

}  // namespace
}  // namespace kmm::drive
