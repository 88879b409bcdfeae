// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/config_api.hpp"

#include <doctest/doctest.h>

using namespace kmm::kubernetes;

TEST_SUITE("kubernetes::config_api") {

TEST_CASE("each kubeadm is given the newest apiVersion that it reads") {
    CHECK(newest_config_api({1, 21}).name == "kubeadm.k8s.io/v1beta2");
    CHECK(newest_config_api({1, 22}).name == "kubeadm.k8s.io/v1beta3");
    CHECK(newest_config_api({1, 30}).name == "kubeadm.k8s.io/v1beta3");
    CHECK(newest_config_api({1, 31}).name == "kubeadm.k8s.io/v1beta4");
    CHECK(newest_config_api({1, 99}).name == "kubeadm.k8s.io/v1beta4");
    for (std::uint32_t minor = 12; minor <= k_last_known_kubeadm.minor; ++minor) {
        CAPTURE(minor);
        CHECK(newest_config_api({1, minor}).is_read_by({1, minor}));
    }
}

TEST_CASE("an apiVersion is read from its first line to its last") {
    const auto* old = find_config_api("kubeadm.k8s.io/v1beta2");
    REQUIRE(old != nullptr);
    CHECK_FALSE(old->is_read_by({1, 14}));
    CHECK(old->is_read_by({1, 15}));
    CHECK(old->is_read_by({1, 26}));
    CHECK_FALSE(old->is_read_by({1, 27}));
    CHECK(old->readers() == "v1.15 to v1.26");
    CHECK(find_config_api("kubeadm.k8s.io/v1beta5") == nullptr);
}

}  // TEST_SUITE
