// SPDX-License-Identifier: Apache-2.0
// Evictions that others than budgets refuse.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

using cluster::PodEviction;
using Outcome = cluster::PodEviction::Outcome;

std::optional<PodEviction> refused(const std::string& reason) {
    return PodEviction{Outcome::blocked, reason, std::nullopt};
}

std::string moved_first(const api::WorkloadPod& pod) {
    return "admission webhook \"mover.example\" denied the request: " + pod.name + " is moved first";
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a webhook that lets Pods go later is waited for, and named") {
    upgrade::Options options;
    options.drain = true;
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "vm-1"), make_pod("shop", "vm-2")};
    const auto start = world.clock.monotonic();
    world.workloads.on_evict = [&](const api::WorkloadPod& pod) -> std::optional<PodEviction> {
        if (world.clock.monotonic() - start >= std::chrono::seconds(70)) return std::nullopt;
        return refused(moved_first(pod));
    };
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::complete);
    std::vector<std::string> words;
    for (const auto& entry : drive.journal.entries)
        if (entry.get_string({"event"}) == "observed") words.push_back(entry.get_string({"message"}));
    CHECK(words.size() == 3);
    CHECK(words.front() ==
          "webhook mover.example (vm-1 is moved first) keeps 2 Pods: vm-1, vm-2; 9m55s left of 10m0s");
}

TEST_CASE("a refusal that stays fails its node alone, which is given back") {
    upgrade::Options options;
    options.drain = true;
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "vm-1")};
    std::string who;
    SUBCASE("a webhook") {
        who = "webhook mover.example (vm-1 is moved first)";
        world.workloads.on_evict = [](const api::WorkloadPod& pod) { return refused(moved_first(pod)); };
    }
    SUBCASE("a webhook that says a lot") {
        who = "webhook mover.example (" + std::string(199, 'x') + "...)";
        world.workloads.on_evict = [](const api::WorkloadPod&) {
            return refused("admission webhook \"mover.example\" denied the request: " + std::string(199, 'x') +
                           "\xc3\xa4 and more");
        };
    }
    SUBCASE("a name without an end") {
        const std::string said = "admission webhook \"";
        who = "the API server (" + said + std::string(200 - said.size(), 'x') + "...)";
        world.workloads.on_evict = [said](const api::WorkloadPod&) {
            return refused(said + std::string(4U << 20U, 'x'));
        };
    }
    SUBCASE("a server that has no time") {
        who = "the API server (too many requests)";
        world.workloads.on_evict = [](const api::WorkloadPod&) { return refused("too many requests"); };
    }
    SUBCASE("a budget that is not counted yet") {
        const std::string said = "The disruption budget web is still being processed by the server.";
        who = "a budget of namespace shop (" + said + ")";
        world.workloads.on_evict = [said](const api::WorkloadPod&) { return refused(said); };
    }
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "draining-failed");
    CHECK(node.message == "1 Pod still there after 10m0s: " + who + " keeps 1 Pod: vm-1; uncordoned");
    CHECK(world.workloads.cordons["node-a"] == cluster::Cordon{});
}

}
