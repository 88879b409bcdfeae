// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "api/codec.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/module_nodes/operator_check.hpp"
#include "upgrade/module_nodes/operator_view.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

const std::string k_module = api::label_version_module("drivers", "kmm-hello");
const std::string k_worker = api::label_version_worker_pod("drivers", "kmm-hello");
const std::string k_schedule = api::label_version_schedule_pod("drivers", "kmm-hello");
const std::string k_ready = api::label_ready("drivers", "kmm-hello");
const std::string k_version_ready = api::label_version_ready("drivers", "kmm-hello");

/// What KMM's controllers do in one round, to the objects themselves: what is in FakeStore::writes is ours.
struct FakeOperator {
    World& world;
    bool loads = true;

    void step() {
        for (auto& node : world.store.objects.nodes) step(node);
    }
    void step(api::Node& node) {
        auto& labels = node.meta.labels;
        auto* config = config_of(node.meta.name);
        const auto now = plan::version_labels(labels, "drivers", "kmm-hello", api::ScheduleKey::schedule_pod);
        const auto action = plan::next_step(now);
        if (action != plan::LabelStep::add_worker || !labels.contains(k_ready)) {
            const auto then = plan::after(action, now);
            set(labels, k_worker, then.worker);
            set(labels, k_schedule, then.schedule);
        }
        const auto module = world.store.objects.modules.front();
        const auto& version = module.module_loader->container.version;
        const auto worker = labels.contains(k_worker) ? labels.at(k_worker) : "";
        if (worker.empty()) config->spec.clear();
        else if (worker == version) config->spec = {resolve_entry(module, node.kernel_version)};
        if (!config->status.empty() && (config->spec.empty() || config->spec[0].config != config->status[0].config))
            config->status.clear();
        else if (!config->spec.empty() && config->status.empty() && loads) {
            config->status = config->spec;
            config->status[0].boot_id = node.boot_id;
        }
        const bool runs = !config->status.empty() && !config->spec.empty();
        if (config->status.empty() && config->spec.empty()) {
            labels.erase(k_ready);
            labels.erase(k_version_ready);
        } else if (runs && !labels.contains(k_ready)) {
            labels[k_ready] = "";
            labels[k_version_ready] = config->status[0].version;
        }
    }
    static void set(api::Labels& labels, const std::string& key, const std::string& value) {
        if (value.empty()) labels.erase(key);
        else labels[key] = value;
    }
    api::NodeModulesConfig* config_of(const std::string& node) {
        for (auto& config : world.store.objects.node_modules_configs)
            if (config.meta.name == node) return &config;
        throw bug("no config of " + node);
    }
};

upgrade::Options beside_operator() {
    upgrade::Options options;
    options.via = upgrade::Via::operator_;
    return options;
}

/// A world whose operator works while somebody waits.
struct OperatedWorld {
    World world;
    FakeOperator kmm{world};
    explicit OperatedWorld(int count = 1) : world(count) {
        world.store.on_news = [this](std::chrono::milliseconds timeout) {
            kmm.step();
            world.clock.sleep_for(timeout);
        };
    }
    void label(const std::string& key, const std::string& value) {
        FakeOperator::set(world.store.objects.nodes[0].meta.labels, key, value);
    }
};

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("beside an operator one label is written, and no worker is called") {
    OperatedWorld operated(3);
    auto& world = operated.world;
    Drive drive(world, world.prepare(beside_operator()));
    CHECK(drive.driver.walk() == Ended::complete);
    const std::vector<std::string> expected = {"node-a version-module.drivers.kmm-hello=v2",
                                               "node-b version-module.drivers.kmm-hello=v2",
                                               "node-c version-module.drivers.kmm-hello=v2"};
    CHECK(world.store.writes == expected);
    CHECK(world.nodes.calls.empty());
    for (const char* node : {"node-a", "node-b", "node-c"}) {
        CHECK(operated.kmm.config_of(node)->status.at(0).version == "v2");
        CHECK(drive.recorder.node(node).current_version == "v2");
    }
}

TEST_CASE("beside an operator a run that was cut off anywhere is resumed to the same end") {
    OperatedWorld whole(2);
    Drive reference(whole.world, whole.world.prepare(beside_operator()));
    REQUIRE(reference.driver.walk() == Ended::complete);
    const auto count = reference.journal.entries.size();
    for (std::size_t cut = 1; cut < count; ++cut) {
        CAPTURE(cut);
        OperatedWorld operated(2);
        Drive killed(operated.world, operated.world.prepare(beside_operator()));
        killed.journal.dies_after = cut;
        CHECK_THROWS(static_cast<void>(killed.driver.walk()));
        Drive again(operated.world, killed.journal.entries);
        again.driver.resume();
        CHECK(again.driver.walk() == Ended::complete);
        CHECK(operated.world.dump() == whole.world.dump());
    }
}

