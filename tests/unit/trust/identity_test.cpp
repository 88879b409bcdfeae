// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "trust/identity.hpp"

using namespace kmm;
using Match = trust::SignedIdentity::Match;

namespace {

const std::string k_digest = "sha256:" + std::string(64, 'a');

bool accepts(const trust::SignedIdentity& identity, const std::string& intended, const std::string& claimed) {
    return identity.accepts(trust::named_image(image::parse_reference(intended)), claimed);
}

}  // namespace

TEST_SUITE("trust::unit") {

TEST_CASE("names are fully expanded, and no tag is implied") {
    CHECK(trust::named_image("busybox")->to_string() == "docker.io/library/busybox");
    CHECK(trust::named_image("index.docker.io/a/b:latest")->to_string() == "docker.io/a/b:latest");
    CHECK(trust::named_image("reg:5000/latest")->to_string() == "reg:5000/latest");
    CHECK(trust::named_image("reg:5000/x:latest@" + k_digest)->to_string() == "reg:5000/x:latest@" + k_digest);
    CHECK_FALSE(trust::named_image("reg/UPPER"));
    CHECK_FALSE(trust::named_image(""));
    CHECK(trust::named_image(image::parse_reference("reg.example/x")).to_string() == "reg.example/x:latest");
    CHECK(trust::named_image(image::parse_reference("reg.example/x:1@" + k_digest)).to_string() ==
          "reg.example/x@" + k_digest);
}

TEST_CASE("scopes of an image, the most specific first") {
    CHECK(trust::scopes_of(*trust::named_image("a.b.example.com:8443/ns/x:1")) ==
          std::vector<std::string>{"a.b.example.com:8443/ns/x:1", "a.b.example.com:8443/ns/x",
                                   "a.b.example.com:8443/ns", "a.b.example.com:8443", "*.b.example.com",
                                   "*.example.com", "*.com"});
    CHECK(trust::scopes_of(*trust::named_image("busybox:1")) ==
          std::vector<std::string>{"docker.io/library/busybox:1", "docker.io:443/library/busybox:1",
                                   "docker.io/library/busybox", "docker.io:443/library/busybox", "docker.io/library",
                                   "docker.io:443/library", "docker.io", "docker.io:443", "*.io"});
    for (const char* hub : {"docker.io:443", "index.docker.io:443", "registry-1.docker.io:443"}) {
        const auto scopes = trust::scopes_of(*trust::named_image(hub + std::string("/library/busybox:1")));
        CHECK(std::find(scopes.begin(), scopes.end(), "docker.io/library/busybox") != scopes.end());
    }
    CHECK(trust::scopes_of(*trust::named_image("[fd00::1]:443/x:1")) ==
          std::vector<std::string>{"[fd00::1]:443/x:1", "[fd00::1]/x:1", "[fd00::1]:443/x", "[fd00::1]/x",
                                   "[fd00::1]:443", "[fd00::1]"});
    CHECK(trust::scopes_of(*trust::named_image("localhost/x:1")) ==
          std::vector<std::string>{"localhost/x:1", "localhost:443/x:1", "localhost/x", "localhost:443/x", "localhost",
                                   "localhost:443"});
    CHECK(trust::scopes_of_path("/var/lib/x") == std::vector<std::string>{"/var/lib/x", "/var/lib", "/var"});
    CHECK(trust::scopes_of_path("/").empty());
    CHECK(trust::scopes_of_path("relative").empty());
}

TEST_CASE("scopes that no image can fall under, and what is probably meant") {
    const std::string digest = "@" + k_digest;
    for (const std::string& scope :
         {std::string("reg.example"), std::string("reg.example:5000"), std::string("localhost"),
          std::string("reg:5000"), std::string("docker.io"), std::string("docker.io/library"),
          std::string("docker.io/busybox"), std::string("127.0.0.1:5000/team/x"), std::string("[fd00::1]:5000/team"),
          std::string("reg.example/x:1"), "reg.example/x" + digest, std::string("*.example"),
          std::string("*.a.example"), std::string("*.0.0.1")}) {
        CHECK_MESSAGE(trust::is_image_scope(scope), scope);
    }
    const auto meant = [](const std::string& scope) {
        CHECK_MESSAGE(!trust::is_image_scope(scope), scope);
        return trust::probable_image_scope(scope).value_or("");
    };
    CHECK(meant("busybox") == "docker.io/library/busybox");
    CHECK(meant("busybox:latest") == "docker.io/library/busybox:latest");
    CHECK(meant("team/driver") == "docker.io/team/driver");
    CHECK(meant("docker.io/busybox:1") == "docker.io/library/busybox:1");
    CHECK(meant("index.docker.io/team/x") == "docker.io/team/x");
    CHECK(meant("reg.example/team/*") == "reg.example/team");
    CHECK(meant("reg.example/team/") == "reg.example/team");
    CHECK(meant("reg.example/x:") == "reg.example/x");
    CHECK(meant("reg.example/x:1" + digest) == "reg.example/x" + digest);
    CHECK(meant("reg.example/Team") == "reg.example/team");
    CHECK(meant("docker://reg.example/team") == "reg.example/team");
    CHECK(meant("https://reg.example/") == "reg.example");
    CHECK(meant(" reg.example") == "reg.example");
    for (const char* const scope : {"*", "**.example", "*example", "*.example/team", "*.example:5000", "*.", "/", "a b",
                                    "reg.example/x@sha256:abc", "reg.example//x"}) {
        CHECK_MESSAGE(meant(scope).empty(), scope);
    }
}

TEST_CASE("which signed names are accepted") {
    const trust::SignedIdentity usual;
    CHECK(accepts(usual, "reg.example/x:1", "reg.example/x:1"));
    CHECK_FALSE(accepts(usual, "reg.example/x:1", "reg.example/x:2"));
    CHECK_FALSE(accepts(usual, "reg.example/x:1", "reg.example/x"));
    CHECK_FALSE(accepts(usual, "reg.example/x", "reg.example/x"));
    CHECK(accepts(usual, "reg.example/x", "reg.example/x:latest"));
    CHECK(accepts(usual, "reg.example/x@" + k_digest, "reg.example/x:7"));
    CHECK_FALSE(accepts(usual, "reg.example/x@" + k_digest, "reg.example/y:7"));
    CHECK_FALSE(accepts(usual, "reg.example/x@" + k_digest, "reg.example/x"));
    CHECK(accepts(usual, "busybox:1", "index.docker.io/library/busybox:1"));

    const trust::SignedIdentity exact{Match::exact, "", "", ""};
    CHECK(accepts(exact, "reg.example/x@" + k_digest, "reg.example/x@" + k_digest));
    CHECK_FALSE(accepts(exact, "reg.example/x@" + k_digest, "reg.example/x:1"));

    const trust::SignedIdentity repository{Match::repository, "", "", ""};
    CHECK(accepts(repository, "reg.example/x:1", "reg.example/x"));
    CHECK_FALSE(accepts(repository, "reg.example/x:1", "reg.example/x/y"));

    const trust::SignedIdentity remap{Match::remap, "", "mirror.example/team", "vendor.example"};
    CHECK(accepts(remap, "mirror.example/team/x:1", "vendor.example/x:1"));
    CHECK_FALSE(accepts(remap, "mirror.example/team/x:1", "mirror.example/team/x:1"));
    CHECK(accepts(remap, "mirror.example/teams/x:1", "mirror.example/teams/x:1"));
    const trust::SignedIdentity short_name{Match::remap, "", "mirror.example/hub", "docker.io"};
    CHECK_FALSE(accepts(short_name, "mirror.example/hub/busybox:1",
                        "docker.io/library/busybox:1"));  // "docker.io/busybox" is not fully expanded
    CHECK(accepts(short_name, "mirror.example/hub/library/busybox:1", "busybox:1"));

    const trust::SignedIdentity one{Match::exact_reference, "vendor.example/x:1", "", ""};
    CHECK(one.accepts(std::nullopt, "vendor.example/x:1"));
    CHECK_FALSE(one.accepts(std::nullopt, "vendor.example/x:2"));
    CHECK_FALSE(usual.accepts(std::nullopt, "vendor.example/x:1"));
    CHECK_FALSE(repository.accepts(std::nullopt, "vendor.example/x:1"));
}

TEST_CASE("prefixes of remapIdentity") {
    for (const std::string text :
         {"reg.example", "reg.example:5000", "reg.example/a/b", "localhost", "docker.io/library/busybox"}) {
        CHECK_MESSAGE(trust::is_identity_prefix(text), text);
    }
    for (const std::string& text :
         std::vector<std::string>{"", "reg.example/a:1", "reg.example/a@" + k_digest, "reg.example/", "reg.example//a",
                                  "reg.example:x", "/a", "a b"}) {
        CHECK_FALSE_MESSAGE(trust::is_identity_prefix(text), text);
    }
}

}
