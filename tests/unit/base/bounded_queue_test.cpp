// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"

using kmm::base::BoundedQueue;

TEST_SUITE("base::bounded_queue") {
    TEST_CASE("values arrive in their order, and all of them before the end") {
        BoundedQueue<int> queue(3);
        std::vector<int> taken;
        std::thread reader([&] {
            while (const auto value = queue.pop()) taken.push_back(*value);
        });
        for (int i = 0; i < 5000; ++i) CHECK(queue.push(i));
        queue.finish();
        reader.join();
        REQUIRE(taken.size() == 5000);
        for (int i = 0; i < 5000; ++i) CHECK(taken[static_cast<std::size_t>(i)] == i);
        CHECK_FALSE(queue.push(1));
        CHECK_FALSE(queue.pop());
    }

    TEST_CASE("a writer that waits for room hears that nobody reads any more") {
        BoundedQueue<int> queue(1);
        CHECK(queue.push(1));
        std::thread reader([&] { queue.abandon(); });
        while (queue.push(2)) {}
        reader.join();
        CHECK_FALSE(queue.pop());
    }
}
