// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/engine/make_run.hpp"

using namespace kmm::upgrade;
using kmm::upgrade::test::Journal;
using kmm::upgrade::test::make_run;

namespace {

std::string text(const std::vector<NodeStep>& steps) {
    std::string all;
    for (const auto& step : steps) all += (all.empty() ? "" : " ") + step.node.substr(5) + ":" + step.step;
    return all;
}

const auto never = [](const NodeStep&) { return false; };

}  // namespace

TEST_SUITE("upgrade::unit") {

TEST_CASE("one node after the other, each through its whole walk") {
    Journal journal(make_run(2));
    CHECK(text(journal.walk()) == "a:check a:unload a:load a:validate b:check b:unload b:load b:validate");
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(count(journal.run).done == 2);
    CHECK(next_commands(journal.run) == std::vector<std::string>{"kmm-upgrade delete"});
}

TEST_CASE("the canary stops the run after its nodes, resume goes on") {
    Options options;
    options.canary = 1;
    Journal journal(make_run(3, options));
    CHECK(text(journal.walk()) == "a:check a:unload a:load a:validate");
    CHECK(journal.run.state == "upgraded-canary");
    CHECK(journal.run.pause_reason == "canary");
    journal.decision(EventKind::resumed);
    CHECK(journal.walk().size() == 8);
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("a canary as large as the run is no canary") {
    Options options;
    options.canary = 2;
    Journal journal(make_run(2, options));
    journal.walk();
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("a canary that was skipped is not told as done") {
    Options options;
    options.canary = 2;
    Journal journal(make_run(3, options));
    journal.walk([](const NodeStep& step) { return step.node == "node-a" && step.step == "load"; });
    REQUIRE(journal.run.state == "upgrading-canary-failed");
    journal.node(EventKind::skip, "node-a", "", "skipped");
    journal.decision(EventKind::resumed);
    SUBCASE("one of two") {
        journal.walk(never);
        CHECK(journal.run.pause_message == "1 of the first 2 nodes is done, 1 skipped, as --canary asks");
    }
    SUBCASE("all") {
        journal.walk([](const NodeStep& step) { return step.step == "load"; });
        journal.node(EventKind::skip, "node-b", "", "skipped");
        journal.decision(EventKind::resumed);
        journal.walk(never);
        CHECK(journal.run.pause_message ==
              "the first 2 nodes were skipped: no canary is done, resume continues with the others");
    }
    CHECK(journal.run.state == "upgraded-canary");
}

TEST_CASE("pause-after counts from the last stop") {
    Options options;
    options.pause_after = 2;
    options.max_unavailable = 3;
    Journal journal(make_run(5, options));
    std::vector<std::size_t> done;
    for (int stop = 0; stop < 3; ++stop) {
        journal.walk();
        done.push_back(count(journal.run).done);
        if (!journal.run.paused) break;
        CHECK(journal.run.pause_reason == "pause-after");
        journal.decision(EventKind::resumed);
    }
    CHECK(done == std::vector<std::size_t>{2, 4, 5});
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("never more nodes in flight than max-unavailable") {
    for (std::int64_t limit = 1; limit <= 4; ++limit) {
        Options options;
        options.max_unavailable = limit;
        Journal journal(make_run(6, options));
        journal.walk([&](const NodeStep&) {
            CHECK(active_nodes(journal.run).size() <= static_cast<std::size_t>(limit));
            return false;
        });
        CHECK(journal.run.state == "upgrade-complete");
    }
}

TEST_CASE("a run that is paused by two failed nodes names the other one once the first is skipped") {
    Options options;
    options.max_unavailable = 2;
    Journal journal(make_run(2, options));
    journal.walk([](const NodeStep& step) { return step.step == "load"; });
    REQUIRE(journal.run.paused);
    const auto failed = journal.run.find("node-b")->reason;
    journal.node(EventKind::skip, "node-a", "", "skipped");
    CHECK(journal.run.pause_message == "node-b: " + failed);
    journal.node(EventKind::skip, "node-b", "", "skipped");
    CHECK(journal.run.pause_message == "node-b is skipped, no failed node is left");
}

TEST_CASE("a failed node stops new ones; those in flight go on to their end") {
    Options options;
    options.max_unavailable = 2;
    Journal journal(make_run(4, options));
    journal.walk([](const NodeStep& step) { return step.node == "node-a" && step.step == "load"; });
    CHECK(journal.run.state == "upgrading-nodes-failed");
    CHECK(journal.run.paused);
    CHECK(journal.run.pause_reason == "node-failed");
    CHECK(journal.run.find("node-a")->state == "loading-failed");
    CHECK(journal.run.find("node-b")->state == "done");
    CHECK(journal.run.find("node-c")->state == "pending");
    CHECK(journal.run.find("node-c")->touched == 0);
    CHECK(next_commands(journal.run) == std::vector<std::string>{"kmm-upgrade retry node-a",
                                                                 "kmm-upgrade skip node-a --reason TEXT",
                                                                 "kmm-upgrade abort --rollback current"});

    SUBCASE("retry goes on to the end") {
        journal.node(EventKind::retry, "node-a", "", "pending");
        journal.decision(EventKind::resumed);
        journal.walk();
        CHECK(journal.run.state == "upgrade-complete");
        CHECK(journal.run.find("node-a")->attempts == 2);
    }
    SUBCASE("skip leaves it out") {
        journal.node(EventKind::skip, "node-a", "", "skipped");
        CHECK(journal.run.pause_message == "node-a is skipped, no failed node is left");
        journal.decision(EventKind::resumed);
        journal.walk();
        CHECK(journal.run.state == "upgrade-complete");
        CHECK(count(journal.run).skipped == 1);
    }
    SUBCASE("resume without a decision pauses again and touches nothing") {
        journal.decision(EventKind::resumed);
        CHECK(journal.walk().empty());
        CHECK(journal.run.pause_reason == "node-failed");
    }
    SUBCASE("abort rolls back what the policy says, last touched first") {
        auto event = Event{};
        event.kind = EventKind::intent;
        event.step = "abort";
        event.from = journal.run.state;
        event.to = "upgrade-aborting";
        std::string expected;
        SUBCASE("none") { event.facts.set("rollback", "none"); }
        SUBCASE("current") {
            event.facts.set("rollback", "current");
            expected = "a:rollback";
        }
        SUBCASE("all") {
            event.facts.set("rollback", "all");
            expected = "b:rollback a:rollback";
        }
        journal.decision(EventKind::resumed);
        journal.add(event);
        CHECK(text(journal.walk()) == expected);
        CHECK(journal.run.state == "upgrade-aborted");
    }
}

TEST_CASE("one retried node walks while another stays failed") {
    Options options;
    options.max_unavailable = 2;
    Journal journal(make_run(3, options));
    journal.walk([](const NodeStep& step) { return step.step == "load"; });
    CHECK(count(journal.run).failed == 2);
    journal.node(EventKind::retry, "node-b", "", "pending");
    journal.decision(EventKind::resumed);
    CHECK(text(journal.walk()) == "b:check b:unload b:load b:validate");
    CHECK(journal.run.find("node-a")->state == "loading-failed");
    CHECK(journal.run.find("node-c")->state == "pending");
    CHECK(journal.run.paused);
}

TEST_CASE("a rollback that fails is resumable") {
    Journal journal(make_run(2));
    journal.walk([](const NodeStep& step) { return step.step == "load"; });
    Event event;
    event.kind = EventKind::intent;
    event.step = "abort";
    event.from = journal.run.state;
    event.to = "upgrade-aborting";
    event.facts.set("rollback", "current");
    journal.decision(EventKind::resumed);
    journal.add(event);
    journal.walk([](const NodeStep& step) { return step.step == "rollback"; });
    CHECK(journal.run.state == "upgrade-aborting-failed");
    CHECK(journal.run.paused);
    journal.node(EventKind::retry, "node-a", "", "pending");
    journal.decision(EventKind::resumed);
    event.from = journal.run.state;
    journal.add(event);
    journal.walk(never);
    CHECK(journal.run.state == "upgrade-aborted");
    CHECK(journal.run.find("node-a")->state == "rolled-back");
}

TEST_CASE("a step in flight is waited for, an open one is begun again") {
    Journal journal(make_run(1));
    journal.add(next_steps(journal.run, {}).event);
    journal.begin({"node-a", "check"});
    CHECK(next_steps(journal.run, {"node-a"}).next == Next::wait);
    const auto again = next_steps(journal.run, {});
    REQUIRE(again.next == Next::steps);
    CHECK(again.steps == std::vector<NodeStep>{{"node-a", "check"}});
}

TEST_CASE("a node begun but not yet recorded counts as in flight and is not begun twice") {
    Options options;
    options.max_unavailable = 2;
    Journal journal(make_run(3, options));
    journal.add(next_steps(journal.run, {}).event);
    const auto next = next_steps(journal.run, {"node-a"});
    REQUIRE(next.next == Next::steps);
    CHECK(next.steps == std::vector<NodeStep>{{"node-b", "check"}});
    CHECK(next_steps(journal.run, {"node-a", "node-b"}).next == Next::wait);
}

TEST_CASE("a run that drains walks through the states of the command line page") {
    Options options;
    options.drain = true;
    Journal journal(make_run(1, options));
    // The walker of these tests knows no cordon: it is as if somebody else had made it.
    const std::vector<NodeStep> expected = {{"node-a", "check"},  {"node-a", "cordon"}, {"node-a", "drain"},
                                            {"node-a", "unload"}, {"node-a", "load"},   {"node-a", "validate"}};
    CHECK(journal.walk() == expected);
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("drains are ahead until no node is to be drained any more") {
    Options options;
    CHECK_FALSE(module::drains_ahead(make_run(2, options)));
    options.drain = true;
    Run run = make_run(2, options);
    CHECK(module::drains_ahead(run));
    run.nodes[0].state = "done";
    run.nodes[1].state = "draining-failed";
    CHECK(module::drains_ahead(run));
    run.nodes[1].state = "loading-failed";
    CHECK_FALSE(module::drains_ahead(run));
    run.nodes[1].state = "pending";
    run.rollback = Rollback::none;
    CHECK_FALSE(module::drains_ahead(run));
}

TEST_CASE("nothing of a run ends before its cordons are lifted") {
    Options options;
    options.drain = true;
    const auto cordoned_run = [&] {
        Journal journal(make_run(2, options));
        CHECK(journal.walk([](const NodeStep& step) { return step.step == "unload"; }).size() == 4);
        journal.node(EventKind::observed, "node-a", "", "unloading-failed",
                     kmm::value::Node::mapping({{"cordon", k_cordon_ours}}));
        return journal;
    };
    SUBCASE("the pause says so") {
        auto journal = cordoned_run();
        CHECK(cordoned_nodes(journal.run) == std::vector<std::string>{"node-a"});
        CHECK(cordon_note(journal.run) == "; still cordoned: node-a");
    }
    SUBCASE("skip") {
        auto journal = cordoned_run();
        journal.node(EventKind::skip, "node-a", "", "skipped");
        journal.decision(EventKind::resumed);
        const auto next = next_steps(journal.run, {});
        REQUIRE(next.next == Next::steps);
        CHECK(next.steps == std::vector<NodeStep>{{"node-a", std::string(k_step_release)}});
    }
    SUBCASE("abort, with and without rollback") {
        for (const auto* rollback : {"none", "all"}) {
            auto journal = cordoned_run();
            journal.decision(EventKind::resumed);
            Event abort;
            abort.kind = EventKind::intent;
            abort.step = "abort";
            abort.from = journal.run.state;
            abort.to = "upgrade-aborting";
            abort.facts = kmm::value::Node::mapping({{"rollback", rollback}});
            journal.add(abort);
            const auto next = next_steps(journal.run, {});
            REQUIRE(next.next == Next::steps);
            CHECK(next.steps ==
                  std::vector<NodeStep>{{"node-a", std::string(rollback) == "all" ? "rollback" : "release"}});
            journal.node(EventKind::observed, "node-a", "", "unloading-failed",
                         kmm::value::Node::mapping({{"cordon", ""}}));
            CHECK(next_steps(journal.run, {}).next == (std::string(rollback) == "all" ? Next::steps : Next::move));
        }
    }
}

TEST_CASE("a node that is cordoned is validated, then uncordoned, then done") {
    Options options;
    options.drain = true;
    Journal journal(make_run(1, options));
    journal.decision(EventKind::intent, "nodes", "upgrading-nodes");
    journal.begin({"node-a", "check"});
    journal.node(EventKind::done, "node-a", "check", "checking",
                 kmm::value::Node::mapping({{"next", "validate"}, {"cordon", k_cordon_ours}}));
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "validate"}});
    journal.begin({"node-a", "validate"});
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "validate"}});
    journal.node(EventKind::done, "node-a", "validate", "validating");
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "uncordon"}});
    journal.begin({"node-a", "uncordon"});
    journal.node(EventKind::done, "node-a", "uncordon", "done", kmm::value::Node::mapping({{"cordon", ""}}));
    CHECK(next_steps(journal.run, {}).next == Next::move);
}
}
