// SPDX-License-Identifier: Apache-2.0
// The record is lost at every cluster write and every call to a node; what adopt makes of the cluster leads to the same
// ends.
#include <doctest/doctest.h>

#include <algorithm>

#include "api/workload.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/prepare_module/adopt.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

struct Lost {};

enum class Past { upgrade, rollback, install, drain };

Adopted adopted_from(World& world, const AdoptRequest& request) {
    const auto writes = world.store.writes.size();
    const auto calls = world.nodes.calls.size();
    auto adopted = adopt(world.store.read(), world.clock, request);
    CHECK(world.store.writes.size() == writes);
    CHECK(world.nodes.calls.size() == calls);
    adopted.run.cluster_identity = world.store.id;
    adopted.run.options.max_unavailable = std::max<std::int64_t>(1, adopted.in_the_middle);
    return adopted;
}

AdoptRequest request_for(Past way) {
    AdoptRequest request;
    request.start.name = "kmm-hello";
    request.start.to_version = "v2";
    request.start.lineage = "fresh";
    request.start.options.drain = way == Past::drain;
    return request;
}

/// Plays `way` until point `when` of writes and calls; false if it ended before.
bool play_until(World& world, Past way, int when) {
    upgrade::Options options;
    options.drain = way == Past::drain;
    if (way == Past::rollback) options.canary = 1;
    Drive drive(world, world.prepare(options));
    int count = 0;
    const auto point = [&] {
        if (count++ == when) throw Lost{};
    };
    world.store.on_write = world.workloads.on_write = point;
    world.nodes.fault = [&](const cluster::WorkerCall&, const auto& act) -> std::optional<cluster::WorkerReply> {
        point();
        auto reply = act();
        point();
        return reply;
    };
    bool lost = false;
    try {
        static_cast<void>(drive.driver.walk());
        if (way == Past::rollback) static_cast<void>(drive.driver.abort(upgrade::Rollback::all));
    } catch (const Lost&) {
        lost = true;
    }
    world.store.on_write = world.workloads.on_write = nullptr;
    world.nodes.fault = nullptr;
    return lost;
}

World world_of(Past way) { return World(2, way != Past::install); }

enum class End { forward, back };

/// Loses the record at `when`, adopts, and goes on to `end`; the dump, "" if there is no way to that end, nullopt once
/// `when` is past the end.
std::optional<std::string> after_loss(Past way, int when, End end) {
    auto world = world_of(way);
    if (!play_until(world, way, when)) return std::nullopt;
    auto request = request_for(way);
    Adopted adopted;
    try {
        adopted = adopted_from(world, request);
    } catch (const Error& error) {
        CHECK(error.code() == "adopt-ambiguous");
        request.from = way == Past::install ? "" : "v1";
        adopted = adopted_from(world, request);
    }
    Drive drive(world, adopted.run);
    for (const auto& event : adopted.events) drive.recorder.record(event);
    CHECK(drive.recorder.run().pause_reason == "adopted");
    if (end == End::forward) {
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        return world.dump();
    }
    for (const auto& node : adopted.run.nodes)
        if (!node.from_version.empty() && upgrade::module::read(node).from_entry.is_null()) return "";
    CHECK(drive.driver.abort(upgrade::Rollback::all) == Ended::aborted);
    return world.dump();
}

Error refusal_of(World& world, const AdoptRequest& request) {
    try {
        static_cast<void>(adopt(world.store.read(), world.clock, request));
    } catch (const Error& error) {
        return error;
    }
    return Error(Exit::ok, "", "");
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a record lost anywhere is adopted, and leads to the end of an undisturbed run, or all the way back") {
    int points = 0, ways_back = 0;
    for (const auto way : {Past::upgrade, Past::rollback, Past::install, Past::drain}) {
        auto before = world_of(way);
        const auto beginning = before.dump();
        auto undisturbed = world_of(way);
        Drive drive(undisturbed, undisturbed.prepare());
        CHECK(drive.driver.walk() == Ended::complete);
        const auto target = undisturbed.dump();
        for (int when = 0;; when += k_stride) {
            CAPTURE(static_cast<int>(way));
            CAPTURE(when);
            const auto forward = after_loss(way, when, End::forward);
            if (!forward) break;
            CHECK(*forward == target);
            const auto back = after_loss(way, when, End::back);
            if (!back->empty()) {
                CHECK(*back == beginning);
                ++ways_back;
            }
            ++points;
        }
    }
    MESSAGE("points of loss: ", points, ", with a way back: ", ways_back);
    CHECK(points > 100 / k_stride);
    CHECK(ways_back > 100 / k_stride);
}

