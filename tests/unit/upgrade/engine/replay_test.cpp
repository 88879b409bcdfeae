// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>

#include "base/error.hpp"
#include "unit/upgrade/engine/make_run.hpp"

using namespace kmm::upgrade;
using kmm::upgrade::test::Journal;
using kmm::upgrade::test::make_run;
namespace test = kmm::upgrade::test;

namespace {

template <typename Body>
std::string code_of(Body&& body) {
    try {
        body();
    } catch (const kmm::Error& error) {
        return error.code();
    }
    return "";
}

}  // namespace

TEST_SUITE("upgrade::unit") {

TEST_CASE("a journal replays to the run it was written from, at every length") {
    std::mt19937 random(20261121);
    std::size_t lengths = 0;
    for (int round = 0; round < 24; ++round) {
        Options options;
        options.max_unavailable = 1 + round % 3;
        options.canary = round % 4;
        options.pause_after = round % 5;
        Journal journal(make_run(4, options));
        for (int turn = 0; turn < 6; ++turn) {
            journal.walk([&](const NodeStep&) { return random() % 6 == 0; });
            if (is_final_run_state(journal.run.state)) break;
            for (const auto& node : std::vector<NodeRecord>(journal.run.nodes)) {
                if (!is_failed_node_state(node.state)) continue;
                const bool skip = random() % 4 == 0 && node.state != "rolling-back-failed";
                journal.node(skip ? EventKind::skip : EventKind::retry, node.name, "", skip ? "skipped" : "pending");
            }
            if (journal.run.paused) journal.decision(EventKind::resumed);
        }
        Ledger grown(replay({journal.entries.front()}, module::procedures()));
        for (std::size_t length = 1; length <= journal.entries.size(); ++length) {
            const std::vector<TimedPayload> part(journal.entries.begin(),
                                                 journal.entries.begin() + static_cast<std::ptrdiff_t>(length));
            const Run run = replay(part, module::procedures());
            if (length > 1) grown.commit(grown.judge(decode_event(part.back().payload), part.back().time));
            CHECK(encode(run).same_value(encode(grown.run())));
            // The snapshot is the same run again.
            CHECK(encode(decode_run(encode(run), module::procedures())).same_value(encode(run)));
            ++lengths;
        }
        CHECK(encode(grown.run()).same_value([&] {
            auto live = encode(journal.run);
            live.set("events", static_cast<std::uint64_t>(journal.entries.size()));
            return live;
        }()));
    }
    CHECK(lengths > 400);
}

TEST_CASE("random events: what replay accepts is in the table, what is not is refused") {
    std::mt19937 random(7);
    const auto& procedure = module::procedure_module().table();
    const auto run_states = procedure.states(Scope::run);
    const auto node_states = procedure.states(Scope::node);
    const std::vector<EventKind> kinds = {EventKind::intent, EventKind::done,   EventKind::failed, EventKind::observed,
                                          EventKind::paused, EventKind::resumed, EventKind::retry,  EventKind::skip};
    std::size_t accepted = 0;
    std::size_t refused = 0;
    Run run = make_run(3);
    for (int round = 0; round < 60'000; ++round) {
        if (is_final_run_state(run.state)) run = make_run(3);
        Event event;
        event.kind = kinds[random() % kinds.size()];
        const bool on_node = random() % 4 != 0;
        if (on_node) event.node = run.nodes[random() % run.nodes.size()].name;
        const auto& states = on_node ? node_states : run_states;
        event.from = random() % 8 == 0 ? states[random() % states.size()]
                     : on_node         ? run.find(event.node)->state
                                       : run.state;
        event.to = states[random() % states.size()];
        event.step = procedure.steps()[random() % procedure.steps().size()].name;
        if (event.step == "abort") event.facts.set("rollback", "all");
        const Run before = run;
        try {
            test::apply(run, event, "t");
        } catch (const kmm::Error& error) {
            CHECK(error.code() == "state-damaged");
            CHECK(encode(run).same_value(encode(before)));
            ++refused;
            continue;
        }
        ++accepted;
        if (event.kind == EventKind::paused || event.kind == EventKind::resumed) continue;
        const bool stepless =
            event.kind == EventKind::observed || event.kind == EventKind::retry || event.kind == EventKind::skip;
        const Cause cause = event.kind == EventKind::intent     ? Cause::begin
                            : event.kind == EventKind::done     ? Cause::finish
                            : event.kind == EventKind::failed   ? Cause::fail
                            : event.kind == EventKind::observed ? Cause::observe
                            : event.kind == EventKind::retry    ? Cause::retry
                                                                : Cause::skip;
        CHECK(procedure.legal(
            Move{on_node ? Scope::node : Scope::run, event.from, event.to, cause, stepless ? "" : event.step}));
        CHECK(event.from == (on_node ? before.find(event.node)->state : before.state));
        std::size_t forward = 0;
        for (const auto& node : run.nodes)
            if (node.touched != 0 && !is_final_node_state(node.state)) ++forward;
        if (!run.rollback) CHECK(forward <= 1);
    }
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("damaged journals are named by entry") {
    Journal journal(make_run(2));
    journal.walk();
    const auto entries = journal.entries;
    struct Row {
        const char* what;
        std::function<void(std::vector<TimedPayload>&)> damage;
    };
    const std::vector<Row> rows = {
        {"an entry is missing", [](auto& list) { list.erase(list.begin() + 3); }},
        {"two are swapped", [](auto& list) { std::swap(list[3], list[4]); }},
        {"one is twice",
         [](auto& list) {
             list.insert(list.begin() + 4, list[3]);
             list[4].payload.set("event", "done");
             list[4].payload.set("to", "loaded");
         }},
        {"an unknown node", [](auto& list) { list[2].payload.set("node", "node-z"); }},
        {"an unknown kind", [](auto& list) { list[2].payload.set("event", "guess"); }},
        {"a wrong type", [](auto& list) { list[2].payload.set("to", 7); }},
        {"it goes on after the end", [](auto& list) { list.push_back(list[2]); }},
        {"no header", [](auto& list) { list.erase(list.begin()); }},
        {"a header in the middle", [](auto& list) { list[0].payload.set("state", "upgrading-nodes"); }},
        {"two nodes of one name", [](auto& list) { list[0].payload.find("nodes")->items()[1].set("name", "node-a"); }},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        auto damaged = entries;
        row.damage(damaged);
        CHECK(code_of([&] { static_cast<void>(replay(damaged, module::procedures())); }) == "state-damaged");
    }
    CHECK(code_of([&] { static_cast<void>(replay(entries, module::procedures())); }).empty());
}

TEST_CASE("a newer format is refused, unknown members are kept") {
    auto header = encode(make_run(1));
    header.set("colour", "green");
    const Run run = replay({{"t", header}}, module::procedures());
    CHECK(encode(run).get_string({"colour"}) == "green");
    auto event = encode(Event{EventKind::paused, "", "", "", "", "manual", "", {}, {}});
    event.set("weather", "fine");
    CHECK(encode(decode_event(event)).get_string({"weather"}) == "fine");
    header.set("minReader", 2);
    CHECK(code_of([&] { static_cast<void>(replay({{"t", header}}, module::procedures())); }) == "state-newer");
    header.set("minReader", 1);
    header.set("procedure", "kubernetes");
    CHECK(code_of([&] { static_cast<void>(replay({{"t", header}}, module::procedures())); }) == "state-newer");
    // Members of a procedure that is not known are not judged.
    header.erase("moduleName");
    header.erase("toVersion");
    header.set("options", "none");
    CHECK(code_of([&] { static_cast<void>(replay({{"t", header}}, module::procedures())); }) == "state-newer");
}
}
