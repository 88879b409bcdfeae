// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "upgrade/drive_module/drain.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

using cluster::Cordon;
using cluster::PodEviction;
using Outcome = cluster::PodEviction::Outcome;

upgrade::Options draining() {
    upgrade::Options options;
    options.drain = true;
    return options;
}

std::vector<std::string> states_of(const std::vector<value::Node>& entries, const std::string& node) {
    std::vector<std::string> states;
    for (const auto& entry : entries) {
        if (entry.get_string({"node"}) != node) continue;
        const auto to = entry.get_string({"to"});
        if (states.empty() || states.back() != to) states.push_back(to);
    }
    return states;
}

std::string drained_message(const Drive& drive) {
    std::string message;
    for (const auto& entry : drive.journal.entries)
        if (entry.get_string({"to"}) == "drained") message = entry.get_string({"message"});
    return message;
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("a drained node: checked first, emptied, upgraded, given back") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1"), make_pod("infra", "log-1", "DaemonSet")};
    Drive drive(world, world.prepare(draining()));
    world.store.on_write = [&] { CHECK(world.workloads.cordons["node-a"] == Cordon{true, "kmm-upgrade l"}); };
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.calls ==
          std::vector<std::string>{"node-a cordon", "node-a evict shop/web-1", "node-a uncordon"});
    CHECK(states_of(drive.journal.entries, "node-a") ==
          std::vector<std::string>{"checking", "cordoning", "cordoned", "draining", "drained", "unloading", "unloaded",
                                   "loading", "loaded", "validating", "uncordoning", "done"});
    CHECK(world.workloads.cordons["node-a"] == Cordon{});
    CHECK(drive.recorder.node("node-a").cordon.empty());
    CHECK(drive.recorder.node("node-a").message == "loaded kmm_hello BBBB2222, uncordoned");
}

TEST_CASE("evicted Pods get their own time, as long as is said, or none") {
    struct Row {
        std::int64_t seconds;
        bool at_once;
        std::optional<int> asked;
    };
    for (const auto& row : {Row{0, false, std::nullopt}, Row{7, false, 7}, Row{0, true, 0}}) {
        CAPTURE(row.seconds);
        World world(1);
        world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
        auto options = draining();
        options.grace_seconds = row.seconds;
        options.evict_at_once = row.at_once;
        Drive drive(world, world.prepare(options));
        Drive resumed(world, drive.journal.entries);  // as the record has it
        CHECK(resumed.driver.walk() == Ended::complete);
        CHECK(world.workloads.graces == std::vector<std::optional<int>>{row.asked});
    }
}

TEST_CASE("a run that does not drain touches neither cordons nor Pods, and its record says nothing of them") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.calls.empty());
    CHECK(drive.journal.entries.front().find("options")->find("drain") == nullptr);
    for (const auto& entry : drive.journal.entries) CHECK(entry.find_path({"facts", "cordon"}) == nullptr);
}

TEST_CASE("a cordon of somebody else stays, with and without an annotation") {
    for (const auto* owner : {"", "kmm-upgrade another"}) {
        World world(1);
        Drive drive(world, world.prepare(draining()));
        world.store.put_cordon("node-a", world.workloads.cordons["node-a"] = {true, owner});
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.workloads.calls.empty());
        CHECK(world.workloads.cordons["node-a"] == Cordon{true, owner});
        CHECK(drive.recorder.node("node-a").cordon == upgrade::k_cordon_foreign);
        CHECK(upgrade::cordoned_nodes(drive.recorder.run()).empty());
        const std::string name = *owner == '\0' ? "someone else" : owner;
        CHECK(drive.recorder.node("node-a").message ==
              "loaded kmm_hello BBBB2222, left cordoned (cordoned by " + name + ")");
    }
}

TEST_CASE("a node that somebody cordons while it loads does not end without a word of it") {
    World world(2);
    Drive drive(world, world.prepare());
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.node == "node-a" && call.args.front() == "load") world.store.put_cordon("node-a", {true, ""});
        return std::nullopt;
    };
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(drive.recorder.node("node-a").message ==
          "loaded kmm_hello BBBB2222, left cordoned (cordoned by someone else)");
    CHECK(drive.recorder.node("node-b").message == "loaded kmm_hello BBBB2222");
    CHECK(world.store.find("node-a").unschedulable);
}

