// SPDX-License-Identifier: Apache-2.0
// The StarlingX procedure walked as data: success, failure, retry and resume of every state, and every guard.
#include <doctest/doctest.h>

#include <algorithm>

#include "upgrade/procedure.hpp"

using namespace kmm::upgrade;

namespace {

struct Stop {
    const char *step, *node;
    const char *run_before, *run_during, *run_done, *run_failed;
    const char *node_during, *node_failed;
};

// Facts StarlingX 1.5, row by row; "" is "no such state".
const std::vector<Stop> k_walk = {
    {"start", "", "idle", "", "upgrade-started", "", "", ""},
    {"download-images", "", "upgrade-started", "downloading-images", "downloaded-images", "downloading-images-failed", "", ""},
    {"first-master", "c0", "downloaded-images", "upgrading-first-master", "upgraded-first-master",
     "upgrading-first-master-failed", "upgrading-control-plane", "upgrading-control-plane-failed"},
    {"networking", "", "upgraded-first-master", "upgrading-networking", "upgraded-networking", "upgrading-networking-failed", "", ""},
    {"second-master", "c1", "upgraded-networking", "upgrading-second-master", "upgraded-second-master",
     "upgrading-second-master-failed", "upgrading-control-plane", "upgrading-control-plane-failed"},
    {"kubelet", "c0", "upgraded-second-master", "upgrading-kubelets", "upgrading-kubelets", "", "upgrading-kubelet",
     "upgrading-kubelet-failed"},
    {"kubelet", "w0", "upgrading-kubelets", "upgrading-kubelets", "upgrading-kubelets", "", "upgrading-kubelet",
     "upgrading-kubelet-failed"},
    {"complete", "", "upgrading-kubelets", "", "upgrade-complete", "", "", ""},
    {"delete", "", "upgrade-complete", "", "idle", "", "", ""},
};

Situation must(const Outcome& outcome) {
    if (const auto* refusal = std::get_if<Refusal>(&outcome)) FAIL(refusal->message);
    return std::get<Situation>(outcome);
}

const Situation k_idle{"idle", {{"c0", "none"}, {"c1", "none"}, {"w0", "none"}}};

}  // namespace

TEST_SUITE("upgrade::unit") {

TEST_CASE("starlingx: the spec's states and the failed twins of its first code") {
    const std::vector<std::string> run = {
        "downloaded-images", "downloading-images", "downloading-images-failed", "idle", "upgrade-complete", "upgrade-started",
        "upgraded-first-master", "upgraded-networking", "upgraded-second-master", "upgrading-first-master",
        "upgrading-first-master-failed", "upgrading-kubelets", "upgrading-networking", "upgrading-networking-failed",
        "upgrading-second-master", "upgrading-second-master-failed"};
    CHECK(procedure_starlingx().states(Scope::run) == run);
    const std::vector<std::string> node = {"none", "upgrading-control-plane", "upgrading-control-plane-failed",
                                           "upgrading-kubelet", "upgrading-kubelet-failed"};
    CHECK(procedure_starlingx().states(Scope::node) == node);
}

TEST_CASE("starlingx: success, failure, retry and resume of every state") {
    const auto& procedure = procedure_starlingx();
    Situation now = k_idle;
    for (const auto& stop : k_walk) {
        CAPTURE(stop.step);
        CAPTURE(stop.node);
        REQUIRE(now.run == stop.run_before);
        const bool immediate = std::string_view(stop.run_during).empty();
        if (immediate) {
            CHECK(must(fail(procedure, now, stop.step, stop.node)) == now);  // "nothing created", "unchanged"
            CHECK(must(begin(procedure, now, stop.step, stop.node)) == now);
        } else {
            const auto during = must(begin(procedure, now, stop.step, stop.node));
            CHECK(during.run == stop.run_during);
            const bool on_node = !std::string_view(stop.node).empty();
            if (on_node) CHECK(during.nodes.at(stop.node) == stop.node_during);
            const auto failed = must(fail(procedure, during, stop.step, stop.node));
            CHECK(failed.run == (std::string_view(stop.run_failed).empty() ? stop.run_during : stop.run_failed));
            if (on_node) CHECK(failed.nodes.at(stop.node) == stop.node_failed);
            CHECK(recover(procedure, during) == failed);  // a restart in the middle ends in the failed twin
            CHECK(must(begin(procedure, failed, stop.step, stop.node)) == during);
            if (on_node) {  // the row is under way: a second begin is refused
                const auto twice = begin(procedure, during, stop.step, stop.node);
                REQUIRE(std::holds_alternative<Refusal>(twice));
                CHECK(std::get<Refusal>(twice).code == "illegal-move");
            }
            now = during;
        }
        now = must(finish(procedure, now, stop.step, stop.node));
        CHECK(now.run == stop.run_done);
        for (const auto& [name, state] : now.nodes) CHECK(state == "none");
    }
    CHECK(now == k_idle);
}

TEST_CASE("starlingx: a step is refused in every state but its own") {
    const auto& procedure = procedure_starlingx();
    for (const auto& stop : k_walk) {
        const auto* step = procedure.find_step(stop.step);
        REQUIRE(step != nullptr);
        for (const auto& state : procedure.states(Scope::run)) {
            Situation now = k_idle;
            now.run = state;
            const bool from = std::find(step->run->from.begin(), step->run->from.end(), state) != step->run->from.end();
            const bool again = !step->run->failed.empty() && state == step->run->failed;
            const bool open = step->name == "kubelet" && state == "upgrading-kubelets";
            CAPTURE(stop.step);
            CAPTURE(state);
            CHECK(std::holds_alternative<Situation>(begin(procedure, now, stop.step, stop.node)) == (from || again || open));
        }
    }
}

TEST_CASE("starlingx: every guard refuses by itself and together with the others") {
    const auto& procedure = procedure_starlingx();
    std::size_t tried = 0;
    for (const auto& stop : k_walk) {
        const auto* step = procedure.find_step(stop.step);
        Situation now = k_idle;
        now.run = stop.run_before;
        FailingGuards all;
        for (const auto& guard : step->guards) {
            const auto outcome = begin(procedure, now, stop.step, stop.node, {{guard, guard + " does not hold"}});
            REQUIRE(std::holds_alternative<Refusal>(outcome));
            CHECK(std::get<Refusal>(outcome).guards == std::vector<std::string>{guard});
            CHECK(std::get<Refusal>(outcome).message == guard + " does not hold");
            all[guard] = "x";
            ++tried;
        }
        if (all.empty()) continue;
        const auto outcome = begin(procedure, now, stop.step, stop.node, all);
        REQUIRE(std::holds_alternative<Refusal>(outcome));
        CHECK(std::get<Refusal>(outcome).guards == step->guards);
    }
    CHECK(tried == 41);
}

TEST_CASE("starlingx: simplex goes from networking to kubelets") {
    Situation now{"upgraded-networking", {{"c0", "none"}}};
    CHECK(must(begin(procedure_starlingx(), now, "kubelet", "c0")).run == "upgrading-kubelets");
}
}
