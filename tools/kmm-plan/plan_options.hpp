// SPDX-License-Identifier: Apache-2.0
// The options that say which plan is meant: show, why and what else plans.
#pragma once

#include <vector>

#include "cli/app.hpp"
#include "kmm-plan/source.hpp"
#include "plan/plan.hpp"

namespace kmm::tool_plan {

/// --next, --missing and --kmm-version.
[[nodiscard]] std::vector<cli::Option> plan_option_list();
/// --kernel, --reboot, --taint and --label: changes of nodes that are only imagined.
[[nodiscard]] std::vector<cli::Option> what_if_option_list();

/// Makes the imagined changes in `source.objects` and writes them into its description as "whatIf": kernel and reboots, then
/// taints, then labels. Errors: usage bad-label, bad-taint; not_found "node-not-found" for a reboot of no node.
void apply_what_if(const cli::Args& args, Source& source);

/// What those options ask for, with what is to be detected taken from the source. Errors: usage "bad-kmm-version".
[[nodiscard]] plan::Options plan_options(const cli::Args& args, const Source& source);

}  // namespace kmm::tool_plan
