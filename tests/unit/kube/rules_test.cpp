// SPDX-License-Identifier: Apache-2.0
// The rules of the protocol, one case each: what a client must do when a real API server does what it does.
#include "base/text.hpp"
#include "fixture.hpp"
#include "kube/access.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

const Failure k_no_failure;

value::Node labels_patch() { return tree(R"({"metadata":{"labels":{"a":"b"}}})"); }

ClientOptions small_pages() {
    ClientOptions options;
    options.page_size = 2;
    return options;
}

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("409 Conflict: the object is read again and the decision made anew, 200 409 200 200") {
    const std::string newer = R"({"kind":"Node","metadata":{"name":"node-a","resourceVersion":"8"}})";
    Scripted scripted({reply(200, k_node_json), status_reply(409, "Conflict", "the object has been modified"),
                       reply(200, newer), reply(200, newer)});
    int asked = 0;
    scripted.client->change(resources::k_nodes, k_node, [&](const value::Node& current) {
        CHECK(current.get_string({"metadata", "resourceVersion"}) == (asked++ == 0 ? "7" : "8"));
        return std::optional(labels_patch());
    });
    CHECK(asked == 2);
    const auto requests = scripted.server.requests();
    REQUIRE(requests.size() == 4);
    CHECK(requests[1].header("content-type") == "application/merge-patch+json");
    CHECK(requests[1].body == R"({"metadata":{"labels":{"a":"b"},"resourceVersion":"7"}})");
    CHECK(requests[3].body == R"({"metadata":{"labels":{"a":"b"},"resourceVersion":"8"}})");
}

TEST_CASE("409 Conflict: five times at most, with growing pauses, then the conflict is the caller's") {
    std::vector<FakeReply> script;
    for (int i = 0; i < 5; ++i) {
        script.push_back(reply(200, k_node_json));
        script.push_back(status_reply(409, "Conflict", "modified"));
    }
    Scripted scripted(std::move(script));
    const Error error = error_of([&] {
        return scripted.client->change(resources::k_nodes, k_node,
                                       [](const auto&) { return std::optional(labels_patch()); });
    });
    CHECK(error.code() == "conflict");
    CHECK(error.is_retryable());
    CHECK(scripted.server.requests().size() == 10);
    REQUIRE(scripted.clock.sleeps.size() == 4);
    CHECK(scripted.clock.sleeps[3] > scripted.clock.sleeps[0]);
}

TEST_CASE("409 has three meanings, told apart by their reason") {
    struct Row { std::string reason, causes, code; };
    const std::vector<Row> rows{
        {"Conflict", "[]", "conflict"},
        {"AlreadyExists", "[]", "already-exists"},
        {"Conflict",
         R"([{"reason":"FieldManagerConflict","message":"conflict with \"kubectl\" using v1","field":".spec.x"}])",
         "field-conflict"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.code);
        Scripted scripted({status_reply(409, row.reason, "no", row.causes)});
        const Error error =
            error_of([&] { return scripted.client->apply(resources::k_nodes, tree(k_node_json), Force::no); });
        CHECK(error.code() == row.code);
        CHECK(error.exit() == Exit::locked);
        if (row.code == "field-conflict") {
            CHECK(error.details() == std::vector<std::pair<std::string, std::string>>{{"kubectl", ".spec.x"}});
            CHECK(error.hint().find("--force-conflicts") != std::string::npos);
        }
    }
}

TEST_CASE("patching a label: JSON patch with test, a test that fails is a conflict") {
    const value::Node patch = tree(R"([{"op":"test","path":"/metadata/labels/a~1b","value":"v1"},
                                       {"op":"replace","path":"/metadata/labels/a~1b","value":"v2"}])");
    Scripted scripted({reply(200, k_node_json),
                       status_reply(422, "Invalid", "the server rejected our request due to an error in our request")});
    scripted.client->json_patch(resources::k_nodes, k_node, patch);
    CHECK(scripted.server.requests()[0].header("content-type") == "application/json-patch+json");
    CHECK(scripted.server.requests()[0].body.find("a~1b") != std::string::npos);
    const Error error = error_of([&] { return scripted.client->json_patch(resources::k_nodes, k_node, patch); });
    CHECK(error.code() == "conflict");
    CHECK(error.is_retryable());
}

