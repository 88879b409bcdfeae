// SPDX-License-Identifier: Apache-2.0
// Servers that are not what they are taken for: no token server, and TLS that is too old.
#include <doctest/doctest.h>

#include "base/text.hpp"
#include "registry/client/auth.hpp"
#include "registry/client/credentials.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

TestLayer any_layer() { return gzip_layer(TarBuilder().file(k_modules + "/good.ko", "good").finish()); }

/// What comes of a pull with two logins, for which the token server has these answers, one after the other.
Outcome with_token_answers(std::vector<int> answers) {
    FakeRegistry registry;
    registry.add_image("v1", {any_layer()});
    std::size_t asked = 0;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply;
        if (request.target.starts_with("/token")) {
            reply.status = answers.at(std::min(asked++, answers.size() - 1));
            reply.body = R"({"token":"T1"})";
            if (reply.status == 429) {
                reply.headers.emplace_back("Retry-After", "7");
            }
            return reply;
        }
        if (request.header("authorization") == "Bearer T1") {
            return std::nullopt;
        }
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"http://" + registry.host() + "/token\"");
        return reply;
    };
    return pull_from(registry, [&](auto& request) {
        for (const char* user : {"one", "two"}) {
            registry::Credential credential;
            credential.key = registry.host();
            credential.user = user;
            request.credentials.push_back(credential);
        }
    });
}

/// Pulls from a registry that takes the token for `known_as` alone, and names it in its challenge as `said`. Targets
/// of the token server are added to `asked`.
Outcome with_scope(const std::string& known_as, const std::string& said, std::vector<std::string>& asked) {
    FakeRegistry registry;
    registry.add_image("v1", {any_layer()});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply;
        if (request.target.starts_with("/token")) {
            asked.push_back(request.target);
            const bool right = request.target.find("scope=repository%3A" + known_as + "%3Apull&") != std::string::npos;
            reply.body = right ? R"({"token":"T1"})" : R"({"token":"T0"})";
            return reply;
        }
        if (request.header("authorization") == "Bearer T1") {
            return std::nullopt;
        }
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"http://" + registry.host() +
                                                           "/token\",service=\"s\",scope=\"" + said + "\"");
        return reply;
    };
    return pull_from(registry, [&](auto& request) {
        for (const char* user : {"one", "two"}) {
            registry::Credential credential;
            credential.key = registry.host();
            credential.user = user;
            request.credentials.push_back(credential);
        }
    });
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("an identity token is exchanged by a form, which has its scopes in one member") {
    FakeRegistry registry;
    registry.add_image("v1", {any_layer()});
    std::vector<std::string> forms;
    int status = 200;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply;
        if (request.target.starts_with("/token")) {
            CHECK(request.header("authorization").empty());
            if (request.method != "POST") {  // without a login, once the identity token is refused
                reply.status = 401;
                return reply;
            }
            CHECK(request.target == "/token");
            CHECK(request.header("content-type") == "application/x-www-form-urlencoded");
            forms.push_back(request.body);
            reply.status = status;
            reply.body = request.body.find("mirror") == std::string::npos
                             ? R"({"access_token":"T0","refresh_token":"R2","expires_in":60})"
                             : R"({"access_token":"T1","token":""})";
            return reply;
        }
        if (request.header("authorization") == "Bearer T1") {
            return std::nullopt;
        }
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"http://" + registry.host() +
                                                           "/token\",service=\"s\",scope=\"repository:mirror/x:pull\"");
        return reply;
    };
    const auto pull = [&] {
        return pull_from(registry, [&](auto& request) {
            registry::Credential credential;
            credential.key = registry.host();
            credential.user = "00000000-0000-0000-0000-000000000000";
            credential.identity_token = "a+b/c=";
            request.credentials.push_back(credential);
        });
    };
    const Outcome outcome = pull();
    CHECK_MESSAGE(!outcome.error, outcome.message());
    const std::string begin =
        "grant_type=refresh_token&client_id=kmm-tools&refresh_token=a%2Bb%2Fc%3D"
        "&scope=repository%3Ateam%2Fdriver%3Apull";
    REQUIRE(forms.size() >= 2);
    CHECK(forms[0] == begin + "&service=s");
    CHECK(forms[1] == begin + "%20repository%3Amirror%2Fx%3Apull&service=s");
    status = 405;  // of a server that knows no refresh tokens
    const Outcome refused = pull();
    CHECK(refused.code() == "registry-auth");
    CHECK(refused.message().find("a+b") == std::string::npos);
}

