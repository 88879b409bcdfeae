// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/engine/make_run.hpp"
#include "upgrade/engine/pace.hpp"

using namespace kmm::upgrade;
using namespace kmm::upgrade::test;

namespace {

std::vector<std::string> checked(const std::vector<NodeStep>& steps) {
    std::vector<std::string> names;
    for (const auto& step : steps)
        if (step.step == "check") names.push_back(step.node);
    return names;
}

}  // namespace

TEST_SUITE("upgrade::unit") {

TEST_CASE("windows of a day, over midnight too") {
    const auto night = parse_window("22:00-04:00");
    REQUIRE(night.has_value());
    const auto day = parse_window("09:30-17:00");
    REQUIRE(day.has_value());
    struct Row {
        int hour, minute, until_night, until_day;
    };
    for (const auto& row :
         {Row{22, 0, 0, 690}, Row{23, 59, 0, 571}, Row{0, 0, 0, 570}, Row{3, 59, 0, 331}, Row{4, 0, 1080, 330},
          Row{9, 29, 751, 1}, Row{9, 30, 750, 0}, Row{16, 59, 301, 0}, Row{17, 0, 300, 990}, Row{21, 59, 1, 691}}) {
        const int minute = row.hour * 60 + row.minute;
        CAPTURE(clock_time(minute));
        CHECK(night->minutes_until(minute) == row.until_night);
        CHECK(night->contains(minute) == (row.until_night == 0));
        CHECK(day->minutes_until(minute) == row.until_day);
        CHECK(day->contains(minute) == (row.until_day == 0));
    }
    for (const auto* text : {"", "22:00", "22:00-", "22:00-22:00", "24:00-04:00", "22:60-04:00", "2:00-04:00",
                             "22:00-04:00 ", "a2:00-04:00"})
        CHECK_FALSE(parse_window(text).has_value());
}

TEST_CASE("command lines are read as a shell reads them, without expanding anything") {
    using Words = std::vector<std::string>;
    struct Row {
        const char* text;
        Words words;  ///< empty: refused
    };
    for (const auto& row : {Row{"check", {"check"}},
                            Row{"  check  -a\t$HOME *\n", {"check", "-a", "$HOME", "*"}},
                            Row{"sh -c 'test \"$x\" = 1'", {"sh", "-c", "test \"$x\" = 1"}},
                            Row{"a \"b c\" \"d\\\"e\" \"f\\n\"", {"a", "b c", "d\"e", "f\\n"}},
                            Row{"a b\\ c ''", {"a", "b c", ""}},
                            Row{"a\"b\"'c'", {"abc"}},
                            Row{"", {}},
                            Row{"   ", {}},
                            Row{"''", {}},
                            Row{"a 'b", {}},
                            Row{"a \"b", {}},
                            Row{"a \\", {}}}) {
        CAPTURE(row.text);
        CHECK(command_words(row.text).value_or(Words{}) == row.words);
    }
}

TEST_CASE("within the failure budget other nodes are begun, over it none") {
    for (const int budget : {0, 1, 2, 5}) {
        CAPTURE(budget);
        Options options;
        options.failure_budget = budget;
        Journal journal(make_run(5, options));
        const auto names =
            checked(journal.walk([](const NodeStep& step) { return step.step == "load" && step.node != "node-b"; }));
        // node-b is good: with budget N the walk ends behind the failure N + 1.
        const std::size_t begun = budget == 0 ? 1 : std::min<std::size_t>(static_cast<std::size_t>(budget) + 2, 5);
        CHECK(names.size() == begun);
        CHECK(journal.run.state == "upgrading-nodes-failed");
        CHECK(journal.run.pause_reason == "node-failed");
        CHECK(is_through(journal.run) == (budget == 5));
        CHECK(replay(journal.entries, module::procedures()).state == journal.run.state);
    }
}

TEST_CASE("nodes that failed within the budget are tried again in turns") {
    Options options;
    options.failure_budget = 3;
    options.max_unavailable = 2;
    Journal journal(make_run(4, options));
    static_cast<void>(journal.walk([](const NodeStep& step) { return step.step == "load" && step.node != "node-d"; }));
    CHECK(is_through(journal.run));
    journal.decision(EventKind::resumed);
    for (const auto* name : {"node-a", "node-b", "node-c"}) journal.node(EventKind::retry, name, "", "pending");
    journal.add(next_steps(journal.run, {}).event);
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "check"}, {"node-b", "check"}});
    CHECK(next_steps(journal.run, {"node-a", "node-b"}).next == Next::wait);
    static_cast<void>(journal.walk());
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("canaries have no failure budget") {
    Options options;
    options.failure_budget = 3;
    options.canary = 2;
    Journal journal(make_run(4, options));
    CHECK(checked(journal.walk([](const NodeStep& step) { return step.step == "load"; })) ==
          std::vector<std::string>{"node-a"});
    CHECK(journal.run.state == "upgrading-canary-failed");
}

TEST_CASE("one zone is finished before the next is begun") {
    Options options;
    options.order = "zone";
    options.max_unavailable = 3;
    auto run = make_run(5, options);
    for (const auto& [name, zone] :
         {std::pair{"node-a", "east"}, {"node-b", "east"}, {"node-c", "west"}, {"node-d", "west"}, {"node-e", ""}})
        run.find(name)->zone = zone;
    Journal journal(run);
    journal.add(next_steps(journal.run, {}).event);
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "check"}, {"node-b", "check"}});
    CHECK(next_steps(journal.run, {"node-a", "node-b"}).next == Next::wait);
    CHECK(checked(journal.walk()) == std::vector<std::string>{"node-a", "node-b", "node-c", "node-d", "node-e"});
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(replay(journal.entries, module::procedures()).find("node-c")->zone == "west");
}
}
