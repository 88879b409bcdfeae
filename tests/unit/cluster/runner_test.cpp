// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cluster/local_runner.hpp"
#include "cluster/ssh_runner.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;
using test::Tree;

namespace {

/// A directory with a fake ssh and a fake worker.
struct Bench {
    Tree tree;
    explicit Bench(const std::string& ssh, const std::string& worker = "cat >/dev/null; echo '{\"kind\":\"WorkerResult\"}'") {
        script("ssh", ssh);
        script("worker", worker);
    }
    void script(const std::string& name, const std::string& text) const {
        tree.put(name, "#!/bin/sh\n" + text + "\n");
        std::filesystem::permissions(tree.path(name), std::filesystem::perms(0755));
    }
    [[nodiscard]] WorkerReply run(const WorkerCall& call) const {
        SshOptions options;
        options.config_file = "/a config";
        options.worker_command = tree.path("worker");
        options.ssh_command = tree.path("ssh");
        return SshRunner(options).run(call);
    }
};

WorkerCall call_of(std::vector<std::string> args, std::string stdin_text = "") {
    WorkerCall call;
    call.node = "node-a";
    call.args = std::move(args);
    call.stdin_text = std::move(stdin_text);
    call.timeout = std::chrono::seconds(20);
    return call;
}

/// Behaves like sshd: the last argument goes to a login shell.
const std::string k_through = "for last; do :; done; echo 'debug1: Sending command: x' >&2; exec sh -c \"$last\"";

}  // namespace

