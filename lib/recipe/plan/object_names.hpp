// SPDX-License-Identifier: Apache-2.0
// Names, labels and types of members that an API server refuses.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::plan {

/// The hint of "sro-differs".
inline constexpr const char* k_operator_hint = "kmm-plan render recipe --compat sro prints what the operator makes";

/// Checks the name of an object, its labels and annotations, keys of its data, names of its ports, and what its Pods
/// have: labels, node selector, containers, ports, variables, volumes. `suffix`: what
/// was added to its name for a kernel, "" for nothing. Errors: data "bad-manifest" at `place`.
void require_valid_names(const tmpl::Value& object, const std::string& suffix, const Position& place);

/// Why the Pods of a StatefulSet whose name an API server takes are refused; "" if nothing stands against them, and for
/// other kinds.
[[nodiscard]] std::string pods_label_problem(const tmpl::Value& object);

/// Calls `found` with a sentence for each member that Kubernetes takes as a text alone and that is another value:
/// labels, annotations, data of ConfigMaps and Secrets, and of Pods the node selector, images, commands and variables.
/// Values of a Secret are not in it.
void each_wrong_text(const tmpl::Value& object, const std::function<void(const std::string& text)>& found);

}  // namespace kmm::recipe::plan
