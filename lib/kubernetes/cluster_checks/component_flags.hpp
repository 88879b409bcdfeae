// SPDX-License-Identifier: Apache-2.0
// Flags of the control plane: of a container, and of extraArgs. Private to this room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::kubernetes {

/// Values by name, without "--" and with '-' for '_'. What is given several times is joined with commas.
using ComponentFlags = std::map<std::string, std::string>;

/// Those among the command and arguments of a container.
[[nodiscard]] ComponentFlags flags_of(const std::vector<std::string>& arguments);

/// Those of extraArgs of `component`: a list of names and values, or before v1beta4 a mapping.
[[nodiscard]] ComponentFlags extra_flags(const value::Node& component);

}  // namespace kmm::kubernetes
