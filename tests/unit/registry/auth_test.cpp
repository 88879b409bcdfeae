// SPDX-License-Identifier: Apache-2.0
// Logins, token servers, redirects, and TLS: rows M55 to M61 of docs/hostile-registries.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "registry/client/auth.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;
using registry::Credential;

namespace {

TestLayer good_layer() { return gzip_layer(TarBuilder().file(k_modules + "/good.ko", "good").finish()); }

Credential login(const std::string& key, const std::string& user = "u", const std::string& password = "secret-p") {
    Credential credential;
    credential.key = key;
    credential.user = user;
    credential.password = password;
    return credential;
}

std::string basic(const std::string& user, const std::string& password) {
    return "Basic " + base::to_base64(user + ":" + password);
}

/// A registry that wants a token from `realm` (default: its own /token).
struct TokenScene {
    FakeRegistry registry;
    std::string realm;
    std::string token_reply = R"({"token":"T1"})";
    int token_status = 200;
    std::string wanted_login = basic("u", "secret-p");

    explicit TokenScene(std::string realm_url = {}, std::optional<Identity> identity = std::nullopt)
        : registry(std::move(identity)) {
        registry.add_image("v1", {good_layer()});
        realm = realm_url.empty() ? "http://" + registry.host() + "/token" : std::move(realm_url);
        registry.intercept = [this](const FakeRequest& request) -> std::optional<FakeReply> {
            FakeReply reply;
            if (request.target.starts_with("/token")) {
                reply.status = request.header("authorization") == wanted_login ? token_status : 401;
                reply.body = token_reply;
                return reply;
            }
            if (request.header("authorization") == "Bearer T1") {
                return std::nullopt;
            }
            reply.status = 401;
            reply.headers.emplace_back("WWW-Authenticate",
                                       "Bearer realm=\"" + realm + "\",service=\"reg\",scope=\"x\"");
            return reply;
        };
    }
    Outcome pull(std::vector<Credential> credentials) {
        return pull_from(registry, [&](auto& request) { request.credentials = std::move(credentials); });
    }
};

bool sent_credentials(FakeServer& server) {
    for (const FakeRequest& request : server.requests()) {
        if (!request.header("authorization").empty()) {
            return true;
        }
    }
    return false;
}

struct CaFile {
    explicit CaFile(const std::string& pem) {
        path = (std::filesystem::temp_directory_path() / "kmm-ca-XXXXXX").string();
        const int fd = ::mkstemp(path.data());
        REQUIRE(fd >= 0);
        ::close(fd);
        std::ofstream(path) << pem;
    }
    ~CaFile() { std::filesystem::remove(path); }
    CaFile(const CaFile&) = delete;
    CaFile& operator=(const CaFile&) = delete;
    std::string path;
};

/// A registry that redirects the layer of its image, with or without TLS, and the storage it may redirect to.
struct RedirectScene {
    Identity identity = make_identity();
    CaFile authority{identity.certificate_pem};
    TestLayer layer = good_layer();
    FakeServer storage{[this](const FakeRequest&) {
        FakeReply reply;
        reply.body = layer.bytes;
        return reply;
    }};

