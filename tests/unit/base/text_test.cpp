// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/join_some.hpp"
#include "base/last_lines.hpp"
#include "base/number.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

using namespace kmm::base;
using std::chrono::milliseconds;

TEST_SUITE("base::text") {
    TEST_CASE("of a long list the first ones are named, and how many others there are") {
        const std::vector<std::string> names{"a", "b", "c", "d"};
        CHECK(join_some(names, 4) == "a, b, c, d");
        CHECK(join_some(names, 3) == "a, b, c and 1 more");
        CHECK(join_some(names, 1) == "a and 3 more");
        CHECK(join_some({}, 1).empty());
    }

    TEST_CASE("split keeps empty pieces") {
        CHECK(split("", ',') == std::vector<std::string_view>{""});
        CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
    }

    TEST_CASE("trim, lower case, join") {
        CHECK(trim(" \t a b \r\n") == "a b");
        CHECK(trim(" \n") == "");
        CHECK(to_lower("AbZ\xC3\x84") == "abz\xC3\x84");
        CHECK(join(std::vector<std::string>{"a", "b"}, ", ") == "a, b");
    }

    TEST_CASE("hexadecimal both ways") {
        const std::vector<std::uint8_t> bytes = {0, 1, 0xAB, 0xFF};
        CHECK(to_hex(bytes) == "0001abff");
        CHECK(from_hex("0001ABff") == bytes);
        CHECK(from_hex("0") == std::nullopt);
        CHECK(from_hex("0g") == std::nullopt);
    }

    TEST_CASE("base64 vectors of RFC 4648") {
        const struct {
            std::string plain, coded;
        } rows[] = {{"", ""},
                    {"f", "Zg=="},
                    {"fo", "Zm8="},
                    {"foo", "Zm9v"},
                    {"foob", "Zm9vYg=="},
                    {"fooba", "Zm9vYmE="},
                    {"foobar", "Zm9vYmFy"}};
        for (const auto& row : rows) {
            CHECK(to_base64(row.plain) == row.coded);
            CHECK(from_base64(row.coded) == row.plain);
        }
        CHECK(from_base64("Zm9v\n Zg") == "foof");
        CHECK(from_base64("Zg=") == std::nullopt);
        CHECK(from_base64("Z") == std::nullopt);
        CHECK(from_base64("Zg==Zg==") == std::nullopt);
        CHECK(from_base64("Z!") == std::nullopt);
    }

    TEST_CASE("escape makes hostile names printable and keeps UTF-8") {
        CHECK(escape("a\nb\tc\\") == "a\\nb\\tc\\\\");
        CHECK(escape("\x1b[31m") == "\\x1b[31m");
        CHECK(escape("\xC3\xA4\xE2\x82\xAC") == "\xC3\xA4\xE2\x82\xAC");
        CHECK(escape("\xFFx\xC3") == "\\xffx\\xc3");
        CHECK(escape("\xC2\x9B") == "\\xc2\\x9b");
        CHECK(escape("a\xE2\x80\xAE"
                     "b\xE2\x80\x8B") ==
              "a\\xe2\\x80\\xae"
              "b\\xe2\\x80\\x8b");  // turned direction, zero width
        CHECK(escape("\xC2\xA0\xEF\xBB\xBF\xF3\xA0\x81\x81") == "\\xc2\\xa0\\xef\\xbb\\xbf\\xf3\\xa0\\x81\\x81");
        CHECK(escape("\xE2\x80\xA6\xC2\xA1\xE3\x81\x82\xF0\x9F\x98\x80") ==
              "\xE2\x80\xA6\xC2\xA1\xE3\x81\x82\xF0\x9F\x98\x80");
        CHECK(printable("^6\\.1\n\\") == "^6\\.1\\n\\");
        CHECK(printable("\\\x1b\xC3\\") == "\\\\x1b\\xc3\\");
        CHECK(printable("").empty());
    }

    TEST_CASE("UTF-8 validity") {
        CHECK(is_utf8("plain \xF0\x9F\x98\x80"));
        CHECK_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
        CHECK_FALSE(is_utf8("\xC0\xAF"));          // overlong
        CHECK_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above U+10FFFF
        CHECK_FALSE(is_utf8("\xE2\x82"));          // cut
    }

    TEST_CASE("edit distance counts a swap once") {
        CHECK(edit_distance("", "abc") == 3);
        CHECK(edit_distance("kernel", "kernel") == 0);
        CHECK(edit_distance("kenrel", "kernel") == 1);
        CHECK(edit_distance("literla", "literal") == 1);
    }

    TEST_CASE("nearest suggests only what is near") {
        const std::vector<std::string> fields = {"containerImage", "modprobe", "kernelMappings"};
        CHECK(nearest("containrImage", fields) == "containerImage");
        CHECK(nearest("MODPROBE", fields) == "modprobe");
        CHECK(nearest("zzz", fields) == std::nullopt);
        CHECK(nearest("o", std::vector<std::string>{"to", "on"}) == std::nullopt);
        CHECK(nearest("o", std::vector<std::string>{"to", "O"}) == "O");
    }

    TEST_CASE("a number is the whole text, and fits") {
        CHECK(parse_number<unsigned>("65535") == 65535U);
        CHECK(parse_number<int>("-4") == -4);
        CHECK(parse_number<std::uint64_t>("fF", 16) == 255U);
        CHECK(parse_number<std::uint64_t>("18446744073709551615") == ~std::uint64_t{0});
        for (const std::string_view text : {"", " 1", "1 ", "+1", "-1", "0x1", "1a", "1.0", "4294967296"}) {
            CAPTURE(text);
            CHECK_FALSE(parse_number<unsigned>(text));
        }
        CHECK_FALSE(parse_number<std::int64_t>("9223372036854775808"));
    }

    TEST_CASE("durations") {
        const struct {
            std::string text;
            std::optional<milliseconds> value;
        } rows[] = {
            {"90s", milliseconds(90'000)}, {"5m", milliseconds(300'000)}, {"1h30m", milliseconds(5'400'000)},
            {"250ms", milliseconds(250)},  {"1.5s", milliseconds(1500)},  {"", std::nullopt},
            {"5", std::nullopt},           {"s", std::nullopt},           {"-5s", std::nullopt},
            {"5x", std::nullopt},          {"9000h", std::nullopt},       {"1..5s", std::nullopt},
        };
        for (const auto& row : rows) CHECK_MESSAGE(parse_duration(row.text) == row.value, row.text);
        CHECK(format_duration(milliseconds(250)) == "250ms");
        CHECK(format_duration(milliseconds(3250)) == "3.2s");
        CHECK(format_duration(milliseconds(62'000)) == "1m2s");
        CHECK(format_duration(milliseconds(3'723'000)) == "1h2m3s");
    }

    TEST_CASE("RFC 3339 both ways") {
        CHECK(format_rfc3339(0) == "1970-01-01T00:00:00Z");
        CHECK(format_rfc3339(1'795'257'667) == "2026-11-21T10:41:07Z");
        CHECK(parse_rfc3339("2026-11-21T10:41:07Z") == 1'795'257'667);
        CHECK(parse_rfc3339("2026-02-30T10:41:07Z") == std::nullopt);
        CHECK(parse_rfc3339("2026-11-21 10:41:07Z") == std::nullopt);
        CHECK(format_rfc3339(-1) == "1969-12-31T23:59:59Z");
    }

    TEST_CASE("byte counts") {
        CHECK(format_bytes(12) == "12 B");
        CHECK(format_bytes(3500) == "3.4 KiB");
        CHECK(format_bytes(2ULL << 30U) == "2.0 GiB");
    }

    TEST_CASE("the last lines are those that say something") {
        using Lines = std::vector<std::string_view>;
        CHECK(last_lines("a\n\n  b \r\nc\n \n", 2) == Lines{"b", "c"});
        CHECK(last_lines("a", 2) == Lines{"a"});
        CHECK(last_lines(" \n\n", 2).empty());
        CHECK(last_line("first\nlast\n") == "last");
        CHECK(last_line("").empty());
    }
}