TEST_SUITE("cluster::runner") {
    TEST_CASE("ssh: a result with its exit code, and the command line it takes") {
        const Bench bench("dir=$(dirname \"$0\"); for a; do echo \"$a\" >>\"$dir/argv\"; done; " + k_through,
                          "cat >\"$(dirname \"$0\")/stdin\"; echo working >&2; echo '{\"kind\":\"Error\"}'; exit 13");
        const auto reply = bench.run(call_of({"load", "-"}, "secret: text\n"));
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.exit_code == 13);
        CHECK(reply.document.get_string({"kind"}) == "Error");
        CHECK(reply.transport == "working");
        CHECK(bench.tree.get("stdin") == "secret: text\n");
        const auto argv = bench.tree.get("argv");
        CHECK(argv.find("-v\n-T\n-o\nBatchMode=yes\n-o\nConnectTimeout=10\n-o\nServerAliveInterval=5\n-o\nServerAliveCountMax=3\n"
                        "-F\n/a config\n--\nnode-a\n") == 0);
        CHECK(argv.find("secret") == std::string::npos);
    }

    TEST_CASE("ssh: hostile arguments arrive byte for byte") {
        const Bench bench(k_through, "for a; do printf '%s\\0' \"$a\"; done >\"$(dirname \"$0\")/args\"; echo '{}'");
        const std::vector<std::string> args = {"a b", "$(touch /tmp/x)", "`id`", "'", "\"", "it's; rm -rf /", "", "*", "\\", "a\nb", "-o", "!x", "~"};
        CHECK(bench.run(call_of(args)).end == CallEnd::completed);
        std::string expected;
        for (const auto& arg : args) expected += arg + std::string(1, '\0');
        expected += std::string("-o\0json\0", 8);
        CHECK(bench.tree.get("args") == expected);
    }

    TEST_CASE("ssh: how a lost call ends") {
        struct Case {
            std::string name, ssh;
            CallEnd end;
            std::string transport;
        };
        const std::vector<Case> cases = {
            {"refused", "echo 'debug1: Connecting to node-a' >&2; echo 'ssh: connect to host node-a port 22: Connection refused' >&2; exit 255",
             CallEnd::unreachable, "ssh: connect to host node-a port 22: Connection refused"},
            {"drop before start", "echo 'debug1: Authentication succeeded' >&2; echo 'Connection closed by remote host' >&2; exit 255",
             CallEnd::unreachable, "Connection closed by remote host"},
            {"drop after the command was sent", "echo 'debug1: Sending command: x' >&2; echo 'Timeout, server not responding.' >&2; exit 255",
             CallEnd::unknown, "Timeout, server not responding."},
            {"drop after the start", "echo kmm-worker-started >&2; exit 255", CallEnd::unknown, "the connection was lost"},
            {"drop after the result", "echo kmm-worker-started >&2; echo '{}'; exit 255", CallEnd::unknown, "the connection was lost"},
            {"shared connection", "echo \"debug1: auto-mux: Trying existing master at 'x'\" >&2; exit 255", CallEnd::unknown,
             "the connection was lost"},
            {"stale shared connection", "echo 'debug1: auto-mux: Trying existing master' >&2; echo 'debug1: Connecting to h' >&2; exit 255",
             CallEnd::unreachable, ""},
            {"garbage", "echo kmm-worker-started >&2; echo hello; exit 0", CallEnd::unknown,
             "expected one JSON document from the worker, found 'hello\\n' (exit code 0)"},
            {"nothing", "echo kmm-worker-started >&2; exit 0", CallEnd::unknown,
             "expected one JSON document from the worker, found nothing (exit code 0)"},
            {"two documents", "echo '{}{}'", CallEnd::unknown, "expected one JSON document from the worker, found '{}{}\\n' (exit code 0)"},
            {"no object", "echo '[1]'", CallEnd::unknown, "expected one JSON document from the worker, found '[1]\\n' (exit code 0)"},
            {"cut", "echo kmm-worker-started >&2; printf '{\"kind\":'", CallEnd::unknown,
             "expected one JSON document from the worker, found '{\"kind\":' (exit code 0)"},
            {"killed", "kill -9 $$", CallEnd::unreachable, ""},
            {"killed after the start", "echo kmm-worker-started >&2; kill -9 $$", CallEnd::unknown, "the connection was lost"},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            const auto reply = Bench(c.ssh).run(call_of({"status"}));
            CHECK(reply.end == c.end);
            CHECK(reply.transport == c.transport);
            CHECK(reply.document.is_null());
        }
    }

    TEST_CASE("ssh: a node without the worker is told apart from a lost call") {
        const Bench bench(k_through);
        std::filesystem::remove(bench.tree.path("worker"));
        const auto reply = bench.run(call_of({"status"}));
        CHECK(reply.end == CallEnd::unreachable);
        CHECK(reply.transport == bench.tree.path("worker") + ": command not found on the node");
    }

    TEST_CASE("ssh: the time limit") {
        auto call = call_of({"load"});
        call.timeout = std::chrono::milliseconds(300);
        const auto before = Bench("exec sleep 30").run(call);
        CHECK(before.end == CallEnd::unreachable);
        CHECK(before.transport == "no connection within the time limit");
        const auto after = Bench("echo kmm-worker-started >&2; exec sleep 30").run(call);
        CHECK(after.end == CallEnd::unknown);
        CHECK(after.transport == "no answer within the time limit");
    }

    TEST_CASE("ssh: no client, and a node name that is none") {
        SshOptions options;
        options.ssh_command = "/nonexistent/ssh";
        CHECK_THROWS_AS((void)SshRunner(options).run(call_of({"status"})), Error);
        auto call = call_of({"status"});
        for (const std::string name : {"-oProxyCommand=x", "a b", "", "$(x)"}) {
            call.node = name;
            CHECK_THROWS_AS((void)SshRunner({}).run(call), Error);
        }
    }

    TEST_CASE("local: the same replies without a transport") {
        const Bench bench("exit 1", "cat >/dev/null; [ \"$1\" = crash ] && kill -9 $$; echo '{\"kind\":\"WorkerResult\"}'; exit 14");
        LocalRunner runner(bench.tree.path("worker"));
        const auto reply = runner.run(call_of({"unload", "-"}, "x"));
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.exit_code == 14);
        CHECK(reply.document.get_string({"kind"}) == "WorkerResult");
        CHECK(runner.run(call_of({"crash"})).end == CallEnd::unknown);
        CHECK_THROWS_AS((void)LocalRunner("/nonexistent/worker").run(call_of({"status"})), Error);
        CHECK(runner.describe() == "local");
    }
}
