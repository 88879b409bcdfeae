// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/actor_parts/watchdog.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
using std::chrono::milliseconds;

namespace {

/// Something that another thread does, to be waited for.
class Signal {
public:
    void give() {
        const std::lock_guard lock(mutex_);
        given_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] bool comes() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return given_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool given_ = false;
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a word is said once, only of what takes too long, and not after its end") {
    Watchdog words;
    std::atomic<int> said{0};
    Signal late;
    auto quick = words.watch(std::chrono::hours(1), [&] { said += 100; });
    auto slow = words.watch(milliseconds(5), [&] {
        ++said;
        late.give();
    });
    auto failing = words.watch(milliseconds(1), [] { throw Error(Exit::io, "io", "no space"); });
    REQUIRE(late.comes());
    CHECK(slow.end());
    CHECK_FALSE(slow.end());
    CHECK_FALSE(quick.end());
    CHECK(failing.end());
    CHECK(said == 1);
}

TEST_CASE("a silence in words") {
    const Silence silence{"status", 1'790'000'000, 1'790'000'600};
    CHECK(silence.text() == "no answer to status since 14:13:20, waiting until 14:23:20");
    CHECK(silence.facts().get_string({"waitsUntil"}) == "2026-09-21T14:23:20Z");
}

TEST_CASE("a node that is silent for long is on record as such, and so is its answer") {
    World world(1);
    upgrade::Options options;
    options.node_timeout_ms = 60'000;
    auto run = world.prepare(options);
    MemoryJournal journal;
    Signal told;
    const auto started = [&] {
        journal.begin(upgrade::encode(run));
        upgrade::Run begun =
            upgrade::replay({{"2026-09-21T14:13:20Z", journal.entries.front()}}, upgrade::module::procedures());
        return begun;
    };
    std::string word, state;
    Recorder* recording = nullptr;
    Recorder recorder(started(), journal, world.clock, [&](const upgrade::Event& event, const std::string&) {
        if (event.kind != upgrade::EventKind::observed || event.facts.get_string({"waitsFor"}).empty()) return;
        word = recording->node("node-a").message;
        state = recording->node("node-a").state;
        told.give();
    });
    recording = &recorder;
    upgrade::Event begin;
    begin.kind = upgrade::EventKind::intent;
    begin.step = "nodes";
    begin.from = "upgrade-started";
    begin.to = "upgrading-nodes";
    recorder.record(begin);
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() == "status") CHECK(told.comes());
        return std::nullopt;
    };
    const auto never = [] { return false; };
    ModuleActor actor(world.store, world.workloads, world.nodes, recorder, world.clock, never, milliseconds(5));
    StepRunner steps(actor, recorder, world.clock, never);
    CHECK(steps.run({"node-a", "check"}) == StepEnd::done);
    CHECK(word == "no answer to status since 14:13:20, waiting until 14:14:20");
    CHECK(state == "pending");
    std::vector<std::string> messages;
    for (const auto& entry : journal.entries)
        if (entry.get_string({"event"}) == "observed") messages.push_back(entry.get_string({"message"}));
    REQUIRE(messages.size() == 2);
    CHECK(messages.back() == "answered after 0ms");
}

}  // TEST_SUITE
