// SPDX-License-Identifier: Apache-2.0
// Objects as an API server gives them back, made comparable with those that are rendered.
#pragma once

#include "value/node.hpp"

namespace kmm::render {

/// `spec` of a DaemonSet or DeviceClass without what says nothing: null and empty members, and members with the value
/// that the API server sets where there is none (restartPolicy: Always, an image's pull policy, updateStrategy, ...).
/// Quantities, as those of limits, requests and divisors, get one form. Names that users choose (labels, nodeSelector)
/// are left as they are. Both sides of a comparison are to be treated so. Source: Kubernetes
/// pkg/apis/core/v1/defaults.go and pkg/apis/apps/v1/defaults.go, 1.34.
[[nodiscard]] value::Node without_defaults(const value::Node& spec);

}  // namespace kmm::render