TEST_CASE("a node that has the target already is left to its Pods") {
    World world(1);
    Drive first(world, world.prepare());
    REQUIRE(first.driver.walk() == Ended::complete);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.calls.empty());
}

TEST_CASE("a Pod that comes back in spite of the cordon is evicted once more, and then stays") {
    World world(1);
    int count = 0;
    const auto come = [&] {
        auto& pods = world.workloads.pods_of["node-a"];
        if (!pods.empty()) return;
        pods.push_back(make_pod("infra", "agent", "ExtendedDaemonSetReplicaSet"));
        pods.back().uid += std::to_string(++count);
    };
    come();
    world.workloads.on_write = come;
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.calls == std::vector<std::string>{"node-a cordon", "node-a evict infra/agent",
                                                            "node-a evict infra/agent", "node-a uncordon"});
    CHECK(drained_message(drive) == "2 Pods evicted, come back in spite of the cordon and stay: infra/agent");
}

TEST_CASE("Pods of other controllers than DaemonSets are evicted as often as they come") {
    World world(1);
    int looks = 0, expected = 0;
    auto& pods = world.workloads.pods_of["node-a"];
    const auto come = [&](const std::string& name) { pods.push_back(make_pod("shop", name)); };
    come("web-1");
    SUBCASE("two more were on their way at the cordon") {
        expected = 3;
        world.clock.on_sleep = [&] {
            if (++looks <= 2) come("web-" + std::to_string(looks + 1));
        };
    }
    SUBCASE("somebody uncordons the node for a while") {
        expected = 10;
        world.clock.on_sleep = [&] {
            if (++looks == 1) world.workloads.cordons["node-a"] = {};
            if (looks <= 3)
                for (const auto* name : {"a", "b", "c"}) come(name + std::to_string(looks));
            if (looks == 3) world.workloads.cordons["node-a"] = {true, "kmm-upgrade l"};
        };
    }
    world.store.on_write = [&] { CHECK(pods.empty()); };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(pods.empty());
    CHECK(drained_message(drive) == std::to_string(expected) + " Pods evicted");
}

TEST_CASE("of Pods that stay in spite of the cordon the last look is told") {
    World world(1);
    int looks = 0;
    auto& pods = world.workloads.pods_of["node-a"];
    const auto come = [&](const std::string& name) {
        pods.push_back(make_pod("infra", name, "ExtendedDaemonSetReplicaSet"));
    };
    come("agent-0");
    pods.push_back(make_pod("shop", "web-1"));
    bool is_web_slow = true;
    world.workloads.on_evict = [&](const api::WorkloadPod& pod) -> std::optional<PodEviction> {
        if (pod.name != "web-1" || !is_web_slow) return std::nullopt;
        return PodEviction{Outcome::blocked, "web needs 2", std::chrono::milliseconds(1000)};
    };
    world.clock.on_sleep = [&] {
        if (++looks > 4) return;
        std::erase_if(pods, [](const auto& pod) { return pod.namespace_ == "infra"; });
        come("agent-" + std::to_string(looks));
        is_web_slow = looks < 4;
    };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(drained_message(drive) == "3 Pods evicted, come back in spite of the cordon and stay: infra/agent-4");
}

TEST_CASE("a budget that gives way is waited for, and named after five seconds, then every thirty") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    const auto start = world.clock.monotonic();
    world.workloads.on_evict = [&](const api::WorkloadPod&) -> std::optional<PodEviction> {
        if (world.clock.monotonic() - start >= std::chrono::seconds(70)) return std::nullopt;
        return PodEviction{Outcome::blocked, "The disruption budget web needs 2 healthy pods and has 2 currently",
                           std::nullopt};
    };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    std::vector<std::string> words;
    for (const auto& entry : drive.journal.entries)
        if (entry.get_string({"event"}) == "observed") words.push_back(entry.get_string({"message"}));
    CHECK(words.size() == 3);
    CHECK(words.front() == "budget shop/web (needs 2, has 2) keeps 1 Pod: web-1; 9m55s left of 10m0s");
}

