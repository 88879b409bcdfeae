// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include "fixture.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// A login program that prints `body` and counts its runs in the file "runs".
ExecPlugin plugin(const sys::TempDir& dir, const std::string& body) {
    const std::string path = dir.path() + "/login";
    write_text(path, "#!/bin/sh\necho run >> " + dir.path() + "/runs\nprintf '%s' \"$KUBERNETES_EXEC_INFO\" > " +
                         dir.path() + "/info\n" + body);
    ::chmod(path.c_str(), 0700);
    ExecPlugin result;
    result.command = path;
    result.api_version = "client.authentication.k8s.io/v1";
    result.origin = Position{"config", 9, 9};
    return result;
}

std::string credential(const std::string& status) {
    return "cat <<'END'\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{" +
           status + "}}\nEND\n";
}

std::size_t runs(const sys::TempDir& dir) {
    std::ifstream file(dir.path() + "/runs");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) { ++count; }
    return count;
}

std::string header_of(const Proof& proof, const std::string& name) {
    std::string found;
    for (const auto& [key, value] : proof.headers) {
        if (key == name) { found += (found.empty() ? "" : "|") + value; }
    }
    return found;
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("401: a token file is read again, once, and the request sent again") {
    const sys::TempDir dir{"token"};
    const std::string file = dir.path() + "/token";
    write_text(file, "old\n");
    std::vector<std::string> seen;
    FakeServer server([&](const FakeRequest& request) {
        seen.push_back(request.header("authorization"));
        write_text(file, "new\n");
        return seen.back() == "Bearer new" ? reply(200, k_node_json)
                                           : status_reply(401, "Unauthorized", "Unauthorized");
    });
    Scripted scripted({});
    Connection connection;
    connection.server = "http://127.0.0.1:" + std::to_string(server.port());
    connection.token_file = file;
    scripted.connect(connection, {});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(seen == Texts{"Bearer old", "Bearer new"});
    CHECK(scripted.clock.sleeps.empty());
}

TEST_CASE("401 twice, or with a token that cannot change, is the end") {
    const sys::TempDir dir{"token"};
    write_text(dir.path() + "/token", "t");
    for (const bool from_file : {false, true}) {
        CAPTURE(from_file);
        Scripted scripted(std::vector<FakeReply>(3, status_reply(401, "Unauthorized", "Unauthorized")));
        Connection connection = scripted.client->connection();
        connection.token = "fixed";
        if (from_file) { connection.token_file = dir.path() + "/token"; }
        scripted.connect(connection, {});
        const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
        CHECK(error.code() == "unauthorized");
        CHECK(error.exit() == Exit::no_permission);
        CHECK(scripted.server.requests().size() == (from_file ? 2 : 1));
    }
}

TEST_CASE("a token file is read again after a minute; while it cannot be read the last token is used") {
    const sys::TempDir dir{"token"};
    Connection connection;
    connection.token_file = dir.path() + "/token";
    SleepyClock clock;
    Credentials credentials(connection, clock, {});
    CHECK(error_of([&] { return credentials.proof(); }).exit() == Exit::not_found);
    write_text(connection.token_file, "one\n");
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer one");
    write_text(connection.token_file, "two\n");
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer one");
    clock.elapsed += seconds(61);
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer two");
    write_text(connection.token_file, "");
    clock.elapsed += seconds(61);
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer two");
    if (::geteuid() != 0) { return; }
    REQUIRE(::chmod(connection.token_file.c_str(), 0666) == 0);
    clock.elapsed += seconds(61);
    CHECK(error_of([&] { return credentials.proof(); }).code() == "untrusted-file");
}

TEST_CASE("basic authentication and impersonation are headers") {
    Connection connection;
    connection.username = "u";
    connection.password = "p";
    connection.impersonation.user = "jane";
    connection.impersonation.uid = "7";
    connection.impersonation.groups = {"a", "b"};
    connection.impersonation.extra = {{"acme.com/x", {"1", "2"}}};
    SleepyClock clock;
    const Proof proof = Credentials(connection, clock, {}).proof();
    CHECK(header_of(proof, "Authorization") == "Basic dTpw");
    CHECK(header_of(proof, "Impersonate-User") == "jane");
    CHECK(header_of(proof, "Impersonate-Uid") == "7");
    CHECK(header_of(proof, "Impersonate-Group") == "a|b");
    CHECK(header_of(proof, "Impersonate-Extra-acme.com%2Fx") == "1|2");
}

TEST_CASE("exec plugin: run once until its credential expires, and after a 401") {
    const sys::TempDir dir{"plugin"};
    Connection connection;
    connection.server = "https://api:6443";
    connection.exec = plugin(dir, credential(R"("token":"t","expirationTimestamp":"2027-01-15T09:00:00+01:00")"));
    connection.exec->provide_cluster_info = true;
    connection.exec->cluster_config = value::Node::mapping({{"audience", "shoot"}});
    SleepyClock clock;  // 2027-01-15T08:00:00Z
    clock.start_unix -= 60;
    Credentials credentials(connection, clock, {});
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer t");
    CHECK(header_of(credentials.proof(), "Authorization") == "Bearer t");
    CHECK(runs(dir) == 1);
    clock.elapsed += seconds(51);
    static_cast<void>(credentials.proof());
    CHECK(runs(dir) == 2);
    clock.elapsed -= seconds(51);
    CHECK(credentials.refresh(credentials.proof().generation));
    static_cast<void>(credentials.proof());
    CHECK(runs(dir) == 3);
    std::string info;
    std::getline(std::ifstream(dir.path() + "/info"), info);
    CHECK(info ==
          R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,)"
          R"("cluster":{"server":"https://api:6443","config":{"audience":"shoot"}}}})");
}

TEST_CASE("exec plugin: a certificate instead of a token; its standard error is passed on") {
    const sys::TempDir dir{"plugin"};
    Connection connection;
    connection.exec = plugin(
        dir, "echo 'opening the browser' >&2\n" + credential(R"("clientCertificateData":"C","clientKeyData":"K")"));
    SleepyClock clock;
    std::vector<std::string> lines;
    const Proof proof =
        Credentials(connection, clock, [&](std::string_view line) { lines.emplace_back(line); }).proof();
    CHECK(proof.tls.client_certificate_pem == "C");
    CHECK(proof.tls.client_key_pem == "K");
    CHECK(proof.headers.empty());
    CHECK(lines == Texts{"opening the browser"});
}

TEST_CASE("exec plugin: everything it can do wrong") {
    struct Row { std::string body, message; };
    const std::vector<Row> rows{
        {"echo 'not logged in' >&2; exit 3", "exit code 3: not logged in"},
        {"kill -9 $$", "killed by signal 9"},
        {"echo hello", "expected an ExecCredential as JSON on its standard output, found something else"},
        {credential(""), "expected a token or a certificate in status, found neither"},
        {credential(R"("clientKeyData":"K")"),
         "expected clientCertificateData and clientKeyData together, found one of them"},
        {credential(R"("token":"t","expirationTimestamp":"tomorrow")"),
         "expected an RFC 3339 time as expirationTimestamp, found \"tomorrow\""},
        {"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}'",
         "expected apiVersion client.authentication.k8s.io/v1, found \"v9\""},
    };
    for (const auto& row : rows) {
        CAPTURE(row.body);
        const sys::TempDir dir{"plugin"};
        Connection connection;
        connection.exec = plugin(dir, row.body);
        SleepyClock clock;
        Credentials credentials(connection, clock, {});
        const Error error = error_of([&] { return credentials.proof(); });
        CHECK(error.code() == "exec-plugin");
        CHECK(error.exit() == Exit::no_permission);
        CHECK(error.message() == "login program " + connection.exec->command + ": " + row.message);
        CHECK(error.position()->to_string() == "config:9:9");
    }
}

TEST_CASE("exec plugin: root runs none that somebody else may replace") {
    constexpr unsigned k_somebody = 65534;
    const sys::TempDir dir{"plugin"};
    Connection connection;
    connection.exec = plugin(dir, credential(R"("token":"t")"));
    SleepyClock clock;
    const auto outcome = [&] {
        Credentials credentials(connection, clock, {});
        try {
            return credentials.proof().headers.empty() ? std::string("no token") : std::string("token");
        } catch (const Error& error) { return error.code(); }
    };
    CHECK(outcome() == "token");
    if (::geteuid() != 0) { return; }
    const std::string& program = connection.exec->command;
    REQUIRE(::chown(program.c_str(), k_somebody, k_somebody) == 0);
    CHECK(outcome() == "untrusted-file");
    REQUIRE(::chown(program.c_str(), 0, 0) == 0);
    CHECK(outcome() == "token");
    CHECK(runs(dir) == 2);
}

TEST_CASE("exec plugin: runs once for all who ask at the same time, whose tokens are refused, or whom it fails") {
    const sys::TempDir dir{"plugin"};
    Connection connection;
    connection.exec = plugin(dir, "sleep 0.3\n" + credential(R"("token":"t")"));
    SleepyClock clock;
    Credentials credentials(connection, clock, {});
    const auto all = [](const std::function<void()>& body) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) { threads.emplace_back(body); }
    };
    all([&] { static_cast<void>(credentials.proof()); });
    CHECK(runs(dir) == 1);
    const auto refused = credentials.proof().generation;
    all([&] {
        static_cast<void>(credentials.refresh(refused));
        static_cast<void>(credentials.proof());
    });
    CHECK(runs(dir) == 2);
    connection.exec = plugin(dir, "sleep 0.3; echo no >&2; exit 1");
    Credentials failing(connection, clock, {});
    std::atomic<int> failures{0};
    all([&] {
        try {
            static_cast<void>(failing.proof());
        } catch (const Error& error) {
            failures += error.code() == "exec-plugin" ? 1 : 0;
        }
    });
    CHECK(failures == 4);
    CHECK(runs(dir) == 3);
}

