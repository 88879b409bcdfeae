// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cluster/seam/selector.hpp"

using namespace kmm;
using cluster::Selector;

TEST_SUITE("cluster::selector") {
    TEST_CASE("matches as kubectl does") {
        const api::Labels labels = {{"zone", "a"}, {"disk", "ssd"}, {"x.io/y", ""}, {"cpus", "8"}};
        struct Case {
            std::string text;
            bool expected;
        };
        const std::vector<Case> cases = {
            {"", true},
            {"  ", true},
            {"zone=a", true},
            {"zone==a", true},
            {" zone = a ", true},
            {"zone=b", false},
            {"zone!=b", true},
            {"zone!=a", false},
            {"other!=a", true},
            {"other=a", false},
            {"x.io/y=", true},
            {"zone=", false},
            {"zone in (b, a)", true},
            {"zone in (b)", false},
            {"other in (a)", false},
            {"zone notin (b,c)", true},
            {"zone notin (a)", false},
            {"other notin (a)", true},
            {"zone", true},
            {"other", false},
            {"!other", true},
            {"! zone", false},
            {"zone=a,disk in (ssd,nvme),!spare", true},
            {"zone=a,disk=hdd", false},
            {"x.io/y in ()", true},
            {"zone,disk", true},
            {"in=a", false},
            {"zone in(a)", true},
            {"cpus>4", true},
            {"cpus > 8", false},
            {"cpus<9,zone=a", true},
            {"cpus<8", false},
            {"zone>1", false},
            {"other<1", false},
        };
        for (const auto& c : cases) {
            CAPTURE(c.text);
            CHECK(Selector::parse(c.text).matches(labels) == c.expected);
        }
        CHECK(Selector::parse("").empty());
        CHECK_FALSE(Selector::parse("a").empty());
    }

    TEST_CASE("a bad selector names the character") {
        struct Case {
            std::string text;
            std::size_t column;
        };
        const std::vector<Case> cases = {
            {"=a", 1},          {"zone=a,", 8}, {"zone=a disk=b", 8}, {"zone in a", 9}, {"zone in (a", 11},
            {"zone is (a)", 6}, {"zone>a", 6},  {"zone<", 6},         {"!", 2},         {"zone in (a))", 12},
            {"zone=a b", 8},    {"-x", 1},      {"zone=-x", 6},       {"a/b/c=d", 1},   {"zone!a", 5},
        };
        for (const auto& c : cases) {
            CAPTURE(c.text);
            try {
                (void)Selector::parse(c.text);
                FAIL_CHECK("parsed");
            } catch (const Error& error) {
                CHECK(error.exit() == Exit::usage);
                CHECK(error.code() == "bad-selector");
                REQUIRE(error.position());
                CHECK(error.position()->column == c.column);
                CHECK(error.message().find(c.text) != std::string::npos);
            }
        }
    }
}
