// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/program.hpp"

#include "kmm-plan/verbs.hpp"

namespace kmm::tool_plan {

cli::Program program() {
    cli::Program result;
    result.name = "kmm-plan";
    result.summary = "decide which nodes need which kernel module, and say why";
    result.description =
        "Reads Nodes, Modules and NodeModulesConfigs from a directory or from documents and works out what Kernel Module "
        "Management makes of them. Changes nothing.\n\n"
        "A plan shows the settled state: what the cluster arrives at if every Pod succeeds and nobody interferes.";
    result.verbs = {show_verb(), why_verb(), validate_verb(), render_verb()};
    result.examples = {
        {"kmm-plan show --cluster ./fleet", "one line per node and module"},
        {"kmm-plan why node-a drivers/kmm-hello --cluster ./fleet", "the facts behind one line"},
        {"kubectl get nodes,modules -A -o json | kmm-plan show -f -", "the same for a live cluster's dump"},
    };
    return result;
}

}  // namespace kmm::tool_plan
