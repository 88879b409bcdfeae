// SPDX-License-Identifier: Apache-2.0
// MachineConfigPools: paused and unpaused by a run, and never those of someone else.
#include <doctest/doctest.h>

#include "cluster/live/machine_pools.hpp"
#include "unit/upgrade/drive_recipe/recipe_life.hpp"
#include "upgrade/actor_parts/pool_pauses.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "upgrade/recipe/subject.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;
namespace rc = kmm::upgrade::recipe;

namespace {

constexpr std::int64_t k_day = 86'400;

struct Pools {
    MemoryApi api;
    IdleClock clock;
    FixedRandom random;
    std::unique_ptr<kube::Client> client;
    Pools() {
        pool("master", "node-role.kubernetes.io/master", false);
        pool("worker", "node-role.kubernetes.io/worker", false);
        pool("slow", "node-role.kubernetes.io/slow", true);
        client = client_of(api, clock, random);
    }
    void pool(const std::string& name, const std::string& role, bool paused) {
        api.put(json(
            "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: " + name +
            (paused ? ", managedFields: [{manager: kubectl, time: '2026-01-05T00:00:00Z', fieldsV1: {'f:spec': "
                      "{'f:paused': {}}}}]"
                    : "") +
            "}, spec: {paused: " + (paused ? "true" : "false") + ", nodeSelector: {matchLabels: {" + role +
            ": ''}}}}"));
    }
    [[nodiscard]] bool is_paused(const std::string& name) const {
        return api.text_at("machineconfigpools//" + name, {"spec", "paused"}) == "true";
    }
};

upgrade::Run rollout() {
    upgrade::Run run;
    run.rules = &rc::procedure_rollout();
    run.procedure = run.rules->table().name();
    return run;
}

upgrade::Event move(upgrade::EventKind kind, const std::string& step) {
    upgrade::Event event;
    event.kind = kind;
    event.step = step;
    return event;
}

Node node_with(const std::string& roles) { return json("{metadata: {name: n, labels: {" + roles + "}}}"); }

}  // namespace

