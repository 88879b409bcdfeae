// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "api/labels.hpp"

using namespace kmm::api;

TEST_SUITE("api::unit") {
    TEST_CASE("label keys are KMM's, byte for byte") {
        CHECK(label_ready("ns", "m") == "kmm.node.kubernetes.io/ns.m.ready");
        CHECK(label_version_ready("ns", "m") == "kmm.node.kubernetes.io/ns.m.version.ready");
        CHECK(label_version_module("ns", "m") == "kmm.node.kubernetes.io/version-module.ns.m");
        CHECK(label_version_worker_pod("ns", "m") == "beta.kmm.node.kubernetes.io/version-worker-pod.ns.m");
        CHECK(label_version_schedule_pod("ns", "m") == "beta.kmm.node.kubernetes.io/version-schedule-pod.ns.m");
        CHECK(label_version_device_plugin("ns", "m") == "beta.kmm.node.kubernetes.io/version-device-plugin.ns.m");
        CHECK(label_module_configured("ns", "m") == "beta.kmm.node.kubernetes.io/ns.m.module-configured");
        CHECK(label_module_in_use("ns", "m") == "beta.kmm.node.kubernetes.io/ns.m.module-in-use");
    }

    TEST_CASE("a pool gives out one text for each that it is asked for, also where many look alike") {
        TextPool pool;
        std::map<std::string, const std::string*> known;
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 20000; ++i) {
                // The first and last eight bytes are those of many others.
                const std::string text =
                    i == 0 ? "" : "example.com/" + std::to_string(i / 7) + (i % 7 == 0 ? "" : "/of-all-nodes");
                const auto shared = pool.get(text);
                REQUIRE(*shared == text);
                CHECK(known.emplace(text, shared.get()).first->second == shared.get());
            }
        }
        CHECK(pool.get(std::string_view()).get() == pool.get("").get());
    }
}
