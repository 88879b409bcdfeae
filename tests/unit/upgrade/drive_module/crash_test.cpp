// SPDX-License-Identifier: Apache-2.0
// The program dies at every record, every cluster write and every call to a node; resume must reach the end of an
// undisturbed run.
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"

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

/// Those named drain drain the nodes; node-b is cordoned by somebody else. `drain_abort`: node-a cannot be unloaded.
/// Those named apply have no versions: node-a gets another image, node-b is not selected any more.
enum class Scene {
    upgrade,
    rollback,
    first_install,
    apply,
    apply_rollback,
    drain,
    drain_rollback,
    drain_abort,
    drain_apply
};

bool drains(Scene scene) { return scene >= Scene::drain; }
bool applies(Scene scene) {
    return scene == Scene::apply || scene == Scene::apply_rollback || scene == Scene::drain_apply;
}
bool rolls_back(Scene scene) {
    return scene == Scene::rollback || scene == Scene::drain_rollback || scene == Scene::apply_rollback;
}
bool aborts(Scene scene) { return rolls_back(scene) || scene == Scene::drain_abort; }

struct Staged : World {
    explicit Staged(Scene scene) : World(2, scene != Scene::first_install) {
        if (applies(scene)) without_versions();
        if (!drains(scene)) return;
        workloads.cordons["node-b"] = {true, "an admin"};
        workloads.pods_of["node-a"] = {make_pod("shop", "web-1"), make_pod("shop", "web-2"),
                                       make_pod("infra", "log-1", "DaemonSet")};
        workloads.pods_of["node-b"] = {make_pod("shop", "web-3")};
    }
    [[nodiscard]] upgrade::Run begin(Scene scene) {
        upgrade::Options options;
        if (rolls_back(scene)) options.canary = 1;
        options.drain = drains(scene);
        if (applies(scene)) return prepare_apply(options);
        auto run = prepare(options);
        if (scene == Scene::drain_abort) nodes.nodes["node-a"].live = "CCCC3333";
        return run;
    }
};

/// Drives `scene` on `world` from a journal (empty: from the start). Returns how it ended.
Ended play(Staged& world, MemoryJournal& journal, Killer& killer, Scene scene) {
    if (journal.entries.empty()) journal.begin(upgrade::encode(world.begin(scene)));
    KillJournal dying(journal, killer);
    Recorder recorder(Drive::replayed(journal.entries), dying, world.clock, {});
    const auto never = [] { return false; };
    ModuleActor actor(world.store, world.workloads, world.nodes, recorder, world.clock, never);
    Driver driver(actor, recorder, world.clock, never);
    // Whoever wanted the abort asks for it again when the kill came before it was recorded.
    const auto state = recorder.run().state;
    if (rolls_back(scene) && state == "upgraded-canary") return driver.abort(upgrade::Rollback::all);
    if (scene == Scene::drain_abort && state == "upgrading-nodes-failed") return driver.abort(upgrade::Rollback::none);
    if (journal.entries.size() > 1) driver.resume();
    auto ended = driver.walk();
    if (rolls_back(scene) && ended == Ended::paused) ended = driver.abort(upgrade::Rollback::all);
    if (scene == Scene::drain_abort && ended == Ended::paused) ended = driver.abort(upgrade::Rollback::none);
    return ended;
}

std::string reference(Scene scene) {
    Staged world(scene);
    MemoryJournal journal;
    Killer killer{Where::before_record, -1};
    const auto ended = play(world, journal, killer, scene);
    CHECK(ended == (aborts(scene) ? Ended::aborted : Ended::complete));
    if (drains(scene)) {
        CHECK_FALSE(world.workloads.cordons["node-a"].unschedulable);
        CHECK(world.workloads.cordons["node-b"] == cluster::Cordon{true, "an admin"});
    }
    return world.dump();
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("killed anywhere, resumed to the same end") {
    std::size_t points = 0;
    for (const auto scene : {Scene::upgrade, Scene::rollback, Scene::first_install, Scene::apply, Scene::apply_rollback,
                             Scene::drain, Scene::drain_rollback, Scene::drain_abort, Scene::drain_apply}) {
        const auto expected = reference(scene);
        for (const auto where :
             {Where::before_record, Where::after_record, Where::before_write, Where::before_call, Where::after_call}) {
            for (int when = 0;; when += k_stride) {
                Staged world(scene);
                MemoryJournal journal;
                Killer killer{where, when};
                // Preparing a run records nothing: the walk is what is killed.
                journal.begin(upgrade::encode(world.begin(scene)));
                world.store.on_write = [&] { killer.point(Where::before_write); };
                world.workloads.on_write = world.store.on_write;
                world.nodes.fault = [&](const cluster::WorkerCall&,
                                        const auto& act) -> std::optional<cluster::WorkerReply> {
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
                // What is cordoned in the name of the run is in the record.
                if (const auto there = world.workloads.cordons["node-a"]; there.unschedulable)
                    CHECK(Drive::replayed(journal.entries).find("node-a")->cordon == upgrade::k_cordon_ours);
                world.store.on_write = world.workloads.on_write = nullptr;
                world.nodes.fault = nullptr;
                Killer calm{where, -1};
                Ended ended = Ended::paused;
                for (int turn = 0; turn < 3 && ended == Ended::paused; ++turn)
                    ended = play(world, journal, calm, scene);
                CAPTURE(static_cast<int>(scene));
                CAPTURE(static_cast<int>(where));
                CAPTURE(when);
                CHECK(ended == (aborts(scene) ? Ended::aborted : Ended::complete));
                CHECK(world.dump() == expected);
            }
        }
    }
    MESSAGE("kill points: ", points);
    CHECK(points > 200 / k_stride);
}
}
