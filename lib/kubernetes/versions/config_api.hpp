// SPDX-License-Identifier: Apache-2.0
// Which kubeadm reads which apiVersion of kubeadm's configuration.
#pragma once

#include <string>
#include <string_view>

#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// An apiVersion of kubeadm's configuration, and the lines of kubeadm that read it.
struct ConfigApi {
    std::string_view name;  ///< "kubeadm.k8s.io/v1beta4"
    MinorVersion first;
    MinorVersion last;  ///< v0.0 where k_last_known_kubeadm reads it, too

    [[nodiscard]] bool has_end() const noexcept { return last != MinorVersion{}; }
    [[nodiscard]] bool is_read_by(MinorVersion kubeadm) const noexcept {
        return kubeadm >= first && (!has_end() || kubeadm <= last);
    }
    /// "v1.15 to v1.26", "v1.31 and later".
    [[nodiscard]] std::string readers() const;
};

/// The newest kubeadm whose versions of the configuration are known.
inline constexpr MinorVersion k_last_known_kubeadm{1, 35};

/// nullptr if no kubeadm up to k_last_known_kubeadm reads `name`.
[[nodiscard]] const ConfigApi* find_config_api(std::string_view name) noexcept;
/// The newest one that `kubeadm` reads; of a kubeadm older or newer than all that are known, the oldest or newest one.
[[nodiscard]] const ConfigApi& newest_config_api(MinorVersion kubeadm) noexcept;

}  // namespace kmm::kubernetes
