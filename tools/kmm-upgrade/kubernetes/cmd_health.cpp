// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade health and check kubernetes: all checks of a Kubernetes cluster at once.
#include <optional>
#include <utility>

#include "cli/document.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/report.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/check/checks.hpp"

namespace kmm::tool_upgrade {
namespace {

Exit check(const cli::Args& args, cli::Context& context, const char* kind, std::optional<kubernetes::Version> target,
           Exit failed) {
    Access access(args, context);
    auto& call = access.call;
    const auto files = report::parse_files(args.all("report"));
    for (const auto& [format, file] : files) cli::require_report(file);
    const auto ignored = kubernetes::parse_ignored(args.all("ignore-checks"));
    const auto catalogue = read_versions(call);
    const auto prerequisites = target ? read_prerequisites(call) : Prerequisites{};
    auto inventory = read_inventory(call, target ? extent_of(catalogue) : drive::ReadExtent::everything);
    if (target) leave_out_known(inventory, left_out_option(args));
    const auto seen = kubernetes::observe(inventory);
    if (inventory.nodes.empty()) throw Error::from_diagnostics(seen.faults);
    std::optional<kubernetes::NodeAnswers> answers;
    const auto way = target ? switch_way(args) : std::string();
    const auto directory = target ? absolute_option(args, "from") : std::string();
    if (!directory.empty() && way != "binaries")
        throw Error(Exit::usage, "missing-option", "--from requires --switch binaries")
            .hint("add --switch binaries, or leave --from out");
    const auto via = args.get("via");
    // A configuration may name a way for modules that these verbs do not know, or that a dump does not have.
    const bool asks_nodes = via && (args.source("via") == "option" || *via == "ssh" || *via == "local" ||
                                    (*via == "self" && inventory.is_live));
    if (!asks_nodes && args.source("ignore-preflight-errors") == "option")
        throw Error(Exit::usage, "missing-option", "--ignore-preflight-errors requires --via: kubeadm runs on nodes")
            .hint("add --via ssh, or leave --ignore-preflight-errors out");
    if (asks_nodes) {
        const auto questions = target ? questions_before(catalogue, seen, *target, way, directory,
                                                         args.get("ignore-preflight-errors").value_or(""))
                                      : NodeQuestions{};
        answers = ask_nodes(call, *asking_runner(access, {}), inventory, questions);
    }
    kubernetes::CheckInput input{
        inventory, seen, catalogue, std::move(target), answers ? &*answers : nullptr, call.clock().now_unix()};
    input.way = way;
    prerequisites.put_into(input);
    const auto results = kubernetes::run_checks(input, ignored);
    const char* verb = input.target ? "check kubernetes" : "health";
    return call.print_beside([&] { write_check_reports(files, context, verb, args.all("filename"), results); },
                             [&] { return print_check_results(context, kind, input, results, failed); });
}

}  // namespace

Exit run_health(const cli::Args& args, cli::Context& context) {
    return check(args, context, "KubernetesHealth", std::nullopt, Exit::unhealthy);
}

Exit run_check_kubernetes(const cli::Args& args, cli::Context& context) {
    return check(args, context, "KubernetesCheck", version_argument(args.positional("VERSION")), Exit::checks_failed);
}

}  // namespace kmm::tool_upgrade
