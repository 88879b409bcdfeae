// SPDX-License-Identifier: Apache-2.0
// What KMM's admission webhook would refuse, and what it lets through although it cannot work.
#pragma once

#include <optional>
#include <string>

#include "api/types.hpp"
#include "base/error.hpp"
#include "plan/kmm/release.hpp"

namespace kmm::plan {

/// What the rules need to know beyond the documents.
struct ValidateOptions {
    std::string kubernetes_version;  ///< "1.34" or "v1.34.2"; "": unknown, rules about it are skipped as KMM does
    std::optional<Release> release = std::nullopt;  ///< whose fields and rules hold; nullopt: those of main, and
                                                    ///< warnings where the last release differs
    /// True if a rule that KMM has since `since` is to be applied.
    [[nodiscard]] bool has_rule_of(const Release& since) const { return !release || *release >= since; }
};

/// Errors: usage "bad-value" unless `text` is a version of Kubernetes, such as 1.34, v1.34.2 or v1.34.2+k3s1.
void require_kubernetes_version(const std::string& text);

/// All findings about one Module, appended in no particular order. Errors are KMM's own rules (facts: KMM 10.1),
/// templates that cannot be expanded and versions that cannot be label values; warnings are traps that KMM admits. The
/// codes are listed, with their meaning, by codes().
void validate_module(const api::Module& module, const ValidateOptions& options, Diagnostics& diagnostics);

/// Rule 1 of KMM's webhook, about a change: a version is neither added to a Module nor removed from it.
/// Code: version-toggled, at the place in `after`.
void validate_update(const api::Module& before, const api::Module& after, Diagnostics& diagnostics);

/// The findings of all Modules, ManagedClusterModules, PreflightValidations and Namespaces (facts: KMM 10.2), sorted.
[[nodiscard]] Diagnostics validate(const api::Objects& objects, const ValidateOptions& options = {});

}  // namespace kmm::plan
