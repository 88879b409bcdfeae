// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cluster/worker/local_runner.hpp"
#include "cluster/worker/ssh_runner.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;
using test::Tree;

namespace {

/// A directory with a fake ssh and a fake worker.
struct Bench {
    Tree tree;
    explicit Bench(const std::string& ssh,
                   const std::string& worker = "cat >/dev/null; echo '{\"kind\":\"WorkerResult\"}'") {
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
        CHECK(argv.find("-v\n-T\n-o\nBatchMode=yes\n-o\nConnectTimeout=10\n-o\nServerAliveInterval=5\n-"
                        "o\nServerAliveCountMax=3\n"
                        "-o\nForwardAgent=no\n-o\nForwardX11=no\n-o\nClearAllForwardings=yes\n-o\nTunnel=no\n-"
                        "o\nPermitLocalCommand=no\n"
                        "-F\n/a config\n-o\nRemoteCommand=none\n-o\nSessionType=default\n-o\nStdinNull=no\n-o\n"
                        "ForkAfterAuthentication=no\n-E\n/proc/") == 0);
        CHECK(argv.find("\n--\nnode-a\n") != std::string::npos);
        CHECK(argv.find("secret") == std::string::npos);
    }

    TEST_CASE("ssh: hostile arguments arrive byte for byte") {
        const Bench bench(k_through, "for a; do printf '%s\\0' \"$a\"; done >\"$(dirname \"$0\")/args\"; echo '{}'");
        const std::vector<std::string> args = {
            "a b", "$(touch /tmp/x)", "`id`", "'", "\"", "it's; rm -rf /", "", "*", "\\", "a\nb", "-o", "!x", "~"};
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
            std::string transport, found = {};
        };
        const std::vector<Case> cases = {
            {"refused",
             "echo 'debug1: Connecting to node-a' >&2; echo 'ssh: connect to host node-a port 22: Connection refused' "
             ">&2; exit 255",
             CallEnd::unreachable, "ssh: connect to host node-a port 22: Connection refused"},
            {"drop before start",
             "echo 'debug1: Authentication succeeded' >&2; echo 'Connection closed by remote host' >&2; exit 255",
             CallEnd::unreachable, "Connection closed by remote host"},
            {"drop after the command was sent",
             "echo 'debug1: Sending command: x' >&2; echo 'Timeout, server not responding.' >&2; exit 255",
             CallEnd::unknown, "Timeout, server not responding."},
            {"drop after the start", "echo kmm-worker-started >&2; exit 255", CallEnd::unknown,
             "the connection was lost"},
            {"drop after the result", "echo kmm-worker-started >&2; echo '{}'; exit 255", CallEnd::unknown,
             "the connection was lost"},
            {"shared connection", "echo \"debug1: auto-mux: Trying existing master at 'x'\" >&2; exit 255",
             CallEnd::unknown, "the connection was lost"},
            {"stale shared connection",
             "echo 'debug1: auto-mux: Trying existing master' >&2; echo 'debug1: Connecting to h' >&2; exit 255",
             CallEnd::unreachable, ""},
            {"behind a jump host",
             "echo 'channel 0: open failed: Connection refused' >&2; echo 'stdio forwarding failed' >&2; exit 255",
             CallEnd::unreachable, "channel 0: open failed: Connection refused"},
            {"configuration of ssh", "echo 'c: line 9: Bad configuration option: x' >&2; "
                                     "echo 'c: terminating, 1 bad configuration options' >&2; exit 255",
             CallEnd::unreachable, "c: line 9: Bad configuration option: x"},
            {"an older server",
             "echo '** The server may need to be upgraded. See https://openssh.com/pq.html' >&2; exit 255",
             CallEnd::unreachable, ""},
            {"garbage", "echo kmm-worker-started >&2; echo hello; exit 0", CallEnd::completed, "", "hello"},
            {"nothing", "echo kmm-worker-started >&2; exit 0", CallEnd::completed, "", ""},
            {"two documents", "echo '{\"kind\":\"A\"}{\"kind\":\"B\"}'", CallEnd::completed, "",
             R"({"kind":"A"}{"kind":"B"})"},
            {"no object", "echo '[1]'", CallEnd::completed, "", "[1]"},
            {"cut", "echo kmm-worker-started >&2; printf '{\"kind\":'", CallEnd::completed, "", R"({"kind":)"},
            {"exit code 255 of the worker itself",
             "echo 'debug1: client_input_channel_req: channel 0 rtype exit-status reply 0' >&2; exit 255",
             CallEnd::completed, "", ""},
            {"killed", "kill -9 $$", CallEnd::unreachable, ""},
            {"killed after the start", "echo kmm-worker-started >&2; kill -9 $$", CallEnd::unknown,
             "the connection was lost"},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            const auto reply = Bench(c.ssh).run(call_of({"status"}));
            CHECK(reply.end == c.end);
            CHECK(reply.transport == c.transport);
            CHECK(reply.found == c.found);
            CHECK(reply.document.is_null());
        }
    }

