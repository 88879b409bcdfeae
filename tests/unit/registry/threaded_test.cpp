// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "base/error.hpp"
#include "registry/threaded_source.hpp"

using namespace kmm;

namespace {

/// Numbers as text, one a piece, the last followed by the end or an error.
class Counting final : public registry::ByteSource {
public:
    Counting(int count, bool fails) : count_(count), fails_(fails) {}
    std::string_view next() override {
        if (at_ == count_ && fails_) {
            throw Error(Exit::data, "bad-layer", "broken here");
        }
        piece_ = at_ < count_ ? std::to_string(at_++) + "," : "";
        return piece_;
    }

private:
    int count_;
    bool fails_;
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
        CHECK_THROWS_AS(for (std::string_view piece = fails.next(); !piece.empty(); piece = fails.next()) text += piece, Error);
        Counting again(count, false);
        CHECK(text == read_all(again));  // nothing before the error is lost
        CHECK_THROWS_AS(static_cast<void>(fails.next()), Error);
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
