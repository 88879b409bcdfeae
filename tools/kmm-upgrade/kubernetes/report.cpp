// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kubernetes/finding/check_list.hpp"

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
    auto node = Node::mapping({{"id", result.id},
                               {"outcome", kubernetes::to_string(result.outcome)},
                               {"weight", weight_text(kubernetes::find_check(result.id)->weight)},
                               {"detail", result.detail}});
    if (!result.fix.empty()) node.set("fix", result.fix);
    if (result.ignored) node.set("ignored", true);
    return node;
}

std::uint64_t count_of(const std::vector<kubernetes::CheckResult>& results, Outcome outcome) {
    std::uint64_t count = 0;
    for (const auto& result : results) count += result.outcome == outcome ? 1U : 0U;
    return count;
}

/// "29 OK, 0 WARN, 0 FAIL, 44 SKIP".
std::string counts_text(const std::vector<kubernetes::CheckResult>& results) {
    return fmt::format("{} OK, {} WARN, {} FAIL, {} SKIP", count_of(results, Outcome::ok),
                       count_of(results, Outcome::warn), count_of(results, Outcome::fail),
                       count_of(results, Outcome::skip));
}

}  // namespace

Exit print_check_results(cli::Context& context, const char* kind, const kubernetes::CheckInput& input,
                         const std::vector<kubernetes::CheckResult>& results, Exit failed) {
    const auto fails = count_of(results, Outcome::fail);
    const auto exit = fails == 0 ? Exit::ok : failed;
    auto checks = Node::sequence();
    for (const auto& result : results) checks.push_back(result_node(result));
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}});
    if (input.target) document.set("target", input.target->text());
    document.set("passed", fails == 0);
    document.set("summary", Node::mapping({{"ok", count_of(results, Outcome::ok)},
                                           {"warn", count_of(results, Outcome::warn)},
                                           {"fail", fails},
                                           {"skip", count_of(results, Outcome::skip)}}));
    document.set("checks", std::move(checks));
    if (print_list(context, document, "checks")) return exit;
    if (context.output == "name") {
        for (const auto& result : results)
            if (result.outcome == Outcome::fail) context.console.out(result.id + "\n");
        return exit;
    }
    for (const auto& result : results) {
        context.console.out(fmt::format("{} [{}] {}{}\n", result.id, kubernetes::to_string(result.outcome),
                                        result.ignored ? "ignored: " : "", result.detail));
        if (!result.fix.empty() && !result.ignored) context.console.out(fmt::format("  fix: {}\n", result.fix));
    }
    context.console.out(fmt::format("\n{}\n", counts_text(results)));
    return exit;
}

void write_check_reports(const report::Files& files, cli::Context& context, const char* verb,
                         const std::vector<std::string>& dumps,
                         const std::vector<kubernetes::CheckResult>& results) {
    report::Report made;
    made.tool = context.program.name;
    made.version = KMM_VERSION;
    made.check = verb;
    made.files = dumps;
    made.counts = counts_text(results);
    for (const auto& result : results) {
        const auto* info = kubernetes::find_check(result.id);
        made.rules.push_back({result.id, "finding", std::string(info->meaning), std::string(info->fix)});
        if (result.outcome == Outcome::ok || result.outcome == Outcome::skip) {
            made.quiet.emplace_back(result.id, result.outcome == Outcome::ok ? "" : result.detail);
            continue;
        }
        Diagnostic finding;
        finding.severity = result.outcome == Outcome::fail ? Severity::error : Severity::warning;
        finding.code = result.id;
        finding.message = result.detail;
        finding.hint = result.fix;
        made.findings.push_back(std::move(finding));
    }
    sort_and_merge(made.findings);
    std::sort(made.rules.begin(), made.rules.end(),
              [](const auto& left, const auto& right) { return left.code < right.code; });
    for (const auto& [format, file] : files) cli::write_report(context, file, report::text_of(format, made));
}

}  // namespace kmm::tool_upgrade
