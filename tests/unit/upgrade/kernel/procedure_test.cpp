// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "unit/upgrade/engine/make_run.hpp"
#include "upgrade/kernel/subject.hpp"

using namespace kmm;
using namespace kmm::upgrade;
namespace own = kmm::upgrade::kernel;

namespace {

constexpr const char* k_old = "6.1.0-56-amd64";
constexpr const char* k_new = "6.1.0-60-amd64";

Run kernel_run(int nodes, const Options& options = {}) {
    auto run = test::make_run(nodes, options);
    run.rules = &own::procedure_kernel();
    run.procedure = run.rules->table().name();
    run.from_version = k_old;
    run.to_version = k_new;
    own::set_subject(run, {"apt-get install -y linux-image-$1", own::Loader::worker});
    for (auto& node : run.nodes) node.kernel = node.from_version = node.current_version = k_old;
    return run;
}

Options draining() {
    Options options;
    options.drain = true;
    return options;
}

std::vector<std::string> steps_of(const std::vector<NodeStep>& steps, const std::string& node) {
    std::vector<std::string> all;
    for (const auto& step : steps)
        if (step.node == node) all.push_back(step.step);
    return all;
}

}  // namespace

TEST_SUITE("upgrade::kernel") {

TEST_CASE("a node is emptied, installed, rebooted, gets its drivers and goes back to work") {
    test::Journal journal(kernel_run(2, draining()));
    const auto steps = journal.walk();
    CHECK(journal.run.state == "upgrade-complete");
    const std::vector<std::string> expected{"check", "cordon", "drain", "install", "reboot", "load", "validate"};
    CHECK(steps_of(steps, "node-a") == expected);
    CHECK(steps_of(steps, "node-b") == expected);
}

TEST_CASE("whatever is kept of a node is printed with it") {
    NodeRecord node;
    node.name = "node-a";
    node.facts = value::Node::mapping();
    own::set_control_plane(node.facts);
    own::set_boot_before(node.facts, "b");
    own::set_reboot_asked(node.facts, "boot-1");
    own::set_installed(node.facts, k_new);
    own::set_drivers(node.facts, {{"drivers/a", value::Node::mapping()}});
    own::set_recipe_drivers(node.facts, {"demo/a"});
    own::set_recipe_containers(node.facts, {{"demo/a", "1"}, {"demo/b", ""}});
    const auto tree = encode(node, own::procedure_kernel());
    for (const auto& member : own::procedure_kernel().node_members()) {
        CAPTURE(member.name);
        CHECK(tree.find(member.name) != nullptr);
    }
    CHECK(own::recipe_containers_of(node) == std::map<std::string, std::string>{{"demo/a", "1"}});
}

TEST_CASE("pools are paused before the first node and unpaused behind the last one, in a run that has any") {
    Options options;
    options.canary = 1;
    auto run = kernel_run(2, options);
    own::set_subject(run, {"true", own::Loader::worker, {"worker"}});
    test::Journal journal(run);
    const auto before = journal.walk();
    CHECK(before.front() == NodeStep{"", "pause-pools"});
    CHECK(journal.run.pause_reason == "canary");
    journal.decision(EventKind::resumed);
    CHECK(journal.walk().back() == NodeStep{"", "unpause-pools"});
    CHECK(journal.run.state == "upgrade-complete");
    CHECK(own::subject_of(replay(journal.entries, own::procedures())).pools == std::vector<std::string>{"worker"});
}

TEST_CASE("control planes go one after the other, however many nodes may be under way") {
    Options options;
    options.max_unavailable = 4;
    auto run = kernel_run(5, options);
    for (const auto place : {1U, 2U, 4U}) own::set_control_plane(run.nodes[place].facts);
    const auto begun = [](const Run& of, const std::set<std::string>& in_flight = {}) {
        std::vector<std::string> names;
        for (const auto& step : next_steps(of, in_flight).steps) names.push_back(step.node);
        return names;
    };
    test::Journal journal(std::move(run));
    while (next_steps(journal.run, {}).next == Next::move) journal.add(next_steps(journal.run, {}).event);
    CHECK(begun(journal.run) == std::vector<std::string>{"node-a", "node-b", "node-d"});
    // The intent of node-b is not recorded yet.
    CHECK(begun(journal.run, {"node-a", "node-b", "node-d"}).empty());
    journal.node(EventKind::intent, "node-b", "check", "checking");
    CHECK(begun(journal.run, {"node-b"}) == std::vector<std::string>{"node-a", "node-d"});
    journal.node(EventKind::failed, "node-b", "check", "checking-failed");
    CHECK(begun(journal.run).empty());
}

TEST_CASE("control planes that have to be brought there again at the end take turns") {
    Options options;
    options.max_unavailable = 4;
    auto run = kernel_run(4, options);
    for (auto& node : run.nodes) own::set_control_plane(node.facts);
    test::Journal journal(std::move(run));
    const auto steps = journal.walk();
    CHECK(journal.run.state == "upgrade-complete");
    for (auto& node : journal.run.nodes) {
        node.state = std::string(k_node_pending);
        REQUIRE(node.touched != 0);
    }
    journal.run.state = "updating-nodes";
    CHECK(next_steps(journal.run, {}).steps == std::vector<NodeStep>{{"node-a", "check"}});
    CHECK(next_steps(journal.run, {"node-a"}).steps.empty());
}

TEST_CASE("without a drain nobody is evicted, and the node is rebooted as well") {
    test::Journal journal(kernel_run(1));
    CHECK(steps_of(journal.walk(), "node-a") ==
          std::vector<std::string>{"check", "install", "reboot", "load", "validate"});
}

TEST_CASE("a node that runs the release already is neither emptied nor rebooted, and its drivers are proved") {
    auto run = kernel_run(2, draining());
    run.find("node-a")->kernel = k_new;
    test::Journal journal(run);
    const auto steps = journal.walk();
    CHECK(steps_of(steps, "node-a") == std::vector<std::string>{"check", "load", "validate"});
    CHECK(steps_of(steps, "node-b").size() == 7);
    CHECK(journal.run.state == "upgrade-complete");
}

TEST_CASE("each state of a node leads to its step, also after the step was cut off") {
    struct Row {
        const char* state;
        const char* step;
    };
    const auto run = kernel_run(1, draining());
    const auto& procedure = own::procedure_kernel();
    const auto& stage = *procedure.table().find_stage("nodes");
    for (const auto& [state, step] :
         {Row{"pending", "check"}, Row{"checking", "check"}, Row{"checked", "cordon"}, Row{"cordoning", "cordon"},
          Row{"cordoned", "drain"}, Row{"draining", "drain"}, Row{"drained", "install"}, Row{"installing", "install"},
          Row{"installed", "reboot"}, Row{"rebooting", "reboot"}, Row{"rebooted", "load"}, Row{"loading", "load"},
          Row{"loaded", "validate"}, Row{"validating", "uncordon"}, Row{"uncordoning", "uncordon"}, Row{"done", ""},
          Row{"rebooting-failed", ""}, Row{"skipped", ""}}) {
        CAPTURE(state);
        auto node = run.nodes.front();
        node.state = state;
        CHECK(procedure.next_step(run, node, stage) == step);
    }
    auto node = run.nodes.front();
    node.state = "validating";
    node.open = true;
    CHECK(procedure.next_step(run, node, stage) == "validate");
}

TEST_CASE("each step may fail: the run pauses, no other node begins, and a retry begins with the check") {
    for (const char* step : {"check", "cordon", "drain", "install", "reboot", "load", "validate"}) {
        CAPTURE(step);
        test::Journal journal(kernel_run(2, draining()));
        static_cast<void>(
            journal.walk([&](const NodeStep& each) { return each.node == "node-a" && each.step == step; }));
        REQUIRE(journal.run.paused);
        const auto& failed = *journal.run.find("node-a");
        CHECK(is_failed_node_state(failed.state));
        CHECK(journal.run.find("node-b")->state == "pending");
        CHECK(procedure_of(journal.run).restart_state(journal.run, failed) == "pending");
        journal.node(EventKind::retry, "node-a", "", "pending");
        journal.decision(EventKind::resumed);
        const auto again = journal.walk();
        CHECK(steps_of(again, "node-a").front() == "check");
        CHECK(journal.run.state == "upgrade-complete");
    }
}

TEST_CASE("the boot from before stays while a node is under way and is forgotten when it is planned again") {
    test::Journal journal(kernel_run(1));
    journal.decision(EventKind::intent, "nodes", "updating-nodes");
    journal.node(EventKind::intent, "node-a", "check", "checking");
    journal.node(EventKind::done, "node-a", "check", "checked");
    journal.node(EventKind::intent, "node-a", "install", "installing");
    journal.node(EventKind::done, "node-a", "install", "installed");
    auto facts = value::Node::mapping();
    own::set_boot_before(facts, "boot-1");
    journal.node(EventKind::intent, "node-a", "reboot", "rebooting", facts);
    CHECK(own::boot_before(*journal.run.find("node-a")) == "boot-1");
    // Begun again after a kill: an intent without the member keeps it.
    journal.node(EventKind::intent, "node-a", "reboot", "rebooting");
    CHECK(own::boot_before(*journal.run.find("node-a")) == "boot-1");
    const auto again = decode_run(encode(journal.run), own::procedures());
    CHECK(own::boot_before(*again.find("node-a")) == "boot-1");
    journal.node(EventKind::failed, "node-a", "reboot", "rebooting-failed");
    journal.node(EventKind::retry, "node-a", "", "pending");
    CHECK(own::boot_before(*journal.run.find("node-a")).empty());
}

TEST_CASE("what a run keeps is read back; a record without it, or with another loader, is damaged") {
    auto run = kernel_run(1);
    const own::Subject subject{"rpm-ostree override replace kernel-$1.rpm", own::Loader::operator_};
    own::set_subject(run, subject);
    CHECK(own::subject_of(decode_run(encode(run), own::procedures())) == subject);
    run.subject = {};
    CHECK_THROWS_AS(static_cast<void>(decode_run(encode(run), own::procedures())), Error);
    run.subject =
        value::Node::mapping({{"install", value::Node::mapping({{"command", "true"}, {"loader", "somebody"}})}});
    CHECK_THROWS_AS(static_cast<void>(decode_run(encode(run), own::procedures())), Error);
}

TEST_CASE("the command is among those that a record runs, and the command to start again can be pasted into a shell") {
    auto run = kernel_run(1);
    own::set_subject(run, {"sh -c 'echo $1'", own::Loader::worker});
    const auto description = describe(run);
    CHECK(description.commands == std::vector<std::pair<std::string, std::string>>{{"install", "sh -c 'echo $1'"}});
    CHECK(description.again == "kmm-upgrade start kernel --to 6.1.0-60-amd64 --install 'sh -c '\\''echo $1'\\'''");
}

TEST_CASE("every transitory state has a failed twin that a person can leave, and a way back") {
    const auto& table = own::procedure_kernel().table();
    for (const auto scope : {Scope::run, Scope::node})
        for (const auto& state : table.states(scope)) {
            if (table.kind(scope, state) != StateKind::transitory) continue;
            CAPTURE(state);
            CHECK(table.kind(scope, state + "-failed") == StateKind::failed);
            if (scope == Scope::node && state != "rolling-back")
                CHECK(table.legal({Scope::node, state, "rolling-back", Cause::begin, "rollback"}));
        }
}

}
