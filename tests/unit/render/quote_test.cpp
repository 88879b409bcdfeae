// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "base/shell_word.hpp"
#include "plan/kmm/template.hpp"
#include "render/parts.hpp"
#include "render/quote.hpp"

using namespace kmm;

namespace {

/// What a real shell makes of `script`.
std::string shell(const std::string& script) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(script.c_str(), "r"), ::pclose);
    REQUIRE(pipe != nullptr);
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
        text.append(buffer.data(), size);
    }
    return text;
}

}  // namespace

TEST_SUITE("render::unit") {
    TEST_CASE("the shell takes a quoted word as it was") {
        for (const std::string word : {"/opt", "/opt/my drivers", "/it's", "/a;touch b", "/$(id)`id`$HOME", "/a\\b",
                                       "/a\"b", "/*?[x]", "/a\nb", "/~&|<>#!%{}()", "", "/\xc3\xa4"}) {
            CAPTURE(word);
            CHECK(shell("printf '<%s>' " + base::shell_word(word)) == "<" + word + ">");
        }
        CHECK(base::shell_word("/opt/lib/modules/6.1.0-56-amd64") == "/opt/lib/modules/6.1.0-56-amd64");
        CHECK(base::shell_word("-rf") == "'./-rf'");
    }

    TEST_CASE("a pattern stays a pattern, all else is quoted") {
        CHECK(render::shell_pattern("/opt/a/*.ko") == "/opt/a/*.ko");
        CHECK(render::shell_pattern("/o p/*.[k]o") == "'/o p/'*.[k]o");
        CHECK(render::shell_pattern("/a[;x]b") == "'/a[;x]b'");
        CHECK(render::shell_pattern("/a[b") == "'/a[b'");
        CHECK(shell("cd / && printf '%s ' " + render::shell_pattern("/et[c]")) == "/etc ");
        CHECK(shell("printf '<%s>' " + render::shell_pattern("/no such/$(id)*")) == "</no such/$(id)*>");
    }

    TEST_CASE("arguments of COPY") {
        CHECK(render::copy_arguments("/opt", "/opt/opt") == "/opt /opt/opt");
        CHECK(render::copy_arguments("/a b", "/c$d") == R"(["/a b","/c\\$d"])");
        CHECK_FALSE(render::fits_copy("/a\nb"));
        CHECK_FALSE(render::fits_copy("/a*"));
        CHECK(render::fits_copy("/a b"));
    }

    TEST_CASE("small helpers") {
        CHECK(plan::dns_safe_kernel("6.1.0-56_AMD64+") == "6-1-0-56-amd64");
        CHECK(render::short_hash("a") == render::short_hash("a"));
        CHECK(render::short_hash("a") != render::short_hash("b"));
        CHECK(render::short_hash("a").size() == 5);
        CHECK(render::shortened("short", 10) == "short");
        CHECK(render::shortened(std::string(300, 'x'), 253).size() == 253);
        CHECK(render::shortened("aaaa-bbbbbbbb", 11).starts_with("aaaa-"));
    }
}