    [[nodiscard]] Outcome redirect_to(const std::string& location, bool tls) const {
        FakeRegistry registry(tls ? std::optional(identity) : std::nullopt);
        registry.add_image("v1", {layer});
        registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
            FakeReply reply;
            if (request.header("authorization").empty()) {
                reply.status = 401;
                reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"x\"");
                return reply;
            }
            if (request.target.find(sha256(layer.bytes)) == std::string::npos) {
                return std::nullopt;
            }
            reply.status = 307;
            reply.headers.emplace_back("Location", location == "self" ? request.target : location);
            return reply;
        };
        return pull_from(registry, [&](auto& request) {
            request.tls.insecure = !tls;
            request.tls.ca_file = tls ? authority.path : "";
            request.credentials = {login(registry.host())};
        });
    }
};

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("challenges are read") {
    const auto one = registry::parse_challenges(R"(Bearer realm="https://a/b?c=d,e",service="s \"q\"", scope=x:y)");
    REQUIRE(one.size() == 1);
    CHECK(one[0].scheme == "bearer");
    CHECK(one[0].params.at("realm") == "https://a/b?c=d,e");
    CHECK(one[0].params.at("service") == "s \"q\"");
    CHECK(one[0].params.at("scope") == "x:y");
    const auto two = registry::parse_challenges(R"(Basic realm="a", Bearer realm="b")");
    REQUIRE(two.size() == 2);
    CHECK(two[1].params.at("realm") == "b");
    for (const char* odd : {"", "=", "\"", ",,,", "Bearer realm=\"", "\xff\xfe", "Bearer ==,="}) {
        static_cast<void>(registry::parse_challenges(odd));
    }
}

TEST_CASE("the most specific credential comes first") {
    const image::Reference reference = image::parse_reference("reg.example.com:5000/team/driver:v1");
    const std::vector<Credential> all{login("reg.example.com:5000"), login("reg.example.com:5000/team/driver"),
                                      login("reg.example.com"), login("reg.example.com:5000/team/dri"),
                                      login("*.example.com:5000", "glob"), login("reg.example.com:5000/team"),
                                      login("*.com:5000")};
    std::vector<std::string> keys;
    for (const Credential& credential : registry::matching_credentials(all, reference)) {
        keys.push_back(credential.key);
    }
    CHECK(keys == std::vector<std::string>{"reg.example.com:5000/team/driver", "reg.example.com:5000/team",
                                           "reg.example.com:5000", "*.example.com:5000"});
    for (const char* fits : {"reg*.example.com:5000", "r?g.ex*le.com:5000", "reg.*.com:5000", "re[f-h].example.*:5000"})
        CHECK_MESSAGE(registry::matching_credentials({login(fits)}, reference).size() == 1, fits);
    for (const char* other : {"re*.com:5000", "regx*.example.com:5000", "reg*.example.com", "*:5000"})
        CHECK_MESSAGE(registry::matching_credentials({login(other)}, reference).empty(), other);
}

TEST_CASE("a token is fetched with the credential that works, and used") {
    TokenScene scene;
    const Outcome outcome = scene.pull({login(scene.registry.host() + "/team", "wrong"), login(scene.registry.host())});
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(scene.registry.server().count("/token?scope=repository%3Ateam%2Fdriver%3Apull&service=reg") == 2);
    scene.wanted_login.clear();
    CHECK(scene.pull({}).code() == "ok");  // anonymous token
    const Outcome without = scene.pull({login(scene.registry.host(), "wrong")});
    CHECK(without.code() == "ok");
    CHECK(without.warned("login-refused: the credentials for " + scene.registry.host() +
                         " were refused, the image is pulled without a login"));
}

TEST_CASE("a token server that is down for a moment costs no credential") {
    TokenScene scene;
    const auto store = scene.registry.intercept;
    int failures = 0;
    scene.registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.starts_with("/token") && failures++ < 2) {
            FakeReply reply;
            reply.status = 503;
            return reply;
        }
        return store(request);
    };
    const Outcome outcome = scene.pull({login(scene.registry.host())});
    CHECK_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.sleeps.size() == 2);
}

TEST_CASE("basic logins") {
    FakeRegistry registry;
    registry.add_image("v1", {good_layer()});
    registry.intercept = [](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.header("authorization") == basic("u", "secret-p")) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"x\"");
        return reply;
    };
    const auto with = [&](std::vector<Credential> list) {
        return pull_from(registry, [&](auto& request) { request.credentials = std::move(list); });
    };
    CHECK(with({login(registry.host() + "/team/driver", "other"), login(registry.host())}).code() == "ok");
    const Outcome refused = with({login(registry.host(), "other")});
    CHECK(refused.code() == "registry-auth");
    CHECK(refused.exit() == Exit::no_permission);
    CHECK(refused.message().find("secret-p") == std::string::npos);
    CHECK(with({}).message().find("no credentials for " + registry.host()) != std::string::npos);
}

TEST_CASE("a Bearer without a token server does not hide the Basic beside it") {
    for (const auto& [headers, code] : std::vector<std::pair<std::vector<const char*>, const char*>>{
             {{"Bearer", "Basic realm=\"x\""}, "ok"},
             {{"Basic realm=\"x, Bearer\", Bearer service=\"s\""}, "ok"},
             {{"Negotiate, Bearer realm=\"\", Basic realm=\"x\", charset=\"UTF-8\""}, "ok"},
             {{"Bearer service=\"s\""}, "registry-auth"}}) {
        FakeRegistry registry;
        registry.add_image("v1", {good_layer()});
        registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
            if (request.header("authorization") == basic("u", "secret-p")) {
                return std::nullopt;
            }
            FakeReply reply;
            reply.status = 401;
            for (const char* header : headers) {
                reply.headers.emplace_back("WWW-Authenticate", header);
            }
            return reply;
        };
        const Outcome outcome =
            pull_from(registry, [&](auto& request) { request.credentials = {login(registry.host())}; });
        CHECK_MESSAGE(outcome.code() == code, headers.front(), ": ", outcome.message());
    }
}

