// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

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
}
