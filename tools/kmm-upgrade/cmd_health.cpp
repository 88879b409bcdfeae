// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade health and check kubernetes: all checks of a Kubernetes cluster at once.
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/kubernetes_source.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/checks.hpp"

namespace kmm::tool_upgrade {
namespace {

using kubernetes::Outcome;
using value::Node;

std::string_view weight_text(kubernetes::Weight weight) {
    switch (weight) {
        case kubernetes::Weight::fatal: return "fatal";
        case kubernetes::Weight::ignorable: return "ignorable";
        case kubernetes::Weight::warning: break;
    }
    return "warning";
}

Node result_node(const kubernetes::CheckResult& result) {
    auto node = Node::mapping({{"id", result.id}, {"outcome", kubernetes::to_string(result.outcome)},
                               {"weight", weight_text(kubernetes::find_check(result.id)->weight)}, {"detail", result.detail}});
    if (!result.fix.empty()) node.set("fix", result.fix);
    if (result.ignored) node.set("ignored", true);
    return node;
}

std::uint64_t count_of(const std::vector<kubernetes::CheckResult>& results, Outcome outcome) {
    std::uint64_t count = 0;
    for (const auto& result : results) count += result.outcome == outcome ? 1U : 0U;
    return count;
}

Exit print_results(cli::Context& context, const char* kind, const kubernetes::CheckInput& input, const std::vector<kubernetes::CheckResult>& results, Exit failed) {
    const auto fails = count_of(results, Outcome::fail);
    const auto exit = fails == 0 ? Exit::ok : failed;
    auto checks = Node::sequence();
    for (const auto& result : results) checks.push_back(result_node(result));
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}});
    if (input.target) document.set("target", input.target->text());
    document.set("passed", fails == 0);
    document.set("summary", Node::mapping({{"ok", count_of(results, Outcome::ok)}, {"warn", count_of(results, Outcome::warn)}, {"fail", fails},
                                           {"skip", count_of(results, Outcome::skip)}}));
    document.set("checks", std::move(checks));
    if (print_list(context, document, "checks")) return exit;
    if (context.output == "name") {
        for (const auto& result : results)
            if (result.outcome == Outcome::fail) context.console.out(result.id + "\n");
        return exit;
    }
    for (const auto& result : results) {
        context.console.out(fmt::format("{} [{}] {}{}\n", result.id, kubernetes::to_string(result.outcome), result.ignored ? "ignored: " : "", result.detail));
        if (!result.fix.empty() && !result.ignored) context.console.out(fmt::format("  fix: {}\n", result.fix));
    }
    context.console.out(fmt::format("\n{} OK, {} WARN, {} FAIL, {} SKIP\n", count_of(results, Outcome::ok), count_of(results, Outcome::warn), fails,
                                    count_of(results, Outcome::skip)));
    return exit;
}

Exit check(const cli::Args& args, cli::Context& context, const char* kind, std::optional<kubernetes::Version> target, Exit failed) {
    Call call(args, context);
    const auto ignored = kubernetes::parse_ignored(args.all("ignore-checks"));
    const auto catalogue = read_versions(call);
    const auto inventory = read_inventory(call, ReadExtent::everything);
    const auto seen = kubernetes::observe(inventory);
    if (inventory.nodes.empty()) throw Error::from_diagnostics(seen.faults);
    const kubernetes::CheckInput input{inventory, seen, catalogue, std::move(target)};
    return print_results(context, kind, input, kubernetes::run_checks(input, ignored), failed);
}

}  // namespace

Exit run_health(const cli::Args& args, cli::Context& context) { return check(args, context, "KubernetesHealth", std::nullopt, Exit::unhealthy); }

Exit run_check_kubernetes(const cli::Args& args, cli::Context& context) {
    return check(args, context, "KubernetesCheck", version_argument(args.positional("VERSION")), Exit::checks_failed);
}

}  // namespace kmm::tool_upgrade
