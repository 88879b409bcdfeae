// SPDX-License-Identifier: Apache-2.0
// Stages of a procedure that is not about modules: steps of the run, walks with a rest between them, failures of
// either.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/fake_procedure.hpp"
#include "unit/upgrade/engine/make_run.hpp"

using namespace kmm::upgrade;
using namespace kmm::upgrade::test;
using kmm::upgrade::test::Journal;

namespace {

std::string text_of(const std::vector<NodeStep>& steps) {
    std::string all;
    for (const auto& step : steps)
        all += (all.empty() ? "" : " ") + (step.node.empty() ? step.step : step.node.substr(5) + ":" + step.step);
    return all;
}

/// Records the failed stage of the run as begun again, as a retry does.
void retry_stage(Journal& journal) {
    const auto& stage = *journal.table().stage_of(journal.run.state);
    journal.decision(EventKind::resumed);
    journal.decision(EventKind::intent, stage.name, stage.during);
}

}  // namespace

TEST_SUITE("upgrade::unit") {

TEST_CASE("stages follow each other, nodes rest between two walks") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 2));
    CHECK(text_of(journal.walk()) == "fetch a:copy a:check b:copy b:check");
    CHECK(journal.run.state == "walked-first");
    CHECK(journal.run.pause_reason == "first");
    CHECK(journal.run.pause_message == "first is through");
    CHECK(active_nodes(journal.run).empty());
    journal.decision(EventKind::resumed);
    CHECK(text_of(journal.walk()) == "switch a:restart a:prove b:restart b:prove");
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("the state in which a run is to stop is kept until it has stopped there") {
    const FakeProcedure procedure;
    auto begun = make_fake_run(procedure, 1);
    begun.until = "fetched";
    Journal journal(begun);
    CHECK(decode_run(encode(journal.run), {&procedure}).until == "fetched");
    const auto move = [&](const std::string& to) {
        Event event;
        event.kind = EventKind::intent;
        event.step = to == "switching" ? "switch" : "first";
        event.to = to;
        return event;
    };
    const auto resume = [&](const char* until = nullptr) {
        Event event;
        event.kind = EventKind::resumed;
        if (until != nullptr) event.facts = kmm::value::Node::mapping({{"until", until}});
        Ledger ledger(journal.run);
        ledger.commit(ledger.judge(event, "t"));
        return ledger.run().until;
    };
    CHECK(until_note(journal.run, move("walking-first")).starts_with("fetched is left out of this upgrade: stopped"));
    CHECK(until_problem(journal.run, "fetching").starts_with("expected a state in which an upgrade rests"));
    CHECK(until_problem(journal.run, "walked-first").empty());
    journal.run.state = "fetched";
    CHECK(until_note(journal.run, move("walking-first")) == "fetched is reached, as --until asks");
    CHECK(until_problem(journal.run, "fetched").empty());
    CHECK(until_problem(journal.run, "upgrade-started") ==
          "the upgrade is in state fetched: upgrade-started is behind it");
    CHECK(resume() == "fetched");  // after a crash nobody has seen the stop
    CHECK(resume("walked-first") == "walked-first");
    CHECK(resume("") == "");
    const auto revise = [&](kmm::value::Node subject) {
        Event event;
        event.kind = EventKind::resumed;
        event.facts = kmm::value::Node::mapping({{"subject", std::move(subject)}});
        Ledger ledger(journal.run);
        ledger.commit(ledger.judge(event, "t"));
        return ledger.run().subject.get_string({"parcel", "name"});
    };
    CHECK(revise(kmm::value::Node::mapping({{"parcel", kmm::value::Node::mapping({{"name", "other"}})}})) == "other");
    CHECK_THROWS_AS(static_cast<void>(revise("text")), kmm::Error);
    journal.run.paused = true;
    SUBCASE("a failure is not the stop") {
        journal.run.pause_reason = "node-failed";
        CHECK(resume() == "fetched");
    }
    SUBCASE("the stop is passed once") {
        journal.run.pause_reason = k_pause_until;
        CHECK_FALSE(until_problem(journal.run, "fetched").empty());
        CHECK(resume() == "");
    }
    SUBCASE("a stage that stops by itself has stopped") {
        journal.run.state = journal.run.until = "walked-first";
        journal.run.pause_reason = "first";
        CHECK(resume() == "");
    }
}

TEST_CASE("a stage that is left out is passed over") {
    FakeProcedure procedure;
    procedure.fetches = false;
    Journal journal(make_fake_run(procedure, 1));
    CHECK(text_of(journal.walk()) == "a:copy a:check");
}