TEST_CASE("the five dead label states are named, and repaired when told") {
    struct Case {
        const char *module, *worker, *schedule;
        std::string name;
        bool is_now;
    };
    // The administrator's label as it is before; then it says v2.
    const Case cases[] = {{"v1", "", "v1", "worker-lost (P,-,P)", true},
                          {"v1", "", "v0", "worker-lost-in-move (P,-,D)", true},
                          {"v1", "v0", "v2", "schedule-ahead (P,D,P)", false},
                          {"v2", "v1", "v2", "schedule-ahead (P,D,P)", true},
                          {"v2", "v2", "v1", "schedule-behind (P,P,D)", true}};
    for (const auto& item : cases) {
        CAPTURE(item.name);
        OperatedWorld operated;
        operated.label(k_module, item.module);
        operated.label(k_worker, item.worker);
        operated.label(k_schedule, item.schedule);
        const auto view = operator_view(operated.world.store.objects, "node-a", "drivers", "kmm-hello");
        const auto dead = dead_labels(view, "v2");
        REQUIRE(dead);
        CHECK(dead->message().find(item.name) != std::string::npos);
        CHECK(dead->message().find(item.is_now ? " are stuck" : " would be stuck") != std::string::npos);
        CHECK(dead->hint() == "add --repair, or: kubectl label node node-a " + k_schedule + "-");
        CHECK_THROWS(static_cast<void>(operated.world.prepare(beside_operator())));
        CHECK(operated.world.store.writes.empty());
        auto options = beside_operator();
        options.repair = true;
        Drive drive(operated.world, operated.world.prepare(options));
        CHECK(drive.driver.walk() == Ended::complete);
        std::vector<std::string> expected = {"node-a version-module.drivers.kmm-hello=v2",
                                             "node-a version-schedule-pod.drivers.kmm-hello removed"};
        if (item.module == std::string("v2")) expected.erase(expected.begin());
        CHECK(operated.world.store.writes == expected);
    }
    OperatedWorld gone;
    gone.label(k_module, "");
    gone.label(k_worker, "");
    const auto view = operator_view(gone.world.store.objects, "node-a", "drivers", "kmm-hello");
    CHECK(dead_labels(view, "")->message().find("schedule-orphaned (-,-,P)") != std::string::npos);
}

TEST_CASE("what is waited for is told in the record, and is the reason of a timeout") {
    OperatedWorld operated;
    operated.kmm.loads = false;
    auto& world = operated.world;
    Drive drive(world, world.prepare(beside_operator()));
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "loading-failed");
    CHECK(node.reason == "operator-timeout");
    CHECK(node.message == "after 10m0s still waiting for KMM to load v2 (no worker Pod yet)");
    CHECK(node.current_known);
    CHECK(node.current_version.empty());
    const bool told =
        std::any_of(drive.journal.entries.begin(), drive.journal.entries.end(), [](const value::Node& entry) {
            return entry.get_string({"event"}) == "observed" &&
                   entry.get_string({"message"}) == "waits for KMM to load v2 (no worker Pod yet)";
        });
    CHECK(told);
    operated.kmm.loads = true;
    drive.driver.retry("node-a");
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("a label that somebody else sets meanwhile is not fought for") {
    OperatedWorld operated;
    operated.world.store.on_news = [&](std::chrono::milliseconds timeout) {
        operated.label(k_module, "v3");
        operated.world.clock.sleep_for(timeout);
    };
    Drive drive(operated.world, operated.world.prepare(beside_operator()));
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "label-changed");
    CHECK(operated.world.store.objects.nodes[0].meta.labels.at(k_module) == "v3");
}

TEST_CASE("a label that somebody else sets on a node that was done is told at the end") {
    OperatedWorld operated(2);
    auto& labels = operated.world.store.objects.nodes[0].meta.labels;
    Drive drive(operated.world, operated.world.prepare(beside_operator()));
    bool has_changed = false;
    const auto work = operated.world.store.on_news;
    operated.world.store.on_news = [&](std::chrono::milliseconds timeout) {
        if (drive.state("node-a") == "done" && !std::exchange(has_changed, true)) labels[k_module] = "v1";
        work(timeout);
    };
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").state == "validating-failed");
    CHECK(drive.recorder.node("node-a").message ==
          "someone else changed label version-module to v1 after the upgrade to v2");
    CHECK_FALSE(drive.recorder.node("node-a").current_known);
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(labels.at(k_module) == "v2");
}

