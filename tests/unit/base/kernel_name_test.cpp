// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "base/kernel_name.hpp"

using kmm::base::is_kernel_name;

TEST_SUITE("base::unit") {

TEST_CASE("a kernel's name has no character that a shell, a CI system or a path takes for something else") {
    for (const char* name : {"6.1.0-56-amd64", "5.14.0-427.el9.x86_64+rt", "6.6.0_x~rc1", "1"}) {
        CHECK(is_kernel_name(name));
    }
    for (const char* name : {"", "-6.1.0", ".6.1.0", "+6.1.0", "_6.1.0", "~6.1.0", "6.1.0/x", "6.1.0 x", "6.1.0\n",
                             "6.1.0\xC3\xA9", "::add-mask::6.1.0"}) {
        CHECK_FALSE(is_kernel_name(name));
    }
    CHECK(is_kernel_name(std::string(64, '6')));
    CHECK_FALSE(is_kernel_name(std::string(65, '6')));  // the kernel's own limit, __NEW_UTS_LEN
    for (const char bad : std::string("!\"#$%&'()*,/:;<=>?@[\\]^`{|}\x7f")) {
        CHECK_FALSE(is_kernel_name(std::string("6.1.0-1") + bad + "id"));
    }
}

}  // TEST_SUITE
