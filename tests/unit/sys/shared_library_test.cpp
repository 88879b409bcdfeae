// SPDX-License-Identifier: Apache-2.0
#include "sys/shared_library.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

using kmm::sys::SharedLibrary;

TEST_CASE("a function of a library is found and called") {
    const SharedLibrary mathematics("libm.so.6", "libc6");
    CHECK(mathematics.function<double(double)>("cbrt")(27.0) == doctest::Approx(3.0));
}

TEST_CASE("a library or a function that is not there is told by its name") {
    CHECK_THROWS_WITH_AS(SharedLibrary("libkmm-not-there.so.7", "kmm-not-there"),
                         doctest::Contains("libkmm-not-there.so.7"), kmm::Error);
    const SharedLibrary mathematics("libm.so.6", "libc6");
    CHECK_THROWS_WITH_AS(static_cast<void>(mathematics.function<void()>("kmm_not_there")),
                         doctest::Contains("kmm_not_there"), kmm::Error);
    try {
        SharedLibrary("libkmm-not-there.so.7", "kmm-not-there");
        FAIL("expected an error");
    } catch (const kmm::Error& error) {
        CHECK(error.code() == "library-missing");
        CHECK(error.exit() == kmm::Exit::io);
    }
}