TEST_CASE("a node that has rebooted is done once the operator has loaded the module again") {
    for (const bool loads : {true, false}) {
        CAPTURE(loads);
        OperatedWorld operated(2);
        auto options = beside_operator();
        options.pause_after = 1;
        Drive drive(operated.world, operated.world.prepare(options));
        REQUIRE(drive.driver.walk() == Ended::paused);
        operated.world.store.objects.nodes[0].boot_id = "boot-2";
        if (loads) operated.kmm.config_of("node-a")->status.clear();
        drive.driver.resume();
        CHECK(drive.driver.walk() == (loads ? Ended::complete : Ended::paused));
        if (loads) continue;
        CHECK(drive.recorder.node("node-a").reason == "operator-timeout");
        CHECK(drive.recorder.node("node-a").message ==
              "still waiting for KMM to load v2 (no worker Pod yet), after it was done");
    }
}

TEST_CASE("an abort goes back to what the Module says, and waits for its old version") {
    OperatedWorld operated;
    operated.kmm.loads = false;
    auto& world = operated.world;
    Drive drive(world, world.prepare(beside_operator()));
    REQUIRE(drive.driver.walk() == Ended::paused);
    operated.kmm.loads = true;
    CHECK(drive.driver.abort(upgrade::Rollback::current) == Ended::paused);
    CHECK(drive.recorder.node("node-a").reason == "module-moved-on");
    CHECK(world.store.objects.nodes[0].meta.labels.at(k_module) == "v2");
    world.store.objects.modules = {make_module("v1")};
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::aborted);
    CHECK(operated.kmm.config_of("node-a")->status.at(0).version == "v1");
}

TEST_CASE("what is awaited follows KMM's flow") {
    World world(1);
    auto& objects = world.store.objects;
    auto& node = objects.nodes[0];
    auto& config = objects.node_modules_configs[0];
    const auto text = [&](const std::string& version = "v2") {
        const auto found =
            awaited(operator_view(objects, "node-a", "drivers", "kmm-hello"), version, OperatorGoal::loaded);
        return found ? found->text : "-";
    };
    node.meta.labels[k_module] = "v2";
    CHECK(text() == "KMM to take label version-schedule-pod=v1 away");
    node.meta.labels.erase(k_schedule);
    CHECK(text() == "Pods of the device plugin or DRA driver of v1 to leave the node");
    node.meta.labels.erase(k_worker);
    CHECK(text() == "KMM to take v1 out of the NodeModulesConfig");
    config.spec.clear();
    CHECK(text() == "KMM to unload v1 (no worker Pod yet)");
    api::Pod pod;
    pod.meta.namespace_ = "drivers";
    pod.meta.name = "kmm-worker-node-a-kmm-hello";
    pod.phase = "Running";
    pod.worker_restarts = 1;
    objects.pods = {pod};
    CHECK(text() == "KMM to unload v1 (worker Pod kmm-worker-node-a-kmm-hello is Running, it has failed before)");
    config.status.clear();
    CHECK(text() == "KMM to take label kmm.node.kubernetes.io/drivers.kmm-hello.ready away");
    node.meta.labels.erase(k_ready);
    node.meta.labels.erase(k_version_ready);
    CHECK(text() == "KMM to set label version-worker-pod=v2");
    CHECK(text("") == "-");
    node.meta.labels[k_worker] = "v2";
    CHECK(text() == "KMM to set label version-schedule-pod=v2");
    node.meta.labels[k_schedule] = "v2";
    CHECK(text() == "KMM to write v2 into the NodeModulesConfig");
    config.spec = {resolve_entry(make_module("v2"), node.kernel_version)};
    objects.pods.clear();
    CHECK(text() == "KMM to load v2 (no worker Pod yet)");
    config.status = config.spec;
    config.status[0].boot_id = "boot-0";
    CHECK(text() == "KMM to load v2 (no worker Pod yet)");
    config.status[0].boot_id = node.boot_id;
    CHECK(text() == "KMM to set label kmm.node.kubernetes.io/drivers.kmm-hello.ready");
    node.meta.labels[k_ready] = "";
    CHECK(text() == "-");
    objects.modules[0].device_plugin.emplace();
    CHECK(text() == "the device plugin of v2 to be ready");
    node.meta.labels[api::label_device_plugin_ready("drivers", "kmm-hello")] = "";
    CHECK(text() == "-");
}

TEST_CASE("a drain beside an operator needs a Module that tolerates a cordon") {
    World world(1);
    auto options = beside_operator();
    options.drain = true;
    CHECK_THROWS(static_cast<void>(world.prepare(options)));
    world.store.objects.modules[0].tolerations.push_back(
        {std::string(api::k_taint_unschedulable), "Exists", "", "NoSchedule", {}});
    CHECK(world.prepare(options).nodes.size() == 1);
}

}
