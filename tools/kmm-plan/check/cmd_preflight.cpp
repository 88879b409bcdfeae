// SPDX-License-Identifier: Apache-2.0
// kmm-plan preflight: would the fleet survive a kernel that it does not run yet?
#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "api/names.hpp"
#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-plan/check/preflight_output.hpp"
#include "kmm-plan/check/recipe_output.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/render/recipe_run.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/live.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/read_summary.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/fleet/survey.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/template.hpp"
#include "preflight/verdict.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "sys/clock.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

using recipe::ready::RecipePreflight;

namespace {

/// What the baseline does not know of the findings, each once. What it knows stays with the verdicts: a driver that
/// fails is not ready because its failure is known.
template <typename Judged>
void settle_findings(std::vector<Judged>& verdicts, Reporting& reporting, Diagnostics& news) {
    for (auto& verdict : verdicts) {
        auto findings = verdict.findings;
        reporting.forget_known(findings);
        verdict.known = verdict.text() != "pass" && has_errors(verdict.findings) && !has_errors(findings);
        news.insert(news.end(), findings.begin(), findings.end());
    }
    sort_and_merge(news);
}

/// Those of --kernel, else those that PreflightValidations ask about, each once.
std::vector<std::string> chosen_kernels(const cli::Args& args, const Source& source, const RecipePreflight& recipes) {
    auto asked = args.all("kernel");
    if (asked.empty()) {
        asked = recipes.asked_kernels(source.objects.nodes);
        for (const auto& object : source.objects.preflight_validations)
            if (!object.kernel_version.empty()) asked.push_back(object.kernel_version);
    }
    if (asked.empty())
        throw Error(Exit::usage, "missing-option",
                    fmt::format("--kernel KERNEL is missing, and no PreflightValidation{} was read",
                                source.objects.preflight_validations.empty() ? "" : " with a kernelVersion"))
            .hint("kmm-plan preflight --kernel 6.1.0-60-amd64");
    std::vector<std::string> kernels;
    for (const auto& kernel : asked) {
        plan::require_kernel_name(kernel);
        if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    }
    return kernels;
}

/// What is not judged for a kernel.
struct PassedOver {
    std::set<std::string> nodes;        ///< that a Module selects and that cannot run it: "node-a (arm64)"
    std::vector<std::string> modules;   ///< with a mapping for it, all of whose nodes cannot run it
};
using PassedOverBy = std::map<std::string, PassedOver>;  ///< by kernel

/// Removes the nodes that cannot run the kernel of `row`; whether that leaves nothing to judge.
bool pass_over(plan::Surveyed& row, const api::Objects& objects, PassedOverBy& passed_over) {
    std::erase_if(row.pools, [&](const plan::Pool& pool) {
        return recipe::ready::never_runs(pool.architecture, row.kernel);
    });
    bool any = false;
    for (const auto& node : objects.nodes) {
        const bool is_linux = api::runs_linux(node);
        if (is_linux && !recipe::ready::never_runs(node.architecture, row.kernel)) continue;
        if (!plan::selects(row.module->selector, node.meta.labels)) continue;
        any = true;
        passed_over[row.kernel].nodes.insert(
            fmt::format("{} ({})", node.meta.name, is_linux ? base::escape(node.architecture) : "no Linux"));
    }
    // Without a mapping it fails, whatever it selects.
    const bool is_idle = any && row.pools.empty() && std::holds_alternative<plan::Resolved>(row.resolution);
    if (is_idle) passed_over[row.kernel].modules.push_back(row.module->full_name());
    return is_idle;
}

/// Notes for each kernel.
std::string passed_over_text(const PassedOverBy& passed_over) {
    constexpr std::size_t k_named_max = 5;
    std::string text;
    for (const auto& [kernel, left_out] : passed_over) {
        const std::vector<std::string> nodes(left_out.nodes.begin(), left_out.nodes.end());
        text += fmt::format("note: kernel {}: left out {} that cannot run it: {}\n", kernel,
                            base::counted(nodes.size(), "selected node"), base::join_some(nodes, k_named_max));
        if (left_out.modules.empty()) continue;
        text += fmt::format("note: kernel {}: not judged, as no node can run it: {}\n", kernel,
                            base::join_some(left_out.modules, k_named_max));
    }
    return text;
}

/// False for a choice of Modules or nodes.
bool is_of_the_cluster(const cli::Args& args) {
    return args.positionals("MODULE").empty() && !args.get("namespace") && !args.get("selector");
}

/// The Modules that were asked about, by kernel, each with the pools of nodes that can run the kernel.
std::vector<plan::Surveyed> chosen_rows(const cli::Args& args, const Source& source,
                                        const std::vector<std::string>& kernels, PassedOverBy& passed_over) {
    auto rows = plan::survey(source.objects, kernels);
    if (const auto ns = args.get("namespace"))
        std::erase_if(rows, [&](const plan::Surveyed& row) { return row.module->meta.namespace_ != *ns; });
    if (const auto names = args.positionals("MODULE"); !names.empty()) {
        std::vector<const api::Module*> chosen;
        for (const auto& name : names) chosen.push_back(&find_module(source, args, name));
        std::erase_if(rows, [&](const plan::Surveyed& row) {
            return std::find(chosen.begin(), chosen.end(), row.module) == chosen.end();
        });
    }
    std::erase_if(rows, [&](plan::Surveyed& row) { return pass_over(row, source.objects, passed_over); });
    // -l asks about those nodes: a Module that has to do with others only is not judged by it.
    if (args.get("selector")) std::erase_if(rows, [](const plan::Surveyed& row) { return row.pools.empty(); });
    return rows;
}

/// Nothing to judge is not a success. `has_others`: something beside Modules is judged.
/// Errors: not_found "no-modules".
void require_rows(const std::vector<plan::Surveyed>& rows, const PassedOverBy& passed_over, const cli::Args& args,
                  const Source& source, bool has_others) {
    if (!rows.empty()) return;
    for (const auto& [kernel, left_out] : passed_over)
        if (!left_out.modules.empty() && !has_others)
            throw Error(Exit::not_found, "no-modules",
                        fmt::format("no Module to check selects a node that can run kernel {}", kernel))
                .hint("kmm-plan show lists the nodes; name a kernel of their architecture");
    if (const auto selector = args.get("selector"))
        throw Error(Exit::not_found, "no-modules",
                    fmt::format("no Module to check selects a node that matches -l {}", base::escape(*selector)))
            .hint("kmm-plan show -l lists the Modules that there are");
    if (!has_others)
        throw Error(Exit::not_found, "no-modules",
                    "there is no Module with a moduleLoader to check that is not being deleted")
            .detail("read", read_summary({&source, 1}))
            .hint(source.objects.modules.empty() ? std::string(k_dump_hint) : "kmm-plan show prints what was read");
}

/// What the command found.
struct Judged {
    std::vector<preflight::Verdict> modules;
    std::vector<RecipeVerdict> recipes;
    std::optional<recipe::decide::Upgradeable> upgradeable;  ///< for a question about the whole cluster
    Diagnostics findings;                                    ///< that the baseline does not know
};

void print_tables(const Judged& judged, const cli::Args& args, bool has_signatures, cli::Context& context) {
    auto& console = context.console;
    if (!judged.modules.empty() || judged.recipes.empty()) console.out(verdict_table(judged.modules, context));
    if (!judged.modules.empty() && !judged.recipes.empty()) console.out("\n");
    console.out(recipe_verdict_table(judged.recipes, context));
    // Without recipes it is for those alone who publish it: images that were not checked are no failure here.
    if (judged.upgradeable && (!judged.recipes.empty() || args.get("metrics")))
        console.out(upgradeable_line(*judged.upgradeable));
    if (context.output == "wide" || has_signatures) console.out(signature_lines(judged.modules));
    if (context.verbosity >= 0) console.err(explanation(judged.modules, judged.findings, context.color_err));
}

void print_names(const Judged& judged, cli::Context& context) {
    context.console.out(losing_names(judged.modules));
    for (const auto& one : judged.recipes)
        if (one.text() != "pass" && !one.known)
            context.console.out(fmt::format("{} {}\n", cli::plain_name(one.kernel), cli::plain_name(one.resource)));
}

/// In the form of -o. `has_signatures`: signatures of modules were looked at.
void print_judged(const Judged& judged, const Source& source, const cli::Args& args, bool has_signatures,
                  cli::Context& context) {
    if (context.output == "json" || context.output == "yaml") {
        print_document(context, preflight_node(source, judged.modules, judged.recipes, judged.upgradeable));
    } else if (context.output == "jsonl") {
        for (const auto& verdict : judged.modules) print_document(context, verdict_node(verdict));
        for (const auto& one : judged.recipes) print_document(context, recipe_verdict_node(one));
    } else if (context.output == "name") {
        print_names(judged, context);
    } else {
        print_tables(judged, args, has_signatures, context);
    }
}

Exit run_preflight(const cli::Args& args, cli::Context& context) {
    preflight::require_question(args, {"kernel-devel", "cert", "sig-enforce"});
    Reporting reporting(args);
    for (const auto& kernel : args.all("kernel")) plan::require_kernel_name(kernel);
    const auto interfaces = preflight::read_interfaces(args);
    const auto trusted = preflight::read_trusted(args);
    const auto target = status_target(args);
    RecipePreflight recipes(args);
    Source source =
        read_valid_source(args, context, [&](std::string_view path) { return recipes.is_chart_file(path); });
    if (source.live)
        source.live->in_time([&] { recipes.complete(&source.live->client()); });
    else
        recipes.complete(nullptr);
    const auto kernels = chosen_kernels(args, source, recipes);
    const auto interface_of = preflight::by_kernel(interfaces, kernels);
    check_namespace({&source, 1}, args);
    keep_nodes(source, args, {});
    PassedOverBy passed_over;
    const auto rows = chosen_rows(args, source, kernels, passed_over);
    if (context.verbosity >= 0) context.console.err(passed_over_text(passed_over));
    const bool has_recipes = recipes.any() && is_of_the_cluster(args);
    require_rows(rows, passed_over, args, source, has_recipes);
    Judged judged;
    judged.modules = preflight::first_verdicts(rows, interface_of, args.flag("check-images"), trusted);
    preflight::answer_questions(judged.modules, source.objects, args, context);
    preflight::heed_held_versions(judged.modules, source.objects);
    if (has_recipes) judged.recipes = recipes.judge(kernels, interface_of, source.objects.nodes, context);
    for (auto& verdict : judged.modules)
        for (auto& finding : verdict.findings)
            if (!finding.position) finding.position = preflight::place_of(verdict);
    settle_findings(judged.modules, reporting, judged.findings);
    settle_findings(judged.recipes, reporting, judged.findings);
    if (is_of_the_cluster(args)) judged.upgradeable = judge_all(judged.modules, judged.recipes);
    if (args.get("metrics"))
        write_metrics(args, context, preflight_metrics(judged.modules, judged.recipes, judged.upgradeable));
    reporting.publish("preflight", read_files(source), judged.findings, context);
    if (target) {
        const auto patch = recipe::decide::status_patch(*target, judged.upgradeable.value(),
                                                        base::format_rfc3339(sys::LinuxClock().now_unix()));
        context.console.out(context.output.starts_with("json") ? value::to_json(patch) + "\n" : value::to_yaml(patch));
        if (context.verbosity >= 0)
            context.console.err(explanation(judged.modules, judged.findings, context.color_err));
    } else {
        print_judged(judged, source, args, !trusted.certificates.empty(), context);
    }
    return reporting.failed(judged.findings) ? Exit::checks_failed : Exit::ok;
}

}  // namespace

