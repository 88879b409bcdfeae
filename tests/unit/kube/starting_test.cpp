// SPDX-License-Identifier: Apache-2.0
// An API server that has just been started knows no roles, and says no to everybody: what it answers is not its last
// word.
#include "fixture.hpp"
#include "kube/access.hpp"
#include "kube/teller.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

const FakeReply k_refusal =
    status_reply(403, "Forbidden", R"(nodes \"a\" is forbidden: User \"u\" cannot get resource \"nodes\")");
const FakeReply k_readyz_refused =
    status_reply(403, "Forbidden", R"(forbidden: User \"u\" cannot get path \"/readyz\")");
const FakeReply k_one_node = reply(200, k_node_json);
const FakeReply k_ready = reply(200, "ok");
const FakeReply k_starting = reply(500, "[-]poststarthook/rbac/bootstrap-roles failed: reason withheld");
const Texts k_asked_once{"GET /api/v1/nodes/node-a", "GET /readyz"};

FakeReply review(bool allowed) {
    return reply(201, std::string(R"({"status":{"allowed":)") + (allowed ? "true" : "false") + "}}");
}

std::string get_name(Scripted& scripted) {
    return scripted.client->get(resources::k_nodes, k_node).get_string({"metadata", "name"});
}

Error refused_get(Scripted& scripted) {
    return error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
}

