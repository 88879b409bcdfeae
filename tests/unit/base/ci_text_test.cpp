// SPDX-License-Identifier: Apache-2.0
// What a CI system would obey in somebody else's text.
#include <doctest/doctest.h>

#include <string>

#include "base/ci_text.hpp"

using namespace kmm::base;

TEST_SUITE("base::ci_text") {
    TEST_CASE("a line that begins with :: after blanks is made harmless, whatever the line break and the blanks") {
        CHECK(CiFilter().pass("::stop-commands::x") == ":\\x3astop-commands::x");
        CHECK(CiFilter().pass("a\n \t::add-mask::a") == "a\n \t:\\x3aadd-mask::a");
        CHECK(CiFilter().pass("a\r::error::a") == "a\r:\\x3aerror::a");
        CHECK(CiFilter().pass("\xC2\xA0::error::a") == "\xC2\xA0:\\x3aerror::a");
        CHECK(CiFilter().pass("\xE3\x80\x80::error::a") == "\xE3\x80\x80:\\x3aerror::a");
        CHECK(CiFilter().pass(":::x") == ":\\x3a:x");
    }

    TEST_CASE("the forms that count anywhere in a line") {
        CHECK(CiFilter().pass("a ##[stop-commands]x") == "a ##\\x5bstop-commands]x");
        CHECK(CiFilter().pass("###[error]x") == "###\\x5berror]x");
        CHECK(CiFilter().pass("##vso[task.setvariable]x") == "##vso\\x5btask.setvariable]x");
        CHECK(CiFilter().pass("##teamcity[x]") == "##teamcity\\x5bx]");
    }

    TEST_CASE("sections of GitLab's log are made harmless, anywhere in a line") {
        const std::string start = "a section_start:1560896352:evil[collapsed=true]\r\x1b[0K";
        const std::string end = "section_section_end:1:evil\r\x1b[0K";
        const std::string other = "section_start: a\nsections:\nsection_end:\nsection_start:1\nsection_stend:1:a";
        CHECK(CiFilter().pass(start) == "a section_start:1560896352\\u003aevil[collapsed=true]\r\x1b[0K");
        CHECK(CiFilter().pass(end) == "section_section_end:1\\u003aevil\r\x1b[0K");
        CHECK(CiFilter().pass("##section_section_start:1:##[a]") == "##section_section_start:1\\u003a##\\x5ba]");
        CHECK(CiFilter().pass(other) == other);
        CHECK(has_ci_command(start));
        for (const auto& text : {start, end, other}) {
            for (std::size_t cut = 0; cut <= text.size(); ++cut) {
                CiFilter filter;
                const std::string first = filter.pass(text.substr(0, cut));
                CHECK(first + filter.pass(text.substr(cut)) == CiFilter().pass(text));
            }
        }
    }

    TEST_CASE("other text stays as it is") {
        for (const std::string text :
             {"a::b", "x ::error::", "# [a](b)", "## a [b]", "#[x", ": :x", "", "a\n\n", "std::string\n  a::b\n"}) {
            CAPTURE(text);
            CHECK(CiFilter().pass(text) == text);
            CHECK_FALSE(has_ci_command(text));
        }
    }

    TEST_CASE("one piece and single bytes come to the same, whatever they are") {
        const std::string alphabet = ":#[a \n\r\xC2se";
        std::string text;
        unsigned number = 1;
        for (int i = 0; i < 20'000; ++i) {
            number = number * 1'103'515'245U + 12'345U;
            text.push_back(alphabet[(number >> 16U) % alphabet.size()]);
        }
        CiFilter bytes;
        std::string single;
        for (const char c : text) { single += bytes.pass(std::string_view(&c, 1)); }
        CHECK(CiFilter().pass(text) == single);
        CHECK(single != text);
        CHECK(has_ci_command(text));
    }

    TEST_CASE("cut anywhere, a command is found as in one piece") {
        const std::string text = "x\n  ::a::b\n##[c]\n##vso[d]\n\r ::e";
        const std::string whole = CiFilter().pass(text);
        CHECK(whole != text);
        for (std::size_t cut = 0; cut <= text.size(); ++cut) {
            CiFilter filter;
            const std::string first = filter.pass(text.substr(0, cut));
            CHECK(first + filter.pass(text.substr(cut)) == whole);
        }
    }
}
