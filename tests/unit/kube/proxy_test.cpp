// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "fixture.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

TEST_SUITE("kube::unit") {

TEST_CASE("a proxy gets the request, as the kubeconfig says") {
    Scripted scripted({reply(200, k_node_json)});
    Connection connection;
    connection.server = "http://api.invalid:6443";
    connection.proxy = "http://127.0.0.1:" + std::to_string(scripted.server.port());
    scripted.connect(connection, {});
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(scripted.targets() == Texts{"GET http://api.invalid:6443/api/v1/nodes/node-a"});
}

TEST_CASE("a proxy that is not there is named, and the hint is about it; without one the hint is about the server") {
    Scripted scripted({});
    ClientOptions options;
    options.api_timeout = seconds(3);
    Connection connection;
    connection.server = "https://api.invalid:6443";
    connection.proxy = "http://user:secret@127.0.0.1:9";
    scripted.connect(connection, options);
    const Error dead = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(dead.code() == "api-unreachable");
    CHECK_MESSAGE(dead.message().find("no answer from https://api.invalid:6443 through the proxy 127.0.0.1:9 in ") !=
                      std::string::npos,
                  dead.message());
    CHECK(dead.message().find("secret") == std::string::npos);
    CHECK(dead.hint().find("proxy-url") != std::string::npos);
    CHECK(scripted.outages.at(0).reason.ends_with(" (proxy 127.0.0.1:9)"));
    ::setenv("https_proxy", "http://127.0.0.1:9", 1);
    connection.proxy.clear();
    scripted.connect(connection, options);
    const Error by_variable = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    ::unsetenv("https_proxy");
    CHECK(by_variable.message().find("through the proxy 127.0.0.1:9") != std::string::npos);
    CHECK(by_variable.hint().find("https_proxy") != std::string::npos);
    connection.server = "http://127.0.0.1:9";
    scripted.connect(connection, options);
    const Error direct = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(direct.message().find("proxy") == std::string::npos);
    CHECK(direct.hint().find("readyz") != std::string::npos);
}

TEST_CASE("a proxy that wants a login is not asked again, one that cannot reach the server is") {
    Scripted scripted({reply(407, ""), reply(503, ""), reply(407, "")});
    Connection connection;
    connection.server = "https://api.invalid:6443";
    connection.proxy = "http://127.0.0.1:" + std::to_string(scripted.server.port());
    scripted.connect(connection, {});
    const Error wanted = error_of([&] { return scripted.client->get(resources::k_nodes, k_node); });
    CHECK(wanted.message().find("answered 407") != std::string::npos);
    CHECK(scripted.outages.empty());
    CHECK(error_of([&] { return scripted.client->get(resources::k_nodes, k_node); }).message() == wanted.message());
    CHECK(scripted.outages.size() == 1);
}

TEST_CASE("a proxy of the kubeconfig is for every host, those of the variables not for this one") {
    ::setenv("no_proxy", "*", 1);
    Scripted named({reply(200, k_node_json)});
    Connection connection;
    connection.server = "http://api.invalid:6443";
    connection.proxy = "http://127.0.0.1:" + std::to_string(named.server.port());
    named.connect(connection, {});
    static_cast<void>(named.client->get(resources::k_nodes, k_node));
    ::unsetenv("no_proxy");
    ::setenv("http_proxy", "http://127.0.0.1:1", 1);
    Scripted direct({reply(200, k_node_json)});
    static_cast<void>(direct.client->get(resources::k_nodes, k_node));
    ::unsetenv("http_proxy");
    CHECK(direct.outages.empty());
}
}