TEST_CASE("each budget is named once, with the Pods that it keeps") {
    World world(1);
    auto& pods = world.workloads.pods_of["node-a"];
    for (const auto* name : {"web-a", "web-b", "web-c", "db-0", "x-0"}) pods.push_back(make_pod("shop", name));
    pods.push_back(make_pod("other", "web-a"));
    pods.back().uid = "uid-0";  // sorted by uid it would come first
    world.workloads.on_evict = [&](const api::WorkloadPod& pod) {
        if (pod.name == "x-0") return PodEviction{Outcome::blocked, "no budget for this", std::nullopt};
        const std::string budget = pod.name.substr(0, pod.name.find('-'));
        return PodEviction{Outcome::blocked,
                           "The disruption budget " + budget + " needs 3 healthy pods and has 3 currently",
                           std::nullopt};
    };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::paused);
    const auto message = drive.recorder.node("node-a").message;
    CHECK(message.find(
              ": budget other/web (needs 3, has 3) keeps 1 Pod: web-a; budget shop/db (needs 3, has 3) keeps 1 Pod: "
              "db-0; "
              "budget shop/web (needs 3, has 3) keeps 3 Pods: web-a, web-b and 1 more; 1 more; uncordoned") !=
          std::string::npos);
}

TEST_CASE("a Pod that is ending is named with the time it takes, and with whom it waits for") {
    World world(1);
    auto& pods = world.workloads.pods_of["node-a"];
    pods = {make_pod("default", "web"), make_pod("default", "fin"), make_pod("default", "slow")};
    const auto now = world.clock.now_unix();
    pods[1].is_ending = pods[2].is_ending = true;
    pods[1].ending_since = now - 7;
    pods[1].finalizers = {"example.com/keep", "example.com/too"};
    pods[2].ending_since = now - 7;
    pods[2].ending_grace = 3600;
    world.workloads.on_evict = [](const api::WorkloadPod&) { return PodEviction{}; };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::paused);
    std::string word;
    for (const auto& entry : drive.journal.entries)
        if (word.empty() && entry.get_string({"event"}) == "observed") word = entry.get_string({"message"});
    CHECK(word.starts_with("waits for 3 Pods to end: default/fin (Terminating since "));
    CHECK(
        word.find("s, finalizers example.com/keep, example.com/too), default/web, default/slow (Terminating since ") !=
        std::string::npos);
    CHECK(word.find("s of 3600s); 9m") != std::string::npos);
    CHECK(drive.recorder.node("node-a").hint ==
          "kubectl get pod -n default fin -o yaml shows who keeps it: finalizer example.com/keep");
}

TEST_CASE("of a Pod that its kubelet does not end the kubelet is named") {
    World world(1);
    auto& pods = world.workloads.pods_of["node-a"];
    pods = {make_pod("shop", "web-1"), make_pod("shop", "web-2")};
    pods[1].is_ending = true;
    pods[1].ending_since = world.clock.now_unix() - 60;
    pods[1].ending_grace = 30;
    world.workloads.on_evict = [](const api::WorkloadPod&) { return PodEviction{}; };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").hint ==
          "the kubelet of node-a does not end shop/web-2: look at its log; if the node will not start again: kubectl "
          "delete pod -n shop web-2 --force");
}

TEST_CASE("Pods that take long to end are named as often, the first three of them") {
    World world(1);
    auto& pods = world.workloads.pods_of["node-a"];
    for (const auto* name : {"web-1", "web-2", "web-3", "web-4"}) pods.push_back(make_pod("shop", name));
    pods.back().is_ending = true;  // it was before anybody drained
    world.workloads.on_evict = [](const api::WorkloadPod&) { return PodEviction{}; };
    const auto start = world.clock.monotonic();
    world.clock.on_sleep = [&] {
        if (world.clock.monotonic() - start >= std::chrono::seconds(70)) pods.clear();
    };
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::complete);
    std::vector<std::string> words;
    for (const auto& entry : drive.journal.entries)
        if (entry.get_string({"event"}) == "observed") words.push_back(entry.get_string({"message"}));
    REQUIRE(words.size() == 3);
    CHECK(words.front() ==
          "waits for 4 Pods to end: shop/web-1, shop/web-2, shop/web-3 and 1 more; 9m55s left of 10m0s");
}

