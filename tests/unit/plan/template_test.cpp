// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "api/names.hpp"
#include "plan/kmm/template.hpp"

using namespace kmm::plan;

TEST_SUITE("plan::unit") {
    TEST_CASE("templates expand as envsubst does") {
        const Variables variables{{"A", "one"}, {"EMPTY", ""}, {"B_2", "two"}};
        struct Row {
            const char* text;
            const char* expected;
        };
        for (const Row& row : {
                 Row{"plain:tag", "plain:tag"},
                 Row{"x-$A-y", "x-one-y"},
                 Row{"x-${A}y", "x-oney"},
                 Row{"$B_2.", "two."},
                 Row{"${A-d}${EMPTY-d}${NO-d}", "oned"},
                 Row{"${A:-d}${EMPTY:-d}${NO:-d}", "onedd"},
                 Row{"${NO=d}${NO:=d}${EMPTY:=d}", "ddd"},
                 Row{"${A+alt}${NO+alt}${EMPTY:+alt}", "altalt"},
                 Row{"${NO:-$A}", "one"},
                 Row{"$$A", "$A"},
                 Row{"$_x", ""},
                 Row{"$_", "$_"},
                 Row{"a$", "a$"},
                 Row{"$-", "$-"},
                 Row{"}{", "}{"},
             }) {
            CAPTURE(row.text);
            const Expansion expansion = expand(row.text, variables);
            CHECK(expansion.error == "");
            CHECK(expansion.text == row.expected);
        }
    }

    TEST_CASE("a template that cannot be read says where") {
        for (const auto& [text, offset] : {std::pair{"img:${A", 4}, {"img:${A\n}", 4}, {"${}", 0}, {"a${-x}", 1},
                                           {"${A/x/y}", 3}, {"${A:x}", 3}, {"${NO-$A/x}", 5}}) {
            CAPTURE(text);
            const Expansion expansion = expand(text, {{"A", "one"}});
            CHECK(expansion.error != "");
            CHECK(expansion.error_offset == static_cast<std::size_t>(offset));
        }
    }

    TEST_CASE("uses tell unknown variables and defaults apart") {
        const Expansion expansion = expand("$A ${NO} ${NO-x}", {{"A", "one"}});
        REQUIRE(expansion.uses.size() == 3);
        CHECK(expansion.uses[0].value == "one");
        CHECK_FALSE(expansion.uses[1].value.has_value());
        CHECK_FALSE(expansion.uses[1].has_default);
        CHECK(expansion.uses[1].offset == 3);
        CHECK(expansion.uses[2].has_default);
    }

    TEST_CASE("names of packages and files of a kernel") {
        for (const auto& [text, kernel] :
             {std::pair{"linux-image-6.1.0-56-amd64", "6.1.0-56-amd64"},
              {"kernel-core-5.14.0-427.13.1.el9_4.x86_64", "5.14.0-427.13.1.el9_4.x86_64"},
              {"/lib/modules/6.1.0-56-amd64", "6.1.0-56-amd64"},
              {"6.1.0-56-amd64", ""},
              {"kernel-5.14", ""},
              {"46dma-16-0.1.6", ""},
              {"kernel-16", ""},
              {"kernel", ""},
              {"", ""}}) {
            CAPTURE(text);
            CHECK(kernel_in_name(text) == kernel);
        }
    }

    TEST_CASE("variables of a kernel") {
        const auto variables = template_variables("6.0.15-300.fc37.x86_64", "m", "n");
        REQUIRE(variables.has_value());
        CHECK(variables->at("KERNEL_FULL_VERSION") == "6.0.15-300.fc37.x86_64");
        CHECK(variables->at("KERNEL_VERSION") == "6.0.15-300.fc37.x86_64");
        CHECK(variables->at("KERNEL_XYZ") == "6.0.15");
        CHECK(variables->at("KERNEL_X") == "6");
        CHECK(variables->at("KERNEL_Y") == "0");
        CHECK(variables->at("KERNEL_Z") == "15");
        CHECK(variables->at("MOD_NAME") == "m");
        CHECK(variables->at("MOD_NAMESPACE") == "n");
        CHECK(variables->size() == 8);
        CHECK(template_variables("1.2.3+4", "m", "n")->at("KERNEL_FULL_VERSION") == "1.2.3_4");
        CHECK(template_variables("6.1-rc1", "m", "n")->at("KERNEL_XYZ") == "6.1.rc1");
        CHECK_FALSE(template_variables("6.1", "m", "n").has_value());
        CHECK_FALSE(template_variables("", "m", "n").has_value());
    }

    TEST_CASE("exactly one trailing plus is trimmed") {
        CHECK(kmm::api::trim_kernel("6.1.0+") == "6.1.0");
        CHECK(kmm::api::trim_kernel("6.1.0++") == "6.1.0+");
        CHECK(kmm::api::trim_kernel("6.1.0") == "6.1.0");
    }
}