/// As many of both, one after the other.
std::vector<FakeReply> in_turn(const FakeReply& one, const FakeReply& other, int times) {
    std::vector<FakeReply> script;
    for (int i = 0; i < times; ++i) { script.insert(script.end(), {one, other}); }
    return script;
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("a server that is just starting: the first 403 of a process is not final, and what is waited for is said") {
    Scripted scripted({k_refusal, k_readyz_refused, k_refusal, k_starting, k_one_node});
    CHECK(get_name(scripted) == "node-a");
    REQUIRE(scripted.outages.size() == 2);
    CHECK(scripted.outages[0].kind == Outage::Kind::starting);
    CHECK(scripted.outages[0].reason.find("cannot get resource") != std::string::npos);
    CHECK(scripted.returns == 1);
    CHECK(scripted.clock.elapsed == seconds(1));
}

TEST_CASE("a right that is missing on a server that is ready is said at once, whoever asks later") {
    // It may have become ready between the refusal and the question: once more.
    Scripted scripted({k_refusal, k_ready, k_refusal, k_refusal, k_one_node});
    CHECK(refused_get(scripted).code() == "forbidden");
    CHECK(refused_get(scripted).code() == "forbidden");
    CHECK(scripted.clock.sleeps.empty());
    CHECK(scripted.outages.empty());
    CHECK(scripted.targets() ==
          Texts{"GET /api/v1/nodes/node-a", "GET /readyz", "GET /api/v1/nodes/node-a", "GET /api/v1/nodes/node-a"});
    // Another server, or the same anew, may answer by then.
    scripted.clock.elapsed += seconds(11);
    CHECK(get_name(scripted) == "node-a");
}

TEST_CASE("a server became ready between its refusal and the question whether it is") {
    Scripted scripted({k_refusal, k_ready, k_one_node});
    CHECK(get_name(scripted) == "node-a");
    CHECK(scripted.clock.sleeps.empty());
}

TEST_CASE("a server that was away and is ready again: a right that is missing is said at once") {
    Scripted scripted({reply(503, "no backend"), k_refusal, k_ready, k_refusal});
    CHECK(refused_get(scripted).code() == "forbidden");
    CHECK(scripted.clock.sleeps == std::vector<milliseconds>{milliseconds(500)});
}

TEST_CASE("a server that goes away after it was ready may have lost its roles") {
    Scripted scripted({k_refusal, k_ready, k_refusal, reply(503, "no backend"), k_refusal, k_starting, k_one_node});
    CHECK(refused_get(scripted).code() == "forbidden");
    CHECK(get_name(scripted) == "node-a");
}

TEST_CASE("a server that does not become ready: 30 s, then the refusal and why it may be wrong") {
    Scripted scripted(in_turn(k_refusal, k_starting, 100));
    const Error error = refused_get(scripted);
    CHECK(error.code() == "forbidden");
    CHECK(is_right_missing(error));
    CHECK(error.is_retryable());
    CHECK(scripted.clock.elapsed > seconds(29));
    CHECK(scripted.clock.elapsed < seconds(31));
    CHECK(error.hint().find("kubectl get --raw '/readyz?verbose'") != std::string::npos);
    CHECK(error.hint().find("this rule is missing") != std::string::npos);
}

TEST_CASE("a cluster that lets nobody see whether it is ready: 5 s") {
    Scripted scripted(in_turn(k_refusal, k_readyz_refused, 100));
    const Error error = refused_get(scripted);
    CHECK(error.hint().find("readyz") == std::string::npos);
    CHECK(scripted.clock.elapsed > seconds(4));
    CHECK(scripted.clock.elapsed < seconds(6));
}

TEST_CASE(
    "what stands before a server has no /readyz: a right that is missing is final, but for 30 s after the server was "
    "away") {
    Scripted steady({k_refusal, status_reply(404, "NotFound", "no such path")});
    CHECK(refused_get(steady).code() == "forbidden");
    CHECK(steady.targets() == k_asked_once);
    Scripted restarted({reply(503, "no backend"), k_refusal, reply(404, ""), k_refusal, reply(404, ""), k_one_node});
    CHECK(get_name(restarted) == "node-a");
    auto ever = in_turn(k_refusal, reply(404, ""), 100);
    ever.insert(ever.begin(), reply(503, "no backend"));
    Scripted taken(ever);
    CHECK(refused_get(taken).code() == "forbidden");
    CHECK(taken.clock.elapsed > seconds(29));
    CHECK(taken.clock.elapsed < seconds(32));
}

TEST_CASE("admission that is not ready yet refuses as rights do") {
    Scripted scripted({status_reply(403, "Forbidden", R"(pods \"p\" is forbidden: not yet ready to handle request)"),
                       k_starting, reply(201, R"({"kind":"Pod","metadata":{"name":"p"}})")});
    const value::Node pod = tree(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns"}})");
    CHECK(scripted.client->create(resources::k_pods, pod).get_string({"metadata", "name"}) == "p");
}

TEST_CASE("rights are reviewed again while the server is starting, and only then") {
    const std::vector<Rule> rules{{"get", "", "nodes", "", "", ""}, {"list", "", "nodes", "", "", ""}};
    Scripted starting({review(false), review(true), k_starting, review(true)});
    CHECK(missing_rules(*starting.client, rules).empty());
    REQUIRE(starting.outages.size() == 1);
    CHECK(starting.outages[0].kind == Outage::Kind::starting);
    CHECK(starting.returns == 1);
    Scripted ready({review(false), review(true), k_ready, review(false)});
    CHECK(missing_rules(*ready.client, rules) == std::vector<Rule>{rules[0]});
    CHECK(ready.clock.sleeps.empty());
    CHECK(ready.returns == 0);
}

/// The server takes a request and thinks about it for that long, then answers it.
class SlowHttp final : public net::HttpClient {
public:
    SlowHttp(SleepyClock& clock, seconds thinks) : clock_(clock), thinks_(thinks) {}
    net::Response send(const net::Request& request, const net::BodySink& sink) override {
        for (seconds passed(0); passed < thinks_; passed += seconds(1)) {
            clock_.elapsed += seconds(1);
            CHECK_FALSE(request.cancelled());
        }
        return http_.send(request, sink);
    }

private:
    SleepyClock& clock_;
    seconds thinks_;
    net::CurlHttpClient http_;
};

TEST_CASE("a request that hangs is told once, and its answer, too") {
    Scripted server({reply(200, R"({"kind":"Node"})"), reply(200, R"({"kind":"Node"})")});
    SleepyClock clock;
    EvenRandom random;
    std::vector<std::string> lines;
    ClientOptions options;
    tell_all(options, [&](const std::string& line) { lines.push_back(line); });
    auto thinks = seconds(20);
    Client client(server.client->connection(),
                  Seams{[&] { return std::make_unique<SlowHttp>(clock, thinks); }, clock, random}, options);
    CHECK(client.get(resources::k_nodes, k_node).get_string({"kind"}) == "Node");
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] ==
          "get nodes node-a: no answer of the API server for 5.0s, waiting for 1m0s more (it hangs when etcd has no "
          "quorum)");
    CHECK(lines[1] == "API answers again after 20.0s");
}

