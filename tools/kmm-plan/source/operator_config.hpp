// SPDX-License-Identifier: Apache-2.0
// The configuration file of KMM's operator, on its own or in its ConfigMap.
#pragma once

#include <string>

#include "kmm-plan/source/source.hpp"
#include "render/operator_config.hpp"

namespace kmm::tool_plan {

/// The configuration in a text, which may be a ConfigMap around it. Errors: data with the faults; data "bad-value" for
/// several documents, "missing-field" for a ConfigMap without it.
[[nodiscard]] render::OperatorConfig parse_operator_config(const std::string& text, const std::string& file);

enum class OperatorConfigUse {
    checked,  ///< the verb judges documents: what they are is a note
    beside,   ///< the verb reads Modules and Nodes: the file is not used, which is a warning
};

/// Appends the faults of every operator configuration that was read. Those in a ConfigMap are placed at the value, with
/// the line inside of it in the message. Codes: operator-config, and those of render::decode_operator_config.
void check_operator_configs(Source& source, OperatorConfigUse use);

}  // namespace kmm::tool_plan
