// SPDX-License-Identifier: Apache-2.0
// The configuration file of KMM's operator, on its own or in its ConfigMap.
#pragma once

#include <optional>
#include <string>

#include "kmm-plan/source/source.hpp"
#include "plan/kmm/release.hpp"
#include "render/operator_config.hpp"

namespace kmm::tool_plan {

/// The configuration in a text, which may be a ConfigMap around it, as `release` reads it: up to v2.3 what it does not
/// know is ignored, and up to v2.1 worker.firmwareHostPath has its former name. Errors: data with the faults; data
/// "bad-value" for several documents, "missing-field" for a ConfigMap without it.
[[nodiscard]] render::OperatorConfig parse_operator_config(const std::string& text, const std::string& file,
                                                           const std::optional<plan::Release>& release);

enum class OperatorConfigUse {
    checked,  ///< the verb judges documents: what they are is a note
    beside,   ///< the verb reads Modules and Nodes: the file is not used, which is a warning
};

/// Appends the faults of every operator configuration that was read. Those in a ConfigMap are placed at the value, with
/// the line inside of it in the message; `release` as above. Codes: operator-config, and those of
/// render::decode_operator_config.
void check_operator_configs(Source& source, OperatorConfigUse use, const std::optional<plan::Release>& release = {});

}  // namespace kmm::tool_plan
