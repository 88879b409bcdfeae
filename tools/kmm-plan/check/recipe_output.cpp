// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/recipe_output.hpp"

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"
#include "kmm-plan/source/documents.hpp"

namespace kmm::tool_plan {

namespace decide = recipe::decide;

value::Node recipe_verdict_node(const RecipeVerdict& verdict) {
    value::Node node = value::Node::mapping({{"kernel", verdict.kernel}, {"resource", verdict.resource}});
    const auto put = [&](const char* key, const std::string& text) {
        if (!text.empty()) { node.set(key, text); }
    };
    put("container", verdict.container);
    put("image", verdict.image);
    put("digest", verdict.digest);
    node.set("checked", verdict.checked);
    node.set("verdict", std::string(verdict.text()));
    if (verdict.known) { node.set("known", true); }
    node.set("reason", verdict.reason);
    put("message", verdict.message);
    node.set("inputs", verdict.inputs);
    node.set("findings", diagnostics_node(verdict.findings));
    return node;
}

std::string recipe_verdict_table(const std::vector<RecipeVerdict>& verdicts, const cli::Context& context) {
    const bool wide = context.output == "wide";
    if (verdicts.empty()) { return ""; }
    std::vector<std::string> headers{"KERNEL", "RECIPE", "CONTAINER", "VERDICT", "CHECKED", "REASON"};
    if (wide) { headers.insert(headers.end(), {"IMAGE", "DIGEST"}); }
    std::vector<std::vector<std::string>> rows;
    const auto or_none = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
    for (const auto& one : verdicts) {
        std::vector<std::string> row{one.kernel,  one.resource, or_none(one.container), verdict_text(one),
                                     one.checked, one.reason};
        if (wide) { row.insert(row.end(), {or_none(one.image), or_none(one.digest)}); }
        rows.push_back(std::move(row));
    }
    return cli::folded_table(std::move(headers), std::move(rows), 2, context.table_width());
}

std::optional<decide::StatusTarget> status_target(const cli::Args& args) {
    const auto text = args.get("status");
    if (!text) return std::nullopt;
    if (!args.flag("check-images") && args.all("kernel-devel").empty())
        throw Error(Exit::usage, "usage", "--status requires --check-images or --kernel-devel")
            .hint("without them nobody knows whether the images are there");
    // A condition is of the whole cluster: "every driver is ready" is not true of a choice, or of new faults alone.
    const std::pair<const char*, bool> narrower[] = {{"MODULE", !args.positionals("MODULE").empty()},
                                                     {"--namespace", args.get("namespace").has_value()},
                                                     {"--selector", args.get("selector").has_value()},
                                                     {"--baseline", args.get("baseline").has_value()}};
    for (const auto& [name, is_given] : narrower)
        if (is_given)
            throw Error(Exit::usage, "usage", fmt::format("--status does not accept {}", name))
                .hint("the condition Upgradeable is of the whole cluster: leave it out");
    auto target = decide::parse_status_target(*text);
    if (!target)
        throw Error(
            Exit::usage, "bad-value",
            fmt::format("--status: expected clusteroperator[/NAME] or operatorcondition[/NAMESPACE]/NAME, found '{}'",
                        base::escape(*text)))
            .hint("kmm-plan preflight --status operatorcondition/openshift-operators/my-driver");
    for (const auto& name : {target->name, target->name_space})
        if (!name.empty() && !api::is_dns1123_subdomain(name))
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--status: expected a name of lower-case letters, digits, '.' and '-', found '{}'",
                                    base::escape(name)))
                .hint("no object of an API server has another name");
    return target;
}

std::string upgradeable_line(const decide::Upgradeable& upgradeable) {
    return fmt::format("\nupgradeable: {} ({})\n", upgradeable.status ? "true" : "false", upgradeable.reason);
}

}  // namespace kmm::tool_plan
