// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "registry/unpack/threaded_source.hpp"

using namespace kmm;

namespace {

/// Numbers as text, one a piece, the last followed by the end or an error.
class Counting final : public registry::ByteSource {
public:
    Counting(int count, bool fails, std::function<void(int)> before = {})
        : count_(count), fails_(fails), before_(std::move(before)) {}
    std::string_view next() override {
        if (before_) before_(at_);
        if (at_ == count_ && fails_) {
            throw Error(Exit::data, "bad-layer", "broken here");
        }
        piece_ = at_ < count_ ? std::to_string(at_++) + "," : "";
        return piece_;
    }

private:
    int count_;
    bool fails_;
    std::function<void(int)> before_;
    int at_ = 0;
    std::string piece_;
};

std::string read_all(registry::ByteSource& source) {
    std::string text;
    for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
        text += piece;
    }
    return text;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("a source that works ahead gives the same bytes, the same end and the same error") {
    for (const int count : {0, 1, 4, 5, 1000}) {
        CAPTURE(count);
        Counting plain(count, false);
        Counting input(count, false);
        registry::ThreadedSource ahead(input);
        CHECK(read_all(ahead) == read_all(plain));
        CHECK(ahead.next().empty());
        Counting broken(count, true);
        registry::ThreadedSource fails(broken);
        std::string text;
        CHECK_THROWS_AS(for (std::string_view piece = fails.next(); !piece.empty(); piece = fails.next()) text += piece,
                        Error);
        Counting again(count, false);
        CHECK(text == read_all(again));  // nothing before the error is lost
        CHECK_THROWS_AS(static_cast<void>(fails.next()), Error);
    }
}

TEST_CASE("the work beside is done to every piece in its order, whichever side is the slow one") {
    using std::chrono::milliseconds;
    const auto slow = [](int every, int at) { if (at % every == 0) std::this_thread::sleep_for(milliseconds(2)); };
    for (const int slow_side : {0, 1, 2, 3}) {
        for (const int count : {0, 1, 6, 7, 300}) {
            CAPTURE(slow_side);
            CAPTURE(count);
            Counting plain(count, false);
            const std::string expected = read_all(plain);
            Counting counting(count, false, [&](int at) { if (slow_side == 1) slow(10, at); });
            std::string seen;
            std::string text;
            std::atomic<int> at_work = 0;
            registry::ThreadedSource ahead(counting, [&](std::string_view piece) {
                CHECK(++at_work == 1);
                if (slow_side == 2) slow(10, static_cast<int>(seen.size()));
                seen += piece;
                --at_work;
            });
            int read = 0;
            for (std::string_view piece = ahead.next(); !piece.empty(); piece = ahead.next()) {
                text += piece;
                if (slow_side == 3) slow(10, read++);
            }
            CHECK(text == expected);
            CHECK(seen == expected);  // complete when the end was told
            CHECK(ahead.next().empty());
        }
    }
}

TEST_CASE("an error of the source is told at its place with work beside, too, and so is one of that work") {
    for (const int count : {0, 3, 40}) {
        Counting broken(count, true);
        registry::ThreadedSource fails(broken, [](std::string_view) {});
        std::string text;
        CHECK_THROWS_AS(for (std::string_view piece = fails.next(); !piece.empty(); piece = fails.next()) text += piece,
                        Error);
        Counting again(count, false);
        CHECK(text == read_all(again));
        Counting input(1000, false);
        registry::ThreadedSource refused(input, [&](std::string_view piece) {
            if (piece == std::to_string(count) + ",") throw Error(Exit::data, "refused", "not this one");
        });
        CHECK_THROWS_AS(while (!refused.next().empty()) {}, Error);
    }
}

TEST_CASE("a source that works ahead can be left at any time") {
    for (const int pieces : {0, 1, 3}) {
        Counting input(1'000'000, false);
        registry::ThreadedSource ahead(input);
        for (int i = 0; i < pieces; ++i) {
            CHECK(ahead.next() == std::to_string(i) + ",");
        }
    }
}

}
