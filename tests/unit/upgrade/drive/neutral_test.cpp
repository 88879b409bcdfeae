// SPDX-License-Identifier: Apache-2.0
// The engine's hands with a procedure that is not about modules: steps of the run, walks with a rest between them,
// failed, retried, aborted, killed at every record and around everything that changes something.
#include <doctest/doctest.h>

#include <set>

#include "support/fake_actor.hpp"
#include "support/idle_clock.hpp"
#include "support/mortal_journal.hpp"
#include "sys/temp_dir.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/engine/replay.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace fs = std::filesystem;

namespace {

const upgrade::test::FakeProcedure k_procedure;

struct Killed {};

/// A directory with nodes that run v1, the depot with v2, and the journal.
struct Parcels {
    sys::TempDir directory{"kmm-neutral"};
    fs::path root = directory.path();
    std::vector<value::Node> entries;

    explicit Parcels(int nodes, std::int64_t at_once = 1) {
        upgrade::Run run;
        run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
        run.procedure = "fake";
        run.rules = &k_procedure;
        run.subject = value::Node::mapping({{"parcel", "box"}});
        run.from_version = "v1";
        run.to_version = "v2";
        run.state = "upgrade-started";
        run.options.max_unavailable = at_once;
        fs::create_directories(root / "depot");
        std::ofstream(root / "depot" / "v2") << "the parcel\n";
        for (int index = 0; index < nodes; ++index) {
            upgrade::NodeRecord node;
            node.name = std::string("node-") + static_cast<char>('a' + index);
            node.from_version = node.current_version = "v1";
            fs::create_directories(root / "nodes" / node.name);
            std::ofstream(root / "nodes" / node.name / "running") << "v1\n";
            run.nodes.push_back(node);
        }
        entries.push_back(upgrade::encode(run));
    }
    void fault(const std::string& node, const std::string& line) const {
        std::ofstream((node.empty() ? root : root / "nodes" / node) / "faults", std::ios::app) << line << "\n";
    }
    void mend(const std::string& node) const { fs::remove((node.empty() ? root : root / "nodes" / node) / "faults"); }
    /// Every file and its text, but for the faults.
    [[nodiscard]] std::string dump() const {
        std::set<std::string> lines;
        for (const auto& entry : fs::recursive_directory_iterator(root))
            if (entry.is_regular_file() && entry.path().filename() != "faults")
                lines.insert(fs::relative(entry.path(), root).string() + ": " + FakeActor::read(entry.path()) + "\n");
        std::string all;
        for (const auto& line : lines) all += line;
        return all;
    }
};

/// One life of the program.
struct Life {
    Parcels& parcels;
    IdleClock clock;
    MortalJournal journal;
    Recorder recorder;
    bool stop = false;
    FakeActor actor;
    Driver driver;

