// SPDX-License-Identifier: Apache-2.0
// The verbs of kmm-upgrade, one function each. Signature as cli::Verb::run.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_upgrade {

Exit run_start_module(const cli::Args& args, cli::Context& context);
Exit run_apply(const cli::Args& args, cli::Context& context);
Exit run_resume(const cli::Args& args, cli::Context& context);
Exit run_step(const cli::Args& args, cli::Context& context);
Exit run_abort(const cli::Args& args, cli::Context& context);
Exit run_retry(const cli::Args& args, cli::Context& context);
Exit run_skip(const cli::Args& args, cli::Context& context);
Exit run_show(const cli::Args& args, cli::Context& context);
Exit run_nodes(const cli::Args& args, cli::Context& context);
Exit run_delete(const cli::Args& args, cli::Context& context);
Exit run_doctor(const cli::Args& args, cli::Context& context);
Exit run_adopt(const cli::Args& args, cli::Context& context);
/// migrate --from-daemonset.
Exit run_takeover(const cli::Args& args, cli::Context& context);
Exit run_migrate(const cli::Args& args, cli::Context& context);
Exit run_history(const cli::Args& args, cli::Context& context);
Exit run_report(const cli::Args& args, cli::Context& context);
Exit run_versions(const cli::Args& args, cli::Context& context);
Exit run_require(const cli::Args& args, cli::Context& context);
Exit run_health(const cli::Args& args, cli::Context& context);
Exit run_check_kubernetes(const cli::Args& args, cli::Context& context);

}  // namespace kmm::tool_upgrade
