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

/// What those options ask for, with what is to be detected taken from the source. Errors: usage "bad-kmm-version".
[[nodiscard]] plan::Options plan_options(const cli::Args& args, const Source& source);

}  // namespace kmm::tool_plan
