// SPDX-License-Identifier: Apache-2.0
// The program dies at every record, every cluster write and every call to a node; resume must reach the end of an
// undisturbed run.
#include <doctest/doctest.h>

#include "unit/drive/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

struct Killed {};

enum class Where { before_record, after_record, before_write, before_call, after_call };

/// Dies at the `when`-th point of kind `where`; -1 only counts.
struct Killer {
    Where where;
    int when;
    int count = 0;
    void point(Where here) {
        if (here == where && count++ == when) throw Killed{};
    }
};

class KillJournal final : public Journal {
public:
    KillJournal(MemoryJournal& inner, Killer& killer) : inner_(inner), killer_(killer) {}
    void begin(const value::Node& header) override { inner_.begin(header); }
    void append(const value::Node& event) override {
        killer_.point(Where::before_record);
        inner_.append(event);
        killer_.point(Where::after_record);
    }
    void snapshot(const value::Node&) override {}

private:
    MemoryJournal& inner_;
    Killer& killer_;
};

enum class Scene { upgrade, rollback, first_install };

/// Drives `scene` on `world` from a journal (empty: from the start). Returns how it ended.
Ended play(World& world, MemoryJournal& journal, Killer& killer, Scene scene) {
    upgrade::Options options;
    if (scene == Scene::rollback) options.canary = 1;
    if (journal.entries.empty()) {
        auto run = world.prepare(options);
        journal.begin(upgrade::encode(run));
    }
    KillJournal dying(journal, killer);
    Recorder recorder(Drive::replayed(journal.entries), dying, world.clock, {});
    Driver driver(world.store, world.nodes, recorder, world.clock, [] { return false; });
    // Whoever wanted the abort asks for it again when the kill came before it was recorded.
    if (scene == Scene::rollback && recorder.run().state == "upgraded-canary") return driver.abort(upgrade::Rollback::all);
    if (journal.entries.size() > 1) driver.resume();
    auto ended = driver.walk();
    if (scene == Scene::rollback && ended == Ended::paused) ended = driver.abort(upgrade::Rollback::all);
    return ended;
}

std::string reference(Scene scene) {
    World world(2, scene != Scene::first_install);
    MemoryJournal journal;
    Killer killer{Where::before_record, -1};
    const auto ended = play(world, journal, killer, scene);
    CHECK(ended == (scene == Scene::rollback ? Ended::aborted : Ended::complete));
    return world.dump();
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("killed anywhere, resumed to the same end") {
    std::size_t points = 0;
    for (const auto scene : {Scene::upgrade, Scene::rollback, Scene::first_install}) {
        const auto expected = reference(scene);
        for (const auto where :
             {Where::before_record, Where::after_record, Where::before_write, Where::before_call, Where::after_call}) {
            for (int when = 0;; ++when) {
                World world(2, scene != Scene::first_install);
                MemoryJournal journal;
                Killer killer{where, when};
                // Preparing a run records nothing: the walk is what is killed.
                upgrade::Options options;
                if (scene == Scene::rollback) options.canary = 1;
                journal.begin(upgrade::encode(world.prepare(options)));
                world.store.on_write = [&] { killer.point(Where::before_write); };
                world.nodes.fault = [&](const cluster::WorkerCall&, const auto& act) -> std::optional<cluster::WorkerReply> {
                    killer.point(Where::before_call);
                    auto reply = act();
                    killer.point(Where::after_call);
                    return reply;
                };
                bool killed = false;
                try {
                    static_cast<void>(play(world, journal, killer, scene));
                } catch (const Killed&) {
                    killed = true;
                }
                if (!killed) break;
                ++points;
                world.store.on_write = nullptr;
                world.nodes.fault = nullptr;
                Killer calm{where, -1};
                Ended ended = Ended::paused;
                for (int turn = 0; turn < 3 && ended == Ended::paused; ++turn) ended = play(world, journal, calm, scene);
                CAPTURE(static_cast<int>(scene));
                CAPTURE(static_cast<int>(where));
                CAPTURE(when);
                CHECK(ended == (scene == Scene::rollback ? Ended::aborted : Ended::complete));
                CHECK(world.dump() == expected);
            }
        }
    }
    MESSAGE("kill points: ", points);
    CHECK(points > 200);
}
}
