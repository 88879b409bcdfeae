// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

const std::string k_pod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns"}})";

std::string pod_of(const std::string& manager) {
    return R"({"kind":"Pod","metadata":{"name":"p","namespace":"ns","managedFields":[{"manager":")" + manager +
           R"(","operation":"Update"}]}})";
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("create: strict, under our name") {
    Scripted scripted({reply(201, k_pod)});
    scripted.client->create(resources::k_pods, tree(k_pod));
    CHECK(scripted.targets() == Texts{"POST /api/v1/namespaces/ns/pods?fieldManager=kmm-tools&fieldValidation=Strict"});
    CHECK(tree(scripted.server.requests()[0].body).same_value(tree(k_pod)));
}

TEST_CASE("create: an answer that was lost is found again; somebody else's object is not taken for ours") {
    for (const bool ours : {true, false}) {
        CAPTURE(ours);
        Scripted scripted({no_answer(), status_reply(409, "AlreadyExists", "exists"),
                           reply(200, pod_of(ours ? "kmm-tools" : "other"))});
        if (ours) {
            CHECK(scripted.client->create(resources::k_pods, tree(k_pod)).get_string({"metadata", "name"}) == "p");
        } else {
            CHECK(error_of([&] { return scripted.client->create(resources::k_pods, tree(k_pod)); }).code() ==
                  "already-exists");
        }
    }
    Scripted first_try({status_reply(409, "AlreadyExists", "exists")});
    CHECK(error_of([&] { return first_try.client->create(resources::k_pods, tree(k_pod)); }).code() ==
          "already-exists");
    CHECK(first_try.server.requests().size() == 1);
}

TEST_CASE("what the server refuses is said in its words") {
    Scripted scripted({status_reply(400, "BadRequest", "strict decoding error: unknown field \\\"spec.x\\\"")});
    const Error error = error_of([&] { return scripted.client->create(resources::k_pods, tree(k_pod)); });
    CHECK(error.code() == "rejected");
    CHECK(error.message() == "create pods ns/p: strict decoding error: unknown field \"spec.x\"");
}

TEST_CASE("delete: only the object that was meant") {
    struct Row { FakeReply answer; Deletion outcome; };
    const std::vector<Row> rows{
        {reply(200, k_pod), Deletion::started},
        {reply(202, k_pod), Deletion::started},
        {status_reply(404, "NotFound", "gone"), Deletion::already_gone},
        {status_reply(409, "Conflict", "uid in precondition differs"), Deletion::other_uid},
    };
    for (const auto& row : rows) {
        Scripted scripted({row.answer});
        DeleteOptions options;
        options.uid = "u1";
        options.grace_seconds = 5;
        options.propagation = Propagation::foreground;
        CHECK(scripted.client->remove(resources::k_pods, {"ns", "p"}, options) == row.outcome);
        const FakeRequest request = scripted.server.requests()[0];
        CHECK(request.method + " " + request.target == "DELETE /api/v1/namespaces/ns/pods/p");
        CHECK(
            request.body ==
            R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground","preconditions":{"uid":"u1"},"gracePeriodSeconds":5})");
    }
}

TEST_CASE("evict: a budget blocks for three rounds and says its name, then lets go") {
    const std::string cause =
        R"([{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}])";
    const FakeReply blocked = status_reply(429, "TooManyRequests",
                                           "Cannot evict pod as it would violate the pod's disruption budget.", cause);
    Scripted scripted({blocked, blocked, blocked, reply(201, R"({"kind":"Status"})")});
    for (int round = 0; round < 3; ++round) {
        const Eviction eviction = scripted.client->evict({"ns", "p"});
        CHECK(eviction.outcome == Eviction::Outcome::blocked);
        CHECK(eviction.reason == "The disruption budget web needs 2 healthy pods and has 2 currently");
    }
    CHECK(scripted.client->evict({"ns", "p"}, 7).outcome == Eviction::Outcome::evicted);
    CHECK(scripted.clock.sleeps.empty());
    const auto requests = scripted.server.requests();
    CHECK(requests[3].target == "/api/v1/namespaces/ns/pods/p/eviction");
    CHECK(
        requests[3].body ==
        R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p","namespace":"ns"},"deleteOptions":{"gracePeriodSeconds":7}})");
}