TEST_CASE("a patch without a test that the server cannot apply is no conflict") {
    Scripted scripted({status_reply(422, "Invalid", "the server rejected our request due to an error in our request")});
    const Error error = error_of([&] {
        return scripted.client->json_patch(resources::k_nodes, k_node, tree(R"([{"op":"remove","path":"/spec/x"}])"));
    });
    CHECK(error.code() == "rejected");
    CHECK(error.exit() == Exit::data);
}

TEST_CASE("server-side apply: one manager, forced only when told") {
    Scripted scripted({reply(200, k_node_json), reply(200, k_node_json)});
    scripted.client->apply(resources::k_nodes, tree(k_node_json), Force::no);
    scripted.client->apply(resources::k_nodes, tree(k_node_json), Force::yes, DryRun::all);
    const auto requests = scripted.server.requests();
    CHECK(requests[0].method == "PATCH");
    CHECK(requests[0].header("content-type") == "application/apply-patch+yaml");
    CHECK(requests[0].target == "/api/v1/nodes/node-a?force=false&fieldManager=kmm-tools&fieldValidation=Strict");
    CHECK(requests[1].target ==
          "/api/v1/nodes/node-a?force=true&fieldManager=kmm-tools&fieldValidation=Strict&dryRun=All");
}

TEST_CASE("LIST: pages with limit and continue") {
    Scripted scripted({reply(200, node_list({"a", "b"}, "5", "next page")), reply(200, node_list({"c"}, "5"))},
                      small_pages());
    ListMeta meta;
    CHECK(names_of(scripted.client->list_all(resources::k_nodes, {}, &meta)) == Texts{"a", "b", "c"});
    CHECK(meta.pages == 2);
    CHECK(meta.resource_version == "5");
    CHECK(scripted.targets() == Texts{"GET /api/v1/nodes?limit=2", "GET /api/v1/nodes?limit=2&continue=next%20page"});
}

TEST_CASE("LIST: after 410 Expired the list starts anew and nothing is there twice") {
    Scripted scripted({reply(200, node_list({"a", "b"}, "5", "t")),
                       status_reply(410, "Expired", "The provided continue parameter is too old"),
                       reply(200, node_list({"a", "b"}, "9", "u")), reply(200, node_list({"d"}, "9"))},
                      small_pages());
    ListMeta meta;
    CHECK(names_of(scripted.client->list_all(resources::k_nodes, {}, &meta)) == Texts{"a", "b", "d"});
    CHECK(meta.restarts == 1);
    CHECK(meta.resource_version == "9");
}

TEST_CASE("429 with Retry-After: waited for as long, then sent again") {
    Scripted scripted({reply(429, "slow down", {{"Retry-After", "40"}}), reply(200, k_node_json)});
    CHECK(scripted.client->get(resources::k_nodes, k_node).get_string({"metadata", "name"}) == "node-a");
    CHECK(scripted.clock.sleeps == std::vector<milliseconds>{seconds(40)});
    REQUIRE(scripted.outages.size() == 1);
    CHECK(scripted.outages[0].next_try == seconds(40));
    CHECK(scripted.returns == 1);
}

TEST_CASE("429 with a Retry-After that is longer than we may wait: the error says how long") {
    Scripted scripted({reply(429, "slow down", {{"Retry-After", "3600"}})});
    const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "api-error");
    CHECK(scripted.clock.sleeps.empty());
    REQUIRE(error.details().size() == 1);
    CHECK(error.details()[0] == std::pair<std::string, std::string>("retry after", "1h0m0s"));
    CHECK(error.hint() ==
          "the server asks to wait 1h0m0s, which is longer than --api-timeout 5m0s leaves: try again then");
}

