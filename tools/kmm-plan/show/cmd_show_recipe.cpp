// SPDX-License-Identifier: Apache-2.0
// kmm-plan show recipe: what becomes of each state of a driver stack on each kernel.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/render/recipe_run.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/outputs.hpp"
#include "kmm-plan/verbs.hpp"
#include "preflight/images.hpp"
#include "recipe/files/findings.hpp"
#include "recipe/resource/graph.hpp"
#include "recipe/resource/values.hpp"

namespace kmm::tool_plan {

namespace decide = recipe::decide;

using value::Node;

namespace {

std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string state_table(const std::vector<decide::StateLine>& lines, const cli::Context& context) {
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"RESOURCE", "STATE", "KERNEL", "OBJECTS", "DECISION", "REASON"};
    if (wide) { headers.insert(headers.end(), {"GATES", "IMAGE", "DIGEST", "MESSAGE"}); }
    std::vector<std::vector<std::string>> rows;
    for (const auto& line : lines) {
        std::vector<std::string> row{line.cr,
                                     line.state,
                                     text_or_dash(line.kernel),
                                     fmt::format("{}", line.objects.size()),
                                     std::string(decide::to_string(line.action)),
                                     text_or_dash(line.reason)};
        if (wide) {
            row.insert(row.end(), {text_or_dash(base::join(line.gates, "; ")), text_or_dash(line.image),
                                   text_or_dash(line.digest), text_or_dash(line.message)});
        }
        rows.push_back(std::move(row));
    }
    return cli::folded_table(std::move(headers), std::move(rows), 1, context.table_width());
}

std::map<std::string, std::uint64_t> count_actions(const std::vector<decide::StateLine>& lines) {
    std::map<std::string, std::uint64_t> counts;
    for (const auto& line : lines) { ++counts[std::string(decide::to_string(line.action))]; }
    return counts;
}

Node kernels_node(const recipe::plan::Facts& facts, const recipe::plan::SpecialResource& resource) {
    Node kernels = Node::sequence();
    for (const auto& kernel : recipe::plan::select_kernels(facts, resource, false).all) {
        Node one = Node::mapping({{"kernel", kernel.kernel}});
        if (!kernel.system.os.empty()) { one.set("system", kernel.system.os); }
        if (kernel.toolkit && !kernel.toolkit->image.empty()) { one.set("toolkit", kernel.toolkit->image); }
        kernels.push_back(std::move(one));
    }
    return kernels;
}

Node recipe_plan_node(const RecipeDocuments& documents, const recipe::plan::Facts& facts,
                      const std::vector<std::string>& names, const std::vector<decide::StateLine>& lines,
                      const Diagnostics& findings) {
    Node node = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "RecipePlan"}});
    Node resources = Node::sequence();
    std::uint64_t number = 0;
    for (const auto& wave : recipe::plan::apply_waves(documents.resources, names)) {
        ++number;
        for (const auto& name : wave) {
            Node one = Node::mapping({{"name", name}, {"wave", number}});
            if (const auto* resource = recipe::plan::find_resource(documents.resources, name)) {
                one.set("namespace", resource->name_space);
                one.set("chart", resource->is_built_in()
                                     ? std::string("driver-container")
                                     : fmt::format("{} {}", resource->chart.name, resource->chart.version));
                std::vector<std::string> needs;
                for (const auto& dependency : resource->dependencies) { needs.push_back(dependency.name); }
                one.set("needs", Node::strings(needs));
                if (resource->management == recipe::plan::Management::managed) {
                    one.set("kernels", kernels_node(facts, *resource));
                }
            }
            Node states = Node::sequence();
            for (const auto& line : lines) {
                if (line.cr == name) { states.push_back(decide::line_node(line)); }
            }
            one.set("states", std::move(states));
            resources.push_back(std::move(one));
        }
    }
    node.set("resources", std::move(resources));
    Node& summary = node.set("summary", Node::mapping());
    for (const auto& [action, count] : count_actions(lines)) { summary.set(action, count); }
    node.set("findings", diagnostics_node(findings));
    return node;
}

