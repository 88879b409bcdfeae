// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "upgrade/procedure.hpp"

using namespace kmm::upgrade;

TEST_SUITE("upgrade::unit") {

TEST_CASE("the module procedure has the documented states and no other") {
    const auto& procedure = procedure_module();
    const std::vector<std::string> run = {
        "upgrade-aborted", "upgrade-aborting", "upgrade-aborting-failed", "upgrade-complete", "upgrade-started",
        "upgraded-canary", "upgraded-nodes",   "upgrading-canary",        "upgrading-canary-failed",
        "upgrading-nodes", "upgrading-nodes-failed"};
    CHECK(procedure.states(Scope::run) == run);
    const std::vector<std::string> node = {
        "checking",     "checking-failed",  "cordoned",            "cordoning",   "cordoning-failed", "done",
        "drained",      "draining",         "draining-failed",     "loaded",      "loading",          "loading-failed",
        "pending",      "rolled-back",      "rolling-back",        "rolling-back-failed",
        "skipped",      "uncordoning",      "uncordoning-failed",  "unloaded",    "unloading",        "unloading-failed",
        "validating",   "validating-failed"};
    CHECK(procedure.states(Scope::node) == node);
}

TEST_CASE("every transitory state has a failed twin that a person can leave") {
    const auto& procedure = procedure_module();
    for (const auto scope : {Scope::run, Scope::node}) {
        for (const auto& state : procedure.states(scope)) {
            if (procedure.kind(scope, state) != StateKind::transitory) continue;
            CAPTURE(state);
            CHECK(procedure.kind(scope, state + "-failed") == StateKind::failed);
            const auto& moves = procedure.moves();
            CHECK(std::any_of(moves.begin(), moves.end(), [&](const Move& move) {
                return move.scope == scope && move.from == state + "-failed" && move.cause != Cause::observe;
            }));
        }
    }
}

TEST_CASE("apply has the states of module, and validates a node that ends without the module") {
    CHECK(procedure_apply().states(Scope::node) == procedure_module().states(Scope::node));
    CHECK(procedure_apply().states(Scope::run) == procedure_module().states(Scope::run));
    std::vector<Move> more;
    std::set_difference(procedure_apply().moves().begin(), procedure_apply().moves().end(), procedure_module().moves().begin(),
                        procedure_module().moves().end(), std::back_inserter(more));
    CHECK(more == std::vector<Move>{{Scope::node, "unloaded", "validating", Cause::begin, "validate"}});
}

TEST_CASE("nothing leaves a final state but a rollback, and what the last look at a done node finds") {
    for (const auto& move : procedure_module().moves()) {
        if (procedure_module().kind(move.scope, move.from) != StateKind::final) continue;
        CAPTURE(move.from);
        CAPTURE(move.to);
        const bool is_last_look = move.cause == Cause::observe && move.from == "done" && move.to == "validating-failed";
        CHECK((move.step == "rollback" || (move.cause == Cause::observe && move.from == move.to) || is_last_look));
    }
}

TEST_CASE("a node walks in the order of the flow") {
    const auto& procedure = procedure_module();
    Situation now{"upgrading-nodes", {{"a", "pending"}, {"b", "pending"}}};
    const std::vector<std::vector<std::string>> table = {{"check", "checking", "checking"},
                                                         {"unload", "unloading", "unloaded"},
                                                         {"load", "loading", "loaded"},
                                                         {"validate", "validating", "done"}};
    for (const auto& row : table) {
        CAPTURE(row[0]);
        auto outcome = begin(procedure, now, row[0], "a");
        REQUIRE(std::holds_alternative<Situation>(outcome));
        now = std::get<Situation>(outcome);
        CHECK(now.nodes.at("a") == row[1]);
        auto failed = fail(procedure, now, row[0], "a");
        REQUIRE(std::holds_alternative<Situation>(failed));
        CHECK(std::get<Situation>(failed).nodes.at("a") == row[1] + "-failed");
        outcome = finish(procedure, now, row[0], "a");
        REQUIRE(std::holds_alternative<Situation>(outcome));
        now = std::get<Situation>(outcome);
        CHECK(now.nodes.at("a") == row[2]);
        CHECK(now.nodes.at("b") == "pending");
    }
}

TEST_CASE("refusals name the state and what is allowed in it") {
    const auto& procedure = procedure_module();
    const Situation now{"upgrading-nodes", {{"a", "pending"}}};
    struct Row {
        const char *step, *node, *code, *text;
    };
    for (const auto& row : {Row{"load", "a", "illegal-move", "load cannot begin on node a in state pending; check, rollback are allowed"},
                            Row{"fly", "a", "unknown-step", "procedure module has no step fly"},
                            Row{"check", "z", "unknown-node", "z is no node of this run"},
                            Row{"canary", "", "illegal-move", "canary cannot begin in state upgrading-nodes; nodes, abort are allowed"}}) {
        const auto outcome = begin(procedure, now, row.step, row.node);
        REQUIRE(std::holds_alternative<Refusal>(outcome));
        CHECK(std::get<Refusal>(outcome).code == row.code);
        CHECK(std::get<Refusal>(outcome).message == row.text);
    }
}

TEST_CASE("all failing guards of a step are reported, in its order, and change nothing") {
    const Situation now{"upgrading-nodes", {{"a", "pending"}}};
    const auto outcome = begin(procedure_module(), now, "check", "a",
                               {{"not-paused", "the run is paused"}, {"max-unavailable", "one is in flight"}, {"other", "x"}});
    REQUIRE(std::holds_alternative<Refusal>(outcome));
    const std::vector<std::string> guards = {"max-unavailable", "not-paused"};
    CHECK(std::get<Refusal>(outcome).guards == guards);
    CHECK(std::get<Refusal>(outcome).message == "one is in flight; the run is paused");
}

TEST_CASE("contradictory procedures are refused") {
    Procedure::Parts parts;
    parts.name = "bad";
    parts.run_initial = "idle";
    parts.node_initial = "none";
    Step step;
    step.name = "x";
    SUBCASE("a step without states") { parts.steps = {step}; }
    SUBCASE("two steps of one name") {
        step.run = StateChange{{"idle"}, "a", "b", "c"};
        parts.steps = {step, step};
    }
    SUBCASE("a state in two roles") {
        step.run = StateChange{{"idle"}, "a", "b", "a"};
        parts.steps = {step};
    }
    SUBCASE("an unknown origin") {
        step.run = StateChange{{"nowhere"}, "a", "b", "c"};
        parts.steps = {step};
    }
    CHECK_THROWS_AS(Procedure{parts}, kmm::Error);
}
}
