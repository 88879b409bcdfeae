// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sys/host.hpp"

using namespace kmm;

TEST_SUITE("sys::unit") {
    TEST_CASE(
        "who calls: the user of the process; under sudo the one who called it, and only root is believed about that") {
        const bool is_root = ::geteuid() == 0;
        const auto own = sys::user_name(::geteuid());
        const passwd* other = nullptr;
        ::setpwent();
        while ((other = ::getpwent()) != nullptr && other->pw_uid == ::geteuid()) {
        }
        const std::string sudo_user = other != nullptr ? other->pw_name : "";
        ::endpwent();
        ::unsetenv("SUDO_USER");
        CHECK(sys::caller_name() == own);
        for (const std::string name : {"", "no-such-user-here", "../x", "a/b@c"}) {
            CAPTURE(name);
            ::setenv("SUDO_USER", name.c_str(), 1);
            CHECK(sys::caller_name() == own);
        }
        if (!sudo_user.empty()) {
            ::setenv("SUDO_USER", sudo_user.c_str(), 1);
            CHECK(sys::caller_name() == (is_root ? sudo_user : own));
        }
        ::unsetenv("SUDO_USER");
        CHECK(sys::user_name(3'999'999'999) == "uid 3999999999");
        CHECK(sys::user_name(0) == "root");
    }

TEST_CASE("the pid namespace has the kernel's name") {
    if (::access("/proc/self/ns", X_OK) == 0) CHECK(sys::pid_namespace().starts_with("pid:["));
    CHECK(sys::pid_namespace() == sys::pid_namespace());
}
}
