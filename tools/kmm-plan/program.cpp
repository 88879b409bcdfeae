// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/program.hpp"

namespace kmm::tool_plan {

cli::Program program() { return cli::Program{.name = "kmm-plan", .summary = "", .description = "", .verbs = {}, .examples = {}}; }

}  // namespace kmm::tool_plan