TEST_CASE("a token is asked for the scope of the challenge where that of the repository is not enough") {
    std::vector<std::string> asked;
    const Outcome renamed = with_scope("cache%2Fteam%2Fdriver", "repository:cache/team/driver:pull", asked);
    CHECK_MESSAGE(renamed.code() == "ok", renamed.message());
    const std::string own = "/token?scope=repository%3Ateam%2Fdriver%3Apull";
    CHECK(asked == std::vector<std::string>{own + "&service=s",
                                            own + "&scope=repository%3Acache%2Fteam%2Fdriver%3Apull&service=s"});

    asked.clear();  // ghcr.io has a placeholder there: it is not asked for where the own scope serves
    CHECK(with_scope("team%2Fdriver", "repository:user/image:pull", asked).code() == "ok");
    CHECK(asked == std::vector<std::string>{own + "&service=s"});

    asked.clear();  // each credential has its two tries, and then nobody
    CHECK(with_scope("nothing", "repository:other:pull repository:team/driver:pull", asked).code() == "registry-auth");
    const std::string wide = own + "&scope=repository%3Aother%3Apull&service=s";
    const std::string plain = own + "&service=s";
    CHECK(asked == std::vector<std::string>{plain, wide, plain, wide, plain, wide});

    for (const std::string said : {"repository:team/driver:pull", "", "x\\\"y", "a b c d e f g h i j k l m n o p"}) {
        CAPTURE(said);
        asked.clear();
        CHECK(with_scope("nothing", said, asked).code() == "registry-auth");
        CHECK(asked == std::vector<std::string>{plain, plain, plain});
    }
}

TEST_CASE("a token server that is none has refused no credentials") {
    const Outcome absent = with_token_answers({404});
    CHECK(absent.code() == "registry-auth");
    CHECK_MESSAGE(absent.message().find("the registry wants a login: the token server 127.0.0.1 answered 404") !=
                      std::string::npos,
                  absent.message());
    CHECK(absent.error->hint().starts_with("no credentials were looked at"));
    for (const auto& answers : std::vector<std::vector<int>>{{401}, {404, 401}, {401, 404}}) {
        const Outcome refused = with_token_answers(answers);
        CHECK(refused.code() == "registry-auth");
        CHECK_MESSAGE(refused.message().find("2 credentials for") != std::string::npos, refused.message());
    }
    CHECK(with_token_answers({404, 200}).code() == "ok");
}

TEST_CASE("an address of a token server that cannot be used says whose setting it is") {
    const registry::Boundary boundary{"reg.example.com", net::AddressScope::global, false};
    const std::string setting = "the registry itself names that address (realm): correct it in the registry's settings";
    for (const auto& [realm, hint] : std::vector<std::pair<std::string, std::string>>{
             {"/token", setting + ", with https:// and its host"},
             {"auth.example.com/token", setting + ", with https:// and its host"},
             {"https://jane@auth.example.com/", setting},
             {"https://10.0.0.1/token", setting}}) {
        CAPTURE(realm);
        try {
            static_cast<void>(registry::check_realm(realm, boundary));
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.code() == "registry-auth");
            CHECK(error.hint() == hint);
        }
    }
}

TEST_CASE("a token server that refuses the way of asking costs that credential, no more") {
    for (const int refusal : {405, 415, 422}) {
        const Outcome second = with_token_answers({refusal, 200});
        CHECK_MESSAGE(second.code() == "ok", second.message());
        CHECK(second.sleeps.empty());
        const Outcome none = with_token_answers({refusal});
        CHECK(none.code() == "registry-auth");
        CHECK_MESSAGE(none.message().find("2 credentials for") != std::string::npos, none.message());
    }
}

