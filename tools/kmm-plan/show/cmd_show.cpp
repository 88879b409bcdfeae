// SPDX-License-Identifier: Apache-2.0
// kmm-plan show: one line per node and module.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/line_writer.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/verbs.hpp"

namespace kmm::tool_plan {

namespace {

/// What the command line selects of one cluster.
struct Selection {
    std::set<std::string> nodes;
    std::optional<std::string> ns;
    std::set<plan::Action> actions;  ///< empty: all

    [[nodiscard]] bool takes(const plan::Entry& entry) const {
        return (!ns || entry.namespace_ == *ns) && (actions.empty() || actions.contains(entry.action));
    }
};

constexpr std::array k_actions{plan::Action::load,   plan::Action::keep,    plan::Action::reload,
                               plan::Action::unload, plan::Action::blocked, plan::Action::none};

/// Lines by action.
using Counts = std::map<plan::Action, std::size_t>;

std::set<plan::Action> chosen_actions(const cli::Args& args) {
    std::set<plan::Action> chosen;
    for (const auto& word : args.all("action")) {
        const auto* const found = std::find_if(k_actions.begin(), k_actions.end(), [&](plan::Action action) { return plan::to_string(action) == word; });
        if (found != k_actions.end()) { chosen.insert(*found); }
    }
    return chosen;
}

/// "12 lines: 3 load, 9 keep".
std::string summary_text(const Counts& counts) {
    std::size_t lines = 0;
    std::vector<std::string> parts;
    for (const auto action : k_actions) {
        const auto found = counts.find(action);
        if (found == counts.end()) { continue; }
        lines += found->second;
        parts.push_back(fmt::format("{} {}", found->second, plan::to_string(action)));
    }
    return fmt::format("{} line{}: {}\n", lines, lines == 1 ? "" : "s", base::join(parts, ", "));
}

/// Of several clusters a node that is named must be in one at least. Errors: those of select_nodes.
std::vector<Selection> selections(const std::vector<Source>& sources, const cli::Args& args) {
    const auto names = args.positionals("NODE");
    const auto has = [](const Source& source, const std::string& name) {
        const auto& nodes = source.objects.nodes;
        return std::any_of(nodes.begin(), nodes.end(), [&](const api::Node& node) { return node.meta.name == name; });
    };
    std::vector<Selection> result;
    for (const auto& source : sources) {
        std::vector<std::string> here;
        for (const auto& name : names) {
            const bool elsewhere = !has(source, name) && std::any_of(sources.begin(), sources.end(), [&](const Source& other) {
                return has(other, name);
            });
            if (!elsewhere) { here.push_back(name); }
        }
        Selection selection{{}, args.get("namespace"), chosen_actions(args)};
        if (names.empty() || !here.empty()) {
            for (const auto* node : select_nodes(source, args, here)) { selection.nodes.insert(node->meta.name); }
        }
        result.push_back(std::move(selection));
    }
    return result;
}

void keep_selected(plan::Plan& plan, const Selection& selection) {
    std::erase_if(plan.entries, [&](const plan::Entry& entry) {
        return selection.nodes.count(entry.node) == 0 || !selection.takes(entry);
    });
}

void warn(const Diagnostics& diagnostics, cli::Context& context) {
    if (context.verbosity < 0) { return; }
    for (const auto& diagnostic : diagnostics) {
        if (diagnostic.severity == Severity::note) { continue; }
        context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
    }
}

/// A large fleet has millions of lines: they are written while they are made, the warnings follow. Returns how many they are.
std::size_t show_lines(const Source& source, const plan::Options& options, const Selection& selection, const std::string& cluster,
                       cli::Context& context) {
    const bool all = selection.nodes.size() == source.objects.nodes.size();
    LineWriter writer(context.console, cluster);
    std::size_t count = 0;
    const auto diagnostics = plan::visit_plan(source.objects, options, [&](const plan::Line& line) {
        const bool wanted = (all || selection.nodes.count(line.node.meta.name) != 0) && selection.takes(line.entry);
        if (!wanted) { return; }
        writer.write(line);
        ++count;
    });
    writer.flush();
    warn(diagnostics, context);
    return count;
}

std::string mapping_text(const plan::Entry& entry) {
    if (!entry.mapping_index) { return "-"; }
    return fmt::format("[{}] {} {}", *entry.mapping_index, entry.mapping_literal ? "literal" : "regexp", entry.mapping_text);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

/// Action and reason matter more than a registry's name: on a narrow terminal images lose their beginning, the tag stays.
void shorten_images(std::vector<std::vector<std::string>>& rows, std::size_t width, std::size_t image) {
    constexpr std::size_t k_image_min = 8;
    std::vector<std::size_t> widths(rows.empty() ? image + 1 : rows.front().size(), 7);  // about the width of a header
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < widths.size(); ++i) { widths[i] = std::max(widths[i], row[i].size()); }
    }
    std::size_t others = 2 * (widths.size() - 1);
    for (std::size_t i = 0; i < widths.size(); ++i) { others += i == image ? 0 : widths[i]; }
    const std::size_t room = std::max(k_image_min, width > others ? width - others : 0);
    for (auto& row : rows) {
        if (row[image].size() > room) { row[image] = "…" + row[image].substr(row[image].size() - (room - 1)); }
    }
}

/// One cluster with its plan, or the rows of its table.
struct Planned {
    Source source;
    plan::Options options;
    value::Node digests;
    plan::Plan plan;
    std::vector<std::vector<std::string>> rows;
};

std::vector<std::string> table_row(const plan::Line& line, const std::string& cluster, bool wide) {
    const plan::Entry& entry = line.entry;
    std::vector<std::string> row;
    row.reserve(10);
    if (!cluster.empty()) { row.push_back(cluster); }
    row.push_back(line.node.meta.name);
    row.push_back(or_dash(entry.kernel));
    row.push_back(entry.namespace_ + "/" + entry.module);
    row.push_back(or_dash(entry.version));
    row.push_back(or_dash(entry.image));
    row.emplace_back(plan::to_string(entry.action));
    row.push_back(entry.reason);
    if (wide) {
        row.push_back(mapping_text(entry));
        row.push_back(entry.message);
    }
    return row;
}

/// Entries have many times the text of their rows: of a large fleet they are not to be held.
std::vector<std::vector<std::string>> table_rows(const Source& source, const plan::Options& options, const Selection& selection,
                                                 const std::string& cluster, cli::Context& context, Counts& counts) {
    std::vector<std::vector<std::string>> rows;
    const bool wide = context.output == "wide";
    const api::Node* node = nullptr;
    bool is_selected = false;
    const auto diagnostics = plan::visit_plan(source.objects, options, [&](const plan::Line& line) {
        if (node != &line.node) {
            node = &line.node;
            is_selected = selection.nodes.count(node->meta.name) != 0;
        }
        if (!is_selected || !selection.takes(line.entry)) { return; }
        rows.push_back(table_row(line, cluster, wide));
        ++counts[line.entry.action];
    });
    warn(diagnostics, context);
    return rows;
}

/// Where the table is too wide, the reason stands below its line: a code that is cut says nothing.
std::string with_reasons_below(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows, std::size_t width, std::size_t image) {
    headers.pop_back();
    std::vector<std::string> reasons{""};  // below the headers
    for (auto& row : rows) {
        reasons.push_back(fmt::format("  {}\n", row.back()));
        row.pop_back();
    }
    shorten_images(rows, width, image);
    return cli::interleaved(cli::format_table(headers, rows, width), reasons);
}

std::string table_text(std::vector<Planned>& all, const cli::Context& context) {
    const bool several = all.size() > 1;
    std::vector<std::string> headers{"NODE", "KERNEL", "MODULE", "VERSION", "IMAGE", "ACTION", "REASON"};
    if (context.output == "wide") { headers.insert(headers.end(), {"MAPPING", "MESSAGE"}); }
    if (several) { headers.insert(headers.begin(), "CLUSTER"); }
    std::vector<std::vector<std::string>> rows;
    for (auto& planned : all) {
        if (rows.empty()) { rows.swap(planned.rows); }
        std::move(planned.rows.begin(), planned.rows.end(), std::back_inserter(rows));
    }
    if (!context.console.out_is_terminal() || context.output == "wide") { return cli::format_table(headers, rows, 0); }
    const std::size_t width = context.console.width();
    const std::size_t image = several ? 5 : 4;
    auto shortened = rows;
    shorten_images(shortened, width, image);
    const std::string whole = cli::format_table(headers, shortened, 0);
    return cli::fits(whole, width) ? whole : with_reasons_below(std::move(headers), std::move(rows), width, image);
}

value::Node machine_node(std::vector<Planned>& all) {
    std::vector<std::pair<std::string, value::Node>> plans;
    for (auto& [source, options, digests, plan, rows] : all) {
        plans.emplace_back(source.cluster, plan_node(source, std::move(digests), plan, options));
    }
    return plans.size() == 1 ? std::move(plans.front().second) : joined_plan_node(plans);
}

/// What to say if there are no lines: a misspelt selector is not to look like an empty cluster.
std::string nothing_text(const std::vector<Source>& sources, const std::vector<Selection>& selected, const cli::Args& args) {
    std::size_t nodes = 0, modules = 0;
    for (const auto& source : sources) {
        nodes += source.objects.nodes.size();
        modules += source.objects.modules.size();
    }
    const bool none = nodes > 0 && std::all_of(selected.begin(), selected.end(), [](const Selection& selection) { return selection.nodes.empty(); });
    const std::string why = none                           ? fmt::format(": no node matches -l {}", base::escape(args.get("selector").value_or("")))
                            : args.all("action").empty() ? ""
                                                           : fmt::format(": no line has action {}", base::join(args.all("action"), " or "));
    return fmt::format("nothing to show{}; read: Nodes {}, Modules {}\n", why, nodes, modules);
}

void print(std::vector<Planned>& all, const Counts& counts, cli::Context& context) {
    if (context.output == "json" || context.output == "yaml") {
        print_document(context, machine_node(all));
    } else if (context.output == "name") {
        for (const auto& planned : all) {
            const std::string cluster = all.size() > 1 ? planned.source.cluster + " " : "";
            for (const auto& entry : planned.plan.entries) {
                context.console.out(fmt::format("{}{} {}/{}\n", cluster, entry.node, entry.namespace_, entry.module));
            }
        }
    } else if (std::any_of(all.begin(), all.end(), [](const Planned& planned) { return !planned.rows.empty(); })) {
        context.console.out(table_text(all, context));
        context.console.out("\n" + summary_text(counts));
    }
}

/// How many configurations of each Module the nodes have.
report::MetricFamily planned_objects(const std::vector<Source>& sources, const std::vector<Selection>& selected, const cli::Args& args) {
    auto objects = report::plan_objects();
    for (std::size_t i = 0; i < sources.size(); ++i) {
        (void)plan::visit_plan(sources[i].objects, plan_options(args, sources[i]), [&](const plan::Line& line) {
            if (selected[i].nodes.count(line.node.meta.name) == 0 || !selected[i].takes(line.entry)) { return; }
            const bool has_config = line.entry.action == plan::Action::load || line.entry.action == plan::Action::keep || line.entry.action == plan::Action::reload;
            objects.samples[{line.entry.namespace_ + "/" + line.entry.module, "ModuleConfig"}] += has_config ? 1 : 0;
        });
    }
    return objects;
}

Exit run_show(const cli::Args& args, cli::Context& context) {
    std::vector<Source> sources = read_valid_sources(args, context);
    const bool plan_file = context.output == "json" || context.output == "yaml";
    const bool several = sources.size() > 1;
    std::vector<value::Node> digests;
    for (auto& source : sources) {
        digests.push_back(plan_file ? digests_node(source.objects) : value::Node());
        apply_what_if(args, source);
    }
    check_namespace(sources, args);
    const auto selected = selections(sources, args);
    const std::string nothing = nothing_text(sources, selected, args);
    if (args.get("metrics")) { write_metrics(args, context, {planned_objects(sources, selected, args)}); }
    std::size_t lines = 0;
    Counts counts;
    std::vector<Planned> all;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& source = sources[i];
        plan::Options options = plan_options(args, source);
        if (context.output == "jsonl") {
            lines += show_lines(source, options, selected[i], several ? source.cluster : "", context);
            continue;
        }
        if (context.output == "table" || context.output == "wide") {
            auto rows = table_rows(source, options, selected[i], several ? source.cluster : "", context, counts);
            all.push_back({std::move(source), std::move(options), {}, {}, std::move(rows)});
            continue;
        }
        plan::Plan plan = plan::make_plan(source.objects, options);
        warn(plan.diagnostics, context);
        plan.diagnostics.insert(plan.diagnostics.end(), source.diagnostics.begin(), source.diagnostics.end());
        sort_and_merge(plan.diagnostics);
        keep_selected(plan, selected[i]);
        all.push_back({std::move(source), std::move(options), std::move(digests[i]), std::move(plan), {}});
    }
    for (const auto& planned : all) { lines += planned.plan.entries.size() + planned.rows.size(); }
    if (context.output != "jsonl") { print(all, counts, context); }
    const bool is_table = context.output == "table" || context.output == "wide";
    if (lines == 0 && (is_table || context.verbosity >= 0)) { context.console.err(nothing); }
    return Exit::ok;
}

}  // namespace

