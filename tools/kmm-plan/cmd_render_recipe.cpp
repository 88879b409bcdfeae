// SPDX-License-Identifier: Apache-2.0
// kmm-plan render recipe, graph and why recipe: SpecialResources.
#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/recipe_files.hpp"
#include "kmm-plan/recipe_findings.hpp"
#include "kmm-plan/verbs.hpp"
#include "recipe/plan/graph.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/plan/why.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

void require_resources(const RecipeDocuments& documents) {
    if (!documents.resources.empty()) { return; }
    throw Error(Exit::not_found, "recipe-not-found", fmt::format("no SpecialResource among {} documents", documents.all.size())).hint("give one in -f");
}

recipe::plan::RenderedRecipes render_named(const cli::Args& args, const RecipeDocuments& documents, const std::vector<std::string>& names, bool all_builds) {
    require_resources(documents);
    recipe::plan::RenderOptions options;
    options.operator_only = args.get("compat").value_or("none") == "sro";
    options.owner_uid = args.get("owned-by").value_or("");
    options.all_builds = all_builds;
    ChartPlaces charts(args, documents, names);
    return recipe::plan::render_recipes(
        documents.resources, names, [&](const std::string& resource, const recipe::plan::ChartReference& reference) { return charts.chart(resource, reference); },
        read_facts(args, documents, options.operator_only), options);
}

Exit run_render_recipe(const cli::Args& args, cli::Context& context) {
    const auto documents = read_recipe_documents(args);
    if (args.flag("print-facts")) {
        const bool operator_only = args.get("compat").value_or("none") == "sro";
        context.console.out(value::to_yaml(recipe::plan::facts_node(read_facts(args, documents, operator_only))));
        return Exit::ok;
    }
    const auto rendered = render_named(args, documents, args.positionals("NAME"), false);
    report_findings(rendered.findings, args, context);
    context.console.out(context.output == "json" ? recipe::plan::recipe_json(rendered) : recipe::plan::recipe_text(rendered));
    return Exit::ok;
}

Exit run_graph(const cli::Args& args, cli::Context& context) {
    const auto documents = read_recipe_documents(args);
    require_resources(documents);
    const auto form = context.output == "dot"       ? recipe::plan::GraphForm::dot
                      : context.output == "mermaid" ? recipe::plan::GraphForm::mermaid
                                                    : recipe::plan::GraphForm::text;
    context.console.out(recipe::plan::graph_text(documents.resources, args.positionals("NAME"), form));
    return Exit::ok;
}

Exit run_why_recipe(const cli::Args& args, cli::Context& context) {
    const auto documents = read_recipe_documents(args);
    const std::string name = args.positional("NAME");
    const auto rendered = render_named(args, documents, {name}, true);
    report_findings(rendered.findings, args, context);
    context.console.out(recipe::plan::why_text(documents.resources, name, read_facts(args, documents, false), rendered));
    return Exit::ok;
}

cli::Option recipe_option(std::string name, std::string value_name, std::string help, bool repeatable = false) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    made.repeatable = repeatable;
    return made;
}

/// Which documents, charts and facts.
std::vector<cli::Option> recipe_sources() {
    cli::Option file = recipe_option("filename", "FILE", "documents, a directory of them, or - for standard input", true);
    file.short_name = 'f';
    cli::Option values_from = recipe_option("values-from", "FILE", "another name of --facts", true);
    values_from.hidden = true;
    return {file, recipe_option("chart", "[NAME=]DIR", "chart of a resource: a directory or a .tgz", true),
            recipe_option("facts", "FILE", "what a cluster would say: kernels, versions, proxy", true), values_from,
            recipe_option("fact", "MEMBER=VALUE", "one fact, over those of --facts", true)};
}

}  // namespace

