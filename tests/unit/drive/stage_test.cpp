// SPDX-License-Identifier: Apache-2.0
// Stages that are steps of the run itself, before and after a walk of nodes: carried out, failed, begun again, killed anywhere, aborted.
#include <doctest/doctest.h>

#include "unit/drive/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

/// The nodes' part of the module procedure, between two steps of the run.
class StagedProcedure final : public upgrade::Procedure {
public:
    [[nodiscard]] const upgrade::Table& table() const override {
        static const upgrade::Table table([] {
            const auto& module = upgrade::procedure_module().table();
            upgrade::Table::Parts parts;
            parts.name = "staged";
            parts.stages = {{"fetch", "fetching", "fetched", "fetching-failed", {}, "", false},
                            *module.find_stage("nodes"),
                            {"settle", "settling", "settled", "settling-failed", {}, "", false}};
            for (const auto& step : module.steps())
                if (step.scope == upgrade::Scope::node) parts.steps.push_back(step);
            return upgrade::Table(std::move(parts));
        }());
        return table;
    }
    [[nodiscard]] upgrade::Members members(const upgrade::Run& run, const upgrade::Stage& stage) const override {
        return stage.is_walk() ? upgrade::procedure_module().members(run, stage) : upgrade::Members{};
    }
    [[nodiscard]] std::string next_step(const upgrade::Run& run, const upgrade::NodeRecord& node, const upgrade::Stage& stage) const override {
        return upgrade::procedure_module().next_step(run, node, stage);
    }
    [[nodiscard]] std::string restart_state(const upgrade::Run&, const upgrade::NodeRecord&) const override { return "pending"; }
    [[nodiscard]] std::string pause_note(const upgrade::Run&, const upgrade::Stage&) const override { return ""; }
};

struct StageKilled {};

/// Marks what it did; does nothing twice.
class Marks final : public StageActor {
public:
    std::set<std::string> done;
    std::vector<std::string> acts;
    std::function<void(const std::string&)> before, after;
    [[nodiscard]] value::Node act(const std::string& stage, const Deadline&) override {
        if (before) before(stage);
        if (done.insert(stage).second) acts.push_back(stage);
        if (after) after(stage);
        return value::Node::mapping({{"message", stage + " is done"}});
    }
};

const StagedProcedure k_procedure;

struct StagedWorld {
    World world{2};
    Marks marks;
    std::vector<value::Node> entries;

    StagedWorld() {
        auto run = world.prepare();
        run.procedure = "staged";
        entries.push_back(upgrade::encode(run));
    }
    [[nodiscard]] upgrade::Run run() const {
        std::vector<upgrade::TimedPayload> payloads;
        for (const auto& entry : entries) payloads.push_back({"t", entry});
        return upgrade::replay(payloads, {&k_procedure});
    }
};

