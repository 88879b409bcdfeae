// SPDX-License-Identifier: Apache-2.0
// The configuration that kubeadm keeps in ConfigMaps of kube-system.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kubernetes/finding/finding.hpp"
#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/version.hpp"
#include "value/node.hpp"

namespace kmm::kubernetes {

/// A document in a ConfigMap of kube-system.
struct Configuration {
    std::optional<value::Node> root;
    Finding problem;  ///< without a root
    std::vector<std::string> repeated = {};  ///< with a root: those of read_as_kubeadm
};
/// Reads YAML as kubeadm does, which only warns of a key that stands in a mapping more than once, and takes the last
/// one. `repeated` gets each such key with its places, for people; `faults` all else that `value::read_yaml` finds.
[[nodiscard]] std::vector<value::Document> read_as_kubeadm(std::string_view text, std::string_view file,
                                                           Diagnostics& faults, std::vector<std::string>& repeated);
/// WARN that keys of the ConfigMap are repeated. `repeated` is not empty.
[[nodiscard]] Finding repeated_keys(std::string_view map, const std::vector<std::string>& repeated);
/// The ClusterConfiguration of ConfigMap kubeadm-config.
[[nodiscard]] Configuration cluster_configuration(const Inventory& inventory);
/// The KubeProxyConfiguration of ConfigMap kube-proxy.
[[nodiscard]] Configuration proxy_config_map(const Inventory& inventory);
/// The KubeletConfiguration of ConfigMap kubelet-config.
[[nodiscard]] Configuration kubelet_config_map(const Inventory& inventory);

/// The version that the ConfigMap kubeadm-config names; nullopt if it does not say one that can be read.
[[nodiscard]] std::optional<Version> configured_version(const Inventory& inventory);
/// The tag of etcd's image that it names, "" if it leaves that to kubeadm, or cannot be read.
[[nodiscard]] std::string configured_etcd(const Inventory& inventory);
/// The version in that tag, as kubeadm reads it; nullopt if it names none.
[[nodiscard]] std::optional<Version> fixed_etcd(const Inventory& inventory);
/// Which of `phases`, with commas between, has kubeadm leave `addon` alone ("kube-proxy", "coredns"); "" for none. That
/// is not addon/all, which kubeadm takes and which holds no other phase; nor one with blanks, which kubeadm refuses.
[[nodiscard]] std::string skipped_phase(std::string_view phases, std::string_view addon);
/// Where kubeadm takes images from, "" if kubeadm-config cannot be read. Of etcd and CoreDNS REPOSITORY:TAG, or what
/// kubeadm-config has of the two, "" where it leaves that to kubeadm.
struct ImageSources {
    std::string repository, etcd, dns;
};
[[nodiscard]] ImageSources configured_images(const Inventory& inventory);

/// The registry and path that it names for images, or kubeadm's own. `configuration`: a ClusterConfiguration.
[[nodiscard]] std::string image_repository(const value::Node& configuration);

}  // namespace kmm::kubernetes