TEST_CASE("429 without Retry-After: the wait doubles") {
    Scripted scripted({reply(429, ""), reply(429, ""), reply(429, ""), reply(200, k_node_json)});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.clock.sleeps ==
          std::vector<milliseconds>{milliseconds(500), milliseconds(1000), milliseconds(2000)});
}

TEST_CASE("a storm of 500, 503 and 504 is outlasted; ten times the same is the end") {
    Scripted calms({reply(500, "x"), reply(503, "x"), status_reply(504, "Timeout", "Too large resource version"),
                    reply(200, k_node_json)});
    static_cast<void>(calms.client->get(resources::k_nodes, k_node));
    CHECK(calms.server.requests().size() == 4);

    Scripted stays(std::vector<FakeReply>(12, status_reply(500, "InternalError", "etcd is sad")));
    const Error error = error_of([&] { return stays.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "api-error");
    CHECK(error.exit() == Exit::unavailable);
    CHECK(error.message() == "get nodes node-a: etcd is sad (HTTP 500)");
    CHECK(stays.server.requests().size() == 10);
}

TEST_CASE("a server behind a balancer that says 502, 503 or 504 for minutes is waited for as one that is not there") {
    for (const int status : {502, 503, 504}) {
        std::vector<FakeReply> script(20, reply(status, "no backend"));
        script.push_back(reply(200, k_node_json));
        Scripted scripted(script);
        static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
        CHECK(scripted.clock.elapsed > seconds(200));
    }
    Scripted stays(std::vector<FakeReply>(40, reply(503, "no backend")));
    const Error error = error_of([&] { return stays.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "api-error");
    CHECK(stays.clock.elapsed > seconds(280));
    CHECK(stays.clock.elapsed <= seconds(300));
}

TEST_CASE("an answer of any kind ends an outage") {
    Scripted scripted({reply(503, "x"), status_reply(404, "NotFound", "nodes node-a not found")});
    CHECK_FALSE(scripted.client->find(resources::k_nodes, k_node).has_value());
    CHECK(scripted.returns == 1);
}

TEST_CASE("API server restart: a connection closed without an answer, and one that breaks in mid-body") {
    FakeReply broken = reply(200, k_node_json);
    broken.reset_after = 10;
    FakeReply early = reply(200, k_node_json);
    early.announced_length = 1000;
    Scripted scripted({no_answer(), broken, early, reply(200, k_node_json)});
    CHECK(scripted.client->get(resources::k_nodes, k_node).get_string({"metadata", "uid"}) == "u1");
    CHECK(scripted.outages.size() == 3);
    CHECK(scripted.outages[1].since > milliseconds(0));
}

TEST_CASE("API server down for minutes: waited for, said, and found again") {
    auto server = std::make_unique<FakeServer>([](const FakeRequest&) { return reply(200, k_node_json); });
    const std::uint16_t port = server->port();
    server.reset();
    Scripted scripted({});
    Connection connection;
    connection.server = "http://127.0.0.1:" + std::to_string(port);
    scripted.connect(connection, {});
    const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "api-unreachable");
    CHECK(error.exit() == Exit::unavailable);
    const auto lasted = base::format_duration(scripted.clock.elapsed);
    CHECK_MESSAGE(error.message().find(" in " + lasted + ": ") != std::string::npos, error.message());
    REQUIRE(error.details().size() == 1);
    CHECK(error.details()[0] ==
          std::pair<std::string, std::string>("limit", "--api-timeout 5m0s; the next try would come later"));
    CHECK(scripted.clock.elapsed >= seconds(280));
    CHECK(scripted.clock.elapsed <= seconds(300));
    CHECK(scripted.clock.sleeps.front() == milliseconds(500));
    CHECK(scripted.clock.sleeps.back() == seconds(15));
    CHECK(scripted.outages.back().since > seconds(200));
}

TEST_CASE("an interrupt ends the waiting at once") {
    Scripted scripted({reply(503, "x"), reply(200, k_node_json)});
    scripted.clock.interrupted = true;
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).code() == "interrupted");
    CHECK(scripted.server.requests().size() == 1);
}

