// SPDX-License-Identifier: Apache-2.0
// What Docker's files hold besides users and passwords: tokens for the registry itself, and names of programs.
#include <doctest/doctest.h>

#include <fstream>

#include "registry/puller.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_CASE("registry tokens go to the registry as they are, and to no token server") {
    FakeRegistry registry;
    registry.add_image("v1", {gzip_layer(TarBuilder().file(k_modules + "/good.ko", "good").finish())});
    std::string taken = "Bearer secret-own";
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.header("authorization") == taken) return std::nullopt;
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"http://" + registry.host() + "/token\"");
        return reply;
    };
    const auto with = [&](const std::string& token) {
        return pull_from(registry, [&](registry::PullRequest& request) {
            request.credentials = registry::parse_credentials(
                R"({"auths":{")" + registry.host() + R"(":{"registrytoken":")" + token + R"("}}})", "config.json");
        });
    };
    const Outcome good = with("secret-own");
    CHECK_MESSAGE(good.code() == "ok", good.message());
    CHECK(registry.server().count("/token") == 0);
    for (const char* other : {"secret-other", "secret\\r\\nX: y"}) {
        const Outcome refused = with(other);
        CHECK(refused.code() == "registry-auth");
        CHECK(refused.message().find("secret") == std::string::npos);
    }
}

TEST_CASE("a refusal names the program that was not asked") {
    FakeRegistry registry;
    registry.add_image("v1", {gzip_layer(TarBuilder().file(k_modules + "/good.ko", "good").finish())});
    registry.intercept = [](const FakeRequest&) {
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"x\"");
        return std::optional(reply);
    };
    const auto message = [&](const std::string& config) {
        return pull_from(registry,
                         [&](registry::PullRequest& request) {
                             request.credentials = registry::parse_credentials(config, "config.json");
                         })
            .message();
    };
    const std::string host = registry.host();
    const std::string said =
        "no credentials for " + host + "; the helper ecr-login was not asked: no program is run for credentials";
    CHECK(message(R"({"credHelpers":{")" + host + R"(":"ecr-login","other.example.com":"gcr"}})").find(said) !=
          std::string::npos);
    CHECK(message(R"({"credsStore":"ecr-login","auths":{")" + host + R"(":{}}})").find(said) != std::string::npos);
    CHECK(message(R"({"credsStore":"ecr-login"})").find(said) != std::string::npos);  // as Amazon's helper is set up
    CHECK(message(R"({"credsStore":"pass","credHelpers":{")" + host + R"(":"ecr-login"}})").find(said) !=
          std::string::npos);
    CHECK(message(R"({"credHelpers":{"other.example.com":"gcr"}})").find("helper") == std::string::npos);
    CHECK(message(R"({"credHelpers":{")" + host + R"(":"ecr-login"},"auths":{")" + host +
                  R"(":{"auth":"dTpzZWNyZXQ="}}})")
              .find("were refused; the helper ecr-login") != std::string::npos);
}

TEST_CASE("M63 a file that is no JSON is told with the place where it ends to be any, and without what stands there") {
    try {
        static_cast<void>(registry::parse_credentials("{\"auths\":\n  {\"a.io\": canary}}", "config.json"));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "bad-auth-file");
        REQUIRE(error.position());
        CHECK(error.position()->to_string() == "config.json:2:12");
        CHECK(error.message().find("canary") == std::string::npos);
    }
}

TEST_CASE("M63 one entry of a mounted pull secret that cannot be understood costs that entry alone") {
    const sys::TempDir top("kmm-test-");
    std::ofstream(top.path() + "/.dockerconfigjson")
        << R"({"auths":{"a.io":{"auth":"canary!!"},"b.io":{"auth":"dTpw"},"c.io":5,"d.io":{"username":7},"e.io":{"username":"v","password":"q"}}})";
    std::vector<std::string> warnings;
    const auto found = registry::mounted_credentials(top.path(), warnings).credentials;
    REQUIRE(found.size() == 2);
    CHECK(found[0].key == "b.io");
    CHECK(found[1].key == "e.io");
    REQUIRE(warnings.size() == 3);
    CHECK(warnings[0] == "pull-secret-skipped: " + top.path() +
                             "/.dockerconfigjson: the auth of registry a.io is not base64 of user:password");
    CHECK_THROWS_AS(static_cast<void>(registry::default_credentials(top.path() + "/.dockerconfigjson", warnings)),
                    Error);
}