    explicit Life(Parcels& in)
        : parcels(in),
          recorder(run_of(in), journal, clock, {}),
          actor(in.root, recorder),
          driver(actor, recorder, clock, [this] { return stop; }) {
        journal.entries = in.entries;
    }
    ~Life() { parcels.entries = journal.entries; }
    static upgrade::Run run_of(const Parcels& in) {
        std::vector<upgrade::TimedPayload> payloads;
        for (const auto& entry : in.entries) payloads.push_back({"t", entry});
        return upgrade::replay(payloads, {&k_procedure});
    }
    [[nodiscard]] std::string state() const { return recorder.state().state; }
    /// Goes on through the stop after the first walk.
    [[nodiscard]] Ended finish() {
        auto ended = driver.walk();
        if (ended != Ended::paused || recorder.state().pause_reason != "first") return ended;
        driver.resume();
        return driver.walk();
    }
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a run stops where it was told to when it began, whoever goes on with it") {
    Parcels parcels(2);
    parcels.entries.front().set("until", "fetched");
    {
        Life life(parcels);
        life.stop = true;  // before anything is done
        CHECK(life.driver.walk() == Ended::interrupted);
    }
    {
        Life life(parcels);
        life.driver.resume();
        CHECK(life.driver.walk() == Ended::paused);
        CHECK(life.state() == "fetched");
        CHECK(life.recorder.state().pause_reason == "until");
    }
    Life life(parcels);
    SUBCASE("and goes on to its end when it is resumed there") {
        life.driver.resume();
        CHECK(life.finish() == Ended::complete);
    }
    SUBCASE("or to another state") {
        life.driver.resume({"switched"});
        CHECK(life.finish() == Ended::paused);
        CHECK(life.state() == "switched");
        life.driver.resume();
        CHECK(life.driver.walk() == Ended::complete);
    }
    SUBCASE("a step that is asked for goes past it") {
        CHECK(life.driver.step("") == Ended::paused);
        CHECK(life.recorder.state().pause_reason == "manual");
        CHECK(life.recorder.state().until.empty());
    }
    SUBCASE("a step stops in it") {
        life.driver.resume({"walked-first"});
        for (int steps = 0; life.state() != "walked-first" && steps < 20; ++steps)
            CHECK(life.driver.step("") == Ended::paused);
        CHECK(life.state() == "walked-first");
    }
}

TEST_CASE("a run of a procedure that is not about modules goes from its first stage to its last") {
    Parcels parcels(3);
    Life life(parcels);
    CHECK(life.driver.walk() == Ended::paused);
    CHECK(life.state() == "walked-first");
    CHECK(life.recorder.node("node-b").state == "copied");
    CHECK(life.recorder.node("node-b").facts.get_string({"copied"}) == "v2");
    life.driver.resume();
    CHECK(life.driver.walk() == Ended::complete);
    for (const auto* node : {"node-a", "node-b", "node-c"})
        CHECK(FakeActor::read(parcels.root / "nodes" / node / "running") == "v2");
    CHECK(life.recorder.node("node-c").current_version == "v2");
}

TEST_CASE("a step of the run that fails is recorded with its code and hint; retry, resume and step begin it again") {
    for (const std::string way : {"retry", "resume", "step"}) {
        CAPTURE(way);
        Parcels parcels(2);
        parcels.fault("", "switch fail");
        {
            Life life(parcels);
            CHECK(life.finish() == Ended::paused);
            CHECK(life.state() == "switching-failed");
            const auto at = life.recorder.state();
            CHECK(at.pause_reason == "step-failed");
            CHECK(at.pause_message == "switch: refused");
            CHECK(at.step_message == "it refuses switch");
            CHECK(at.step_hint == "mend it");
        }
        parcels.mend("");
        Life life(parcels);
        if (way == "retry") life.driver.retry("");
        if (way == "resume") life.driver.resume();
        if (way == "step") {
            CHECK(life.driver.step_stage("switch") == Ended::paused);
            CHECK(life.state() == "switched");
        }
        if (way == "step") life.driver.resume();
        CHECK(life.driver.walk() == Ended::complete);
        CHECK(life.recorder.state().step_reason.empty());
    }
}

TEST_CASE("step STAGE goes through one stage, a node of it or a step of the run, and refuses another one") {
    Parcels parcels(2);
    Life life(parcels);
    try {
        static_cast<void>(life.driver.step_stage("second"));
        FAIL("it was taken");
    } catch (const Error& error) {
        CHECK(error.code() == "step-not-allowed");
        CHECK(error.message() == "stage second is not next: the run is in upgrade-started");
        CHECK(error.hint() == "kmm-upgrade step fetch");
    }
    try {
        static_cast<void>(life.driver.step_stage("sceond"));
        FAIL("it was taken");
    } catch (const Error& error) {
        CHECK(error.code() == "stage-not-found");
        CHECK(error.hint() == "did you mean second?");
    }
    CHECK(life.driver.step_stage("fetch") == Ended::paused);
    CHECK(life.recorder.state().pause_reason == "manual");
    CHECK(life.driver.step_stage("first") == Ended::paused);
    CHECK(life.recorder.node("node-a").state == "copied");
    CHECK(life.recorder.node("node-b").state == "copied");
    CHECK(life.state() == "walked-first");
    CHECK(life.driver.step_stage("switch") == Ended::paused);
    CHECK(life.driver.step_stage("second") == Ended::complete);
}

TEST_CASE("nodes that are done are looked at again before the run is complete, however long ago the last walk ended") {
    Parcels parcels(2);
    parcels.entries.front().set("until", "walked-second");
    {
        Life life(parcels);
        CHECK(life.finish() == Ended::paused);
        CHECK(life.state() == "walked-second");
    }
    const auto running = parcels.root / "nodes" / "node-b" / "running";
    std::ofstream(running) << "v1\n";
    std::size_t begun = 0;
    {
        Life life(parcels);
        life.driver.resume();
        CHECK(life.driver.walk() == Ended::paused);
        CHECK(life.state() == "walking-second-failed");
        CHECK(life.recorder.node("node-b").state == "proving-failed");
        CHECK(life.recorder.state().pause_message == "node-b: changed");
        begun = life.journal.entries.size();
    }
    // Killed between the two records of it.
    parcels.entries.resize(begun - 2);
    {
        Life life(parcels);
        CHECK(life.recorder.node("node-b").state == "proving-failed");
        CHECK(life.state() == "walked-second");
        CHECK(life.driver.walk() == Ended::paused);
        CHECK(life.state() == "walking-second-failed");
    }
    Life life(parcels);
    life.driver.retry("node-b");
    CHECK(life.driver.walk() == Ended::complete);
    CHECK(FakeActor::read(running) == "v2");
}

TEST_CASE("a node that fails in the second walk is tried again from its rest, and given up where it has left") {
    Parcels parcels(2);
    parcels.fault("node-a", "prove fail");
    Life life(parcels);
    CHECK(life.finish() == Ended::paused);
    CHECK(life.recorder.node("node-a").state == "proving-failed");
    CHECK(life.recorder.node("node-a").facts.get_string({"noise"}) == "prove has failed");
    SUBCASE("mended") {
        parcels.mend("node-a");
        life.driver.retry("node-a");
        CHECK(life.recorder.node("node-a").state == "copied");
        CHECK(life.driver.walk() == Ended::complete);
    }
    SUBCASE("gone") {
        fs::remove_all(parcels.root / "nodes" / "node-a");
        life.driver.retry("node-a");
        CHECK(life.driver.walk() == Ended::complete);
        CHECK(life.recorder.node("node-a").state == "skipped");
        CHECK(life.recorder.node("node-a").reason == "gone");
    }
}

TEST_CASE("what somebody has changed behind a done node is found before the run says that it is complete") {
    Parcels parcels(2);
    Life life(parcels);
    life.actor.on_point = [&](const std::string&) {
        if (life.recorder.node("node-a").state == "done")
            std::ofstream(parcels.root / "nodes" / "node-a" / "running") << "v0\n";
    };
    CHECK(life.finish() == Ended::paused);
    CHECK(life.recorder.node("node-a").state == "proving-failed");
    life.actor.on_point = nullptr;
    life.driver.retry("node-a");
    CHECK(life.driver.walk() == Ended::complete);
}

TEST_CASE("an abort rolls back what was begun, newest first, after any stage") {
    for (const std::string at : {"switch", "restart", "copy"}) {
        CAPTURE(at);
        Parcels parcels(2);
        const auto before = FakeActor::read(parcels.root / "nodes" / "node-b" / "running");
        parcels.fault(at == "switch" ? "" : "node-b", at + " fail");
        Life life(parcels);
        CHECK(life.finish() == Ended::paused);
        CHECK(life.driver.abort(upgrade::Rollback::all) == Ended::aborted);
        for (const auto* node : {"node-a", "node-b"}) {
            CHECK(FakeActor::read(parcels.root / "nodes" / node / "running") == before);
            CHECK_FALSE(fs::exists(parcels.root / "nodes" / node / "copy"));
        }
    }
}

TEST_CASE("a person who interrupts finds the step open, and resume goes on") {
    Parcels parcels(2);
    {
        Life life(parcels);
        life.actor.on_point = [&](const std::string& point) {
            if (point != "before stage") return;
            life.stop = true;
            throw Error(Exit::interrupted, "interrupted", "interrupted");
        };
        CHECK(life.driver.walk() == Ended::interrupted);
        CHECK(life.state() == "fetching");
    }
    Life life(parcels);
    life.driver.resume();
    CHECK(life.finish() == Ended::complete);
}

TEST_CASE("a connection that is lost before or after any step fails it, and what follows ends as without") {
    Parcels whole(2);
    {
        Life life(whole);
        CHECK(life.finish() == Ended::complete);
    }
    for (const std::string step : {"fetch", "copy", "check", "switch", "restart", "prove"})
        for (const std::string kind : {"lost-before", "lost-after"}) {
            CAPTURE(step);
            CAPTURE(kind);
            Parcels parcels(2);
            parcels.fault(step == "fetch" || step == "switch" ? "" : "node-b", step + " " + kind);
            Life life(parcels);
            CHECK(life.finish() == Ended::paused);
            life.driver.resume();
            CHECK(life.finish() == Ended::complete);
            CHECK(parcels.dump() == whole.dump());
        }
}

TEST_CASE("killed at every record and around everything that changes something, resumed to the same end") {
    for (const bool aborts : {false, true}) {
        const auto play = [&](Life& life, bool is_resumed) {
            if (is_resumed) life.driver.resume();
            auto ended = life.finish();
            if (aborts && ended == Ended::paused) ended = life.driver.abort(upgrade::Rollback::all);
            return ended;
        };
        const auto prepare = [&](Parcels& parcels) {
            if (aborts) parcels.fault("node-b", "prove fail");
        };
        Parcels whole(2);
        prepare(whole);
        std::size_t records = 0, points = 0;
        {
            Life life(whole);
            life.actor.on_point = [&](const std::string&) { ++points; };
            CHECK(play(life, false) == (aborts ? Ended::aborted : Ended::complete));
            records = life.journal.entries.size();
        }
        REQUIRE(points > 8);
        const auto ends_as_whole = [&](Parcels& parcels) {
            Life life(parcels);
            CHECK(play(life, true) == (aborts ? Ended::aborted : Ended::complete));
            CHECK(parcels.dump() == whole.dump());
        };
        for (std::size_t cut = 1; cut < records; ++cut) {
            CAPTURE(cut);
            Parcels parcels(2);
            prepare(parcels);
            {
                Life life(parcels);
                life.journal.dies_after = cut;
                CHECK_THROWS(static_cast<void>(play(life, false)));
            }
            ends_as_whole(parcels);
        }
        for (std::size_t at = 0; at < points; ++at) {
            CAPTURE(at);
            Parcels parcels(2);
            prepare(parcels);
            {
                Life life(parcels);
                std::size_t seen = 0;
                life.actor.on_point = [&](const std::string&) {
                    if (seen++ == at) throw Killed{};
                };
                CHECK_THROWS_AS(static_cast<void>(play(life, false)), Killed);
            }
            ends_as_whole(parcels);
        }
    }
}

TEST_CASE("two nodes at once in both walks, and the run ends as one by one") {
    Parcels one(5), two(5, 2);
    {
        Life life(one);
        CHECK(life.finish() == Ended::complete);
    }
    Life life(two);
    CHECK(life.finish() == Ended::complete);
    CHECK(two.dump() == one.dump());
}

}  // TEST_SUITE