TEST_CASE("exec plugin: ends when nobody wants to wait any more; two clients of one connection share it") {
    const sys::TempDir dir{"plugin"};
    Scripted scripted(std::vector<FakeReply>(2, reply(200, k_node_json)));
    Connection connection = scripted.client->connection();
    connection.exec = plugin(dir, "sleep 60");
    ClientOptions options;
    const auto begin = std::chrono::steady_clock::now();
    options.stop_waiting = [&] { return std::chrono::steady_clock::now() - begin > milliseconds(500); };
    scripted.connect(connection, options);
    const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(error.exit() == Exit::timeout);
    CHECK(error.message() == "timed out while waiting for login program " + connection.exec->command);
    CHECK(std::chrono::steady_clock::now() - begin < seconds(30));
    connection.exec = plugin(dir, credential(R"("token":"t")"));
    scripted.connect(connection, {});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    ClientOptions shared;
    shared.credentials = scripted.client->credentials();
    scripted.connect(connection, shared);
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(runs(dir) == 2);
}

TEST_CASE("who is taken for nobody is told why, and not to give nobody rights") {
    const auto refusal = [](const std::string& user) {
        return status_reply(403, "Forbidden", "nodes is forbidden: User \\\"" + user + "\\\" cannot get");
    };
    struct Row { FakeReply answer; bool has_token, is_withheld; std::string hint; };
    const std::vector<Row> rows{
        {refusal("system:anonymous"), false, false, "nothing to log in with: the user of context prod of config"},
        {status_reply(401, "Unauthorized", "Unauthorized"), false, false, "nothing to log in with"},
        {status_reply(401, "Unauthorized", "Unauthorized"), false, true,
         "no credentials are sent over http: cluster.server"},
        {refusal("system:anonymous"), true, false, "the credentials were sent, but"},
        {refusal("jane"), true, false, "this rule is missing"},
        {status_reply(401, "Unauthorized", "Unauthorized"), true, false, "log in again"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.hint);
        Scripted scripted({row.answer, reply(404, ""), row.answer});
        Connection connection = scripted.client->connection();
        connection.context = "prod";
        connection.origin = "config";
        connection.token = row.has_token ? "t" : "";
        connection.is_withheld = row.is_withheld;
        scripted.connect(connection, {});
        CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).hint().starts_with(row.hint));
    }
}

TEST_CASE("exec plugin: not there, or in want of a terminal") {
    Connection connection;
    connection.exec = ExecPlugin{};
    connection.exec->command = "/nowhere/login";
    connection.exec->install_hint = "install it so:\n  get login\n";
    SleepyClock clock;
    const Error absent = error_of([&] { return Credentials(connection, clock, {}).proof(); });
    CHECK(absent.message() == "login program /nowhere/login: there is no such program");
    CHECK(absent.hint() == "install it so:\n  get login");
    connection.exec->interactive = Interactive::always;
    CHECK(error_of([&] { return Credentials(connection, clock, {}).proof(); }).message().find("wants a terminal") !=
          std::string::npos);
}

}