cli::Verb preflight_verb() {
    cli::Verb verb;
    verb.name = "preflight";
    verb.summary = "check whether every driver is ready for a kernel";
    verb.description =
        "For each kernel and Module the check asks: is there a kernel mapping; with --check-images, does the image "
        "exist for the nodes' architecture; with --kernel-devel, do the image's modules fit that kernel: vermagic, "
        "every symbol and its version, namespaces, licence, dependencies, parameters, firmware. Nodes of one kernel "
        "and architecture are a pool and share a line; CHECKED says how far the check went. Nodes of another "
        "architecture than the one in the kernel's name are not asked about.\n\n"
        "With --cert, every module's signature is verified as that kernel would verify it. Kernels built with "
        "CONFIG_MODULE_SIG_FORCE (read from --kernel-devel) and nodes with --sig-enforce refuse modules that are "
        "unsigned or signed by another key; other kernels load them and are tainted, which is a warning. A signature "
        "that does not match its module is refused by every kernel. -o wide and json show signer, key and digest of "
        "each file.\n\n"
        "SpecialResources of -f, and those of a live cluster, are checked with the charts, facts and releases that "
        "render recipe takes. A driver container is ready for a kernel if its image for that kernel exists; else if "
        "the modules of its current image fit the kernel by every symbol version (--kernel-devel); else if it has a "
        "build whose source is known. Otherwise the kernel has to wait. A PreflightValidation of the operator names "
        "a release, whose kernels are taken from the facts.\n\n"
        "The result upgradeable is true if every driver is ready; MODULE, -n or -l leave it out, and failures that "
        "--baseline knows stay failures, marked as known: they alone are not exit code 10. --status "
        "clusteroperator[/NAME] or operatorcondition[/NAMESPACE]/NAME prints it as a condition to apply. Each "
        "verdict in json has a checksum of its inputs: a result with another checksum does not apply to them.\n\n"
        "-o name prints kernel and Module of each failure that is not known. Exit code 10 if anything fails or could "
        "not be checked.";
    verb.examples = {
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64", "is every Module mapped for it"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --check-images", "and are the images there"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --kernel-devel linux-headers-6.1.0-60-amd64.deb",
         "and do their modules fit it"},
        {"kmm-plan preflight -f recipes/ --facts facts.yaml --kernel 5.14.0-427.43.1.el9_4.x86_64 --check-images "
         "--status clusteroperator",
         "recipes, as a condition"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --cert MOK.der --sig-enforce",
         "and are they signed for Secure Boot"},
    };
    verb.positionals = {{"MODULE", "names of Modules; all if absent", false, true}};
    auto kernel = cli::repeatable(cli::option(
        "kernel", "KERNEL",
        "kernel version as uname -r prints it (default: those of the PreflightValidations that were read)"));
    auto recipes = recipe_sources();
    std::erase_if(recipes,
                  [](const cli::Option& option) { return option.name == "filename" || option.name == "ignore"; });
    verb.options =
        std::vector<cli::Option>{
            kernel, preflight::devel_option(),
            cli::option("status", "TARGET", "print the condition Upgradeable of clusteroperator or operatorcondition"),
            metrics_option(), metrics_cluster_option()} +
        recipes + preflight::signature_options() + preflight::registry_options() + report_options() + source_options() +
        cli::common_options();
    verb.run = run_preflight;
    return verb;
}

}  // namespace kmm::tool_plan
