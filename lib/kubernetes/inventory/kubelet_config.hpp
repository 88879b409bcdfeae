// SPDX-License-Identifier: Apache-2.0
// What a kubelet is configured with: its file, and the files of its --config-dir over it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::kubernetes {

/// Merges `patch` into `base` as the kubelet does (RFC 7386): mappings member by member, null takes a member away, all
/// else is replaced.
void merge_over(value::Node& base, const value::Node& patch);

/// The configuration of the kubelet of a node, of its facts: kubelet.config with kubelet.dropIns merged over it. Null
/// if the file was not read.
[[nodiscard]] value::Node kubelet_configuration_of(const value::Node& facts);

/// The file of a kubelet that kubeadm writes again from ConfigMap kubelet-config at each upgrade.
inline constexpr std::string_view k_kubeadm_kubelet_file = "/var/lib/kubelet/config.yaml";

/// The configuration file that the kubelet of a node was started with, of its facts; that of kubeadm where they do not
/// say.
[[nodiscard]] std::string kubelet_file_of(const value::Node& facts);

/// The configuration that the kubelet of a node has once kubeadm has written its file from `map`, the
/// KubeletConfiguration of kubelet-config. A kubelet that reads another file keeps what is in there.
[[nodiscard]] value::Node coming_kubelet_configuration(const value::Node& facts, const value::Node& map);

/// The last file of kubelet.dropIns that has the feature gate, "" if none has.
[[nodiscard]] std::string drop_in_with_gate(const value::Node& facts, std::string_view gate);

/// The value of a flag among the arguments of a kubelet, the last one given; "" if there is none.
[[nodiscard]] std::string kubelet_flag(const std::vector<std::string>& arguments, std::string_view flag);

}  // namespace kmm::kubernetes
