// SPDX-License-Identifier: Apache-2.0
// kmm-plan explain: what a reason or finding means.
#include "cli/explain.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/codes/codes.hpp"

namespace kmm::tool_plan {

cli::Verb explain_verb() {
    cli::Verb verb;
    verb.summary = "describe a reason, finding or error code";
    verb.description =
        "A reason explains a line of the plan, a finding is a fault of documents or the cluster, an error is why a "
        "command failed. Without CODE all codes are listed.";
    verb.examples = {
        {"kmm-plan explain taint-not-tolerated", "one code"},
        {"kmm-plan explain", "all codes"},
    };
    verb.options = cli::common_options();
    static const std::vector<Code> no_more;
    return cli::explain_verb(std::move(verb), plan::codes(), no_more,
                             "kmm-worker explain and kmm-upgrade explain know their own");
}

}  // namespace kmm::tool_plan
