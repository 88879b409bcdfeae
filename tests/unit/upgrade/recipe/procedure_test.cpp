// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "unit/upgrade/engine/make_run.hpp"
#include "upgrade/recipe/subject.hpp"

using namespace kmm;
using namespace kmm::upgrade;
namespace rc = kmm::upgrade::recipe;

namespace {

/// States a/0000-build, a/1000-driver, a/stateless of a rollout from 0.0.1 to 0.0.2, or their removal.
Run recipe_run(const Procedure& procedure, const Options& options = {}) {
    Run run;
    run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    run.procedure = procedure.table().name();
    run.rules = &procedure;
    run.state = "upgrade-started";
    run.from_version = "0.0.1";
    if (&procedure == &rc::procedure_rollout()) run.to_version = "0.0.2";
    run.options = options;
    rc::set_subject(run, {"a", "kube-system", 2, 1, {"5.14.0-1"}, true});
    for (const auto* name : {"a/0000-build", "a/1000-driver", "a/stateless"}) {
        NodeRecord state;
        state.name = name;
        state.from_version = state.current_version = "0.0.1";
        rc::set_objects(state, 3);
        run.nodes.push_back(state);
    }
    return run;
}

std::vector<std::string> words(const std::vector<NodeStep>& steps) {
    std::vector<std::string> all;
    for (const auto& step : steps) all.push_back((step.node.empty() ? "" : step.node + " ") + step.step);
    return all;
}

}  // namespace

