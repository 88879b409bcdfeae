// SPDX-License-Identifier: Apache-2.0
// The recorder's promises to those who record and to those who watch, and the pool that walks nodes.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "upgrade/drive/pool.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

upgrade::Event begin_nodes() {
    upgrade::Event event;
    event.kind = upgrade::EventKind::intent;
    event.step = "nodes";
    event.from = "upgrade-started";
    event.to = "upgrading-nodes";
    return event;
}

upgrade::Event look_at_node(const std::string& node) {
    upgrade::Event event;
    event.kind = upgrade::EventKind::observed;
    event.node = node;
    event.from = event.to = "pending";
    event.message = "seen";
    return event;
}

/// Refuses snapshots, as a full disk does.
class NoRoom final : public Journal {
public:
    void begin(const value::Node&) override {}
    void append(const value::Node&) override {}
    void snapshot(const value::Node&) override { throw Error(Exit::io, "io", "no space left"); }
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("an event that is durable is recorded, whatever observers and snapshots do") {
    World world;
    NoRoom journal;
    Recorder recorder(world.prepare(), journal, world.clock,
                      [](const upgrade::Event&, const std::string&) { throw std::bad_alloc(); });
    CHECK_NOTHROW(recorder.record(begin_nodes()));
    CHECK(recorder.state().state == "upgrading-nodes");
    upgrade::Event paused;
    paused.kind = upgrade::EventKind::paused;
    paused.reason = "manual";
    CHECK_NOTHROW(recorder.record(paused));
    CHECK(recorder.state().paused);
    CHECK_NOTHROW(recorder.save());
}

TEST_CASE("a slow observer holds up nobody but whoever is calling it, and sees the order of the journal") {
    World world;
    MemoryJournal journal;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_held = true;
    std::atomic<bool> is_observing{false};
    std::vector<std::string> seen;
    Recorder recorder(world.prepare(), journal, world.clock, [&](const upgrade::Event& event, const std::string&) {
        is_observing = true;
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !is_held; });
        seen.push_back(event.node.empty() ? event.step : event.node);
    });
    std::thread slow([&] { recorder.record(begin_nodes()); });
    while (!is_observing) std::this_thread::yield();
    recorder.record(look_at_node("node-b"));
    recorder.record(look_at_node("node-a"));
    CHECK(journal.entries.size() == 3);
    CHECK(recorder.node("node-a").message == "seen");
    {
        const std::lock_guard lock(mutex);
        is_held = false;
    }
    changed.notify_all();
    slow.join();
    CHECK(seen == std::vector<std::string>{"nodes", "node-b", "node-a"});
}

TEST_CASE("recording costs the same in a small and in a large run") {
    const auto cost = [](int nodes) {
        World world;
        auto run = world.prepare();
        const auto sample = run.nodes.front();
        for (int index = 0; index < nodes; ++index) {
            run.nodes.push_back(sample);
            run.nodes.back().name = "other-" + std::to_string(index);
        }
        MemoryJournal journal;
        Recorder recorder(run, journal, world.clock, {});
        recorder.record(begin_nodes());
        auto best = std::chrono::nanoseconds::max();
        for (int round = 0; round < 5; ++round) {
            const auto begin = std::chrono::steady_clock::now();
            for (int event = 0; event < 50; ++event) recorder.record(look_at_node("node-a"));
            best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin));
        }
        return best;
    };
    const auto small = cost(10), large = cost(4000);
    MESSAGE("50 events: ", small.count(), " ns in a run of 13 nodes, ", large.count(), " ns in one of 4003");
    CHECK(large < small * 20);  // it was some 400 times as long when the run was copied for each event
}

TEST_CASE("a pool is bounded, takes nothing that has to wait, and ends when all is done") {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_held = true;
    std::atomic<int> done{0};
    const auto task = [&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !is_held; });
        ++done;
    };
    {
        Pool pool(3);
        for (int index = 0; index < 3; ++index) CHECK(pool.try_run(task));
        CHECK_FALSE(pool.try_run(task));
        CHECK(pool.threads() == 3);
        {
            const std::lock_guard lock(mutex);
            is_held = false;
        }
        changed.notify_all();
        while (done < 3 || !pool.try_run(task)) std::this_thread::yield();
        CHECK(pool.threads() == 3);
    }
    CHECK(done == 4);
}

TEST_CASE("a thread of a pool says that it is idle when the pool takes a task again, and not before") {
    std::mutex mutex;
    std::condition_variable changed;
    int idle = 0, taken = 0;
    Pool* shared = nullptr;
    const auto on_idle = [&] {
        const std::lock_guard lock(mutex);
        ++idle;
        if (taken < 100 && shared->try_run([] {})) ++taken;
        changed.notify_all();
    };
    {
        Pool pool(1, on_idle);
        shared = &pool;
        CHECK(pool.try_run([] {}));
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return idle == 101; });
        CHECK(taken == 100);
    }
    CHECK(idle == 101);
}
}
