// SPDX-License-Identifier: Apache-2.0
// What becomes of answers that are no success.
#include "fixture.hpp"

#include "kube/access.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

TEST_SUITE("kube::unit") {

TEST_CASE("what is about the server and not about the object") {
    struct Row { FakeReply answer; bool is_trouble; bool is_right = false; };
    const std::vector<Row> rows{
        {reply(503, "no backend"), true},
        {status_reply(401, "Unauthorized", "Unauthorized"), true},
        {reply(302, ""), true},
        {status_reply(500, "InternalError", "failed calling webhook"), false},
        {status_reply(429, "TooManyRequests", "try again later"), true},
        {status_reply(429, "", R"(admission webhook \"w\" denied the request: no)"), false},
        {status_reply(403, "Forbidden", R"(nodes \"a\" is forbidden: User \"u\" cannot get resource \"nodes\")"), false,
         true},
        {status_reply(403, "Forbidden", R"(pods \"p\" is forbidden: exceeded quota: small)"), false},
        {status_reply(404, "NotFound", "no"), false},
        {status_reply(409, "Conflict", "modified"), false},
        {status_reply(422, "Invalid", "bad"), false},
    };
    for (const auto& row : rows) {
        Scripted scripted(std::vector<FakeReply>(40, row.answer));
        const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
        CAPTURE(error.message());
        CHECK(is_server_trouble(error) == row.is_trouble);
        CHECK(is_right_missing(error) == row.is_right);
    }
    // What a worker says of a registry.
    CHECK_FALSE(is_server_trouble(Error(Exit::no_permission, "unauthorized", "registry: 401")));
    CHECK(is_server_trouble(Error(Exit::unavailable, "api-unreachable", "no answer")));
    CHECK(is_server_trouble(Error(Exit::no_permission, "exec-plugin", "no login")));
    Scripted asked({reply(201, R"({"status":{"userInfo":{"username":"u"}}})")});
    CHECK(is_right_missing(missing_error(*asked.client, {{"get", "", "nodes", "", "", ""}}, "r")));
    CHECK_FALSE(is_right_missing(Error(Exit::no_permission, "forbidden", "a registry says no")));
}

TEST_CASE("what admission forbids is no missing right") {
    struct Row { int status; std::string message, code, hint; };
    const std::vector<Row> rows{
        {403, R"(pods \"p\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1)",
         "forbidden", "make room: kubectl describe resourcequota -n ns"},
        {403, R"(pods \"p\" is forbidden: unable to create new content in namespace ns because it is being terminated)",
         "forbidden", "Namespace ns is being deleted: wait until it is gone, then create it again"},
        {403, R"(pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": privileged)", "forbidden",
         "kubectl label namespace ns pod-security.kubernetes.io/enforce=privileged --overwrite"},
        {403,
         R"(pods \"p\" is forbidden: error looking up service account ns/loader: serviceaccount \"loader\" not found)",
         "forbidden", "create the ServiceAccount: kubectl get serviceaccounts -n ns"},
        {403, R"(pods \"p\" is forbidden: maximum cpu usage per Pod is 1)", "forbidden",
         "no right is missing: change what the API server's admission refuses"},
        {403, R"(admission webhook \"no.example\" denied the request: not here)", "forbidden",
         "the webhook that is named forbids it: its owner must make an exception"},
        {400, R"(admission webhook \"no.example\" denied the request: not here)", "rejected",
         "the webhook that is named forbids it: its owner must make an exception"},
        {422, R"(pods \"p\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no)",
         "rejected", "no right is missing: change what the API server's admission refuses"},
        {403,
         R"(pods is forbidden: User \"jane\" cannot create resource \"pods\" in API group \"\" in the namespace \"ns\")",
         "forbidden", "this rule is missing:\n- apiGroups:\n  - \"\"\n  resources:\n  - pods\n  verbs:\n  - create"},
        {404, R"(namespaces \"ns\" not found)", "object-not-found", "kubectl create namespace ns"},
        {404, "nothing", "object-not-found", ""},
    };
    const value::Node pod = tree(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns"}})");
    Scripted busy(std::vector<FakeReply>(40, status_reply(500, "", "admission webhook w denied the request: no")));
    CHECK(error_of([&] { return busy.client->get(resources::k_nodes, k_node); }).hint() ==
          "the webhook that is named forbids it: its owner must make an exception");
    for (const auto& row : rows) {
        CAPTURE(row.message);
        Scripted scripted({status_reply(row.status, "", row.message)});
        const Error error = error_of([&] { return scripted.client->create(resources::k_pods, pod); });
        CHECK(error.code() == row.code);
        CHECK(error.hint() == row.hint);
        // Only of a right that is missing the server is asked whether it has been up long enough to know.
        CHECK(scripted.server.requests().size() == (is_right_missing(error) ? 2 : 1));
    }
}

}
