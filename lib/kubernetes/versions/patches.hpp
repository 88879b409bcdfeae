// SPDX-License-Identifier: Apache-2.0
// Patches of a platform that metadata names as prerequisites of a version, and what a query says of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::kubernetes {

/// States of patches by id, as sw-patch names them: Available, Partial-Apply, Applied, Partial-Remove, Committed, n/a.
using PatchStates = std::map<std::string, std::string, std::less<>>;

/// What a query printed: either states, or why they cannot be read.
struct PatchList {
    PatchStates states;
    std::string fault;
};

/// Reads the table of `sw-patch query` (columns Patch ID and Patch State, or Repo State where it has that one only), or
/// JSON: {"pd": {ID: {"patchstate": STATE}}} as its API answers, the mapping below pd alone, or a list of
/// {"patch_id"|"id": ID, "patchstate"|"state": STATE}.
[[nodiscard]] PatchList read_patches(std::string_view text);

/// What must have been done with a patch. `applied` is also true of a committed one; `available` is also true of those
/// that are applied.
enum class PatchNeed { available, applied };

/// "KUBE.14 is Available, expected Applied" for each of `wanted` that is not as needed.
[[nodiscard]] std::vector<std::string> patch_problems(const PatchStates& states, const std::vector<std::string>& wanted,
                                                      PatchNeed need);

}  // namespace kmm::kubernetes
