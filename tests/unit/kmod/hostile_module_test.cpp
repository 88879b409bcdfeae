// SPDX-License-Identifier: Apache-2.0
// Row M54 of docs/hostile-images.md; the golden case m54-compressed-bomb is the same through the whole program.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kmod/inflate.hpp"

using namespace kmm;

namespace {

/// A zstd frame of `blocks` blocks, each 128 KiB of zeros in four bytes.
std::string zstd_frame(int blocks, char window) {
    std::string frame("\x28\xb5\x2f\xfd\0", 5);
    frame += window;
    for (int i = 0; i < blocks; ++i) {
        frame += std::string(i + 1 == blocks ? "\x03\0\x10\0" : "\x02\0\x10\0", 4);
    }
    return frame;
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("M54 a compressed module that is a bomb, or wants too much memory") {
    constexpr char k_window_128_kib = 7 << 3;
    constexpr char k_window_2_gib = static_cast<char>(21 << 3);
    CHECK(kmod::plain_module(zstd_frame(8, k_window_128_kib), "small.ko.zst").size() == 1U << 20U);
    const auto refusal = [](const std::string& bomb) {
        try {
            static_cast<void>(kmod::plain_module(bomb, "bomb.ko.zst"));
        } catch (const Error& error) {
            return error.code();
        }
        return std::string("none");
    };
    CHECK(refusal(zstd_frame(4200, k_window_128_kib)) == "image-limit");
    CHECK(refusal(zstd_frame(1, k_window_2_gib)) == "image-limit");
}

TEST_CASE("M54 the compression is known by its bytes, not by the name of the file") {
    CHECK(kmod::plain_module(zstd_frame(1, 7 << 3), "wrong.ko.xz").size() == 128U << 10U);
    CHECK(kmod::plain_module("plain", "wrong.ko.gz") == "plain");
}

}
