// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/gzip.hpp"
#include "base/text.hpp"
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

TEST_CASE("a Secret that unpacks to more than a release has is not read, and none is written") {
    MemoryApi api;
    IdleClock clock;
    FixedRandom random;
    const auto client = client_of(api, clock, random);
    ReleaseStore store(*client, "kube-system");
    const auto code_of = [](const auto& act) -> std::string {
        try {
            act();
        } catch (const Error& error) { return error.code(); }
        return "";
    };
    CHECK(code_of([&] { store.put(large_release(800, 50'000)); }) == "release-too-large");
    std::string values = "[0";
    for (int i = 0; i < 1'100'000; ++i) { values += ",0"; }
    for (const auto& text : {values + "]", "{\"a\": \"" + std::string(33U << 20U, 'a') + "\"}"}) {
        MemoryApi other;
        const auto writer = client_of(other, clock, random);
        auto object = json("{apiVersion: v1, kind: Secret, metadata: {name: kmm-upgrade.recipe.demo.v1, namespace: "
                           "kube-system, labels: {kmmtools.dev/release-of: demo}}, type: kmmtools.dev/release}");
        object.set("data", Node::mapping({{"release", base::to_base64(base::to_gzip(text))}}));
        static_cast<void>(writer->create(kube::resources::k_secrets, object));
        CHECK(code_of([&] { static_cast<void>(ReleaseStore(*writer, "kube-system").all()); }) == "state-damaged");
    }
}

}