TEST_SUITE("upgrade::drive pools") {

TEST_CASE("a run pauses its pools and unpauses them, not those of someone else") {
    Pools world;
    PoolPauses pauses(world.client.get(), {"slow", "worker"}, "kmm-upgrade me");
    CHECK(pauses.act("pause-pools").message == "paused worker; paused by someone else, or gone: slow");
    CHECK(pauses.act("pause-pools").message == "paused worker; paused by someone else, or gone: slow");
    CHECK(world.is_paused("worker"));
    PoolPauses other(world.client.get(), {"slow", "worker"}, "kmm-upgrade other");
    CHECK(other.act("unpause-pools").message == "nothing was paused by this run");
    CHECK(pauses.act("unpause-pools").message == "unpaused worker");
    CHECK(pauses.act("unpause-pools").message == "nothing was paused by this run");
    CHECK_FALSE(world.is_paused("worker"));
    CHECK(world.is_paused("slow"));
    CHECK_FALSE(world.is_paused("master"));
}

TEST_CASE("a pool that goes to another configuration once it is unpaused is named so") {
    Pools world;
    PoolPauses pauses(world.client.get(), {"worker"}, "kmm-upgrade me");
    static_cast<void>(pauses.act("pause-pools"));
    auto pool = *world.client->find({"machineconfiguration.openshift.io", "v1", "machineconfigpools",
                                     "MachineConfigPool", kube::Scope::cluster},
                                    {"", "worker"});
    pool.set("status", json("{configuration: {name: rendered-worker-1}}"));
    auto spec = *pool.find("spec");
    spec.set("configuration", json("{name: rendered-worker-2}"));
    pool.set("spec", spec);
    world.api.put(pool);
    CHECK(pauses.act("unpause-pools").message ==
          "unpaused worker (its nodes are updated to rendered-worker-2 now, and may reboot)");
}

TEST_CASE("after a failure and at the end of an abort pools go on; a walk that goes on pauses them again") {
    Pools world;
    PoolPauses pauses(world.client.get(), {"worker"}, "kmm-upgrade me");
    const auto run = rollout();
    using upgrade::EventKind;
    for (const auto& end :
         {move(EventKind::failed, "states"), move(EventKind::done, "abort"), move(EventKind::failed, "abort")}) {
        pauses.before_move(move(EventKind::intent, "states"), run);
        CHECK(world.is_paused("worker"));
        pauses.before_move(end, run);
        CHECK_FALSE(world.is_paused("worker"));
    }
    pauses.before_move(move(EventKind::intent, "states"), run);
    pauses.before_move(move(EventKind::done, "states"), run);
    CHECK(world.is_paused("worker"));
}

TEST_CASE("a pool that someone pauses during the run stays paused") {
    Pools world;
    PoolPauses pauses(world.client.get(), {"worker"}, "kmm-upgrade me");
    static_cast<void>(pauses.act("pause-pools"));
    world.pool("worker", "node-role.kubernetes.io/worker", true);  // without our annotation
    CHECK(pauses.act("unpause-pools").message == "nothing was paused by this run");
    CHECK(world.is_paused("worker"));
}

TEST_CASE("a pool that someone unpauses and pauses again during the run, or declares paused, stays paused") {
    Pools world;
    const auto managed_by = [&](const std::string& managers, bool paused) {
        std::string fields;
        for (const auto& manager : base::split(managers, ' '))
            fields += "{manager: " + std::string(manager) + ", fieldsV1: {'f:spec': {'f:paused': {}}}}, ";
        world.api.put(json("{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: "
                           "{name: worker, annotations: {kmmtools.dev/paused-by: kmm-upgrade me}, managedFields: [" +
                           fields + "{manager: kmm-tools, fieldsV1: {'f:metadata': {}}}]}, spec: {paused: " +
                           (paused ? "true" : "false") + "}}"));
    };
    const auto owner = [&] {
        return world.api.text_at("machineconfigpools//worker", {"metadata", "annotations", "kmmtools.dev/paused-by"});
    };
    PoolPauses pauses(world.client.get(), {"worker"}, "kmm-upgrade me");
    for (const std::string managers : {"kubectl-patch", "kmm-tools argocd-controller"}) {
        managed_by(managers, true);
        CHECK(cluster::MachinePools(*world.client).read().back().owner.empty());
        CHECK(pauses.act("pause-pools").message == "nothing was paused; paused by someone else, or gone: worker");
        CHECK(pauses.act("unpause-pools").message == "nothing was paused by this run");
        CHECK(world.is_paused("worker"));
        CHECK(owner().empty());
    }
    managed_by("kubectl-patch", false);
    CHECK(pauses.act("unpause-pools").message == "nothing was paused by this run");
    CHECK(owner().empty());
    managed_by("kmm-tools", true);
    CHECK(cluster::MachinePools(*world.client).read().back().owner == "kmm-upgrade me");
    CHECK(pauses.act("unpause-pools").message == "unpaused worker");
    CHECK_FALSE(world.is_paused("worker"));
}

TEST_CASE("an empty selector selects no node, as for the machine config operator") {
    Pools world;
    int number = 0;
    for (const std::string selector : {"{}", "{matchLabels: {}}", "{matchExpressions: []}", "null"})
        world.api.put(json("{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, "
                           "metadata: {name: odd-" +
                           std::to_string(++number) + "}, spec: {paused: true, nodeSelector: " + selector + "}}"));
    const auto pools = cluster::MachinePools(*world.client).read();
    const auto* found = cluster::pool_of(pools, node_with("node-role.kubernetes.io/worker: ''"));
    REQUIRE(found != nullptr);
    CHECK(found->name == "worker");
    CHECK(cluster::pool_of(pools, node_with("disk: fast")) == nullptr);
}

TEST_CASE("a pool that its operator works on is named before a run begins beside it") {
    Pools world;
    const auto warning = [&](const std::string& type, bool paused) {
        world.api.put(json("{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, "
                           "metadata: {name: at-work}, spec: {paused: " +
                           std::string(paused ? "true" : "false") + "}, status: {conditions: [{type: Updated, status: "
                           "'False'}, {type: " + type + ", status: 'True'}]}}"));
        return activity_warning(cluster::MachinePools(*world.client).read().front());
    };
    CHECK(warning("Updating", false).starts_with("MachineConfigPool at-work is updating: its operator drains"));
    CHECK(warning("Degraded", false).starts_with("MachineConfigPool at-work is degraded: its operator failed"));
    CHECK(warning("RenderDegraded", false).empty());
    CHECK(warning("Updating", true).empty());
}

TEST_CASE("a node is in master, else in a pool of its own, else in worker") {
    Pools world;
    const auto pools = cluster::MachinePools(*world.client).read();
    REQUIRE(pools.size() == 3);
    CHECK(pools[1].name == "slow");
    CHECK(pools[1].paused_since == 1'767'571'200);
    const auto name = [&](const std::string& roles) {
        const auto* found = cluster::pool_of(pools, node_with(roles));
        return found == nullptr ? std::string() : found->name;
    };
    CHECK(name("node-role.kubernetes.io/worker: ''") == "worker");
    CHECK(name("node-role.kubernetes.io/worker: '', node-role.kubernetes.io/slow: ''") == "slow");
    CHECK(name("node-role.kubernetes.io/worker: '', node-role.kubernetes.io/master: ''") == "master");
    CHECK(name("disk: fast").empty());
}

TEST_CASE(
    "the age of the signer certificate is warned of 30 days before it is replaced, and once a pool has missed it") {
    cluster::MachinePool pool;
    pool.name = "worker";
    const cluster::Signer signer{1'000 * k_day};
    CHECK(signer_warning(pool, signer, 1'261 * k_day).empty());
    CHECK(signer_warning(pool, signer, 1'262 * k_day).find("the kubelets' signer certificate is 262 days old") == 0);
    CHECK(signer_warning(pool, signer, 1'300 * k_day).find("300 days old") != std::string::npos);
    pool.paused = true;
    pool.paused_since = 999 * k_day;
    CHECK(signer_warning(pool, signer, 1'001 * k_day).find("lose the API server on 1972-12-09") != std::string::npos);
    pool.paused_since = 1'000 * k_day;
    CHECK(signer_warning(pool, signer, 1'001 * k_day).empty());
}

TEST_CASE("of a pool that another run has paused, its mark and the way out are named") {
    cluster::MachinePool pool;
    pool.name = "worker";
    pool.paused = true;
    CHECK(pause_text(pool) == "MachineConfigPool worker is paused: it stays so");
    pool.paused_since = 1'767'571'200;
    CHECK(pause_text(pool) == "MachineConfigPool worker is paused since 2026-01-05T00:00:00Z: it stays so");
    pool.owner = "kmm-upgrade x";
    CHECK(pause_text(pool) ==
          "MachineConfigPool worker is paused since 2026-01-05T00:00:00Z by kmm-upgrade x (annotation "
          "kmmtools.dev/paused-by): it stays so; if that run is gone: kubectl patch machineconfigpool worker --type "
          "merge -p '{\"spec\":{\"paused\":false}}'");
}

TEST_CASE("copies for a kernel are kept while a paused pool has no node") {
    Pools world;
    world.api.put(
        json("{apiVersion: v1, kind: Node, metadata: {name: n, labels: {node-role.kubernetes.io/worker: ''}}, status: "
             "{nodeInfo: {kernelVersion: new}}}"));
    rc::Release old;
    old.states.push_back({"a/1", "a", "", {}, {{"old", json("{kind: DaemonSet, metadata: {name: d}}")}}});
    CHECK(needed_kernels(*world.client, {}, {old}) == std::set<std::string>{"new", "old"});
    world.pool("slow", "node-role.kubernetes.io/slow", false);
    CHECK(needed_kernels(*world.client, {}, {old}) == std::set<std::string>{"new"});
}

}
