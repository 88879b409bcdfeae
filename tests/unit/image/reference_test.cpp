// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "image/address.hpp"
#include "image/platform.hpp"
#include "image/reference.hpp"

using namespace kmm;

namespace {

const std::string k_hex(64, 'a');

Error error_of(const std::string& text) {
    try {
        static_cast<void>(image::parse_reference(text));
    } catch (const Error& error) {
        return error;
    }
    FAIL("expected a refusal of " << text);
    return bug("unreachable");
}

std::string detail(const Error& error, const std::string& key) {
    for (const auto& [name, value] : error.details()) {
        if (name == key) {
            return value;
        }
    }
    return {};
}

}  // namespace

TEST_SUITE("image::unit") {

TEST_CASE("M64 references and their long forms") {
    struct Row {
        std::string text, result, manifest;
    };
    for (const Row& row : {
             Row{"busybox", "index.docker.io/library/busybox:latest", "latest"},
             Row{"team/driver", "index.docker.io/team/driver:latest", "latest"},
             Row{"docker.io/busybox:1", "index.docker.io/library/busybox:1", "1"},
             Row{"index.docker.io/a/b:1", "index.docker.io/a/b:1", "1"},
             Row{"localhost/x", "localhost/x:latest", "latest"},
             Row{"localhost:5000/x:V1_2.3-4", "localhost:5000/x:V1_2.3-4", "V1_2.3-4"},
             Row{"Reg.Example.com/a/b-c/d.e__f:t", "reg.example.com/a/b-c/d.e__f:t", "t"},
             Row{"reg:80/a", "reg:80/a:latest", "latest"},
             Row{"[::1]:5000/a:b", "[::1]:5000/a:b", "b"},
             Row{"[2001:DB8::1]/a", "[2001:db8::1]/a:latest", "latest"},
             Row{"reg.example.com/a@sha256:" + k_hex, "reg.example.com/a@sha256:" + k_hex, "sha256:" + k_hex},
             Row{"reg.example.com/a:t@sha256:" + k_hex, "reg.example.com/a:t@sha256:" + k_hex, "sha256:" + k_hex},
             Row{"a/b:" + std::string(128, 't'), "index.docker.io/a/b:" + std::string(128, 't'), std::string(128, 't')},
             Row{"reg.example.com/a:6.1.0-1-amd64", "reg.example.com/a:6.1.0-1-amd64", "6.1.0-1-amd64"},
         }) {
        CAPTURE(row.text);
        const image::Reference reference = image::parse_reference(row.text);
        CHECK(reference.to_string() == row.result);
        CHECK(reference.manifest_name() == row.manifest);
        CHECK(image::parse_reference(reference.to_string()) == reference);
    }
}

TEST_CASE("M64 faults are shown below the byte") {
    struct Row {
        std::string text;
        std::size_t column;
    };
    for (const Row& row : {
             Row{"", 1}, Row{"reg.example.com/Team/x", 17}, Row{"reg.example.com/a:", 19}, Row{"reg.example.com/", 17},
             Row{"reg.example.com//a", 17}, Row{"reg.example.com/a/", 19}, Row{"a:b:c", 4}, Row{"reg:port/a", 5},
             Row{"reg:70000/a", 5}, Row{"reg:0/a", 5}, Row{"reg:/a", 5}, Row{"[::1/a", 1}, Row{"[xyz]/a", 2},
             Row{"[::1]x/a", 6}, Row{"a b", 2}, Row{"a/.b", 3}, Row{"a/b-", 4}, Row{"a/b___c", 4}, Row{"a/b..c", 4},
             Row{"reg.example.com/a:" + std::string(129, 't'), 147}, Row{"reg.example.com/a:-t", 19},
             Row{"reg.example.com/a@sha256:" + std::string(64, 'A'), 19}, Row{"reg.example.com/a@md5:abc", 19},
             Row{"reg.example.com/a@", 19}, Row{"-reg.example.com/a", 1}, Row{"reg..example.com/a", 5},
             Row{"https://reg.example.com/a", 7}, Row{"reg.example.com/driver:${KERNEL_FULL_VERSION}", 24},
             Row{"a/" + std::string(256, 'b'), 256}, Row{"reg:05000/a", 5}, Row{"[::1]:0443/a", 7},
             Row{"127.1/a", 1}, Row{"127.0.0.01:5000/a", 1}, Row{"0177.0.0.1/a", 1}, Row{"0x7f000001:5000/a", 1},
             Row{"127.0.0.0x1/a", 1}, Row{"2130706433:5000/a", 1}, Row{"256.0.0.1/a", 1}, Row{"reg.0/a", 1},
             Row{"[::ffff:127.0.0.1]:5000/a", 2}, Row{"[0:0:0:0:0:0:0:1]/a", 2}, Row{"[:::]/a", 2},
         }) {
        CAPTURE(row.text);
        const Error error = error_of(row.text);
        CAPTURE(error.message());
        CHECK(error.code() == "bad-reference");
        CHECK(error.exit() == Exit::data);
        CHECK(error.message().find("column " + std::to_string(row.column) + ":") != std::string::npos);
        CHECK(detail(error, "here") == std::string(row.column - 1, ' ') + "^");
    }
    for (const char* text : {"https://u:canary@reg.example.com/a:v1", "u:canary@reg.example.com/a",
                             "https://u:can/ary@reg.example.com/a@b/c", "oops://canary@h/x"}) {
        CAPTURE(text);
        const Error error = error_of(text);
        CHECK(error.message().find("expected no user name and password") != std::string::npos);
        CHECK((error.message() + detail(error, "text")).find("ary") == std::string::npos);
        CHECK(error.hint().find("--authfile") != std::string::npos);
    }
    CHECK(error_of("https://reg.example.com/a").hint() == "leave out https://");
    CHECK(error_of("a:${X}").hint().find("template") != std::string::npos);
    CHECK(error_of("reg.example.com/Team/x").hint().find("lower case") != std::string::npos);
    CHECK(detail(error_of("a\n\x1b" "b"), "text") == "a\\n\\x1bb");
}

TEST_CASE("addresses have one spelling") {
    for (const char* same : {"::", "::1", "fd00::1", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8", "1:0:3:4:5:6:7:8",
                             "1::4:5:6:7:8", "::2:3:4:5:6:7", "1:2:3:4:5:6::", "::ffff:7f00:1", "::7f00:1"}) {
        CHECK_MESSAGE(image::plain_ipv6(same) == same, same);
    }
    CHECK(image::plain_ipv6("0:0:0:0:0:0:0:1") == "::1");
    CHECK(image::plain_ipv6("FD00:0::0001") == "fd00::1");
    CHECK(image::plain_ipv6("2001:db8:0:0:1:0:0:1") == "2001:db8::1:0:0:1");
    CHECK(image::plain_ipv6("1::3:4:5:6:7:8") == "1:0:3:4:5:6:7:8");
    for (const char* bad : {"", ":", "1", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1::", ":::", "1:::2", ":1::",
                            "12345::", "g::", "::1.2.3.4", "::-1"}) {
        CHECK_MESSAGE(!image::plain_ipv6(bad), bad);
    }
    for (const char* inside : {"::ffff:7f00:1", "::7f00:1", "::ffff:0:1", "::ffff:1"}) {
        CHECK_MESSAGE(image::is_ipv4_inside(inside), inside);
    }
    for (const char* alone : {"::1", "::", "fd00::1", "::ffff:0:0:1", "::1:7f00:1", "fe80::7f00:1"}) {
        CHECK_MESSAGE(!image::is_ipv4_inside(alone), alone);
    }
}

TEST_CASE("digests") {
    CHECK(image::parse_digest("sha256:" + k_hex)->to_string() == "sha256:" + k_hex);
    CHECK(image::parse_digest("sha512:" + k_hex + k_hex)->algorithm == image::DigestAlgorithm::sha512);
    CHECK(image::parse_digest("sha256:" + k_hex)->short_text() == "sha256:aaaaaaaaaaaa");
    for (const std::string& bad : {std::string(), std::string("sha256"), std::string("sha256:"), k_hex,
                                   "sha256:" + k_hex + "a", "sha512:" + k_hex, "sha256:" + std::string(63, 'a') + "g",
                                   "sha256:" + std::string(64, 'A'), "SHA256:" + k_hex, "md5:" + k_hex}) {
        CHECK_FALSE(image::parse_digest(bad).has_value());
    }
}

TEST_CASE("platforms") {
    struct Row {
        image::Platform offered, wanted;
        bool result;
    };
    for (const Row& row : {Row{{"linux", "amd64", ""}, {"linux", "amd64", ""}, true},
                           Row{{"linux", "amd64", ""}, {"linux", "arm64", ""}, false},
                           Row{{"windows", "amd64", ""}, {"linux", "amd64", ""}, false},
                           Row{{"linux", "arm64", "v8"}, {"linux", "arm64", ""}, true},
                           Row{{"linux", "arm", "v7"}, {"linux", "arm", "v8"}, true},
                           Row{{"linux", "arm", "v7"}, {"linux", "arm", "v6"}, false},
                           Row{{"linux", "arm", "v7"}, {"linux", "arm", ""}, true},
                           Row{{"", "amd64", ""}, {"linux", "amd64", ""}, false}}) {
        CAPTURE(row.offered.to_string());
        CHECK(image::matches(row.offered, row.wanted) == row.result);
    }
    CHECK(image::Platform{"linux", "arm", "v7"}.to_string() == "linux/arm/v7");
    CHECK(image::Platform{}.to_string() == "unknown/unknown");
}

}