TEST_CASE("a step of the run that fails stops the run, says why, and is begun again") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 2));
    journal.walk([](const NodeStep& step) { return step.step == "fetch"; });
    CHECK(journal.run.state == "fetching-failed");
    CHECK(journal.run.paused);
    CHECK(journal.run.pause_reason == "step-failed");
    // Resumed without a retry it stops again.
    journal.decision(EventKind::resumed);
    CHECK(journal.walk().empty());
    CHECK(journal.run.pause_reason == "step-failed");
    retry_stage(journal);
    CHECK(text_of(journal.walk()) == "fetch a:copy a:check b:copy b:check");
    CHECK(journal.run.step_reason.empty());
}

TEST_CASE("a node that fails in the second walk goes back to its rest, not to the start") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 2));
    journal.walk();
    journal.decision(EventKind::resumed);
    journal.walk([](const NodeStep& step) { return step.node == "node-a" && step.step == "prove"; });
    REQUIRE(journal.run.state == "walking-second-failed");
    journal.node(EventKind::retry, "node-a", "", procedure.restart_state(journal.run, *journal.run.find("node-a")));
    journal.decision(EventKind::resumed);
    CHECK(text_of(journal.walk()) == "a:restart a:prove b:restart b:prove");
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("no more nodes than max-unavailable are in flight in any stage, those at rest do not count") {
    for (std::int64_t limit = 1; limit <= 3; ++limit) {
        const FakeProcedure procedure;
        Options options;
        options.max_unavailable = limit;
        Journal journal(make_fake_run(procedure, 5, options));
        std::size_t most = 0;
        const auto watch = [&](const NodeStep&) {
            most = std::max(most, active_nodes(journal.run).size());
            return false;
        };
        journal.walk(watch);
        journal.decision(EventKind::resumed);
        journal.walk(watch);
        CHECK(journal.run.state == "upgrade-complete");
        CHECK(most == static_cast<std::size_t>(limit));
    }
}

TEST_CASE("an abort rolls back what was begun in any stage") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 3));
    journal.walk([](const NodeStep& step) { return step.node == "node-b" && step.step == "check"; });
    REQUIRE(journal.run.state == "walking-first-failed");
    journal.decision(EventKind::resumed);
    Event abort;
    abort.kind = EventKind::intent;
    abort.step = "abort";
    abort.from = journal.run.state;
    abort.to = "upgrade-aborting";
    abort.facts = kmm::value::Node::mapping({{"rollback", "all"}});
    journal.add(abort);
    CHECK(text_of(journal.walk()) == "b:rollback a:rollback");
    CHECK(journal.run.state == "upgrade-aborted");
}

TEST_CASE("a journal of the procedure replays where it is known, and is of a newer program where it is not") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 2));
    journal.walk();
    const Run run = replay(journal.entries, {&procedure});
    CHECK(run.state == "walked-first");
    CHECK_THROWS_WITH_AS(static_cast<void>(replay(journal.entries, module::procedures())),
                         "the record is of procedure \"fake\", this program knows module, apply", kmm::Error);
}

TEST_CASE("members of a procedure are kept as long as they live, and no others") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 1));
    journal.node_fact =
        kmm::value::Node::mapping({{"copied", "v2"}, {"plan", "fast"}, {"noise", "loud"}, {"foreign", "x"}});
    journal.walk([](const NodeStep& step) { return step.step == "check"; });
    const auto* node = journal.run.find("node-a");
    CHECK(node->facts.get_string({"copied"}) == "v2");
    CHECK(node->facts.get_string({"plan"}) == "fast");
    CHECK(node->facts.get_string({"noise"}) == "loud");  // of the step that failed
    CHECK(node->facts.find("foreign") == nullptr);
    journal.node(EventKind::retry, "node-a", "", "pending");
    node = journal.run.find("node-a");
    CHECK(node->facts.get_string({"copied"}) == "v2");
    CHECK(node->facts.find("plan") == nullptr);
    CHECK(node->facts.find("noise") == nullptr);
    // In outputs they follow the members that they belong to, and the header has those of the run.
    const auto tree = encode(*node, procedure);
    CHECK(tree.get_string({"copied"}) == "v2");
    CHECK(encode(journal.run).get_string({"parcel"}) == "box");
    CHECK(replay(journal.entries, {&procedure}).extra.members().empty());
    // What is not of the kind that the procedure says is damage.
    CHECK_THROWS_WITH_AS(
        journal.node(EventKind::observed, "node-a", "", "pending", kmm::value::Node::mapping({{"copied", true}})),
        "copied of the record is a boolean, expected a string", kmm::Error);
}

TEST_CASE("a step that belongs to another stage is refused") {
    const FakeProcedure procedure;
    Journal journal(make_fake_run(procedure, 1));
    journal.walk();
    journal.decision(EventKind::resumed);
    CHECK_THROWS_AS(journal.node(EventKind::intent, "node-a", "restart", "restarting"), kmm::Error);
}
}
