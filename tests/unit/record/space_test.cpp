// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cerrno>

#include "record/space.hpp"

using namespace kmm;

TEST_SUITE("record::unit") {

TEST_CASE("a full disk and a full quota are told with where to make room and what to do then") {
    const auto told = [](int number) {
        try {
            record::with_space_explained("/state", "kmm-upgrade resume",
                                         [&]() -> int { throw from_errno(number, "cannot write"); });
        } catch (const Error& error) {
            return error;
        }
        return bug("nothing was thrown");
    };
    const auto full = told(ENOSPC);
    CHECK(full.exit() == Exit::io);
    CHECK(full.code() == "io");
    REQUIRE(full.details().size() == 1);
    CHECK(full.details().front() == std::make_pair(std::string("directory"), std::string("/state")));
    CHECK(full.hint() ==
          "free blocks or inodes on its file system, see df and df -i (old runs in /state/history may be moved away), "
          "then: "
          "kmm-upgrade resume");
    CHECK(told(EDQUOT).hint().starts_with("delete files of yours on its file system, or have your quota raised"));
    CHECK(told(EIO).hint().empty());
    CHECK(record::explain_space(from_errno(ENOSPC, "x").hint("own"), "/state", "y").hint() == "own");
    CHECK(record::with_space_explained("/state", "", [] { return 7; }) == 7);
}

}  // TEST_SUITE
