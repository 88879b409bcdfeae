// SPDX-License-Identifier: Apache-2.0
// What KMM's admission webhook would refuse, and what it lets through although it cannot work.
#pragma once

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::plan {

/// All findings about one Module, appended in no particular order. Errors are KMM's own rules (facts: KMM 10.1), templates
/// that cannot be expanded and versions that cannot be label values; warnings are traps that KMM admits. Rules that need
/// the cluster's version or the object before the change are not checked.
/// Codes: name-too-long, toleration-key, toleration-operator, toleration-value, toleration-seconds, toleration-effect,
/// plugins-exclusive, dra-driver-name, dra-device-class, host-path, in-tree-both, image-untagged, mapping-ambiguous,
/// mapping-empty, bad-regexp, missing-image, bad-template, unknown-template-variable, raw-args-with-name,
/// raw-args-missing, loading-order, sign-files, bad-version, bad-selector, dotted-name, literal-plus, mapping-unreachable,
/// firmware-path.
void validate_module(const api::Module& module, Diagnostics& diagnostics);

/// The findings of all Modules, sorted.
[[nodiscard]] Diagnostics validate(const api::Objects& objects);

}  // namespace kmm::plan