TEST_CASE("403: the missing rule is ready to be copied") {
    Scripted scripted({status_reply(403, "Forbidden", "nodes \\\"node-a\\\" is forbidden")});
    const Error error = error_of([&] {
        return scripted.client->merge_patch(resources::k_nodes, k_node, tree("{}"), "status");
    });
    CHECK(error.code() == "forbidden");
    CHECK(error.exit() == Exit::no_permission);
    CHECK(error.hint() ==
          "this rule is missing:\n- apiGroups:\n  - \"\"\n  resources:\n  - nodes/status\n  verbs:\n  - patch");
    CHECK(scripted.targets() ==
          Texts{"PATCH /api/v1/nodes/node-a/status?fieldManager=kmm-tools&fieldValidation=Strict", "GET /readyz"});
}

TEST_CASE("403 for each verb names that verb") {
    struct Row { std::string verb; std::function<void(Client&)> act; };
    const value::Node node = tree(k_node_json);
    const std::vector<Row> rows{
        {"get", [](Client& c) { static_cast<void>(c.get(resources::k_nodes, k_node)); }},
        {"list", [](Client& c) { static_cast<void>(c.list_all(resources::k_nodes, {})); }},
        {"create", [&](Client& c) { c.create(resources::k_nodes, node); }},
        {"update", [&](Client& c) { c.replace(resources::k_nodes, node); }},
        {"patch", [&](Client& c) { c.apply(resources::k_nodes, node, Force::no); }},
        {"delete", [](Client& c) { c.remove(resources::k_nodes, k_node); }},
    };
    for (const auto& row : rows) {
        CAPTURE(row.verb);
        Scripted scripted({status_reply(403, "Forbidden", "no")});
        const Error error = error_of([&] {
            row.act(*scripted.client);
            return 0;
        });
        CHECK(error.code() == "forbidden");
        CHECK(error.hint().ends_with("  verbs:\n  - " + row.verb));
    }
}

TEST_CASE("access reviews: what is missing is found before anything changes, as complete manifests") {
    const auto answer = [](bool allowed) {
        return reply(201, std::string(R"({"kind":"SelfSubjectAccessReview","status":{"allowed":)") +
                              (allowed ? "true}}" : "false}}"));
    };
    Scripted scripted(
        {answer(true), answer(false), answer(false), reply(404, "no /readyz here"),
         reply(201,
               R"({"kind":"SelfSubjectReview","status":{"userInfo":{"username":"system:serviceaccount:ops:kmm"}}})")});
    const std::vector<Rule> rules{{"list", "", "nodes", "", "", ""}, {"patch", "", "nodes", "", "", ""},
                                  {"create", "", "pods", "eviction", "web", ""}};
    const auto missing = missing_rules(*scripted.client, rules);
    CHECK(missing == std::vector<Rule>{rules[1], rules[2]});
    const Error error = missing_error(*scripted.client, missing, "kmm-upgrade");
    CHECK(error.message() == "2 of the rights that are needed are missing");
    const std::string& text = error.hint();
    for (const char* part :
         {"kind: ClusterRole\n", "kind: ClusterRoleBinding\n", "kind: Role\n", "kind: RoleBinding\n",
          "- pods/eviction\n", "kind: ServiceAccount\n  name: kmm\n  namespace: ops\n", "  namespace: web\n"}) {
        CAPTURE(part);
        CHECK(text.find(part) != std::string::npos);
    }
    CHECK(scripted.server.requests()[2].body.find(R"("subresource":"eviction","namespace":"web")") !=
          std::string::npos);
}

