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

/// The last file of kubelet.dropIns that has the feature gate, "" if none has.
[[nodiscard]] std::string drop_in_with_gate(const value::Node& facts, std::string_view gate);

/// The value of a flag among the arguments of a kubelet, the last one given; "" if there is none.
[[nodiscard]] std::string kubelet_flag(const std::vector<std::string>& arguments, std::string_view flag);

}  // namespace kmm::kubernetes
