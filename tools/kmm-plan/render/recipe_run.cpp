// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/render/recipe_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "image/reference.hpp"
#include "preflight/images.hpp"
#include "recipe/plan/graph.hpp"
#include "recipe/toolkit/versions.hpp"

namespace kmm::tool_plan {

namespace decide = recipe::decide;

namespace {

preflight::RecipeImage image_question(const decide::DriverContainer& container) {
    preflight::RecipeImage question;
    question.reference = container.image;
    question.architecture = image_architecture(container.kernel);
    question.pull_secrets = container.pull_secrets;
    question.name_space = container.name_space;
    return question;
}

/// An image name that no registry can be asked for.
bool check_reference(const decide::DriverContainer& container, Diagnostics& findings) {
    try {
        static_cast<void>(image::parse_reference(container.image));
        return true;
    } catch (const Error& error) {
        findings.push_back({Severity::error, error.code(), fmt::format("{}: image \"{}\": {}", container.name, container.image, error.message()), container.origin, error.hint(), Exit::data});
        return false;
    }
}

}  // namespace

cli::Option recipe_option(std::string name, std::string value_name, std::string help, bool repeatable) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    made.repeatable = repeatable;
    return made;
}

std::vector<cli::Option> recipe_sources() {
    cli::Option file = recipe_option("filename", "FILE", "documents, a directory of them, or - for standard input", true);
    file.short_name = 'f';
    cli::Option values_from = recipe_option("values-from", "FILE", "another name of --facts", true);
    values_from.hidden = true;
    return {file, recipe_option("chart", "[NAME=]DIR", "chart of a resource: a directory or a .tgz", true),
            recipe_option("facts", "FILE", "what a cluster would say: kernels, versions, proxy", true), values_from,
            recipe_option("fact", "MEMBER=VALUE", "one fact, over those of --facts", true)};
}

void require_resources(const RecipeDocuments& documents) {
    if (!documents.resources.empty() || !documents.modules.empty()) { return; }
    throw Error(Exit::not_found, "recipe-not-found", fmt::format("no SpecialResource among {} documents", documents.all.size())).hint("give one in -f");
}

recipe::plan::RenderedRecipes render_named(const cli::Args& args, const RecipeDocuments& documents, const recipe::plan::Facts& facts,
                                           const std::vector<std::string>& names, bool all_builds) {
    require_resources(documents);
    recipe::plan::RenderOptions options;
    options.operator_only = args.get("compat").value_or("none") == "sro";
    options.owner_uid = args.get("owned-by").value_or("");
    options.all_builds = all_builds;
    ChartPlaces charts(args, documents, names);
    const recipe::plan::ChartOf chart_of = [&](const std::string& resource, const recipe::plan::ChartReference& reference) { return charts.chart(resource, reference); };
    std::vector<std::string> resources, modules;
    for (const auto& name : names) {
        const bool is_module = recipe::plan::find_resource(documents.resources, name) == nullptr &&
                               std::any_of(documents.modules.begin(), documents.modules.end(), [&](const auto& one) { return one.resource.name == name; });
        (is_module ? modules : resources).push_back(name);
    }
    recipe::plan::RenderedRecipes rendered;
    if (names.empty() ? !documents.resources.empty() : !resources.empty()) { rendered = recipe::plan::render_recipes(documents.resources, resources, chart_of, facts, options); }
    if (names.empty() ? documents.modules.empty() : modules.empty()) { return rendered; }
    auto more = recipe::plan::render_modules(documents.modules, modules, documents.all, chart_of, facts, options);
    rendered.main = rendered.objects.empty() ? more.main : "";
    std::move(more.objects.begin(), more.objects.end(), std::back_inserter(rendered.objects));
    std::move(more.findings.begin(), more.findings.end(), std::back_inserter(rendered.findings));
    return rendered;
}

std::string image_architecture(const std::string& kernel) {
    const std::string machine = recipe::toolkit::kernel_architecture(kernel);
    if (machine == "x86_64" || kernel.ends_with("-amd64")) { return "amd64"; }
    if (machine == "aarch64" || kernel.ends_with("-arm64")) { return "arm64"; }
    return machine;
}

std::vector<decide::Decision> decide_recipes(const recipe::plan::RenderedRecipes& rendered, const RecipeDocuments& documents, const recipe::plan::Facts& facts, const cli::Args& args,
                                             cli::Context& context, Diagnostics& findings) {
    const auto containers = decide::driver_containers(rendered);
    std::vector<preflight::RecipeImage> questions;
    for (const auto& container : containers) {
        if (args.flag("check-images") && check_reference(container, findings)) { questions.push_back(image_question(container)); }
    }
    if (has_errors(findings)) { throw Error::from_diagnostics(std::move(findings)); }
    const auto answers = questions.empty() ? std::map<std::string, preflight::ImageAnswer>() : preflight::ask_recipe_images(questions, documents.all, args, context);
    std::vector<decide::Decision> decisions;
    for (const auto& container : containers) {
        const auto answer = answers.find(image_question(container).key());
        auto presence = decide::Presence::not_asked;
        if (answer != answers.end()) {
            presence = !answer->second.reached ? decide::Presence::unreachable : has_errors(answer->second.findings) ? decide::Presence::absent : decide::Presence::present;
            for (auto finding : answer->second.findings) {
                finding.position = container.origin;
                finding.severity = Severity::warning;  // the decision says what becomes of it
                findings.push_back(std::move(finding));
            }
        }
        decisions.push_back(decide::decide(container, presence, facts.update_vendor.value_or("")));
        if (answer != answers.end()) { decisions.back().digest = answer->second.digest; }
    }
    decide::wait_for_dependencies(decisions, documents.resources);
    sort_and_merge(findings);
    return decisions;
}

}  // namespace kmm::tool_plan
