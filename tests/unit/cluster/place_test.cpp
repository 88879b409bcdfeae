// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cluster/live/cluster.hpp"

using kmm::cluster::Place;

TEST_SUITE("cluster::unit") {

TEST_CASE("a place is read back from the record, whatever its names are") {
    const std::vector<Place> places{
        {"/srv/fleet", "", std::nullopt},
        {"/srv/context of /fleet", "", std::nullopt},
        {"", "prod", std::nullopt},
        {"", "prod", "/home/ann/kube config"},
        {"", "ctx of /etc/x", std::nullopt},
        {"", "ctx of /etc/x", "/home/ann/.kube/config"},
        {"", "a", "/srv/x of /y"},
        {"", "in-cluster", std::nullopt},
    };
    for (const auto& place : places) {
        CAPTURE(place.text());
        CHECK(Place::read(place.text(), place.context) == place);
    }
}

TEST_CASE("records that do not name the context are read by their text") {
    CHECK(Place::read("context prod", "") == Place{"", "prod", std::nullopt});
    CHECK(Place::read("context prod of /home/ann/config", "") == Place{"", "prod", "/home/ann/config"});
    CHECK(Place::read("/srv/fleet", "") == Place{"/srv/fleet", "", std::nullopt});
}

}  // TEST_SUITE
