// SPDX-License-Identifier: Apache-2.0
// kmm-plan preflight: would the fleet survive a kernel that it does not run yet?
#include <algorithm>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
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

void leave_other_architectures(plan::Surveyed& row) {
    std::erase_if(row.pools, [&](const plan::Pool& pool) {
        return recipe::ready::never_runs(pool.architecture, row.kernel);
    });
}

/// False for a choice of Modules or nodes.
bool is_of_the_cluster(const cli::Args& args) {
    return args.positionals("MODULE").empty() && !args.get("namespace") && !args.get("selector");
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
    auto rows = plan::survey(source.objects, kernels);
    for (auto& row : rows) leave_other_architectures(row);
    if (const auto ns = args.get("namespace"))
        std::erase_if(rows, [&](const plan::Surveyed& row) { return row.module->meta.namespace_ != *ns; });
    if (const auto names = args.positionals("MODULE"); !names.empty()) {
        std::vector<const api::Module*> chosen;
        for (const auto& name : names) chosen.push_back(&find_module(source, args, name));
        std::erase_if(rows, [&](const plan::Surveyed& row) {
            return std::find(chosen.begin(), chosen.end(), row.module) == chosen.end();
        });
    }
    // -l asks about those nodes: a Module that has to do with others only is not judged by it.
    if (args.get("selector")) std::erase_if(rows, [](const plan::Surveyed& row) { return row.pools.empty(); });
    const bool has_recipes = recipes.any() && is_of_the_cluster(args);
    if (rows.empty() && args.get("selector"))
        throw Error(
            Exit::not_found, "no-modules",
            fmt::format("no Module to check selects a node that matches -l {}", base::escape(*args.get("selector"))))
            .hint("kmm-plan show -l lists the Modules that there are");
    if (rows.empty() && !has_recipes)
        throw Error(Exit::not_found, "no-modules",
                    "there is no Module with a moduleLoader to check that is not being deleted")
            .detail("read", read_summary({&source, 1}))
            .hint(source.objects.modules.empty() ? std::string(k_dump_hint) : "kmm-plan show prints what was read");
    auto verdicts = preflight::first_verdicts(rows, interface_of, args.flag("check-images"), trusted);
    preflight::answer_questions(verdicts, source.objects, args, context);
    preflight::heed_held_versions(verdicts, source.objects);
    auto recipe_verdicts = has_recipes ? recipes.judge(kernels, interface_of, source.objects.nodes, context)
                                       : std::vector<RecipeVerdict>();
    for (auto& verdict : verdicts)
        for (auto& finding : verdict.findings)
            if (!finding.position) finding.position = preflight::place_of(verdict);
    Diagnostics findings;
    settle_findings(verdicts, reporting, findings);
    settle_findings(recipe_verdicts, reporting, findings);
    const auto upgradeable =
        is_of_the_cluster(args) ? std::optional(judge_all(verdicts, recipe_verdicts)) : std::nullopt;
    if (args.get("metrics")) write_metrics(args, context, preflight_metrics(verdicts, recipe_verdicts, upgradeable));
    reporting.publish("preflight", read_files(source), findings, context);
    if (target) {
        const auto patch = recipe::decide::status_patch(*target, upgradeable.value(),
                                                        base::format_rfc3339(sys::LinuxClock().now_unix()));
        context.console.out(context.output.starts_with("json") ? value::to_json(patch) + "\n" : value::to_yaml(patch));
        if (context.verbosity >= 0) context.console.err(explanation(verdicts, findings, context.color_err));
    } else if (context.output == "json" || context.output == "yaml") {
        print_document(context, preflight_node(source, verdicts, recipe_verdicts, upgradeable));
    } else if (context.output == "jsonl") {
        for (const auto& verdict : verdicts) print_document(context, verdict_node(verdict));
        for (const auto& one : recipe_verdicts) print_document(context, recipe_verdict_node(one));
    } else if (context.output == "name") {
        context.console.out(losing_names(verdicts));
        for (const auto& one : recipe_verdicts)
            if (one.text() != "pass" && !one.known)
                context.console.out(fmt::format("{} {}\n", one.kernel, one.resource));
    } else {
        if (!verdicts.empty() || recipe_verdicts.empty()) context.console.out(verdict_table(verdicts, context));
        if (!verdicts.empty() && !recipe_verdicts.empty()) context.console.out("\n");
        context.console.out(recipe_verdict_table(recipe_verdicts, context));
        // Without recipes it is for those alone who publish it: images that were not checked are no failure here.
        if (upgradeable && (!recipe_verdicts.empty() || args.get("metrics")))
            context.console.out(upgradeable_line(*upgradeable));
        if (context.output == "wide" || !trusted.certificates.empty()) context.console.out(signature_lines(verdicts));
        if (context.verbosity >= 0) context.console.err(explanation(verdicts, findings, context.color_err));
    }
    return reporting.failed(findings) ? Exit::checks_failed : Exit::ok;
}

}  // namespace

cli::Verb preflight_verb() {
    cli::Verb verb;
    verb.name = "preflight";
    verb.summary = "check whether every driver is ready for a kernel";
    verb.description =
        "For each kernel and Module the check asks: is there a kernel mapping; with --check-images, does the "
        "image exist for the nodes' architecture; with --kernel-devel, do the image's modules fit that kernel: "
        "vermagic, every symbol and its version, namespaces, licence, dependencies, parameters, firmware. Nodes "
        "of one kernel and architecture are a pool and share a line; CHECKED says how far the check went. Nodes "
        "of another architecture than the one in the kernel's name are not asked about.\n\n"
        "With --cert, every module's signature is verified as that kernel would verify it. Kernels built with "
        "CONFIG_MODULE_SIG_FORCE (read from --kernel-devel) and nodes with --sig-enforce refuse modules that are "
        "unsigned or signed by another key; other kernels load them and are tainted, which is a warning. A "
        "signature that does not match its module is refused by every kernel. -o wide and json show signer, key "
        "and digest of each file.\n\n"
        "SpecialResources of -f, and those of a live cluster, are checked with the charts, facts and releases that "
        "render recipe takes. A driver container is ready for a kernel if its image for that kernel exists; else if "
        "the modules of its current image fit the kernel by every symbol version (--kernel-devel); else if it has a "
        "build whose source is known. Otherwise the kernel has to wait. A PreflightValidation of the operator "
        "names a release, whose kernels are taken from the facts.\n\n"
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
    std::erase_if(recipes, [](const cli::Option& option) { return option.name == "filename"; });
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