TEST_CASE("access reviews: manifests for other rights, or for somebody else, replace none that were applied before") {
    const auto role_of = [](const char* user, const std::vector<Rule>& missing) {
        Scripted scripted({reply(
            201, std::string(R"({"kind":"SelfSubjectReview","status":{"userInfo":{"username":")") + user + R"("}}})")});
        const std::string hint = missing_error(*scripted.client, missing, "kmm-upgrade").hint();
        const auto at = hint.find("name: kmm-upgrade-");
        REQUIRE(at != std::string::npos);
        return hint.substr(at, hint.find('\n', at) - at);
    };
    const std::vector<Rule> nodes{{"list", "", "nodes", "", "", ""}}, pods{{"list", "", "pods", "", "", ""}};
    CHECK(role_of("jane", nodes) == role_of("jane", nodes));
    CHECK(role_of("jane", nodes) != role_of("jane", pods));
    CHECK(role_of("jane", nodes) != role_of("joe", nodes));
}

TEST_CASE("discovery: a group that is not there, asked for once") {
    Scripted scripted({reply(404, "404 page not found")});
    CHECK_FALSE(scripted.client->serves(resources::k_modules));
    CHECK_FALSE(scripted.client->serves(resources::k_node_modules_configs));
    CHECK(scripted.targets() == Texts{"GET /apis/kmm.sigs.x-k8s.io/v1beta1"});
}

TEST_CASE("discovery: the version that the server prefers") {
    Scripted scripted(
        {reply(
             200,
             R"({"kind":"APIGroup","preferredVersion":{"version":"v1beta2"},"versions":[{"version":"v1beta2"},{"version":"v1beta1"}]})"),
         reply(200, R"({"kind":"APIResourceList","resources":[{"name":"preflightvalidations/status"}]})"),
         reply(200, R"({"kind":"APIResourceList","resources":[{"name":"preflightvalidations"}]})")});
    const auto found = scripted.client->discover(resources::k_preflight_validations);
    REQUIRE(found.has_value());
    CHECK(found->version == "v1beta1");
}

TEST_CASE("sizes: only metadata is asked for where that will do, and gzip is accepted") {
    Scripted scripted(
        {reply(200, R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]})")});
    ListQuery query;
    query.content = ListQuery::Content::metadata;
    query.label_selector = "a=b,c";
    static_cast<void>(scripted.client->list_all(resources::k_nodes, query));
    const FakeRequest request = scripted.server.requests()[0];
    CHECK(request.header("accept").find("as=PartialObjectMetadataList") != std::string::npos);
    CHECK(request.header("accept-encoding") == "gzip");
    CHECK(request.header("user-agent").starts_with("kmm-tools/"));
    CHECK(request.target.ends_with("&labelSelector=a%3Db%2Cc"));
}

TEST_CASE("a list of 100 MB is read object by object") {
    constexpr int k_objects = 1000;
    const std::string filler(100'000, 'x');
    std::string items;
    for (int i = 0; i < k_objects; ++i) {
        items += (i == 0 ? "" : ",") + std::string(R"({"metadata":{"name":"n)") + std::to_string(i) +
                 R"(","managedFields":[")" + filler + R"("]}})";
    }
    Scripted scripted({reply(
        200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[)" + items + "]}")});
    ListMeta meta;
    const auto objects = scripted.client->list_all(resources::k_nodes, {}, &meta);
    CHECK(objects.size() == k_objects);
    CHECK(meta.bytes > 100'000'000);
    CHECK(objects[999].find_path({"metadata", "managedFields"}) == nullptr);
}

TEST_CASE("warnings are said once") {
    const std::pair<std::string, std::string> warning{"Warning", R"(299 - "v1beta1 is \"old\"")"};
    Scripted scripted({reply(200, k_node_json, {warning}),
                       reply(200, k_node_json, {warning, {"Warning", R"(199 - "other agent")"}})});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.warnings == Texts{R"(v1beta1 is "old")"});
}

TEST_CASE("clock skew: a date in Retry-After counts against the server's own clock") {
    Scripted scripted(
        {reply(503, "", {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"Retry-After", "Sun, 06 Nov 1994 08:49:47 GMT"}}),
         reply(200, k_node_json)});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.clock.sleeps == std::vector<milliseconds>{seconds(10)});
}

