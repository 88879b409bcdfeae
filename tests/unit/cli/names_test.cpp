// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "base/error.hpp"
#include "cli/names.hpp"

using namespace kmm;

TEST_CASE("a name is one line of what is seen, or none") {
    for (const std::string name : {"node-a", "drivers/kmm-hello", "ä", "a\\b", "node-a drivers/kmm-hello"}) {
        CAPTURE(name);
        CHECK(cli::plain_name(name) == name);
    }
    for (const std::string name : {"a\nb", "a\rb", "a\x1b[8m", "a\t", "a\x7f", "a\xE2\x80\xAE", "a\xC2\xA0", "a\xFF"}) {
        CAPTURE(name);
        try {
            static_cast<void>(cli::plain_name(name));
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.code() == "bad-value");
            CHECK(error.exit() == Exit::data);
        }
    }
}
