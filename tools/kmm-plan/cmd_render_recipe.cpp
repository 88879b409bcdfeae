// SPDX-License-Identifier: Apache-2.0
// kmm-plan render recipe: the objects of SpecialResources, and their graph.
#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/recipe_files.hpp"
#include "kmm-plan/recipe_findings.hpp"
#include "kmm-plan/verbs.hpp"
#include "recipe/plan/graph.hpp"
#include "recipe/plan/render.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

Exit run_render_recipe(const cli::Args& args, cli::Context& context) {
    const bool operator_only = args.get("compat").value_or("none") == "sro";
    const auto names = args.positionals("NAME");
    const auto documents = read_recipe_documents(args);
    const auto facts = read_facts(args, documents, operator_only);
    if (args.flag("print-facts")) {
        context.console.out(value::to_yaml(recipe::plan::facts_node(facts)));
        return Exit::ok;
    }
    if (const auto form = args.get("graph")) {
        context.console.out(recipe::plan::graph_text(documents.resources, names,
                                             *form == "dot" ? recipe::plan::GraphForm::dot : *form == "mermaid" ? recipe::plan::GraphForm::mermaid : recipe::plan::GraphForm::text));
        return Exit::ok;
    }
    if (documents.resources.empty()) {
        throw Error(Exit::not_found, "recipe-not-found", fmt::format("no SpecialResource among {} documents", documents.all.size())).hint("give one in -f");
    }
    ChartPlaces charts(args, documents, names);
    recipe::plan::RenderOptions options;
    options.operator_only = operator_only;
    options.owner_uid = args.get("owned-by").value_or("");
    const auto rendered = recipe::plan::render_recipes(
        documents.resources, names, [&](const std::string& resource, const recipe::plan::ChartReference& reference) { return charts.chart(resource, reference); }, facts, options);
    report_findings(rendered.findings, args, context);
    context.console.out(context.output == "json" ? recipe::plan::recipe_json(rendered) : recipe::plan::recipe_text(rendered));
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

}  // namespace

cli::Verb render_recipe_verb() {
    cli::Verb verb;
    verb.name = "render recipe";
    verb.summary = "the objects of SpecialResources";
    verb.description =
        "Prints the objects that a driver stack of the Special Resource Operator consists of, in the order in which they are applied: the namespace, each state "
        "in turn, then all files of the chart that are no state; in a state, by kind. What a resource depends on comes first. Objects with the annotation "
        "specialresource.openshift.io/kernel-affine have a copy for each kernel. Nothing is applied.\n\n"
        "Without NAME: all SpecialResources of the documents. A chart comes from --chart, from a repository file://DIR, or from a ConfigMap cm://NAMESPACE/NAME among "
        "the documents. A resource of v1alpha1 has none and uses the built-in recipe of a driver container.\n\n"
        "Kernels, systems, versions and the proxy come from Nodes, ClusterVersion, Proxy, ImageStream driver-toolkit, Secrets and ConfigMaps of -f, then from --facts, "
        "then from --fact. What nobody has said is not guessed: a template that reads it is an error.\n\n"
        "--compat sro renders what the operator makes, faults included. Without it they are mended, and a note says where the operator does something else.";
    verb.examples = {
        {"kmm-plan render recipe -f simple-kmod.yaml -f nodes.yaml --chart ./simple-kmod-0.0.1", "for the kernels of these Nodes"},
        {"kmm-plan render recipe simple-kmod -f recipes/ --facts facts.yaml --compat sro", "exactly as the operator does"},
        {"kubectl get nodes,proxies -o json | kmm-plan render recipe -f - -f recipes/ --print-facts", "the facts file of a cluster"},
        {"kmm-plan render recipe -f recipes/ --graph text", "which resource needs which, in waves"},
    };
    verb.positionals = {{"NAME", "SpecialResource; what it depends on is rendered, too", false, true}};
    cli::Option file = recipe_option("filename", "FILE", "documents, a directory of them, or - for standard input", true);
    file.short_name = 'f';
    cli::Option compat = recipe_option("compat", "WHAT", "sro: with the faults of the Special Resource Operator");
    compat.choices = {"none", "sro"};
    compat.default_text = "none";
    cli::Option graph = recipe_option("graph", "FORM", "print the dependencies instead");
    graph.choices = {"text", "dot", "mermaid"};
    cli::Option values_from = recipe_option("values-from", "FILE", "another name of --facts", true);
    values_from.hidden = true;
    verb.options = std::vector<cli::Option>{
                       file,
                       recipe_option("chart", "[NAME=]DIR", "chart of a resource: a directory or a .tgz", true),
                       recipe_option("facts", "FILE", "what a cluster would say: kernels, versions, proxy", true),
                       values_from,
                       recipe_option("fact", "MEMBER=VALUE", "one fact, over those of --facts", true),
                       recipe_option("print-facts", "", "print the facts instead, as --facts takes them"),
                       graph,
                       compat,
                       recipe_option("owned-by", "UID", "uid of the resource, for ownerReferences"),
                       recipe_option("strict", "", "warnings are errors"),
                   } +
                   cli::common_options();
    verb.run = run_render_recipe;
    return verb;
}

}  // namespace kmm::tool_plan
