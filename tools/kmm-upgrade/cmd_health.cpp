// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade health and check kubernetes: all checks of a Kubernetes cluster at once.
#include "kmm-upgrade/kubernetes_report.hpp"
#include "kmm-upgrade/kubernetes_source.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/checks.hpp"

namespace kmm::tool_upgrade {
namespace {

Exit check(const cli::Args& args, cli::Context& context, const char* kind, std::optional<kubernetes::Version> target, Exit failed) {
    Call call(args, context);
    const auto ignored = kubernetes::parse_ignored(args.all("ignore-checks"));
    const auto catalogue = read_versions(call);
    const auto inventory = read_inventory(call, drive::ReadExtent::everything);
    const auto seen = kubernetes::observe(inventory);
    if (inventory.nodes.empty()) throw Error::from_diagnostics(seen.faults);
    const kubernetes::CheckInput input{inventory, seen, catalogue, std::move(target)};
    return print_check_results(context, kind, input, kubernetes::run_checks(input, ignored), failed);
}

}  // namespace

Exit run_health(const cli::Args& args, cli::Context& context) { return check(args, context, "KubernetesHealth", std::nullopt, Exit::unhealthy); }

Exit run_check_kubernetes(const cli::Args& args, cli::Context& context) {
    return check(args, context, "KubernetesCheck", version_argument(args.positional("VERSION")), Exit::checks_failed);
}

}  // namespace kmm::tool_upgrade