TEST_CASE("of several Bearer challenges the one with a token server counts") {
    TokenScene scene;
    const auto store = scene.registry.intercept;
    scene.registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        auto reply = store(request);
        if (reply && reply->status == 401) {
            reply->headers.insert(reply->headers.begin(), {"WWW-Authenticate", "Bearer error=\"invalid_token\""});
        }
        return reply;
    };
    CHECK(scene.pull({login(scene.registry.host())}).code() == "ok");
}

TEST_CASE("M55 realms that credentials must not go to") {
    const registry::Boundary strict{"registry.example.com", net::AddressScope::global, false};
    for (const char* realm : {"http://auth.example.com/token", "https://10.0.0.1/t", "https://127.0.0.1/t",
                              "https://[::1]/t", "https://169.254.169.254/latest", "https://0x7f000001/t",
                              "https://[fd00::1]/t", "https://[::ffff:10.0.0.1]/t", "https://0.0.0.0/t",
                              "file:///etc/passwd", "gopher://x/", "", "https://u:p@auth.example.com/", "auth"}) {
        CAPTURE(realm);
        CHECK_THROWS_AS(static_cast<void>(registry::check_realm(realm, strict)), Error);
    }
    CHECK_THROWS_AS(static_cast<void>(registry::check_realm("https://a.example/" + std::string(10'000, 'x'), strict)),
                    Error);
    CHECK(registry::check_realm("https://auth.example.com/token", strict).host == "auth.example.com");
    const registry::Boundary own{"10.0.0.1", net::AddressScope::site, false};
    CHECK(registry::check_realm("https://10.0.0.1:8443/token", own).port == 8443);
    CHECK(registry::scope_max_for(*net::parse_url("https://auth.example.com/"), strict) == net::AddressScope::global);
    CHECK(registry::scope_max_for(*net::parse_url("https://auth.example.com/"), own) == net::AddressScope::site);

    const Identity identity = make_identity();
    const CaFile authority(identity.certificate_pem);
    FakeServer trap([](const FakeRequest&) { return FakeReply{}; });
    for (const std::string& realm : {"http://localhost:" + std::to_string(trap.port()) + "/t",
                                     std::string("https://10.255.255.1/t"), std::string("file:///etc/passwd")}) {
        CAPTURE(realm);
        TokenScene scene(realm, identity);
        const Outcome outcome = pull_from(scene.registry, [&](auto& request) {
            request.tls.insecure = false;
            request.tls.ca_file = authority.path;
            request.credentials = {login(scene.registry.host())};
        });
        CHECK(outcome.code() == "registry-auth");
        CHECK(outcome.exit() == Exit::no_permission);
        CHECK_FALSE(sent_credentials(scene.registry.server()));
    }
    CHECK(trap.requests().empty());
}

TEST_CASE("M55 a name that resolves inwards is refused at the socket") {
    FakeServer trap([](const FakeRequest&) { return FakeReply{}; });
    net::CurlHttpClient http;
    net::Request request;
    request.url = "http://localhost:" + std::to_string(trap.port()) + "/";
    request.scope_max = net::AddressScope::site;
    try {
        static_cast<void>(http.send(request, nullptr));
        FAIL("expected a refusal");
    } catch (const Error& error) {
        CHECK(error.code() == "address-refused");
    }
    CHECK(trap.requests().empty());
    request.scope_max = net::AddressScope::loopback;
    CHECK(http.send(request, nullptr).status == 200);
}

TEST_CASE("M56 refusals end, each with its own hint") {
    TokenScene scene;
    scene.token_reply = R"({"token":"never accepted"})";
    scene.wanted_login = basic("u", "secret-p");
    scene.token_reply = R"({"token":"T2"})";
    const Outcome loop = scene.pull({login(scene.registry.host())});
    CHECK(loop.code() == "registry-auth");
    CHECK(scene.registry.server().count("/manifests/") <= 3);
    const auto answer = [](int status, const std::string& body = {}) {
        FakeRegistry registry;
        registry.intercept = [=](const FakeRequest&) {
            FakeReply reply;
            reply.status = status;
            reply.body = body;
            return reply;
        };
        return pull_from(registry);
    };
    const Outcome denied = answer(403, R"({"errors":[{"code":"DENIED","message":"go\naway"}]})");
    CHECK(denied.code() == "registry-auth");
    CHECK(denied.error->hint().starts_with("no login was asked for: check the image name"));
    CHECK(denied.detail("registry") == "DENIED: go\\naway");
    const Outcome missing = answer(404);
    CHECK(missing.code() == "image-not-found");
    CHECK(missing.exit() == Exit::not_found);
    CHECK(answer(401).code() == "registry-auth");  // no challenge at all
    // As Artifactory has it, without a code.
    CHECK(answer(404, R"({"errors":[{"status":404,"message":"Not Found"}]})").detail("registry") == "Not Found");
}

TEST_CASE("M57 redirects that leave the host, the network or TLS") {
    RedirectScene scene;
    const std::string other_host = "http://localhost:" + std::to_string(scene.storage.port());
    CHECK(scene.redirect_to(other_host + "/blob", false).code() == "ok");
    CHECK(scene.redirect_to("http://127.0.0.1:" + std::to_string(scene.storage.port()) + "/blob", false).code() ==
          "ok");
    CHECK(scene.storage.requests().size() == 2);
    CHECK_FALSE(sent_credentials(scene.storage));
    const Outcome downgrade = scene.redirect_to(other_host + "/blob", true);
    CHECK(downgrade.code() == "redirect-refused");
    CHECK(downgrade.exit() == Exit::unavailable);
    CHECK(scene.storage.requests().size() == 2);
    for (const char* inward : {"http://169.254.169.254/latest", "http://10.0.0.1/x", "http://[fd00::1]/x",
                               "file:///etc/passwd", "http://u:p@example.com/", "http://0x0a000001/", "unix:/run/x"}) {
        CAPTURE(inward);
        CHECK(scene.redirect_to(inward, false).code() == "redirect-refused");
    }
    CHECK(scene.redirect_to("self", false).message().find("at most 10 redirects") != std::string::npos);
}

TEST_CASE("M58 a redirect to a signed address is followed, and the signature never shown") {
    RedirectScene scene;
    const std::string signed_url =
        "http://localhost:" + std::to_string(scene.storage.port()) + "/blob?X-Sig=canary-secret";
    CHECK(scene.redirect_to(signed_url, false).code() == "ok");
    CHECK(scene.storage.count("X-Sig=canary-secret") == 1);
    const Outcome refused = scene.redirect_to(signed_url, true);
    CHECK(refused.code() == "redirect-refused");
    CHECK(refused.message().find("canary") == std::string::npos);
}

TEST_CASE("a token that comes with 201 serves, as for other clients") {
    TokenScene scene;
    scene.token_status = 201;
    CHECK(scene.pull({login(scene.registry.host())}).code() == "ok");
}

TEST_CASE("M59 token servers that misbehave") {
    for (const std::string& reply :
         {std::string(R"({"token":""})"), std::string("nonsense"), std::string(R"({"token":"a b"})"),
          std::string(R"({"token":"a\r\nX-Evil: 1"})"), R"({"token":")" + std::string(66'000, 'x') + R"("})",
          std::string("{}")}) {
        TokenScene scene;
        scene.token_reply = reply;
        const Outcome outcome = scene.pull({login(scene.registry.host())});
        CHECK(outcome.code() == "registry-auth");
        CHECK(outcome.exit() == Exit::no_permission);
        CHECK_MESSAGE(outcome.error->hint().starts_with("the credentials were not refused: "), outcome.error->hint());
    }
    for (const auto& [reply, found] : std::vector<std::pair<std::string, std::string>>{
             {"", "an empty answer"}, {"<html>please log in</html>", "an HTML page"}, {"{}", "none in its answer"}}) {
        TokenScene scene;
        scene.token_reply = reply;
        const Outcome outcome = scene.pull({login(scene.registry.host())});
        CHECK_MESSAGE(outcome.message().ends_with("expected a JSON document with a token from the token server "
                                                  "127.0.0.1, found " + found),
                      outcome.message());
    }
    for (const char* lifetime :
         {"0", "-1", "9223372036854775808"}) {  // a token serves until it is refused, whatever it says of itself
        TokenScene scene;
        scene.token_reply = std::string(R"({"access_token":"T1","expires_in":)") + lifetime + "}";
        CHECK(scene.pull({login(scene.registry.host())}).code() == "ok");
        CHECK(scene.registry.server().count("/token") == 1);
    }
}

TEST_CASE("M61 certificates that do not fit") {
    const auto pull_with = [](const Identity& identity, const std::string& ca_pem) {
        FakeRegistry registry(identity);
        registry.add_image("v1", {good_layer()});
        const CaFile authority(ca_pem);
        return pull_from(registry, [&](auto& request) {
            request.tls.insecure = false;
            request.tls.ca_file = authority.path;
        });
    };
    const Identity good = make_identity();
    const Outcome trusted = pull_with(good, good.certificate_pem);
    CHECK_MESSAGE(!trusted.error, trusted.message());
    const Identity expired = make_identity({"localhost", false, true});
    const Identity elsewhere = make_identity({"localhost", true, false});
    const std::vector<std::pair<Outcome, const char*>> rows{
        {pull_with(expired, expired.certificate_pem), "expired"},
        {pull_with(elsewhere, elsewhere.certificate_pem), "127.0.0.1"},
        {pull_with(make_identity(), good.certificate_pem), "self"},
    };
    for (const auto& [outcome, reason] : rows) {
        CAPTURE(outcome.message());
        CHECK(outcome.code() == "tls");
        CHECK(outcome.exit() == Exit::integrity);
        CHECK(outcome.message().find(reason) != std::string::npos);
        CHECK(outcome.error->hint().find("--ca-file") != std::string::npos);
    }
    FakeRegistry plain;
    const Outcome no_tls = pull_from(plain, [](auto& request) { request.tls.insecure = false; });
    CHECK((no_tls.code() == "tls" || no_tls.code() == "network"));
    CHECK(plain.server().requests().empty());
    const Outcome no_file = pull_from(plain, [](auto& request) { request.tls.ca_file = "/nonexistent/ca.pem"; });
    CHECK(no_file.code() == "ca-file");
}

TEST_CASE("M61 a pinned key") {
    const Identity identity = make_identity();
    const Identity other = make_identity();
    const std::string right = identity.pin;
    const std::string wrong = other.pin;
    const auto pull_with = [&](const std::string& pins, bool insecure) {
        FakeRegistry registry(identity);
        registry.add_image("v1", {good_layer()});
        const CaFile authority(identity.certificate_pem);
        const Outcome outcome = pull_from(registry, [&](auto& request) {
            request.tls.insecure = insecure;
            request.tls.ca_file = authority.path;
            request.tls.pinned_key = pins;
        });
        CHECK(registry.server().requests().empty() == (outcome.code() == "tls"));
        return outcome;
    };
    CHECK(pull_with(right, false).code() == "ok");
    CHECK(pull_with(wrong + ";" + right, false).code() == "ok");
    CHECK(pull_with(right, true).code() == "ok");
    for (const bool insecure : {false, true}) {
        const Outcome refused = pull_with(wrong, insecure);
        CHECK(refused.code() == "tls");
        CHECK(refused.exit() == Exit::integrity);
        CHECK(refused.message().find("does not match pinned public key") != std::string::npos);
        CHECK(refused.error->hint().find("--pinned-key") != std::string::npos);
    }
    FakeRegistry plain;
    plain.add_image("v1", {good_layer()});
    CHECK(pull_from(plain, [&](auto& request) {
              request.tls.pinned_key = right;
          }).error.has_value());  // --insecure, and no TLS
    CHECK(plain.server().requests().empty());

    // Storage on another host has a key of its own.
    const TestLayer layer = good_layer();
    const FakeServer storage([&](const FakeRequest&) {
        FakeReply reply;
        reply.body = layer.bytes;
        return reply;
    }, other);
    FakeRegistry registry(identity);
    registry.add_image("v1", {layer});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(sha256(layer.bytes)) == std::string::npos) return std::nullopt;
        FakeReply reply;
        reply.status = 307;
        reply.headers.emplace_back("Location", "https://localhost:" + std::to_string(storage.port()) + "/blob");
        return reply;
    };
    const CaFile both(identity.certificate_pem + other.certificate_pem);
    const Outcome redirected = pull_from(registry, [&](auto& request) {
        request.tls.insecure = false;
        request.tls.ca_file = both.path;
        request.tls.pinned_key = right;
    });
    CHECK_MESSAGE(redirected.code() == "ok", redirected.message());
    CHECK(storage.requests().size() == 1);
}

}
