// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/options.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "recipe/resource/graph.hpp"
#include "sys/two_threads.hpp"

namespace kmm::recipe::files {

namespace {

/// spec.metadata.version of a resource without a chart, which the built-in chart's own version says nothing of.
std::string version_of(const recipe::plan::SpecialResource* resource, const recipe::chart::Chart& chart) {
    const auto* value = resource == nullptr || !resource->is_built_in() ? nullptr : &resource->object;
    for (const char* key : {"spec", "metadata", "version"}) {
        if (value == nullptr || !value->is_map()) { return chart.metadata.version; }
        const auto found = value->members().find(key);
        value = found == value->members().end() ? nullptr : &found->second;
    }
    return value == nullptr || value->text().empty() ? chart.metadata.version : value->text();
}

}  // namespace

cli::Option ignore_option() {
    return cli::repeatable(cli::option(
        "ignore", "GLOB", "files and directories to leave out below a directory of -f; * and ? match any characters"));
}

std::vector<cli::Option> recipe_sources() {
    auto file = cli::repeatable(
        cli::option("filename", 'f', "FILE", "documents, a directory of them, or - for standard input"));
    auto values_from = cli::hidden(cli::repeatable(cli::option("values-from", "FILE", "another name of --facts")));
    return {
        file, ignore_option(),
        cli::repeatable(cli::option("chart", "[NAME=]DIR", "chart of a resource or of that name: directory or .tgz")),
        cli::repeatable(cli::option("facts", "FILE", "what a cluster would say: kernels, versions, proxy")),
        values_from, cli::repeatable(cli::option("fact", "MEMBER=VALUE", "one fact, over those of --facts")),
        follow_links_option()};
}

void require_resources(const RecipeDocuments& documents) {
    if (!documents.resources.empty() || !documents.modules.empty()) { return; }
    throw Error(Exit::not_found, "recipe-not-found",
                "no SpecialResource among " + base::counted(documents.all.size(), "document"))
        .hint("give one in -f");
}

namespace {

/// `names` of resources, and those of modules.
std::pair<std::vector<std::string>, std::vector<std::string>> split_names(const RecipeDocuments& documents,
                                                                          const std::vector<std::string>& names) {
    std::vector<std::string> resources, modules;
    for (const auto& name : names) {
        const bool is_module = recipe::plan::find_resource(documents.resources, name) == nullptr &&
                               std::any_of(documents.modules.begin(), documents.modules.end(),
                                           [&](const auto& one) { return one.resource.name == name; });
        (is_module ? modules : resources).push_back(name);
    }
    return {std::move(resources), std::move(modules)};
}

}  // namespace

void require_named(const RecipeDocuments& documents, const std::vector<std::string>& names) {
    const auto resources = split_names(documents, names).first;
    if (!resources.empty()) { static_cast<void>(recipe::plan::apply_order(documents.resources, resources)); }
}

recipe::plan::RenderedRecipes render_named(const cli::Args& args, const RecipeDocuments& documents,
                                           const recipe::plan::Facts& facts, const std::vector<std::string>& names,
                                           bool all_builds, std::map<std::string, std::string>* versions) {
    require_resources(documents);
    recipe::plan::RenderOptions options;
    options.operator_only = args.get("compat").value_or("none") == "sro";
    options.owner_uid = args.get("owned-by").value_or("");
    options.all_builds = all_builds;
    options.run = sys::run_together();
    ChartPlaces charts(args, documents, names);
    std::mutex versions_mutex;
    const recipe::plan::ChartOf chart_of = [&](const std::string& resource,
                                               const recipe::plan::ChartReference& reference) {
        auto chart = charts.chart(resource, reference);
        if (versions != nullptr) {
            const std::lock_guard lock(versions_mutex);
            (*versions)[resource] = version_of(recipe::plan::find_resource(documents.resources, resource), chart);
        }
        return chart;
    };
    const auto [resources, modules] = split_names(documents, names);
    recipe::plan::RenderedRecipes rendered;
    if (names.empty() ? !documents.resources.empty() : !resources.empty()) {
        rendered = recipe::plan::render_recipes(documents.resources, resources, chart_of, facts, options);
    }
    if (names.empty() ? documents.modules.empty() : modules.empty()) { return rendered; }
    auto more = recipe::plan::render_modules(documents.modules, modules, documents.all, chart_of, facts, options);
    rendered.main = rendered.objects.empty() ? more.main : "";
    std::move(more.objects.begin(), more.objects.end(), std::back_inserter(rendered.objects));
    std::move(more.findings.begin(), more.findings.end(), std::back_inserter(rendered.findings));
    return rendered;
}

}  // namespace kmm::recipe::files
