// SPDX-License-Identifier: Apache-2.0
// Who does not want to wait any more, by --timeout or a signal, does not wait for a server that is not there either.
#include "fixture.hpp"
#include "kube/lease_keeper.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

TEST_SUITE("kube::unit") {

TEST_CASE("stop_waiting ends the wait for a server that is away, as a time-out, within a second") {
    Scripted scripted({});
    ClientOptions options;
    options.stop_waiting = [&] { return scripted.clock.elapsed >= seconds(4); };
    Connection connection;
    connection.server = "http://127.0.0.1:9";
    scripted.connect(connection, options);
    const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "interrupted");
    CHECK(error.exit() == Exit::timeout);
    CHECK(error.message() == "timed out while waiting for the API server");
    REQUIRE(error.details().size() == 2);
    CHECK(error.details()[0] == std::pair<std::string, std::string>("server", "http://127.0.0.1:9"));
    CHECK(error.details()[1].second.find("Could") != std::string::npos);
    CHECK(error.hint().find("readyz") != std::string::npos);
    CHECK(scripted.clock.elapsed < seconds(6));
}

TEST_CASE("stop_waiting: a server that answers is asked on, so that what is under way comes to its end") {
    Scripted scripted({reply(200, R"({"kind":"Node"})")});
    ClientOptions options;
    options.stop_waiting = [] { return true; };
    scripted.connect(scripted.client->connection(), options);
    CHECK(scripted.client->get(resources::k_nodes, k_node).get_string({"kind"}) == "Node");
}

TEST_CASE("stop_waiting: a Lease that somebody else has is not waited for") {
    auto held = reply(200, R"({"kind":"Lease","metadata":{"name":"l","namespace":"n","resourceVersion":"7","uid":"u"},
        "spec":{"holderIdentity":"jane@host/12/abc","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000000Z"}})");
    Scripted scripted(std::vector<FakeReply>(30, held));
    ClientOptions options;
    options.stop_waiting = [&] { return scripted.clock.elapsed >= seconds(3); };
    scripted.connect(scripted.client->connection(), options);
    LeaseOptions lease;
    lease.namespace_ = "n";
    lease.name = "l";
    lease.holder = "me";
    LeaseKeeper keeper(std::move(scripted.client), lease);
    const Error error = error_of([&] {
        keeper.acquire([](const std::string&) { return false; }, [](const LeaseState&) {});
        return 0;
    });
    CHECK(error.code() == "interrupted");
    CHECK(error.exit() == Exit::timeout);
    CHECK(error.message() == "timed out while waiting for Lease n/l, which is held by jane@host/12/abc");
    CHECK(scripted.clock.elapsed < seconds(6));
}

}