cli::Verb show_verb() {
    cli::Verb verb;
    verb.name = "show";
    verb.summary = "show what happens to each module on each node, and why";
    verb.description =
        "Prints the settled plan; --next prints what the next pass over the observed state does. -o json prints "
        "the plan file. Its source.digests identify the input: one SHA-256 for each kind, over the fields that "
        "decisions read, independent of files, order and format. Data of Secrets is not included.\n\n"
        "Actions are load, keep, reload, unload, blocked and none; the last line counts them. `kmm-plan why` "
        "explains a line.";
    verb.examples = {
        {"kmm-plan show --cluster ./fleet", "the whole fleet"},
        {"kmm-plan show --cluster ./fleet node-a node-b", "two nodes"},
        {"kmm-plan show --cluster ./fleet -f new-module.yaml", "what if: documents on top of the cluster"},
        {"kmm-plan show --cluster ./fleet --kernel 6.1.0-60-amd64", "what if all nodes booted into that kernel"},
        {"kmm-plan show --cluster ./fleet --missing '*:v2-*'", "what if these images do not exist"},
        {"kmm-plan show --cluster ./fleet --action blocked --action unload", "what needs attention"},
        {"kmm-plan show --cluster ./fleet -o json", "the plan file"},
        {"kmm-plan show --context prod --context edge", "two live clusters in one table"},
    };
    verb.positionals = {{"NODE", "names of nodes; all if absent", false, true}};
    cli::Option action;
    action.name = "action";
    action.value_name = "ACTION";
    action.help = "only lines with this action";
    for (const auto known : k_actions) { action.choices.emplace_back(plan::to_string(known)); }
    action.repeatable = true;
    verb.options = std::vector<cli::Option>{action, metrics_option()} + plan_option_list() + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_show;
    return verb;
}

}  // namespace kmm::tool_plan