cli::Verb render_recipe_verb() {
    cli::Verb verb;
    verb.name = "render recipe";
    verb.summary = "the objects of SpecialResources";
    verb.description =
        "Prints the objects that a driver stack of the Special Resource Operator consists of, in the order in which they are applied: the namespace, each state "
        "in turn, then all files of the chart that are no state; in a state, by kind. What a resource depends on comes first. Objects with the annotation "
        "specialresource.openshift.io/kernel-affine have a copy for each kernel. Nothing is applied.\n\n"
        "Without NAME: all SpecialResources of the documents; charts below a directory of -f are not read as documents. A chart comes from --chart, from a repository file://DIR, or from a ConfigMap cm://NAMESPACE/NAME among "
        "the documents. A resource of v1alpha1 has none and uses the built-in recipe of a driver container.\n\n"
        "Kernels, systems, versions and the proxy come from Nodes, ClusterVersion, Proxy, ImageStream driver-toolkit, Secrets and ConfigMaps of -f, then from --facts, "
        "then from --fact. What nobody has said is not guessed: a template that reads it is an error.\n\n"
        "--compat sro renders what the operator makes, faults included. Without it they are mended, and a note says where the operator does something else.";
    verb.examples = {
        {"kmm-plan render recipe -f simple-kmod.yaml -f nodes.yaml --chart ./simple-kmod-0.0.1", "for the kernels of these Nodes"},
        {"kmm-plan render recipe simple-kmod -f recipes/ --facts facts.yaml --compat sro", "exactly as the operator does"},
        {"kubectl get nodes,proxies -o json | kmm-plan render recipe -f - -f recipes/ --print-facts", "the facts file of a cluster"},
    };
    verb.positionals = {{"NAME", "SpecialResource; what it depends on is rendered, too", false, true}};
    cli::Option compat = recipe_option("compat", "WHAT", "sro: with the faults of the Special Resource Operator");
    compat.choices = {"none", "sro"};
    compat.default_text = "none";
    verb.options = recipe_sources() +
                   std::vector<cli::Option>{
                       recipe_option("print-facts", "", "print the facts instead, as --facts takes them"),
                       compat,
                       recipe_option("owned-by", "UID", "uid of the resource, for ownerReferences"),
                       recipe_option("strict", "", "warnings are errors"),
                   } +
                   cli::common_options();
    verb.run = run_render_recipe;
    return verb;
}

cli::Verb graph_verb() {
    cli::Verb verb;
    verb.name = "graph";
    verb.summary = "which SpecialResource needs which, in waves";
    verb.description =
        "Prints SpecialResources and what they depend on, at any depth. Those of one wave need those of waves before it only, and can be applied at the same time. "
        "A circle is an error that names its path.";
    verb.examples = {
        {"kmm-plan graph -f recipes/", "all resources of a directory"},
        {"kmm-plan graph lustre -f recipes/ -o dot", "one and what it needs, for Graphviz"},
    };
    verb.positionals = {{"NAME", "SpecialResource; all if absent", false, true}};
    auto common = cli::common_options();
    for (auto& option : common) {
        if (option.name != "output") { continue; }
        option.choices = {"text", "dot", "mermaid"};
        option.default_text = "text";
    }
    verb.options = std::vector<cli::Option>{recipe_sources().front()} + common;
    verb.run = run_graph;
    return verb;
}

cli::Verb why_recipe_verb() {
    cli::Verb verb;
    verb.name = "why recipe";
    verb.summary = "what a SpecialResource consists of, and why";
    verb.description =
        "Prints the wave of a SpecialResource and what it needs, where its chart comes from, its kernels with system and toolkit, and for each state its objects. Of a "
        "driver container, whether its image is only pulled or built if it cannot be pulled. Registries are not asked.";
    verb.examples = {{"kmm-plan why recipe simple-kmod -f recipes/ --facts facts.yaml", "one resource for the kernels of a cluster"}};
    verb.positionals = {{"NAME", "SpecialResource"}};
    verb.options = recipe_sources() + std::vector<cli::Option>{recipe_option("strict", "", "warnings are errors")} + cli::common_options();
    verb.run = run_why_recipe;
    return verb;
}

}  // namespace kmm::tool_plan