    TEST_CASE("ssh: a node without the worker is told apart from a lost call") {
        const Bench bench(k_through);
        std::filesystem::remove(bench.tree.path("worker"));
        const auto reply = bench.run(call_of({"status"}));
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.exit_code == 127);
        CHECK(reply.document.is_null());
        CHECK(reply.transport == bench.tree.path("worker") + ": command not found on the node");
    }

    TEST_CASE("ssh: what a login shell or a wrapper prints around the worker's document is skipped") {
        const std::string answer =
            R"({"apiVersion":"kmmtools/v1","kind":"ModuleStatus","modules":[{"name":"a}\"]{"}]})";
        const std::string worker = "cat >/dev/null; printf '%s\\n' '" + answer + "'";
        const std::string start = "for last; do :; done; ";
        const std::string run = "sh -c \"$last\"";
        const std::vector<std::pair<std::string, std::string>> shells = {
            {"a line before", "echo Welcome; " + run},
            {"no newline", "printf 'Welcome '; " + run},
            {"lines on both streams", "echo Welcome; echo Welcome >&2; " + run},
            {"JSON before", R"(echo '{"level":"info","msg":"hi"}'; )" + run},
            {"a brace that is never closed", "echo 'proxy { {'; " + run},
            {"another result before", R"(echo '{"apiVersion":"kmmtools/v1","kind":"Node"}'; )" + run},
            {"JSON after", run + R"(; echo '{"level":"info"}')"},
            {"lines after", run + "; echo bye; echo '}'"},
            {"carriage returns", run + " | sed 's/$/\r/'"},
            {"an older side, a line before",
             "echo Welcome; echo kmm-worker-started >&2; sh \"$(dirname \"$0\")/worker\""},
            {"an older side, no marker at all", "printf 'Last login: [{\"'; sh \"$(dirname \"$0\")/worker\"; echo bye"},
        };
        for (const auto& [name, shell] : shells) {
            CAPTURE(name);
            const auto reply = Bench(start + shell, worker).run(call_of({"status"}, "x"));
            CHECK(reply.end == CallEnd::completed);
            CHECK(reply.document.get_string({"kind"}) == "ModuleStatus");
            CHECK(reply.document.find("modules")->items().size() == 1);
            CHECK(reply.exit_code == 0);
        }
    }

    TEST_CASE("ssh: two results without a marker between them are no result") {
        const auto reply =
            Bench(R"(echo '{"apiVersion":"kmmtools/v1","kind":"A"}'; echo '{"apiVersion":"kmmtools/v1","kind":"B"}')")
                .run(call_of({"status"}));
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.document.is_null());
    }

    TEST_CASE("ssh: a worker that ends without a result has its exit code, its signal and its last lines") {
        const auto ended =
            Bench(k_through, "echo 'sudo: a password is required' >&2; exit 1").run(call_of({"load", "-"}, "x"));
        CHECK(ended.end == CallEnd::completed);
        CHECK(ended.exit_code == 1);
        CHECK(ended.started);
        CHECK(ended.transport == "sudo: a password is required");
        const auto killed = Bench(
                                "echo kmm-worker-started >&2; echo 'debug1: client_input_channel_req: channel 0 rtype "
                                "exit-signal reply 0' >&2; exit 255")
                                .run(call_of({"load"}));
        CHECK(killed.end == CallEnd::completed);
        CHECK(killed.signal == k_some_signal);
        const auto no_shell = Bench("echo 'This account is currently not available.'; exit 1").run(call_of({"status"}));
        CHECK(no_shell.end == CallEnd::completed);
        CHECK_FALSE(no_shell.started);
        CHECK(no_shell.found == "This account is currently not available.");
    }

    TEST_CASE("ssh: its log has a file of its own, and is read where the client cannot open one") {
        const std::string find = "log=; for a; do [ \"$was\" != -E ] || log=$a; was=$a; last=$a; done; ";
        const auto apart = Bench(find +
                                 "printf 'debug1: Sending command: x\n' >\"$log\"; printf 'sudodebug1: x: ' >&2; echo "
                                 "'a password is required' >&2; exit 1")
                               .run(call_of({"status"}));
        CHECK(apart.transport == "sudodebug1: x: a password is required");
        const auto lost =
            Bench(find + "echo 'debug1: Sending command: x' >>\"$log\"; echo 'Connection reset' >>\"$log\"; exit 255")
                .run(call_of({"status"}));
        CHECK(lost.end == CallEnd::unknown);
        CHECK(lost.transport == "Connection reset");
        const auto refused = Bench(find +
                                   "[ -z \"$log\" ] || { echo \"Couldn't open logfile $log: Permission denied\" >&2; "
                                   "exit 255; }; echo '{\"kind\":\"A\"}'")
                                 .run(call_of({"status"}));
        CHECK(refused.document.get_string({"kind"}) == "A");
    }

    TEST_CASE("ssh: clients that do not know every option are asked with fewer") {
        const std::string refusing = "for a; do case $a in %) "
                                     "echo \"command-line: line 0: Bad configuration option: x\" >&2; exit 255 ;; "
                                     "esac; done; echo called >>\"$(dirname \"$0\")/calls\"; " + k_through;
        for (const std::string known : {"SessionType=*", "SessionType=*|RemoteCommand=*"}) {
            auto ssh = refusing;
            const Bench bench(ssh.replace(ssh.find('%'), 1, known));
            const auto reply = bench.run(call_of({"check", "-"}, "text"));
            CHECK(reply.end == CallEnd::completed);
            CHECK(reply.document.get_string({"kind"}) == "WorkerResult");
            CHECK(bench.tree.get("calls") == "called\n");
        }
    }

    TEST_CASE("ssh: what to do about a login that is refused") {
        const auto hint_of = [](const std::string& text) {
            return Bench("echo '" + text + "' >&2; exit 255").run(call_of({"status"})).hint;
        };
        CHECK(hint_of("Host key verification failed.") ==
              "log in once to check and accept its host key: ssh -F '/a config' node-a true");
        CHECK(hint_of("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.")
                  .starts_with("its host key is not the one in known_hosts"));
        CHECK(hint_of("root@node-a: Permission denied (publickey,password).") ==
              "ssh must log in without a question: ssh -F '/a config' node-a true");
        CHECK(hint_of("ssh: connect to host node-a port 22: Connection refused").empty());
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

    TEST_CASE("ssh: a client that somebody else may change is not run by root") {
        const Bench bench("exit 0");
        REQUIRE(::chmod(bench.tree.path("ssh").c_str(), 0757) == 0);
        std::string code;
        try {
            (void)bench.run(call_of({"status"}));
        } catch (const Error& error) { code = error.code(); }
        CHECK(code == (::geteuid() == 0 ? "untrusted-file" : ""));
    }

    TEST_CASE("local: the same replies without a transport") {
        const Bench bench(
            "exit 1", "cat >/dev/null; [ \"$1\" = crash ] && kill -9 $$; echo '{\"kind\":\"WorkerResult\"}'; exit 14");
        LocalRunner runner(bench.tree.path("worker"));
        const auto reply = runner.run(call_of({"unload", "-"}, "x"));
        CHECK(reply.end == CallEnd::completed);
        CHECK(reply.exit_code == 14);
        CHECK(reply.document.get_string({"kind"}) == "WorkerResult");
        const auto crashed = runner.run(call_of({"crash"}));
        CHECK(crashed.end == CallEnd::completed);
        CHECK(crashed.signal == 9);
        CHECK(crashed.document.is_null());
        CHECK_THROWS_AS((void)LocalRunner("/nonexistent/worker").run(call_of({"status"})), Error);
        CHECK(runner.describe() == "local");
    }
}