TEST_CASE("a drain that does not end fails the node, names who is in the way and gives the node back") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    SUBCASE("a budget") {
        world.workloads.on_evict = [](const api::WorkloadPod&) {
            return PodEviction{Outcome::blocked, "web needs 2", std::nullopt};
        };
    }
    SUBCASE("a Pod that does not end") {
        world.workloads.on_evict = [](const api::WorkloadPod&) { return PodEviction{}; };
    }
    SUBCASE("several budgets") {
        world.workloads.on_evict = [](const api::WorkloadPod&) {
            return PodEviction{Outcome::never, "", std::nullopt};
        };
    }
    SUBCASE("a Pod that nothing starts again") { world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1", "")}; }
    Drive drive(world, world.prepare(draining()));
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "draining-failed");
    CHECK(node.message.find("web-1") != std::string::npos);
    CHECK(node.message.ends_with("; uncordoned"));
    CHECK(node.cordon.empty());
    CHECK(world.workloads.cordons["node-a"] == Cordon{});
    CHECK(world.nodes.nodes.at("node-a").live == "AAAA1111");
    CHECK(world.store.writes.empty());
    world.workloads.on_evict = nullptr;
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.nodes.nodes.at("node-a").live == "BBBB2222");
}

TEST_CASE("a node that was never cordoned is not reported as uncordoned") {
    World world(1);
    Drive drive(world, world.prepare(draining()));
    world.workloads.on_write = [&] {
        if (world.workloads.calls.empty())
            throw Error(Exit::no_permission, "rejected", "admission webhook denied the request");
    };
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-a");
    CHECK(node.state == "cordoning-failed");
    CHECK(node.message == "admission webhook denied the request");
    CHECK(node.cordon.empty());
}

TEST_CASE("a failure behind the drain keeps the cordon, and says so, until skip or abort lifts it") {
    World world(2);
    const auto run = world.prepare(draining());
    world.nodes.nodes.at("node-a").live = "CCCC3333";  // nobody knows what that is
    Drive drive(world, run);
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.state("node-a") == "unloading-failed");
    CHECK(upgrade::cordoned_nodes(drive.recorder.run()) == std::vector<std::string>{"node-a"});
    CHECK(world.workloads.cordons["node-a"].unschedulable);
    SUBCASE("skip") {
        drive.driver.skip("node-a", "broken");
        CHECK(drive.state("node-a") == "skipped");
        CHECK(drive.recorder.node("node-a").message == "broken; uncordoned");
    }
    SUBCASE("abort without a rollback") {
        CHECK(drive.driver.abort(upgrade::Rollback::none) == Ended::aborted);
        CHECK(drive.state("node-a") == "unloading-failed");
    }
    SUBCASE("abort with a rollback") {
        world.nodes.nodes.at("node-a").live = "AAAA1111";
        CHECK(drive.driver.abort(upgrade::Rollback::current) == Ended::aborted);
        CHECK(drive.state("node-a") == "rolled-back");
        CHECK(drive.recorder.node("node-a").message == "rolled back to v1: kmm_hello AAAA1111, uncordoned");
    }
    SUBCASE("an abort that cannot reach the cluster goes on later") {
        world.workloads.on_write = [] { throw Error(Exit::unavailable, "api-unreachable", "no server"); };
        CHECK_THROWS_AS(static_cast<void>(drive.driver.abort(upgrade::Rollback::none)), Error);
        CHECK(drive.recorder.run().state == "upgrade-aborting");
        CHECK(upgrade::cordoned_nodes(drive.recorder.run()) == std::vector<std::string>{"node-a"});
        world.workloads.on_write = nullptr;
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::aborted);
    }
    CHECK(upgrade::cordoned_nodes(drive.recorder.run()).empty());
    CHECK(world.workloads.cordons["node-a"] == Cordon{});
}

TEST_CASE("an interrupted drain stays cordoned and is gone on with") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    world.workloads.on_evict = [](const api::WorkloadPod&) {
        return PodEviction{Outcome::blocked, "web needs 2", std::nullopt};
    };
    Drive drive(world, world.prepare(draining()));
    world.clock.on_sleep = [&] { drive.stop = true; };
    CHECK(drive.driver.walk() == Ended::interrupted);
    CHECK(drive.state("node-a") == "draining");
    CHECK(upgrade::cordoned_nodes(drive.recorder.run()) == std::vector<std::string>{"node-a"});
    world.workloads.on_evict = nullptr;
    world.clock.on_sleep = nullptr;
    drive.stop = false;
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.cordons["node-a"] == Cordon{});
}