std::string decisions_text(const std::vector<decide::StateLine>& lines) {
    std::vector<std::string> parts;
    for (const auto& [action, count] : count_actions(lines)) { parts.push_back(fmt::format("{} {}", count, action)); }
    return fmt::format("\n{} states: {}\n", lines.size(), base::join(parts, ", "));
}

/// Directories whose charts may be read: those of --chart, and those beside the recipes.
std::set<std::string> chart_directories(const cli::Args& args) {
    std::set<std::string> found;
    for (const auto& chart : args.all("chart")) { found.insert(chart.substr(chart.find('=') + 1)); }
    for (const auto& file : args.all("filename")) {
        const auto beside = std::filesystem::path(file).parent_path();
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(beside.empty() ? "." : beside, ignored)) {
            if (std::filesystem::exists(entry.path() / "Chart.yaml", ignored)) { found.insert(entry.path().native()); }
        }
    }
    return found;
}

Exit run_show_recipe(const cli::Args& args, cli::Context& context) {
    preflight::require_question(args);
    require_outputs_apart(args, chart_directories(args));
    const auto documents = read_recipe_documents(args, context);
    const auto facts = read_facts(args, documents, false);
    const auto names = args.positionals("NAME");
    auto rendered = render_named(args, documents, facts, names, true);
    const auto decisions = decide_recipes(rendered, documents, facts, args, context, rendered.findings);
    const auto lines = decide::state_lines(rendered, decisions);
    auto objects = report::plan_objects();
    for (const auto& one : rendered.objects) {
        const std::string kind = decide::text_at(one.object, {"kind"});
        ++objects.samples[{one.cr, kind}];
    }
    write_metrics(args, context, {objects});
    report_findings(rendered.findings, args, context);
    if (context.output == "jsonl") {
        for (const auto& line : lines) { print_document(context, decide::line_node(line)); }
    } else if (cli::document_form(context)) {
        cli::print_document(context, recipe_plan_node(documents, facts, names, lines, rendered.findings));
    } else if (context.output == "name") {
        for (const auto& line : lines) {
            context.console.out(
                fmt::format("{} {}{}{}\n", cli::plain_name(line.cr), cli::plain_name(line.state),
                            line.kernel.empty() ? "" : " ", cli::plain_name(line.kernel)));
        }
    } else {
        context.console.out(state_table(lines, context) + decisions_text(lines));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb show_recipe_verb() {
    cli::Verb verb;
    verb.name = "show recipe";
    verb.summary = "show for each state and kernel: pull, build or wait";
    verb.description =
        "Prints the states of SpecialResources in the order in which they are applied, with the decision for each "
        "kernel: apply; pull, if the image of its driver container exists; build, if it does not exist and a "
        "BuildConfig or Job with the same annotation driver-container-vendor builds it; skip, for a build that is "
        "not needed; wait, if neither is possible, or if a dependency waits.\n\n"
        "Without --check-images, images are assumed to exist unless the fact updateVendor names their vendor. With "
        "it, registries are asked through the mirrors of ImageDigestMirrorSets, ImageTagMirrorSets and "
        "ImageContentSourcePolicies among the documents, then of --mirror-config.";
    verb.examples = {
        {"kmm-plan show recipe -f recipes/ --facts facts.yaml", "all resources of a directory"},
        {"kmm-plan show recipe hello -f recipes/ -f mirrors.yaml --facts facts.yaml --check-images",
         "ask the registries, through mirrors"},
        {"kmm-plan show recipe -f recipes/ --facts facts.yaml -o json", "with objects, gates and images"},
    };
    verb.positionals = {{"NAME", "SpecialResource; all if absent", false, true}};
    verb.options = recipe_sources() +
                   std::vector<cli::Option>{cli::option("strict", "", "warnings are errors"), metrics_option(),
                                            metrics_cluster_option()} +
                   preflight::registry_options() + cli::common_options();
    verb.run = run_show_recipe;
    return verb;
}

}  // namespace kmm::tool_plan
