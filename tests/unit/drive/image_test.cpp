// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/drive/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

TEST_SUITE("drive::unit") {

TEST_CASE("an image that is another one after the first node stops the next node before it is touched") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    REQUIRE(drive.state("node-a") == "done");
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-b");
    CHECK(node.state == "checking-failed");
    CHECK(node.reason == "image-changed");
    CHECK(node.message == "reg/hello:v2 is sha256:CCCC3333 now, but node node-a has sha256:BBBB2222 as v2");
    CHECK(node.hint.starts_with("let it be the former image again, then kmm-upgrade retry node-b; or kmm-upgrade abort"));
    CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
    SUBCASE("once it is the former one again, the upgrade goes on") {
        world.nodes.images["reg/hello:v2"] = "BBBB2222";
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes["node-b"].live == "BBBB2222");
    }
}

TEST_CASE("an image that was mended because no node could load it is taken") {
    World world(2);
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() != "load" || world.nodes.images["reg/hello:v2"] != "BBBB2222") return std::nullopt;
        return FakeNodes::error(13, "module-refused", "the kernel refused kmm_hello");
    };
    Drive drive(world, world.prepare());
    REQUIRE(drive.driver.walk() == Ended::paused);
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.nodes.nodes["node-a"].live == "CCCC3333");
    CHECK(world.nodes.nodes["node-b"].live == "CCCC3333");
}

}  // TEST_SUITE
