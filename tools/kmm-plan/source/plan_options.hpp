// SPDX-License-Identifier: Apache-2.0
// The options that say which plan is meant: show, why and what else plans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/labels.hpp"
#include "cli/app.hpp"
#include "kmm-plan/source/source.hpp"
#include "plan/decide/plan.hpp"
#include "plan/kmm/release.hpp"

namespace kmm::tool_plan {

/// --next, --missing and --kmm-version.
[[nodiscard]] std::vector<cli::Option> plan_option_list();
/// --kernel, --reboot, --taint and --label: changes of nodes that are only imagined.
[[nodiscard]] std::vector<cli::Option> what_if_option_list();

/// Makes the imagined changes in `source.objects` and writes them into its description as "whatIf": kernel and reboots,
/// then taints, then labels. Errors: usage bad-label, bad-taint, bad-kernel; not_found "node-not-found" for a reboot of
/// no node. Warnings "selects-no-node" go to standard error: read_valid_source leaves them to it where labels change.
void apply_what_if(const cli::Args& args, Source& source, const cli::Context& context);

/// Warns of images that KMM makes once, for a kernel of today, and that `nodes` would use, too, with each of `kernels`.
void warn_of_shared_images(Source& source, const std::vector<const api::Node*>& nodes,
                           const std::vector<std::string>& kernels, const cli::Context& context);

/// --kmm-version alone.
[[nodiscard]] cli::Option kmm_version_option();
/// The release that --kmm-version names, nullopt for auto. Errors: usage "bad-kmm-version".
[[nodiscard]] std::optional<plan::Release> asked_release(const cli::Args& args);
/// The key of that KMM's schedule label, nullopt for auto. Errors: usage "bad-kmm-version".
[[nodiscard]] std::optional<api::ScheduleKey> asked_schedule_key(const cli::Args& args);

/// Those of --missing. Errors: usage "bad-value" for an empty one.
[[nodiscard]] std::vector<std::string> missing_images(const cli::Args& args);

/// What those options ask for, with what is to be detected taken from the source. Errors: usage "bad-kmm-version", and
/// "bad-value" for an empty --missing.
[[nodiscard]] plan::Options plan_options(const cli::Args& args, const Source& source);

}  // namespace kmm::tool_plan
