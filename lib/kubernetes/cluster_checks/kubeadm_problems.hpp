// SPDX-License-Identifier: Apache-2.0
// What the parts of kubeadm_reads find. Private to this room.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// What is wrong, and what to do about it.
struct Problems {
    std::vector<std::string> texts;
    std::vector<std::string> fixes;  ///< in their order, each once

    void add(std::string text, std::string fix) {
        texts.push_back(std::move(text));
        if (std::find(fixes.begin(), fixes.end(), fix) == fixes.end()) { fixes.push_back(std::move(fix)); }
    }
};

/// ConfigMaps kube-proxy and kubelet-config, as kubeadm takes their text apart.
void look_at_component_maps(const CheckInput& input, Problems& problems);

}  // namespace kmm::kubernetes
