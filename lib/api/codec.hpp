// SPDX-License-Identifier: Apache-2.0
// Document trees to typed objects and back. Decoding is strict: unknown fields, wrong types and missing required fields
// are diagnostics with the exact place, all of them in one go.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Decodes one document, which may be an object of a known kind or a `kind: List` (also NodeList, ModuleList, ...), and
/// appends to `objects`. Unknown kinds are a diagnostic `unknown-kind` (severity warning). Objects with faults are
/// still appended as far as they could be read, so that later checks can run; callers must look at `diagnostics`.
/// Codes: unknown-field (hint names the nearest field), wrong-type, missing-field, unknown-kind, unknown-api-version,
/// bad-value, duplicate-object (two documents with the same kind, namespace and name; names both places).
/// `given_namespace` is that of objects of namespaced kinds that say none, as kubectl has -n for; without it, or with
/// "", such an object lacks a required field, and "" says that one could have been given.
void decode(const value::Document& document, Objects& objects, Diagnostics& diagnostics,
            std::optional<std::string_view> given_namespace = std::nullopt);

/// Appends the objects of `from`, in their order, to those of `to`.
void append(Objects& to, const Objects& from);

/// Sorts `objects` and reports duplicate objects. Call once after the last decode.
void finish(Objects& objects, Diagnostics& diagnostics);

/// KMM's worker configuration, strict (unknown and duplicate keys are faults). Keys in other case are taken, as KMM's
/// worker takes them; a key that stands there twice in other case is a fault.
[[nodiscard]] ModuleConfig decode_module_config(const value::Document& document, Diagnostics& diagnostics);

/// Keys in alphabetical order; containerImage, imagePullPolicy, insecurePull, kernelVersion and modprobe are always
/// written, the rest only when non-empty (facts: KMM 7.1).
[[nodiscard]] value::Node encode(const ModuleConfig& config);
[[nodiscard]] value::Node encode(const NodeModule& entry);
[[nodiscard]] value::Node encode(const NodeModulesConfig& object);
[[nodiscard]] value::Node encode(const Toleration& toleration);
/// One entry of spec.modules or status.modules; inverse of encode(NodeModule). Both throw the error of all faults found
/// (exit data) instead of collecting them: they are for trees that this toolkit has written.
[[nodiscard]] NodeModule decode_node_module(const value::Node& node);
[[nodiscard]] ModuleConfig decode_module_config(const value::Node& node);

}  // namespace kmm::api
