// SPDX-License-Identifier: Apache-2.0
// kmm-plan render recipe, graph and why recipe: SpecialResources.
#include <memory>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-plan/render/recipe_run.hpp"
#include "kmm-plan/source/live.hpp"
#include "kmm-plan/source/source.hpp"
#include "kmm-plan/verbs.hpp"
#include "preflight/images.hpp"
#include "recipe/decide/why.hpp"
#include "recipe/files/findings.hpp"
#include "recipe/files/observe.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/resource/graph.hpp"
#include "sys/two_threads.hpp"

namespace kmm::tool_plan {

namespace {

/// The API server that an option names, nullptr for none: one of the environment alone is not asked.
std::unique_ptr<LiveCluster> live_cluster(const cli::Args& args, cli::Context& context) {
    const auto contexts = chosen_contexts(args);
    if (contexts.size() > 1) {
        throw Error(Exit::usage, "bad-value", fmt::format("expected one --context, found {}", contexts.size()))
            .hint("recipes are rendered for one cluster");
    }
    const bool is_asked =
        (args.get("kubeconfig") && args.source("kubeconfig") != "environment") || !contexts.front().empty();
    return is_asked ? std::make_unique<LiveCluster>(args, contexts.front(), context) : nullptr;
}

/// Errors: usage for an option that says how objects are rendered, where none are.
void require_facts_alone(const cli::Args& args) {
    if (!args.flag("print-facts")) { return; }
    for (const char* name : {"strict", "owned-by", "check-images"}) {
        if (!args.flag(name) && !args.get(name)) { continue; }
        throw Error(Exit::usage, "usage", fmt::format("--print-facts does not accept --{}", name))
            .hint("leave it out: no object is rendered and no image is looked for");
    }
}

/// Errors: usage for --strict where templates are rendered as the operator does it, which warns of nothing.
void require_warnings(const cli::Args& args) {
    if (!args.flag("strict") || args.get("compat").value_or("none") != "sro") { return; }
    throw Error(Exit::usage, "usage", "--compat sro does not accept --strict")
        .hint("leave one of them out: the operator takes values that are missing, and nothing warns of them");
}

Exit run_render_recipe(const cli::Args& args, cli::Context& context) {
    require_facts_alone(args);
    require_warnings(args);
    preflight::require_question(args);
    const auto live = live_cluster(args, context);
    auto documents = read_recipe_documents(args, context, live == nullptr ? nullptr : &live->client());
    if (live != nullptr) {
        for (auto& document : recipe::files::read_cluster_objects(live->client())) {
            documents.all.push_back(std::move(document));
        }
    }
    auto facts = read_facts(args, documents, args.get("compat").value_or("none") == "sro");
    if (live != nullptr) { recipe::files::add_server_facts(live->client(), facts); }
    if (args.flag("print-facts")) {
        // What would be rendered has to be there, although facts are those of the whole cluster.
        recipe::files::require_named(documents, args.positionals("NAME"));
        recipe::files::ChartPlaces(args, documents, args.positionals("NAME")).require_given();
        cli::print_file_document(context, recipe::plan::facts_node(facts), "--print-facts");
        return Exit::ok;
    }
    const bool asks = args.flag("check-images");
    auto rendered = render_named(args, documents, facts, args.positionals("NAME"), asks);
    if (asks) {
        recipe::decide::drop_needless_builds(
            rendered, decide_recipes(rendered, documents, facts, args, context, rendered.findings));
    }
    report_findings(rendered.findings, args, context);
    context.console.out(context.output == "json"    ? recipe::plan::recipe_json(rendered)
                        : context.output == "jsonl" ? recipe::plan::recipe_lines(rendered)
                        : context.output == "name"  ? recipe::plan::recipe_names(rendered)
                                                    : recipe::plan::recipe_text(rendered, sys::run_together()));
    return Exit::ok;
}

Exit run_graph(const cli::Args& args, cli::Context& context) {
    const auto documents = read_recipe_documents(args, context);
    require_resources(documents);
    const auto form = context.output == "dot"       ? recipe::plan::GraphForm::dot
                      : context.output == "mermaid" ? recipe::plan::GraphForm::mermaid
                                                    : recipe::plan::GraphForm::text;
    context.console.out(recipe::plan::graph_text(documents.resources, args.positionals("NAME"), form));
    return Exit::ok;
}

Exit run_why_recipe(const cli::Args& args, cli::Context& context) {
    const auto documents = read_recipe_documents(args, context);
    const std::string name = args.positional("NAME");
    const auto facts = read_facts(args, documents, false);
    auto rendered = render_named(args, documents, facts, {name}, true);
    report_findings(rendered.findings, args, context);
    if (context.output == "name") {
        std::erase_if(rendered.objects, [&](const recipe::plan::RecipeObject& one) { return one.cr != name; });
        context.console.out(recipe::plan::recipe_names(rendered));
    } else if (!cli::print_document(context,
                                    recipe::decide::why_node(documents.resources, name, facts, rendered))) {
        context.console.out(recipe::decide::why_text(documents.resources, name, facts, rendered));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb render_recipe_verb() {
    cli::Verb verb;
    verb.name = "render recipe";
    verb.summary = "render the objects of SpecialResources";
    verb.description =
        "Prints the objects of a driver stack of the Special Resource Operator in the order in which they are "
        "applied: the namespace, each state in turn, then all other files of the chart; within a state, by kind. "
        "Dependencies of a resource come first. Objects with the annotation "
        "specialresource.openshift.io/kernel-affine have a copy for each kernel. Nothing is applied.\n\n"
        "Without NAME all SpecialResources of the documents are rendered. Charts below a directory of -f are not "
        "read as documents, but for a SpecialResource beside a Chart.yaml. A chart comes from --chart, from a "
        "repository file://DIR, relative to the document or to the current directory, or from a ConfigMap "
        "cm://NAMESPACE/NAME among the documents. A resource of v1alpha1 has no chart and uses the built-in recipe of "
        "a driver container.\n\n"
        "Kernels, systems, versions and the proxy come from Nodes, ClusterVersion, Proxy, ImageStream "
        "driver-toolkit, Secrets and ConfigMaps of -f, then from --facts, then from --fact. Missing facts are not "
        "guessed: a template that reads one is an error.\n\n"
        "With --kubeconfig or --context, SpecialResources that -f does not have, ConfigMaps with their charts, Nodes "
        "and the other facts are read from that API server.\n\n"
        "Builds with the annotation driver-container-vendor are left out unless the fact updateVendor names their "
        "vendor. With --check-images the registries are asked, through the mirrors of ImageDigestMirrorSets, "
        "ImageTagMirrorSets and ImageContentSourcePolicies among the documents: a build is rendered for each kernel "
        "whose image does not exist.\n\n"
        "--compat sro renders what the operator creates, with its faults. Without it these are corrected, and a note "
        "says where the operator differs.";
    verb.examples = {
        {"kmm-plan render recipe -f simple-kmod.yaml -f nodes.yaml --chart ./simple-kmod-0.0.1",
         "for the kernels of these Nodes"},
        {"kmm-plan render recipe simple-kmod -f recipes/ --facts facts.yaml --compat sro",
         "exactly as the operator does"},
        {"kubectl get nodes,proxies -o json | kmm-plan render recipe -f - -f recipes/ --print-facts",
         "the facts file of a cluster"},
    };
    verb.positionals = {{"NAME", "SpecialResource; what it depends on is rendered, too", false, true}};
    auto compat = cli::with_default(
        cli::with_choices(cli::option("compat", "WHAT", "sro: with the faults of the Special Resource Operator"),
                          {"none", "sro"}),
        "none");
    std::vector<cli::Option> server;
    for (auto& option : source_options()) {
        if (option.name == "kubeconfig" || option.name == "context" || option.name == "api-timeout") {
            server.push_back(std::move(option));
        }
    }
    verb.options = recipe_sources() + server +
                   std::vector<cli::Option>{
                       cli::option("print-facts", "", "print the facts instead, as --facts takes them"),
                       compat,
                       cli::option("owned-by", "UID", "uid of the resource, for ownerReferences"),
                       cli::option("strict", "", "warnings are errors"),
                   } +
                   preflight::registry_options() + cli::common_options();
    verb.run = run_render_recipe;
    return verb;
}

cli::Verb graph_verb() {
    cli::Verb verb;
    verb.name = "graph";
    verb.summary = "show which SpecialResource needs which, in waves";
    verb.description =
        "Prints SpecialResources and their dependencies, at any depth. Resources of one wave depend only on earlier "
        "waves and can be applied at the same time. A cycle is an error that names its path.";
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
    auto sources = recipe_sources();
    sources.resize(2);  // -f and --ignore
    verb.options = std::move(sources) + common;
    verb.run = run_graph;
    return verb;
}

cli::Verb why_recipe_verb() {
    cli::Verb verb;
    verb.name = "why recipe";
    verb.summary = "show what a SpecialResource consists of, and why";
    verb.description =
        "Prints the wave and the dependencies of a SpecialResource, the source of its chart, its kernels with system "
        "and toolkit, and the objects of each state. For a driver container it says whether the image is only "
        "pulled, or built if it cannot be pulled. Registries are not asked.";
    verb.examples = {{"kmm-plan why recipe simple-kmod -f recipes/ --facts facts.yaml",
                      "one resource for the kernels of a cluster"}};
    verb.positionals = {{"NAME", "SpecialResource"}};
    verb.options = recipe_sources() + std::vector<cli::Option>{cli::option("strict", "", "warnings are errors")} +
                   cli::common_options();
    verb.run = run_why_recipe;
    return verb;
}

}  // namespace kmm::tool_plan