TEST_CASE("which run it was, and what it is not told, is asked for") {
    World world(3);
    auto request = request_for(Past::upgrade);
    request.start.to_version.clear();
    CHECK(refusal_of(world, request).code() == "nothing-to-adopt");
    request.start.name.clear();
    CHECK(refusal_of(world, request).code() == "nothing-to-adopt");

    // node-b is between the versions.
    world.store.find("node-b").meta.labels[api::label_version_module("drivers", "kmm-hello")] = "v2";
    const auto found = adopt(world.store.read(), world.clock, request);
    CHECK(upgrade::module::full_name(found.run) == "drivers/kmm-hello");
    CHECK(found.run.to_version == "v2");
    CHECK(found.run.from_version == "v1");
    CHECK(found.run.lineage == "fresh");
    CHECK(found.in_the_middle == 1);
    REQUIRE(found.run.nodes.size() == 3);
    CHECK(found.run.nodes[0].name == "node-b");
    CHECK(found.run.nodes[0].current_version.empty());
    CHECK(found.run.nodes[1].current_version == "v1");

    // What a worker Pod or a cordon says of the run.
    request.signs = {{"run-1", "drivers", "kmm-hello", "node-c", "worker Pod", true},
                     {"run-9", "drivers", "other", "node-a", "worker Pod", true}};
    auto signed_run = adopt(world.store.read(), world.clock, request);
    CHECK(signed_run.run.lineage == "run-1");
    CHECK(signed_run.in_the_middle == 2);
    request.signs.push_back({"run-2", "drivers", "kmm-hello", "", "Lease", false});
    CHECK(refusal_of(world, request).code() == "adopt-ambiguous");
    request.run = "run-2";
    CHECK(adopt(world.store.read(), world.clock, request).run.lineage == "run-2");
    request.signs.clear();
    request.run.reset();
    world.store.put_cordon("node-b", world.workloads.cordons["node-b"] = {true, "kmm-upgrade run-3"});
    const auto cordoned = adopt(world.store.read(), world.clock, request);
    CHECK(cordoned.run.cordon_owner() == "kmm-upgrade run-3");
    CHECK(cordoned.run.options.drain);

    // Nodes that ran different versions before: what node-b ran, nobody knows.
    world.store.objects.node_modules_configs[0].status[0].version = "v0";
    world.store.objects.node_modules_configs[1].status.clear();
    world.store.objects.node_modules_configs[1].spec.clear();
    for (const auto& key : {api::label_version_worker_pod("drivers", "kmm-hello"),
                            api::label_version_schedule_pod("drivers", "kmm-hello")})
        world.store.find("node-b").meta.labels.erase(key);
    const auto unsaid = refusal_of(world, request);
    CHECK(unsaid.code() == "adopt-ambiguous");
    CHECK(unsaid.details().size() == 2);
    request.from = "v1";
    const auto said = adopt(world.store.read(), world.clock, request);
    CHECK(said.run.find("node-b")->from_version == "v1");
    CHECK_FALSE(upgrade::module::read(*said.run.find("node-b")).from_entry.is_null());
    request.from = "v7";
    const auto unknown = adopt(world.store.read(), world.clock, request);
    CHECK(upgrade::module::read(*unknown.run.find("node-b")).from_entry.is_null());
    CHECK(unknown.notes.back() == "v7 of node-b is not in the cluster any more: abort cannot bring it back");
}

TEST_CASE("what the lost run had begun is adopted whatever the taints, other nodes that take no Pods are left out") {
    const api::Taint not_ready{"node.kubernetes.io/not-ready", "", "NoExecute"};
    const auto label = api::label_version_module("drivers", "kmm-hello");
    World world(3);
    auto request = request_for(Past::drain);
    world.store.put_cordon("node-b", {true, "kmm-upgrade run-3"});
    const auto names = [](const Adopted& adopted) {
        std::set<std::string> all;
        for (const auto& node : adopted.run.nodes) all.insert(node.name);
        return all;
    };
    SUBCASE("the node that it had cordoned") {
        const auto adopted = adopt(world.store.read(), world.clock, request);
        CHECK(adopted.run.lineage == "run-3");
        CHECK(names(adopted) == std::set<std::string>{"node-a", "node-b", "node-c"});
        CHECK(adopted.in_the_middle == 1);
        CHECK(adopted.run.left_out.empty());
    }
    SUBCASE("also where others have tainted it, too") {
        world.store.find("node-b").taints.push_back({"example.com/maintenance", "", "NoSchedule"});
        CHECK(names(adopt(world.store.read(), world.clock, request)).contains("node-b"));
    }
    SUBCASE("a node with half of the labels that restarts") {
        world.store.find("node-c").meta.labels[label] = "v2";
        world.store.find("node-c").taints.push_back(not_ready);
        const auto adopted = adopt(world.store.read(), world.clock, request);
        CHECK(names(adopted).contains("node-c"));
        CHECK(adopted.in_the_middle == 2);
    }
    SUBCASE("a node with a worker Pod of the run") {
        world.store.find("node-c").taints.push_back(not_ready);
        request.signs = {{"run-3", "drivers", "kmm-hello", "node-c", "worker Pod", true}};
        CHECK(names(adopt(world.store.read(), world.clock, request)).contains("node-c"));
    }
    SUBCASE("a cordon of another run, and a node that nothing was begun on") {
        world.store.put_cordon("node-a", {true, "kmm-upgrade run-9"});
        world.store.find("node-c").taints.push_back(not_ready);
        request.run = "run-3";
        const auto adopted = adopt(world.store.read(), world.clock, request);
        CHECK(names(adopted) == std::set<std::string>{"node-b"});
        CHECK(adopted.run.left_out ==
              std::vector<upgrade::LeftOut>{{"node-a", "cordoned by kmm-upgrade run-9"}, {"node-c", "not ready"}});
    }
}

TEST_CASE("an adopted record that does not know the previous image does not pretend to bring it back") {
    World world(1);
    Drive first(world, world.prepare());
    CHECK(first.driver.walk() == Ended::complete);
    auto request = request_for(Past::upgrade);
    request.from = "v1";
    const auto adopted = adopted_from(world, request);
    Drive drive(world, adopted.run);
    for (const auto& event : adopted.events) drive.recorder.record(event);
    CHECK(drive.driver.abort(upgrade::Rollback::all) == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "previous-unknown");
    CHECK(world.nodes.nodes["node-a"].live == "BBBB2222");
}

}
