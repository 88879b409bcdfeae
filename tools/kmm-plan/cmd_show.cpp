// SPDX-License-Identifier: Apache-2.0
// kmm-plan show: one line per node and module.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/table.hpp"
#include "kmm-plan/documents.hpp"
#include "kmm-plan/line_writer.hpp"
#include "kmm-plan/plan_options.hpp"
#include "kmm-plan/verbs.hpp"

namespace kmm::tool_plan {

namespace {

std::set<std::string> selected_names(const Source& source, const cli::Args& args) {
    std::set<std::string> nodes;
    for (const auto* node : select_nodes(source, args, args.positionals("NODE"))) { nodes.insert(node->meta.name); }
    return nodes;
}

void keep_selected(plan::Plan& plan, const Source& source, const cli::Args& args) {
    const auto nodes = selected_names(source, args);
    const auto ns = args.get("namespace");
    std::erase_if(plan.entries, [&](const plan::Entry& entry) {
        return nodes.count(entry.node) == 0 || (ns && entry.namespace_ != *ns);
    });
}

void warn(const Diagnostics& diagnostics, cli::Context& context) {
    if (context.verbosity < 0) { return; }
    for (const auto& diagnostic : diagnostics) {
        if (diagnostic.severity == Severity::note) { continue; }
        context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
    }
}

/// A large fleet has millions of lines: they are written while they are made, the warnings follow.
Exit show_lines(const Source& source, const plan::Options& options, const cli::Args& args, cli::Context& context) {
    const auto nodes = selected_names(source, args);
    const bool all = nodes.size() == source.objects.nodes.size();
    const auto ns = args.get("namespace");
    LineWriter writer(context.console);
    const auto diagnostics = plan::visit_plan(source.objects, options, [&](const plan::Line& line) {
        const bool wanted = (all || nodes.count(line.node.meta.name) != 0) && (!ns || line.entry.namespace_ == *ns);
        if (wanted) { writer.write(line); }
    });
    writer.flush();
    warn(diagnostics, context);
    return Exit::ok;
}

std::string mapping_text(const plan::Entry& entry) {
    if (!entry.mapping_index) { return "-"; }
    return fmt::format("[{}] {} {}", *entry.mapping_index, entry.mapping_literal ? "literal" : "regexp", entry.mapping_text);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

/// Action and reason matter more than a registry's name: on a narrow terminal images lose their beginning, the tag stays.
void shorten_images(std::vector<std::vector<std::string>>& rows, std::size_t width) {
    constexpr std::size_t k_image = 4;
    constexpr std::size_t k_image_min = 12;
    std::vector<std::size_t> widths(7, 7);  // about the width of a header
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < widths.size(); ++i) { widths[i] = std::max(widths[i], row[i].size()); }
    }
    std::size_t others = 2 * (widths.size() - 1);
    for (std::size_t i = 0; i < widths.size(); ++i) { others += i == k_image ? 0 : widths[i]; }
    const std::size_t room = std::max(k_image_min, width > others ? width - others : 0);
    for (auto& row : rows) {
        if (row[k_image].size() > room) { row[k_image] = "…" + row[k_image].substr(row[k_image].size() - (room - 1)); }
    }
}

std::string table_text(const plan::Plan& plan, const cli::Context& context) {
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"NODE", "KERNEL", "MODULE", "VERSION", "IMAGE", "ACTION", "REASON"};
    if (wide) { headers.insert(headers.end(), {"MAPPING", "MESSAGE"}); }
    std::vector<std::vector<std::string>> rows;
    for (const auto& entry : plan.entries) {
        std::vector<std::string> row{entry.node,
                                     or_dash(entry.kernel),
                                     fmt::format("{}/{}", entry.namespace_, entry.module),
                                     or_dash(entry.version),
                                     or_dash(entry.image),
                                     std::string(plan::to_string(entry.action)),
                                     entry.reason};
        if (wide) { row.insert(row.end(), {mapping_text(entry), entry.message}); }
        rows.push_back(std::move(row));
    }
    if (!context.console.out_is_terminal()) { return cli::format_table(headers, rows, 0); }
    shorten_images(rows, context.console.width());
    return cli::format_table(headers, rows, context.console.width());
}

void print(const Source& source, value::Node digests, const plan::Plan& plan, const plan::Options& options, cli::Context& context) {
    if (context.output == "json" || context.output == "yaml") {
        context.console.out(machine_text(plan_node(source, std::move(digests), plan, options), context.output));
    } else if (context.output == "name") {
        for (const auto& entry : plan.entries) {
            context.console.out(fmt::format("{} {}/{}\n", entry.node, entry.namespace_, entry.module));
        }
    } else if (plan.entries.empty()) {
        context.console.err(fmt::format("nothing to show; read: Nodes {}, Modules {}\n", source.objects.nodes.size(),
                                        source.objects.modules.size()));
    } else {
        context.console.out(table_text(plan, context));
    }
}

Exit run_show(const cli::Args& args, cli::Context& context) {
    Source source = read_valid_source(args, context);
    const bool plan_file = context.output == "json" || context.output == "yaml";
    value::Node digests = plan_file ? digests_node(source.objects) : value::Node();
    apply_what_if(args, source);
    const plan::Options options = plan_options(args, source);
    if (context.output == "jsonl") { return show_lines(source, options, args, context); }
    plan::Plan plan = plan::make_plan(source.objects, options);
    warn(plan.diagnostics, context);
    plan.diagnostics.insert(plan.diagnostics.end(), source.diagnostics.begin(), source.diagnostics.end());
    sort_and_merge(plan.diagnostics);
    keep_selected(plan, source, args);
    print(source, std::move(digests), plan, options, context);
    return Exit::ok;
}

}  // namespace

cli::Verb show_verb() {
    cli::Verb verb;
    verb.name = "show";
    verb.summary = "one line per node and module: what happens there, and the reason";
    verb.description =
        "Prints the settled plan; --next prints what the very next pass over the observed state does. With -o json the output "
        "is the plan file. Its source.digests say what was read: one SHA-256 for each kind, over what decisions read of its objects, "
        "whatever files, order or format they came in. Data of Secrets is not part of it.\n\n"
        "Actions are load, keep, reload, unload, blocked and none. `kmm-plan why` explains a line.";
    verb.examples = {
        {"kmm-plan show --cluster ./fleet", "the whole fleet"},
        {"kmm-plan show --cluster ./fleet node-a node-b", "two nodes"},
        {"kmm-plan show --cluster ./fleet -f new-module.yaml", "what if: documents on top of the cluster"},
        {"kmm-plan show --cluster ./fleet --kernel 6.1.0-60-amd64", "what if all nodes booted into that kernel"},
        {"kmm-plan show --cluster ./fleet --missing '*:v2-*'", "what if these images are not there"},
        {"kmm-plan show --cluster ./fleet -o json", "the plan file"},
    };
    verb.positionals = {{"NODE", "names of nodes; all if absent", false, true}};
    verb.options = plan_option_list() + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_show;
    return verb;
}

}  // namespace kmm::tool_plan