TEST_CASE("what a drain cannot do is said before anything is changed") {
    World world(2);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1", "")};
    const auto run = world.prepare(draining());
    try {
        static_cast<void>(review_drain(world.workloads, world.store.objects.modules.front(), run));
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == "pods-not-evictable");
        CHECK(error.details() ==
              std::vector<std::pair<std::string, std::string>>{
                  {"node-a", "cannot delete Pods that declare no controller (use --force to override): shop/web-1"}});
    }
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    api::DisruptionBudget budget;
    budget.namespace_ = "shop";
    budget.name = "web";
    budget.selector.emplace();
    budget.max_unavailable = "0";
    world.workloads.all_budgets = {budget};
    CHECK(review_drain(world.workloads, world.store.objects.modules.front(), run).warnings ==
          std::vector<std::string>{
              "PodDisruptionBudget shop/web never allows an eviction (maxUnavailable 0): shop/web-1"});
}

TEST_CASE("the Pod of this process stays, and its node comes last unless a person has written the order down") {
    World world(3);
    auto own = make_pod("kmm-tools", "upgrade-1", "Job");
    own.is_self = true;
    world.workloads.pods_of["node-a"] = {own, make_pod("shop", "web-1")};
    auto run = world.prepare(draining());
    const auto review = review_drain(world.workloads, world.store.objects.modules.front(), run);
    CHECK(review.own_node == "node-a");
    CHECK(review.warnings == std::vector<std::string>{"ignoring the Pod that this runs in: kmm-tools/upgrade-1"});
    const auto names = [&] {
        std::string text;
        for (const auto& node : run.nodes) text += node.name + " ";
        return text;
    };
    run.options.order = "/etc/order";
    CHECK_FALSE(put_last(run, "node-a"));
    run.options.order = "name";
    CHECK_FALSE(put_last(run, ""));
    CHECK(put_last(run, "node-a"));
    CHECK(names() == "node-b node-c node-a ");
    CHECK_FALSE(put_last(run, "node-a"));
    Drive drive(world, run);
    CHECK(drive.driver.walk() == Ended::complete);
    const auto& calls = world.workloads.calls;
    CHECK(std::count_if(calls.begin(), calls.end(),
                        [](const std::string& call) { return call.find("upgrade-1") != std::string::npos; }) == 0);
    REQUIRE(calls.size() == 7);
    CHECK(calls[5] == "node-a evict shop/web-1");
}

TEST_CASE("only Pods that use the module's devices leave, when that is asked for") {
    World world(1);
    auto by_resource = make_pod("shop", "gpu-1");
    by_resource.resources = {"example.com/gpu"};
    auto by_claim = make_pod("shop", "gpu-2");
    by_claim.claims = {"mine"};
    world.workloads.pods_of["node-a"] = {by_resource, by_claim, make_pod("shop", "web-1"),
                                         make_pod("shop", "shell", "")};
    api::DeviceClaim claim;
    claim.namespace_ = "shop";
    claim.name = "mine";
    claim.classes = {"gpus"};
    world.workloads.all_claims = {claim};
    world.store.objects.modules.front().dra = value::Node::mapping(
        {{"driverName", "gpu.example.com"},
         {"deviceClasses", value::Node::sequence({value::Node::mapping({{"name", "gpus"}})})}});
    auto options = draining();
    options.evict_users = true;
    options.user_resources = "example.com/gpu,example.com/other";
    Drive drive(world, world.prepare(options));
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.workloads.calls == std::vector<std::string>{"node-a cordon", "node-a evict shop/gpu-1",
                                                            "node-a evict shop/gpu-2", "node-a uncordon"});
}

TEST_CASE("a dry run tells of cordons and evictions and does neither") {
    World world(1);
    world.workloads.pods_of["node-a"] = {make_pod("shop", "web-1")};
    std::vector<std::string> actions;
    DryWorkloads dry(world.workloads, [&](const std::string& node, const std::string& action) {
        actions.push_back(node + " " + action);
    });
    CHECK(dry.cordon("node-a", "x") == Cordon{true, "x"});
    CHECK(dry.evict(dry.pods("node-a").front(), std::nullopt).outcome == Outcome::evicted);
    CHECK(dry.pods("node-a").empty());
    CHECK(dry.uncordon("node-a", "x") == Cordon{});
    CHECK(actions == std::vector<std::string>{"node-a cordon", "node-a evict Pod shop/web-1", "node-a uncordon"});
    CHECK(world.workloads.calls.empty());
}
}
