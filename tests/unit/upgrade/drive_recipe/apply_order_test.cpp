// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "upgrade/drive_recipe/apply_order.hpp"

using namespace kmm::drive;

namespace {

/// Places that were applied, in order; gates of `unready` are not passed.
struct Walk {
    ApplyOrder order;
    std::set<std::size_t> unready;
    std::vector<std::size_t> applied, asked;
    std::size_t advance() {
        const auto missing = order.advance(
            [&](std::size_t place) {
                applied.push_back(place);
                return std::string();
            },
            [&](std::size_t place) {
                asked.push_back(place);
                return unready.contains(place) ? std::string("not ready") : std::string();
            });
        return missing.size();
    }
};

using Places = std::vector<std::size_t>;

}  // namespace

TEST_SUITE("drive::recipe") {

TEST_CASE("behind an object of no kernel that is not ready nothing is applied") {
    Walk walk{ApplyOrder({"", "", "k1", "k2"}), {0}, {}, {}};
    CHECK(walk.advance() == 1);
    CHECK(walk.applied == Places{0});
    walk.unready.clear();
    CHECK(walk.advance() == 0);
    CHECK(walk.applied == Places{0, 1, 2, 3});
}

TEST_CASE("a kernel that is not ready keeps its own copies and common objects waiting, other kernels go on") {
    Walk walk{ApplyOrder({"k1", "k2", "k1", "k2", ""}), {0}, {}, {}};
    CHECK(walk.advance() == 1);
    CHECK(walk.applied == Places{0, 1, 3});
    CHECK(walk.advance() == 1);
    walk.unready.clear();
    CHECK(walk.advance() == 0);
    CHECK(walk.applied == Places{0, 1, 3, 2, 4});
}

TEST_CASE("the last objects are not waited for, and nothing is applied twice") {
    Walk walk{ApplyOrder({"k1", "k2"}), {0, 1}, {}, {}};
    CHECK(walk.advance() == 0);
    CHECK(walk.asked.empty());
    CHECK(walk.advance() == 0);
    CHECK(walk.applied == Places{0, 1});
}

TEST_CASE("what could not be applied is tried again before anything behind it") {
    ApplyOrder order({"", ""});
    int tries = 0;
    Places applied;
    const auto apply = [&](std::size_t place) {
        if (place == 0 && ++tries == 1) return std::string("being deleted");
        applied.push_back(place);
        return std::string();
    };
    const auto gate = [](std::size_t) { return std::string(); };
    CHECK(order.advance(apply, gate) == std::vector<std::string>{"being deleted"});
    CHECK(applied.empty());
    CHECK(order.advance(apply, gate).empty());
    CHECK(applied == Places{0, 1});
}

}
