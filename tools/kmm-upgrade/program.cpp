// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/program.hpp"

namespace kmm::tool_upgrade {

cli::Program program() { return cli::Program{.name = "kmm-upgrade", .summary = "", .description = "", .verbs = {}, .examples = {}}; }

}  // namespace kmm::tool_upgrade
