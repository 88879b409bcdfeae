// SPDX-License-Identifier: Apache-2.0
// What a server, or what stands before it, cannot do: keep a list from ending, fill the memory.
#include "fixture.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

TEST_SUITE("kube::unit") {

TEST_CASE("a list comes to its end: pages that name themselves, and empty ones without end, are an error") {
    const auto page = [](const std::string& token, const std::string& items) {
        return reply(200, R"({"kind":"NodeList","apiVersion":"v1","metadata":{"continue":")" + token +
                              R"(","resourceVersion":"1"},"items":[)" + items + "]}");
    };
    SUBCASE("the same page again") {
        Scripted scripted({page("x", k_node_json), page("x", k_node_json), page("x", k_node_json)});
        const Error error = error_of([&] { (void)scripted.client->list_all(resources::k_nodes, {}); return 0; });
        CHECK(error.code() == "bad-answer");
        CHECK(scripted.server.requests().size() == 2);
    }
    SUBCASE("always another empty one") {
        std::vector<FakeReply> script;
        for (int i = 0; i < 20; ++i) { script.push_back(page("x" + std::to_string(i), "")); }
        Scripted scripted(std::move(script));
        const Error error = error_of([&] { (void)scripted.client->list_all(resources::k_nodes, {}); return 0; });
        CHECK(error.code() == "bad-answer");
        CHECK(scripted.server.requests().size() < 15);
    }
    SUBCASE("some empty ones are fine") {
        Scripted scripted({page("a", ""), page("b", ""), page("c", k_node_json), page("d", ""), page("", k_node_json)});
        CHECK(scripted.client->list_all(resources::k_nodes, {}).size() == 2);
    }
}

TEST_CASE("an answer has a limit, by what was asked for") {
    Scripted object({reply(200, R"({"kind":"Node","x":")" + std::string(33U << 20U, 'a') + "\"}")});
    CHECK(error_of([&] { return object.client->get(resources::k_nodes, k_node); }).code() == "bad-answer");
    CHECK(object.server.requests().size() == 1);
    Scripted refusal({reply(404, std::string(2U << 20U, 'a'))});
    CHECK(error_of([&] { return refusal.client->get(resources::k_nodes, k_node); }).code() == "bad-answer");
}

}