/// One life of the program on `staged`.
struct Life {
    StagedWorld& staged;
    MortalJournal journal;
    Recorder recorder;
    bool stop = false;
    Driver driver;
    explicit Life(StagedWorld& in)
        : staged(in),
          recorder(in.run(), journal, in.world.clock, {}),
          driver(in.world.store, in.world.workloads, in.world.nodes, recorder, in.world.clock, [this] { return stop; }) {
        journal.entries = in.entries;
        driver.set_stage_actor(in.marks);
    }
    ~Life() { staged.entries = journal.entries; }
    [[nodiscard]] std::string state() const { return recorder.state().state; }
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("steps of the run are carried out in their turn, with what they say in the journal") {
    StagedWorld staged;
    Life life(staged);
    CHECK(life.driver.walk() == Ended::complete);
    CHECK(staged.marks.acts == std::vector<std::string>{"fetch", "settle"});
    CHECK(std::any_of(life.journal.entries.begin(), life.journal.entries.end(),
                      [](const value::Node& entry) { return entry.get_string({"message"}) == "fetch is done"; }));
}

TEST_CASE("a step of the run that fails is recorded with its code and hint, and retry without a node begins it again") {
    StagedWorld staged;
    staged.marks.before = [](const std::string& stage) {
        if (stage == "fetch") throw Error(Exit::unavailable, "image-not-found", "there is no image").hint("push it");
    };
    {
        Life life(staged);
        CHECK(life.driver.walk() == Ended::paused);
        CHECK(life.state() == "fetching-failed");
        const auto at = life.recorder.state();
        CHECK(at.pause_reason == "step-failed");
        CHECK(at.pause_message == "fetch: image-not-found");
        CHECK(at.step_message == "there is no image");
        CHECK(at.step_hint == "push it");
    }
    staged.marks.before = nullptr;
    Life life(staged);
    SUBCASE("retry") { life.driver.retry(""); }
    SUBCASE("resume") { life.driver.resume(); }
    CHECK(life.driver.walk() == Ended::complete);
    CHECK(life.recorder.state().step_reason.empty());
}

TEST_CASE("retry without a node is refused where no step of the run has failed") {
    StagedWorld staged;
    Life life(staged);
    CHECK_THROWS_WITH_AS(life.driver.retry(""), "the upgrade is in state upgrade-started: no step of the run has failed", Error);
}

TEST_CASE("step goes through steps of the run one by one") {
    StagedWorld staged;
    Life life(staged);
    CHECK(life.driver.step("") == Ended::paused);
    CHECK(life.state() == "upgrading-nodes");
    CHECK(staged.marks.acts == std::vector<std::string>{"fetch"});
    CHECK(life.driver.step("") == Ended::paused);
    CHECK(life.recorder.node("node-a").state == "checking");
}

TEST_CASE("a person who interrupts a step of the run finds it open, and resume goes on") {
    StagedWorld staged;
    {
        Life life(staged);
        staged.marks.before = [&](const std::string&) {
            life.stop = true;
            throw Error(Exit::interrupted, "interrupted", "interrupted");
        };
        CHECK(life.driver.walk() == Ended::interrupted);
        CHECK(life.state() == "fetching");
    }
    staged.marks.before = nullptr;
    Life life(staged);
    life.driver.resume();
    CHECK(life.driver.walk() == Ended::complete);
}

TEST_CASE("an abort after a failed step of the run rolls back the nodes that were walked") {
    StagedWorld staged;
    staged.marks.before = [](const std::string& stage) {
        if (stage == "settle") throw Error(Exit::unhealthy, "not-settled", "it does not settle");
    };
    Life life(staged);
    CHECK(life.driver.walk() == Ended::paused);
    CHECK(life.state() == "settling-failed");
    CHECK(life.driver.abort(upgrade::Rollback::all) == Ended::aborted);
    CHECK(life.recorder.node("node-a").state == "rolled-back");
    CHECK(staged.world.nodes.nodes["node-b"].live == "AAAA1111");
}

TEST_CASE("killed at every record and around every step of the run, resumed to the same end") {
    StagedWorld whole;
    std::size_t count = 0;
    {
        Life life(whole);
        CHECK(life.driver.walk() == Ended::complete);
        count = life.journal.entries.size();
    }
    const auto resumed = [&](StagedWorld& staged) {
        staged.marks.before = staged.marks.after = nullptr;
        Life life(staged);
        life.driver.resume();
        CHECK(life.driver.walk() == Ended::complete);
        CHECK(staged.marks.acts == whole.marks.acts);
        CHECK(staged.world.dump() == whole.world.dump());
    };
    for (std::size_t cut = 1; cut < count; ++cut) {
        CAPTURE(cut);
        StagedWorld staged;
        {
            Life life(staged);
            life.journal.dies_after = cut;
            CHECK_THROWS(static_cast<void>(life.driver.walk()));
        }
        resumed(staged);
    }
    for (const std::string at : {"fetch", "settle"})
        for (const bool is_before : {true, false}) {
            StagedWorld staged;
            const auto kill = [&](const std::string& stage) {
                if (stage == at) throw StageKilled{};
            };
            (is_before ? staged.marks.before : staged.marks.after) = kill;
            {
                Life life(staged);
                CHECK_THROWS_AS(static_cast<void>(life.driver.walk()), StageKilled);
            }
            resumed(staged);
        }
}
}
