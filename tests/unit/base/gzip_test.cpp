// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "base/gzip.hpp"

using namespace kmm::base;

TEST_SUITE("base::gzip") {
    TEST_CASE("a text comes back, the same bytes for the same text") {
        constexpr std::size_t most = 4U << 20U;
        std::string text;
        for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",";
        const auto packed = to_gzip(text);
        CHECK(is_gzip(packed));
        CHECK_FALSE(is_gzip(text));
        CHECK(packed.size() < text.size() / 2);
        CHECK(to_gzip(text) == packed);
        CHECK(from_gzip(packed, most) == text);
        CHECK(from_gzip(to_gzip(""), 0) == "");
    }

    TEST_CASE("what is cut, damaged, longer than it may be or has bytes behind it is none") {
        const auto packed = to_gzip(std::string(1000, 'x') + "y");
        CHECK(from_gzip(packed, 1001));
        CHECK_FALSE(from_gzip(packed, 1000));
        CHECK_FALSE(from_gzip("", 1000));
        CHECK_FALSE(from_gzip("text", 1000));
        for (std::size_t size = 0; size < packed.size(); ++size) CHECK_FALSE(from_gzip(packed.substr(0, size), 1001));
        CHECK_FALSE(from_gzip(packed + "x", 1001));
        auto damaged = packed;
        damaged[damaged.size() - 6] ^= 1;
        CHECK_FALSE(from_gzip(damaged, 1001));
    }
}
