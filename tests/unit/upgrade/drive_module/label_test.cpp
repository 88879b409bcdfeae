// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/engine/hint.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

TEST_SUITE("drive::unit") {

TEST_CASE("a Module that is deleted during its upgrade is not loaded on further nodes") {
    World world(2);
    Drive drive(world, world.prepare());
    world.store.objects.modules[0].meta.deleting = true;
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "checking-failed");
    CHECK(node.reason == "module-deleting");
    CHECK(node.hint == "wait until it is gone and create it again, then kmm-upgrade retry node-a; kmm-upgrade abort, "
                       "then kmm-upgrade apply unloads it everywhere");
    CHECK(upgrade::hint_after_end(node.hint) ==
          "wait until it is gone and create it again; kmm-upgrade apply unloads it everywhere");
}

TEST_CASE("a version label that somebody has set on a waiting node is noticed before the node begins") {
    const auto label = api::label_version_module("drivers", "kmm-hello");
    for (const auto& value : {std::optional<std::string>("v99"), std::optional<std::string>()}) {
        World world(2);
        upgrade::Options options;
        options.canary = 1;
        Drive drive(world, world.prepare(options));
        REQUIRE(drive.driver.walk() == Ended::paused);
        if (value) world.store.find("node-b").meta.labels[label] = *value;
        else world.store.find("node-b").meta.labels.erase(label);
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::paused);
        const auto node = drive.recorder.node("node-b");
        CHECK(node.state == "checking-failed");
        CHECK(node.reason == "label-changed");
        CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
        CHECK(world.store.find("node-b").meta.labels.contains(label) == value.has_value());
        // Whoever retries it has read that.
        drive.driver.retry("node-b");
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.store.find("node-b").meta.labels.at(label) == "v2");
    }
}

TEST_CASE("a version label that says the target already is what was wanted") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    world.store.find("node-b").meta.labels[api::label_version_module("drivers", "kmm-hello")] = "v2";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

}  // TEST_SUITE
