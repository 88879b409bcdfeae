// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/drive_recipe/recipe_life.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

/// A driver with a copy for each of `kernels` kernels, and `bytes` of settings in each.
upgrade::recipe::Release large_release(std::size_t kernels, std::size_t bytes) {
    upgrade::recipe::Release release;
    release.recipe = "demo";
    release.version = "1.0.0";
    release.lineage = "l";
    release.revision = 1;
    upgrade::recipe::State state;
    state.name = "demo/1000-driver";
    state.resource = "demo";
    for (std::size_t i = 0; i < kernels; ++i) {
        auto object = json("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: demo}}");
        auto meta = *object.find("metadata");
        meta.set("name", "settings-" + std::to_string(i));
        object.set("metadata", std::move(meta));
        object.set("data", Node::mapping({{"text", std::string(bytes, static_cast<char>('a' + i % 26))}}));
        state.objects.push_back({std::to_string(i), std::move(object), false});
    }
    release.states.push_back(std::move(state));
    return release;
}

}  // namespace

TEST_SUITE("drive::recipe") {

TEST_CASE("a release with copies for many kernels fits a Secret") {
    MemoryApi api;
    IdleClock clock;
    FixedRandom random;
    const auto client = client_of(api, clock, random);
    ReleaseStore store(*client, "kube-system");
    store.put(large_release(40, 50'000));
    const auto found = store.of("demo");
    REQUIRE(found.size() == 1);
    CHECK(found[0].states.at(0).objects.size() == 40);
    CHECK(found[0].states.at(0).objects[39].object.get_string({"data", "text"}).size() == 50'000);
}

}
