// SPDX-License-Identifier: Apache-2.0
// What would the Modules make of kernels that no node may run yet? One answer for each kernel and Module.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/resolve.hpp"

namespace kmm::plan {

/// Nodes with Linux that a Module selects and whose taints it tolerates, and that run the same kernel on the same
/// architecture today. Taints that Kubernetes itself sets do not count: a cordon passes.
struct Pool {
    std::string kernel;               ///< what they run now
    std::string architecture;         ///< "" if the Nodes do not tell
    std::vector<std::string> nodes;   ///< sorted
    std::vector<std::string> loaded;  ///< those of them that have the Module now
};

/// One kernel for one Module. `module` points into the surveyed objects.
struct Surveyed {
    std::string kernel;
    const api::Module* module = nullptr;
    Resolution resolution;
    std::vector<Pool> pools;  ///< sorted by kernel, then architecture; empty if no node is selected
};

/// Every kernel of `kernels` (in that order, doubles once) for every Module with a loader that is not being deleted,
/// sorted as the objects are. Errors: usage "bad-kernel" for a kernel version without three parts between '.', ',' and
/// '-'. Source: facts KMM 10.2 (PreflightValidation), 11.5. Cost: kernels x (mappings + nodes) for each Module.
[[nodiscard]] std::vector<Surveyed> survey(const api::Objects& objects, const std::vector<std::string>& kernels);

}  // namespace kmm::plan
