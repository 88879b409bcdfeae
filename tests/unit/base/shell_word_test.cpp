// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/shell_word.hpp"

using namespace kmm;

TEST_SUITE("base::shell_word") {
    TEST_CASE("words of commands in messages") {
        CHECK(base::command_word("apps/a.yaml") == "apps/a.yaml");
        CHECK(base::command_word("my apps") == "'my apps'");
        CHECK(base::command_word("a'b; rm") == "'a'\\''b; rm'");
        CHECK(base::command_word("a\\b") == "'a\\b'");
        CHECK(base::command_word("a\x1b[1m") == "'a\\x1b[1m'");
        CHECK(base::command_word("-n") == "'./-n'");
        CHECK(base::command_word("") == "''");
    }
}
