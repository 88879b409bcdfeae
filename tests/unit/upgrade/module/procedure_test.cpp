// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "upgrade/module/subject.hpp"

using namespace kmm;
using namespace kmm::upgrade;

TEST_SUITE("upgrade::unit") {

TEST_CASE("the module procedure has the documented states and no other") {
    const auto& procedure = upgrade::module::procedure_module().table();
    const std::vector<std::string> run = {
        "upgrade-aborted", "upgrade-aborting", "upgrade-aborting-failed", "upgrade-complete", "upgrade-started",
        "upgraded-canary", "upgraded-nodes",   "upgrading-canary",        "upgrading-canary-failed",
        "upgrading-nodes", "upgrading-nodes-failed"};
    CHECK(procedure.states(Scope::run) == run);
    const std::vector<std::string> node = {"checking",
                                           "checking-failed",
                                           "cordoned",
                                           "cordoning",
                                           "cordoning-failed",
                                           "done",
                                           "drained",
                                           "draining",
                                           "draining-failed",
                                           "loaded",
                                           "loading",
                                           "loading-failed",
                                           "pending",
                                           "rolled-back",
                                           "rolling-back",
                                           "rolling-back-failed",
                                           "skipped",
                                           "uncordoning",
                                           "uncordoning-failed",
                                           "unloaded",
                                           "unloading",
                                           "unloading-failed",
                                           "validating",
                                           "validating-failed"};
    CHECK(procedure.states(Scope::node) == node);
}

TEST_CASE("every transitory state has a failed twin that a person can leave") {
    const auto& procedure = upgrade::module::procedure_module().table();
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
    CHECK(upgrade::module::procedure_apply().table().states(Scope::node) ==
          upgrade::module::procedure_module().table().states(Scope::node));
    CHECK(upgrade::module::procedure_apply().table().states(Scope::run) ==
          upgrade::module::procedure_module().table().states(Scope::run));
    std::vector<Move> more;
    std::set_difference(upgrade::module::procedure_apply().table().moves().begin(),
                        upgrade::module::procedure_apply().table().moves().end(),
                        upgrade::module::procedure_module().table().moves().begin(),
                        upgrade::module::procedure_module().table().moves().end(), std::back_inserter(more));
    CHECK(more == std::vector<Move>{{Scope::node, "unloaded", "validating", Cause::begin, "validate"}});
}

TEST_CASE("nothing leaves a final state but a rollback, and what the last look at a done node finds") {
    for (const auto& move : upgrade::module::procedure_module().table().moves()) {
        if (upgrade::module::procedure_module().table().kind(move.scope, move.from) != StateKind::final) continue;
        CAPTURE(move.from);
        CAPTURE(move.to);
        const bool is_last_look = move.cause == Cause::observe && move.from == "done" && move.to == "validating-failed";
        CHECK((move.step == "rollback" || (move.cause == Cause::observe && move.from == move.to) || is_last_look));
    }
}

TEST_CASE("contradictory tables are refused") {
    const Stage walk{"nodes", "walking", "walked", "walking-failed", {"x"}, "done", false};
    const Step step{"x", Scope::node, {"pending"}, "a", "done", "a-failed"};
    Table::Parts parts;
    parts.name = "bad";
    parts.stages = {walk};
    parts.steps = {step};
    CHECK_NOTHROW(Table{parts});
    SUBCASE("no stages") { parts.stages.clear(); }
    SUBCASE("a step without states") { parts.steps.push_back({"y", Scope::node, {"pending"}, "", "", ""}); }
    SUBCASE("two steps of one name") { parts.steps.push_back(step); }
    SUBCASE("a state in two roles") {
        parts.steps.push_back({"y", Scope::node, {"pending"}, "b", "a-failed", "b-failed"});
    }
    SUBCASE("a failed state of another name") {
        parts.steps.push_back({"y", Scope::node, {"pending"}, "b", "done", "broken"});
    }
    SUBCASE("an unknown origin") { parts.steps.push_back({"y", Scope::node, {"nowhere"}, "b", "done", "b-failed"}); }
    SUBCASE("a stage that walks no step") { parts.stages.front().steps = {"z"}; }
    SUBCASE("a stage that ends nowhere") { parts.stages.front().until = "nowhere"; }
    SUBCASE("a stage that walks a step of the run") {
        parts.stages.insert(parts.stages.begin(), {"get", "getting", "got", "getting-failed", {}, "", false});
        parts.stages.back().steps = {"get"};
    }
    CHECK_THROWS_AS(Table{parts}, kmm::Error);
}
}
