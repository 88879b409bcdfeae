// SPDX-License-Identifier: Apache-2.0
// What verbs say of their input when there is nothing to show, list or compare.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kmm-plan/source/source.hpp"

namespace kmm::tool_plan {

/// "Nodes 0, Modules 0", with what was read in place of them and the command for that.
[[nodiscard]] std::string read_summary(std::span<const Source> sources);

/// A hint for documents that lack Nodes or Modules.
inline constexpr std::string_view k_dump_hint =
    "look whether the command that wrote the dump has failed; kubectl get nodes,modules,nodemodulesconfigs -A -o json "
    "writes what is needed";

}  // namespace kmm::tool_plan
