// SPDX-License-Identifier: Apache-2.0
// Values that a stream leaves out because they were read before: damaged lists are what they are when none is left out.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "mutate.hpp"
#include "support/sanitized.hpp"
#include "support/stream_refill.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

Node repeated_list(std::size_t count) {
    Node items = Node::sequence();
    const Node list = Node::strings({std::string(90, 'a'), std::string(90, 'b'), "c\"d"});
    for (std::size_t i = 0; i < count; ++i) {
        Node entry =
            Node::mapping({{"id", "id-" + std::to_string(i)}, {"list", list}, {"name", std::string(120, 'n')}});
        items.push_back(Node::mapping({{"kind", "Node"},
                                       {"labels", Node::mapping({{"a/host", "n" + std::to_string(i)},
                                                                 {"b/zone", i % 2 == 0 ? "east" : "west"},
                                                                 {"c", ""},
                                                                 {"d", "x"}})},
                                       {"list", list},
                                       {"status", Node::mapping({{"entries", Node::sequence({entry, entry})}})}}));
    }
    return Node::mapping({{"apiVersion", "v1"}, {"items", items}, {"kind", "List"}});
}

}  // namespace

TEST_SUITE("value::repeats") {
    TEST_CASE("what is left out of a list is what was read before") {
        const Node list = repeated_list(4000);
        for (const auto& text : {to_json(list), to_json_pretty(list)}) {
            const auto filled = tests::refilled(stream_json, text, 50'000);
            REQUIRE(filled);
            CHECK(*filled > 4000 * 5);
        }
        const auto filled = tests::refilled(stream_yaml, to_yaml(list), 50'000);
        REQUIRE(filled);
        CHECK(*filled > 4000);
    }

    TEST_CASE("damaged lists are what they are when nothing is left out") {
        std::mt19937 random(11);
        const Node list = repeated_list(6);
        const std::size_t rounds = test::sanitized() ? 500 : 2000;
        std::size_t filled = 0;
        for (const auto& text : {to_json(list), to_json_pretty(list), to_yaml(list)}) {
            for (std::size_t round = 0; round < rounds; ++round) {
                const auto damaged = mutate(random, text);
                CAPTURE(damaged);
                for (const auto stream : {tests::Stream(stream_json), tests::Stream(stream_yaml)}) {
                    const auto some = tests::refilled(stream, damaged, 777);
                    CHECK(some);
                    filled += some.value_or(0);
                }
            }
        }
        CHECK(filled > 5 * rounds);
    }
}
