// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/config_api.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace kmm::kubernetes {
namespace {

/// Oldest first. Source: cmd/kubeadm/app/apis/kubeadm/scheme of each release.
constexpr ConfigApi k_config_apis[] = {{"kubeadm.k8s.io/v1alpha3", {1, 12}, {1, 14}},
                                       {"kubeadm.k8s.io/v1beta1", {1, 13}, {1, 21}},
                                       {"kubeadm.k8s.io/v1beta2", {1, 15}, {1, 26}},
                                       {"kubeadm.k8s.io/v1beta3", {1, 22}, {}},
                                       {"kubeadm.k8s.io/v1beta4", {1, 31}, {}}};

}  // namespace

std::string ConfigApi::readers() const {
    return has_end() ? fmt::format("{} to {}", first.text(), last.text()) : fmt::format("{} and later", first.text());
}

const ConfigApi* find_config_api(std::string_view name) noexcept {
    const auto* const found = std::find_if(std::begin(k_config_apis), std::end(k_config_apis),
                                           [&](const auto& each) { return each.name == name; });
    return found == std::end(k_config_apis) ? nullptr : found;
}

const ConfigApi& newest_config_api(MinorVersion kubeadm) noexcept {
    const auto* newest = std::begin(k_config_apis);
    for (const auto& each : k_config_apis)
        if (kubeadm >= each.first) newest = &each;
    return *newest;
}

}  // namespace kmm::kubernetes
