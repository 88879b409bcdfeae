// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/program.hpp"

namespace kmm::tool_worker {

cli::Program program() { return cli::Program{.name = "kmm-worker", .summary = "", .description = "", .verbs = {}, .examples = {}}; }

}  // namespace kmm::tool_worker