TEST_CASE("fields that are unknown, missing or null") {
    Scripted scripted(
        {reply(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":null,"items":null,"new":{"x":1}})"),
         reply(200, R"({"kind":"NodeList","apiVersion":"v1"})"), reply(200, R"(["no object"])"), reply(200, "")});
    CHECK(scripted.client->list_all(resources::k_nodes, {}).empty());
    CHECK(scripted.client->list_all(resources::k_nodes, {}).empty());
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).code() == "bad-answer");
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).code() == "bad-answer");
}

TEST_CASE("keep-alive: one connection for many requests, and a new one after an idle close") {
    FakeReply kept = reply(200, k_node_json);
    kept.keep_alive = true;
    Scripted scripted({kept, kept, reply(200, k_node_json), kept});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.server.connections() == 1);
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.server.connections() == 2);
    CHECK(scripted.outages.empty());
    scripted.client.reset();
}

TEST_CASE("IPv6") {
    FakeServer server([](const FakeRequest&) { return reply(200, k_node_json); }, std::nullopt, FakeServer::Family::v6);
    Scripted scripted({});
    Connection connection;
    connection.server = "http://[::1]:" + std::to_string(server.port());
    scripted.connect(connection, {});
    CHECK(scripted.client->get(resources::k_nodes, k_node).get_string({"metadata", "name"}) == "node-a");
}

TEST_CASE("redirects are refused: the token goes to nobody else") {
    Scripted scripted({reply(302, "", {{"Location", "http://127.0.0.1:1/"}})});
    const Error error = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(error.code() == "redirect-refused");
    CHECK(scripted.server.requests().size() == 1);
}

TEST_CASE("TLS: the kubeconfig's authority counts, under the name that it gives; a client certificate is shown") {
    kmm::test::IdentityOptions other_name;
    other_name.name = "kube.example";
    kmm::test::Identity identity = kmm::test::make_identity(other_name);
    const kmm::test::Identity user = kmm::test::make_identity({});
    identity.client_ca_pem = user.certificate_pem;
    FakeServer server([](const FakeRequest&) { return reply(200, k_node_json); }, identity);
    Scripted scripted({});
    Connection connection;
    connection.server = "https://localhost:" + std::to_string(server.port());
    connection.tls.ca_pem = identity.certificate_pem;
    connection.tls.client_certificate_pem = user.certificate_pem;
    connection.tls.client_key_pem = user.key_pem;
    scripted.connect(connection, {});
    const Error other = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(other.code() == "tls");
    CHECK(other.hint() == "tls-server-name of the kubeconfig's cluster says which name its certificate is for");
    CHECK(scripted.outages.empty());
    connection.tls.ca_pem = user.certificate_pem;
    scripted.connect(connection, {});
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).hint() ==
          "certificate-authority of the kubeconfig's cluster must be the one that signed its certificate");
    connection.tls.ca_pem = identity.certificate_pem;
    connection.tls.server_name = "kube.example";
    scripted.connect(connection, {});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(server.requests().at(0).header("host") == "localhost:" + std::to_string(server.port()));
    connection.tls.server_name.clear();
    connection.tls.ca_pem.clear();
    connection.tls.insecure = true;
    scripted.connect(connection, {});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
}

TEST_CASE("strange failures are told in one clean line") {
    Scripted scripted(
        {reply(404, ""), reply(400, "<html>\x1b[31m\nmore"), status_reply(404, "NotFound", "nodes node-a not found")});
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).message() ==
          "get nodes node-a: no explanation");
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).message() ==
          R"(get nodes node-a: <html>\\x1b[31m)");
    CHECK_FALSE(scripted.client->find(resources::k_nodes, k_node).has_value());
    Scripted portal({reply(200, "<html>login</html>"), reply(200, "{}")});
    CHECK(error_of([&] { return portal.client->list_all(resources::k_nodes, {}); }).message() ==
          "list nodes: the answer is not a list in JSON: expected '{', found '<'");
    CHECK(error_of([&] { return portal.client->list_all(resources::k_nodes, {}); }).message() ==
          "list nodes: expected a list, found something else");
}

}
