// SPDX-License-Identifier: Apache-2.0
// kmm-plan explain: what a reason or finding means.
#include "cli/explain.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/codes.hpp"

namespace kmm::tool_plan {

cli::Verb explain_verb() {
    cli::Verb verb;
    verb.summary = "what a reason, finding or error code means, and what to do";
    verb.description =
        "A reason is why a line of the plan says what it says, a finding is what is wrong with documents or the cluster, an "
        "error is why a command failed. Without CODE: all of them.";
    verb.examples = {
        {"kmm-plan explain taint-not-tolerated", "one code"},
        {"kmm-plan explain", "all codes"},
    };
    verb.options = cli::common_options();
    static const std::vector<Code> no_more;
    return cli::explain_verb(std::move(verb), plan::codes(), no_more, "kmm-worker explain and kmm-upgrade explain know their own");
}

}  // namespace kmm::tool_plan