TEST_CASE("a login that is a password alone, without a user") {
    FakeRegistry registry;
    registry.add_image("v1", {any_layer()});
    const std::string coded = base::to_base64(":secret-p");
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.header("authorization") == "Basic " + coded) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"r\"");
        return reply;
    };
    const Outcome outcome = pull_from(registry, [&](auto& request) {
        request.credentials = registry::parse_credentials(
            R"({"auths":{")" + registry.host() + R"(":{"auth":")" + coded + "\"}}}", "f");
    });
    CHECK_MESSAGE(!outcome.error, outcome.message());
}

TEST_CASE("a registry that denies access says for whom it did") {
    const std::string after = "check the image name, then the pull secret or --authfile";
    for (const auto& [token_status, logins, hint] : std::vector<std::tuple<int, int, std::string>>{
             {200, 1, "the credentials are known and may not pull this repository: ask for the permission to pull"},
             {401, 1, "the credentials for HOST were refused: " + after},
             {401, 0, "no credentials for HOST: " + after}}) {
        FakeRegistry registry;
        registry.add_image("v1", {any_layer()});
        registry.intercept = [&, status = token_status](const FakeRequest& request) -> std::optional<FakeReply> {
            FakeReply reply;
            if (request.target.starts_with("/token")) {
                reply.status = request.header("authorization").empty() ? 200 : status;
                reply.body = R"({"token":"T1"})";
                return reply;
            }
            reply.status = request.header("authorization") == "Bearer T1" ? 403 : 401;
            reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"http://" + registry.host() + "/token\"");
            return reply;
        };
        const Outcome outcome = pull_from(registry, [&, count = logins](auto& request) {
            registry::Credential credential;
            credential.key = registry.host();
            credential.user = "one";
            request.credentials.assign(static_cast<std::size_t>(count), credential);
        });
        REQUIRE(outcome.code() == "registry-auth");
        std::string expected = hint;
        if (const auto at = expected.find("HOST"); at != std::string::npos) expected.replace(at, 4, registry.host());
        CHECK(outcome.error->hint() == expected);
    }
}

TEST_CASE("a refused login says which pull secrets could not be read") {
    FakeRegistry registry;
    registry.add_image("v1", {any_layer()});
    registry.intercept = [&](const FakeRequest&) -> std::optional<FakeReply> {
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"r\"");
        return reply;
    };
    const Outcome outcome = pull_from(registry, [](auto& request) {
        request.skipped_secrets = {"/s/a: bad", "/s/b: worse"};
    });
    REQUIRE(outcome.code() == "registry-auth");
    const auto& details = outcome.error->details();
    CHECK(std::any_of(details.begin(), details.end(), [](const auto& one) {
        return one == std::pair<std::string, std::string>("skipped", "/s/a: bad; /s/b: worse");
    }));
}

TEST_CASE("M60 the Retry-After of a token server is waited for") {
    const Outcome waited = with_token_answers({429, 200});
    CHECK_MESSAGE(waited.code() == "ok", waited.message());
    CHECK(waited.sleeps == std::vector<std::chrono::milliseconds>{std::chrono::seconds(7)});
}

TEST_CASE("--insecure: a server that speaks TLS is not asked in plain HTTP, however old it is") {
    Identity old = make_identity();
    old.old_tls = true;
    FakeRegistry registry(old);
    registry.add_image("v1", {any_layer()});
    const Outcome outcome = pull_from(registry, [](auto& request) { request.tls.insecure = true; });
    CHECK_MESSAGE(outcome.code() == "tls", outcome.message());
    CHECK(outcome.exit() == Exit::integrity);
    CHECK_MESSAGE(outcome.error->hint() == "the server speaks no TLS 1.2 or newer: update it", outcome.error->hint());
}

}