/// Keeps what it is asked, and answers with a Node.
class RecordingHttp final : public net::HttpClient {
public:
    explicit RecordingHttp(std::vector<net::Request>& requests) : requests_(requests) {}
    net::Response send(const net::Request& request, const net::BodySink& sink) override {
        requests_.push_back(request);
        net::Response response;
        response.status = 200;
        sink(response, k_node_json);
        return response;
    }

private:
    std::vector<net::Request>& requests_;
};

TEST_CASE("a read that stops is given up within the api_timeout, a change is left its time") {
    SleepyClock clock;
    EvenRandom random;
    std::vector<net::Request> requests;
    const auto ask = [&](milliseconds api_timeout) {
        ClientOptions options;
        options.api_timeout = api_timeout;
        Connection connection;
        connection.server = "http://127.0.0.1:1";
        Client client(connection, Seams{[&] { return std::make_unique<RecordingHttp>(requests); }, clock, random},
                      options);
        static_cast<void>(client.get(resources::k_nodes, k_node));
        static_cast<void>(client.merge_patch(resources::k_nodes, k_node, value::Node::mapping()));
    };
    ask(milliseconds(3500));
    ask(seconds(300));  // longer than one try takes
    REQUIRE(requests.size() == 4);
    CHECK(requests[0].stall_bytes_per_second == 1);
    CHECK(requests[0].stall_window == seconds(4));
    CHECK(requests[1].method == "PATCH");
    for (std::size_t i = 1; i < requests.size(); ++i) { CHECK(requests[i].stall_bytes_per_second == 0); }
}

TEST_CASE("what is said names what is waited for") {
    ClientOptions options;
    std::vector<std::string> lines;
    tell_all(options, [&](const std::string& line) { lines.push_back(line); });
    const auto tell = [&](Outage::Kind kind, seconds since, const char* reason) {
        options.observer.on_outage(Outage{"https://api", reason, since, seconds(1), kind});
    };
    tell(Outage::Kind::starting, seconds(0), "get nodes a: no");
    tell(Outage::Kind::starting, seconds(1), "get nodes a: no");
    options.observer.on_return(seconds(2));
    tell(Outage::Kind::away, seconds(0), "connection refused");
    tell(Outage::Kind::starting, seconds(3), "get nodes a: no");
    tell(Outage::Kind::starting, seconds(14), "get nodes a: no");
    options.observer.on_return(seconds(15));
    options.observer.on_return(seconds(15));
    tell(Outage::Kind::away, seconds(0), "get nodes a: etcd is slow (HTTP 500)");
    tell(Outage::Kind::away, seconds(12), "get nodes a: come later (HTTP 429)");
    options.observer.on_return(seconds(13));
    tell(Outage::Kind::away, seconds(0), "get nodes a: no backend (HTTP 503)");
    CHECK(
        lines ==
        Texts{"the API server is starting and does not know all roles yet: get nodes a: no; asking again",
              "the API server knows its roles after 2.0s", "API unreachable: connection refused; trying again",
              "the API server is starting and does not know all roles yet, after 3.0s: get nodes a: no; asking again",
              "the API server is starting and does not know all roles yet, after 14.0s: get nodes a: no; asking again",
              "the API server knows its roles after 15.0s",
              "the API server answers with an error: get nodes a: etcd is slow (HTTP 500); trying again",
              "the API server answers with an error for 12.0s: get nodes a: come later (HTTP 429); trying again",
              "the API server's error ended after 13.0s",
              "API unreachable: get nodes a: no backend (HTTP 503); trying again"});
}

}