TEST_SUITE("upgrade::recipe") {

TEST_CASE("a rollout applies and gates one state after the other, then prunes, whatever --max-unavailable says") {
    Options options;
    options.max_unavailable = 5;
    test::Journal journal(recipe_run(rc::procedure_rollout(), options));
    CHECK(words(journal.walk()) == std::vector<std::string>{"a/0000-build apply", "a/0000-build gate",
                                                            "a/1000-driver apply", "a/1000-driver gate",
                                                            "a/stateless apply", "a/stateless gate", "prune"});
    CHECK(journal.run.state == "upgrade-complete");
    const auto again = replay(journal.entries, rc::procedures());
    CHECK(rc::subject_of(again) == rc::Subject{"a", "kube-system", 2, 1, {"5.14.0-1"}, true});
    CHECK(rc::objects_of(again.nodes.front()) == 3);
}

TEST_CASE("resources of one wave are rolled out beside each other, their own states and waves one after the other") {
    Options options;
    options.max_unavailable = 2;
    auto run = recipe_run(rc::procedure_rollout(), options);
    run.nodes.clear();
    const auto add = [&](const char* name, std::int64_t wave) {
        NodeRecord state;
        state.name = name;
        rc::set_objects(state, 1);
        rc::set_wave(state, wave);
        run.nodes.push_back(state);
    };
    for (const auto* name : {"x/0", "x/1", "y/0"}) add(name, 1);
    add("main/0", 2);
    test::Journal journal(run);
    CHECK(words(journal.walk()) == std::vector<std::string>{"x/0 apply", "y/0 apply", "x/0 gate", "y/0 gate",
                                                            "x/1 apply", "x/1 gate", "main/0 apply", "main/0 gate",
                                                            "prune"});
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(rc::wave_of(replay(journal.entries, rc::procedures()).nodes.back()) == 2);

    test::Journal failing(run);
    const auto steps = words(
        failing.walk([](const NodeStep& each) { return each.node == "x/0" && each.step == rc::k_step_apply; }));
    // What has begun beside it comes to its end; nothing else begins.
    CHECK(steps == std::vector<std::string>{"x/0 apply", "y/0 apply", "y/0 gate"});
    CHECK(failing.run.paused);
    CHECK(failing.run.state == "rolling-out-states-failed");
    CHECK(failing.run.find("y/0")->state == "done");
    CHECK(failing.run.find("x/1")->touched == 0);
    CHECK(failing.run.find("main/0")->touched == 0);
}

TEST_CASE("pools are paused before the first state and unpaused behind the last one") {
    auto run = recipe_run(rc::procedure_rollout());
    auto subject = rc::subject_of(run);
    subject.pools = {"worker"};
    rc::set_subject(run, subject);
    test::Journal journal(run);
    const auto steps = words(journal.walk());
    CHECK(steps.front() == "pause-pools");
    CHECK(std::vector<std::string>(steps.end() - 2, steps.end()) == std::vector<std::string>{"unpause-pools", "prune"});
}

TEST_CASE("of a downgrade, drivers are restarted on each node before their state is applied") {
    auto run = recipe_run(rc::procedure_downgrade());
    for (const auto* node : {"node-b", "node-a"}) {
        NodeRecord record;
        const rc::DriverNode driver{node, "a/1000-driver", {"demo/driver"}};
        record.name = driver.name();
        rc::set_objects(record, 1);
        rc::set_driver_node(record, driver);
        run.nodes.insert(run.nodes.begin() + 1, record);
    }
    test::Journal journal(run);
    CHECK(words(journal.walk()) ==
          std::vector<std::string>{
              "a/0000-build apply", "a/0000-build gate", "a/1000-driver/node-a taint", "a/1000-driver/node-a evict",
              "a/1000-driver/node-a restart", "a/1000-driver/node-a untaint", "a/1000-driver/node-b taint",
              "a/1000-driver/node-b evict", "a/1000-driver/node-b restart", "a/1000-driver/node-b untaint",
              "a/1000-driver apply", "a/1000-driver gate", "a/stateless apply", "a/stateless gate", "prune"});
    CHECK(journal.run.state == "upgrade-complete");
    const auto again = replay(journal.entries, rc::procedures());
    CHECK(rc::driver_node_of(again.nodes[1]) == rc::DriverNode{"node-a", "a/1000-driver", {"demo/driver"}});
    CHECK_FALSE(procedure_of(again).skip_refusal(again, again.nodes[1]).empty());
}

TEST_CASE("no state is begun behind one that fails, and a state that is tried again is applied again") {
    for (const auto* step : {"apply", "gate"}) {
        CAPTURE(step);
        test::Journal journal(recipe_run(rc::procedure_rollout()));
        static_cast<void>(
            journal.walk([&](const NodeStep& each) { return each.node == "a/0000-build" && each.step == step; }));
        REQUIRE(journal.run.paused);
        CHECK(journal.run.state == "rolling-out-states-failed");
        CHECK(journal.run.find("a/1000-driver")->touched == 0);
        const auto& failed = *journal.run.find("a/0000-build");
        CHECK_FALSE(procedure_of(journal.run).skip_refusal(journal.run, failed).empty());
        journal.node(EventKind::retry, "a/0000-build", "",
                     procedure_of(journal.run).restart_state(journal.run, failed));
        journal.decision(EventKind::resumed);
        CHECK(words(journal.walk()).front() == "a/0000-build apply");
        CHECK(journal.run.state == "upgrade-complete");
    }
}

TEST_CASE("a failed prune is a failed step of the run: the states stay done and the run is not complete") {
    test::Journal journal(recipe_run(rc::procedure_rollout()));
    static_cast<void>(journal.walk([](const NodeStep& each) { return each.step == "prune"; }));
    CHECK(journal.run.state == "pruning-failed");
    CHECK(journal.run.paused);
    CHECK(count(journal.run).done == 3);
}

TEST_CASE("a state that was ready and is so no longer fails its gate") {
    const auto& table = rc::procedure_rollout().table();
    CHECK(table.legal({Scope::node, "done", "gating-failed", Cause::observe, ""}));
}

TEST_CASE("every state that was begun can be rolled back") {
    for (const auto* procedure : rc::procedures()) {
        const auto& table = procedure->table();
        for (const auto& state : table.states(Scope::node)) {
            if (state == "rolled-back" || state == "rolling-back" || state == "rolling-back-failed") continue;
            CAPTURE(state);
            CHECK(table.legal({Scope::node, state, "rolling-back", Cause::begin, "rollback"}));
        }
    }
}

TEST_CASE("a removal ends with a list that proves it") {
    test::Journal journal(recipe_run(rc::procedure_removal()));
    CHECK(words(journal.walk()) ==
          std::vector<std::string>{"a/0000-build remove", "a/1000-driver remove", "a/stateless remove", "verify"});
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(describe(journal.run).versions() == "0.0.1 -> removed");
}

TEST_CASE("a record without what the procedure needs is damaged") {
    auto run = recipe_run(rc::procedure_rollout());
    run.subject =
        value::Node::mapping({{"recipe", value::Node::mapping({{"name", "a"}, {"namespace", "kube-system"}})}});
    CHECK_THROWS_AS(rc::procedure_rollout().check(run), Error);
}

}
