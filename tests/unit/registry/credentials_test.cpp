// SPDX-License-Identifier: Apache-2.0
// What Docker's files hold besides users and passwords: tokens for the registry itself, and names of programs.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "registry/client/auth.hpp"
#include "registry/client/credentials.hpp"
#include "registry/client/request.hpp"
#include "sys/temp_dir.hpp"
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

TEST_CASE("M63 a file that is not JSON is reported with the place of the fault, and without what stands there") {
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
}

TEST_CASE("M63 one entry of a file of logins that cannot be understood costs that entry alone") {
    const sys::TempDir top("kmm-test-");
    const std::string file = top.path() + "/auth.json";
    std::ofstream(file)
        << R"({"auths":{"a.io":{"auth":"canary!!"},"b.io":{"auth":"dTpw"},"c.io":null,"d.io":{"auth":"Y2FuYXJ5"}}})";
    std::vector<std::string> warnings;
    const auto [found, skipped] = registry::default_credentials(file, warnings);
    REQUIRE(found.size() == 1);
    CHECK(found[0].key == "b.io");
    REQUIRE(skipped.size() == 2);
    CHECK(skipped[0] == file + ": the auth of registry a.io is not base64 of user:password");
    CHECK(warnings == std::vector<std::string>{"login-skipped: " + skipped[0], "login-skipped: " + skipped[1]});
    std::ofstream(file) << "canary";
    CHECK_THROWS_AS(static_cast<void>(registry::default_credentials(file, warnings)), Error);
}

TEST_CASE("M63 credential files") {
    const auto parsed = registry::parse_credentials(
        R"({"auths":{"https://index.docker.io/v1/":{"auth":"dTpwOnE="},"REG.example.com/team/":{"username":"a","password":"b"},
            "t.example.com":{"auth":"PHRva2VuPjppZA=="},"empty.example.com":{}}})",
        "config.json");
    REQUIRE(parsed.size() == 3);
    CHECK(parsed[0].key == "index.docker.io");
    CHECK(parsed[0].user == "u");
    CHECK(parsed[0].password == "p:q");
    CHECK(parsed[1].key == "reg.example.com/team");
    CHECK(parsed[2].identity_token == "id");
    const auto key_of = [](const std::string& key) {
        return registry::parse_credentials(R"({"auths":{")" + key + R"(":{"auth":"dTpw"}}})", "config.json").at(0).key;
    };
    CHECK(key_of("https://reg.example.com/v2/") == "reg.example.com");
    CHECK(key_of("https://reg.example.com/v2/team/") == "reg.example.com/team");  // as the kubelet reads it
    CHECK(key_of("reg.example.com/v1beta/x") == "reg.example.com/v1beta/x");
    CHECK(key_of("reg.example.com/team/v2") == "reg.example.com/team/v2");  // no credential for all of team
    CHECK(registry::parse_credentials(R"({"reg.example.com":{"auth":"dTpw"}})", ".dockercfg").size() == 1);
    CHECK(registry::parse_credentials(R"({"credsStore":"x"})", "config.json").at(0).helper == "x");
    for (const char* text :
         {R"({"auths":{"r":{"auth":"!!secret!!"}}})", R"({"auths":{"r":{"auth":"c2VjcmV0"}}})", R"({"auths":"secret"})",
          R"({"auths":{"r":"secret"}})", R"({"auths":{"r":{"auth":["secret"]}}})",
          R"({"auths":{"https://u:secret@r":{"auth":"!"}}})", "secret", "[]", ""}) {
        CAPTURE(text);
        try {
            static_cast<void>(registry::parse_credentials(text, "the-file"));
            FAIL("expected a refusal");
        } catch (const Error& error) {
            CHECK(error.code() == "bad-auth-file");
            REQUIRE(error.position().has_value());
            CHECK(error.position()->file == "the-file");
            CHECK(error.message().find("secret") == std::string::npos);
        }
    }
}

TEST_CASE("where docker, podman and skopeo keep logins") {
    using Variables = std::map<std::string, std::string>;
    const auto places = [](const Variables& set) {
        return registry::credential_places(
            [&](const std::string& name) {
                const auto it = set.find(name);
                return it == set.end() ? std::string() : it->second;
            },
            7);
    };
    using Places = std::vector<std::string>;
    CHECK(places({}) == Places{"/run/containers/7/auth.json"});
    CHECK(places({{"HOME", "/h"}}) ==
          Places{"/h/.docker/config.json", "/run/containers/7/auth.json", "/h/.config/containers/auth.json"});
    CHECK(places({{"HOME", "/h"},
                  {"XDG_RUNTIME_DIR", "/r"},
                  {"XDG_CONFIG_HOME", "/c"},
                  {"REGISTRY_AUTH_FILE", "/a"},
                  {"DOCKER_CONFIG", "/d"}}) == Places{"/a", "/d/config.json", "/h/.docker/config.json",
                                                      "/r/containers/auth.json", "/c/containers/auth.json"});
}

TEST_CASE("M63 pull secrets in a directory, as the kubelet mounts them") {
    const sys::TempDir top("kmm-test-");
    const auto secret = [&](const std::string& name, const std::string& file, const std::string& text) {
        const std::string directory = top.path() + "/" + name + "/..2026_01_01";
        std::filesystem::create_directories(directory);
        std::ofstream(directory + "/" + file) << text;
        std::filesystem::create_directory_symlink("..2026_01_01", top.path() + "/" + name + "/..data");
        std::filesystem::create_symlink("..data/" + file, top.path() + "/" + name + "/" + file);
    };
    secret("a", ".dockerconfigjson", R"({"auths":{"r.example.com":{"auth":"dTpw"}}})");
    secret("b", ".dockercfg", R"({"r.example.com/team":{"username":"v","password":"q"}})");
    secret("c", ".dockerconfigjson", "canary-secret");
    secret("d", "tls.crt", "not credentials");
    secret("e", ".dockerconfigjson", R"({"credsStore":"desktop"})");
    std::vector<std::string> warnings;
    const auto [found, skipped] = registry::mounted_credentials(top.path(), warnings);
    REQUIRE((found.size() == 3 && found[2].helper == "desktop" && warnings.size() == 2 && skipped.size() == 1));
    CHECK(found[0].user == "u");
    CHECK(found[1].key == "r.example.com/team");
    CHECK(warnings[0].starts_with("credential-helper-ignored: " + top.path() + "/e/.dockerconfigjson"));
    CHECK(warnings[1].find("canary") == std::string::npos);
    CHECK(warnings[1] == "pull-secret-skipped: " + skipped[0]);
    CHECK(skipped[0].starts_with(top.path() + "/c/.dockerconfigjson: expected one JSON"));
    const auto matching = registry::matching_credentials(found, image::parse_reference("r.example.com/team/driver:v1"));
    REQUIRE(matching.size() == 3);
    CHECK(matching[0].user == "v");  // the longest key first, then the others
    CHECK_THROWS_AS(static_cast<void>(registry::mounted_credentials(top.path() + "/none", warnings)), Error);
}