TEST_CASE("evict: a Pod of the same name that came meanwhile stays") {
    Scripted scripted(
        {status_reply(409, "Conflict", "the UID in the precondition (u1) does not match the UID in record (u2)"),
         status_reply(409, "Conflict", "the object has been modified")});
    const auto evict = [&] { return scripted.client->evict({"ns", "p"}, std::nullopt, DryRun::no, "u1"); };
    CHECK(evict().outcome == Eviction::Outcome::gone);
    CHECK(scripted.server.requests()[0].body.find(R"("deleteOptions":{"preconditions":{"uid":"u1"}})") !=
          std::string::npos);
    CHECK(error_of(evict).code() == "conflict");
}

TEST_CASE("evict: what a webhook refuses with 429, or with 500, is asked again by whoever drains") {
    const std::string denied = "admission webhook w.example denied the request: it is moved first";
    for (const int status : {429, 500}) {
        Scripted scripted({status_reply(status, "", denied)});
        const Eviction eviction = scripted.client->evict({"ns", "p"});
        CHECK(eviction.outcome == Eviction::Outcome::blocked);
        CHECK(eviction.reason == denied);
        CHECK(scripted.clock.sleeps.empty());
    }
}

TEST_CASE("evict: every other answer") {
    struct Row { std::vector<FakeReply> answers; Eviction::Outcome outcome; };
    const std::vector<Row> rows{
        {{status_reply(404, "NotFound", "gone")}, Eviction::Outcome::gone},
        {{status_reply(
             500, "InternalError",
             "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")},
         Eviction::Outcome::several_budgets},
        {{status_reply(403, "Forbidden", "ns is ending", R"([{"reason":"NamespaceTerminating"}])")},
         Eviction::Outcome::namespace_ending},
        {{reply(500, "hiccup"), reply(201, "{}")}, Eviction::Outcome::evicted},
        {{reply(429, "overload")}, Eviction::Outcome::blocked},
    };
    for (const auto& row : rows) {
        Scripted scripted(row.answers);
        CHECK(scripted.client->evict({"ns", "p"}).outcome == row.outcome);
    }
    Scripted forbidden({status_reply(403, "Forbidden", "no")});
    CHECK(error_of([&] { return forbidden.client->evict({"ns", "p"}); }).code() == "forbidden");
}

TEST_CASE("a replacement without the version that was read is a bug, not a request") {
    Scripted scripted({});
    CHECK(error_of([&] { return scripted.client->replace(resources::k_pods, tree(k_pod)); }).exit() == Exit::bug);
    CHECK(scripted.server.requests().empty());
}

TEST_CASE("two writers: the one that reads later keeps what the other wrote") {
    std::string labels = "{}";
    int version = 1;
    FakeServer server([&](const FakeRequest& request) {
        const auto object = [&] {
            return reply(200, R"({"kind":"Node","metadata":{"name":"node-a","resourceVersion":")" +
                                  std::to_string(version) + R"(","labels":)" + labels + "}}");
        };
        if (request.method == "GET") {
            return object();
        }
        if (tree(request.body).get_string({"metadata", "resourceVersion"}) != std::to_string(version)) {
            return status_reply(409, "Conflict", "modified");
        }
        labels = R"({"mine":"1","theirs":"1"})";
        ++version;
        return object();
    });
    Scripted scripted({});
    Connection connection;
    connection.server = "http://127.0.0.1:" + std::to_string(server.port());
    scripted.connect(connection, {});
    int asked = 0;
    const value::Node after = scripted.client->change(resources::k_nodes, k_node, [&](const value::Node&) {
        if (asked++ == 0) {
            labels = R"({"theirs":"1"})";  // the other writer comes between
            ++version;
        }
        return std::optional(tree(R"({"metadata":{"labels":{"mine":"1"}}})"));
    });
    CHECK(asked == 2);
    CHECK(after.get_string({"metadata", "labels", "theirs"}) == "1");
}

}
