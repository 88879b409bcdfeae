// SPDX-License-Identifier: Apache-2.0
// Traps that KMM admits and runs into later: in one Module, and between Modules and a fleet.
#pragma once

#include <string_view>
#include <vector>

#include "plan/verdict.hpp"

namespace kmm::plan {

/// Traps of one Module's loader. Warnings: regexp-unanchored, regexp-bare-dot, mapping-unreachable (after a regexp that takes
/// everything), image-port-tag, path-characters, sign-outside. Notes: image-by-tag, name-too-long (by the documents' limit).
void lint_module(const api::Module& module, Diagnostics& diagnostics);

/// lint_module, check_policy and check_needs for all Modules.
[[nodiscard]] Diagnostics lint(const api::Objects& objects);

/// Traps of a fleet, from all its verdicts: kernel-unmapped, kernel-plus, version-labels-stuck, label-key-leftover,
/// label-collision, cordon-unloads, cordon-loses-version, in-tree-needed.
void lint_fleet(const api::Objects& objects, const std::vector<Verdict>& verdicts, Diagnostics& diagnostics);

/// True if the regular expression is found in every text, like ".+" or "^.*$" (by its text, not by proof).
[[nodiscard]] bool takes_everything(std::string_view regexp);

}  // namespace kmm::plan
