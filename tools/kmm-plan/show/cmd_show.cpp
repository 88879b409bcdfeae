// SPDX-License-Identifier: Apache-2.0
// kmm-plan show: one line per node and module.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/line_writer.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/read_summary.hpp"
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

std::set<plan::Action> chosen_actions(const cli::Args& args) {
    std::set<plan::Action> chosen;
    for (const auto& word : args.all("action")) {
        const auto* const found = std::find_if(k_actions.begin(), k_actions.end(),
                                               [&](plan::Action action) { return plan::to_string(action) == word; });
        if (found != k_actions.end()) { chosen.insert(*found); }
    }
    return chosen;
}

/// "12 lines: 3 load, 9 keep".
std::string summary_text(const ActionCounts& counts) {
    std::size_t lines = 0;
    std::vector<std::string> parts;
    for (const auto action : k_actions) {
        const auto found = counts.find(action);
        if (found == counts.end()) { continue; }
        lines += found->second;
        parts.push_back(fmt::format("{} {}", found->second, plan::to_string(action)));
    }
    return fmt::format("{}: {}\n", base::counted(lines, "line"), base::join(parts, ", "));
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
            const bool elsewhere =
                !has(source, name) &&
                std::any_of(sources.begin(), sources.end(), [&](const Source& other) { return has(other, name); });
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

void warn(const Diagnostics& diagnostics, cli::Context& context) {
    if (context.verbosity < 0) { return; }
    for (const auto& diagnostic : diagnostics) {
        if (diagnostic.severity == Severity::note) { continue; }
        context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
    }
}

/// A cluster, and what of its plan is shown.
struct Shown {
    Source source;
    plan::Options options;
    Selection selection;
    value::Node digests;
    std::string place;  ///< place_options, for hints
};

/// Calls `take` for each line that is selected. A large fleet has millions of lines: they are made whenever they are
/// asked for, and none is kept. Returns what is to be said about the plan.
Diagnostics each_line(const Shown& shown, const plan::LineSink& take) {
    const bool all = shown.selection.nodes.size() == shown.source.objects.nodes.size();
    const api::Node* node = nullptr;
    bool is_selected = all;
    auto findings = plan::visit_plan(shown.source.objects, shown.options, [&](const plan::Line& line) {
        if (!all && node != &line.node) {
            node = &line.node;
            is_selected = shown.selection.nodes.contains(node->meta.name);
        }
        if (is_selected && shown.selection.takes(line.entry)) { take(line); }
    });
    place_hints(findings, shown.place);
    return findings;
}

/// Lines are written while they are made, the warnings follow. Returns how many they are.
std::size_t show_lines(const std::vector<Shown>& all, cli::Context& context) {
    std::size_t count = 0;
    for (const auto& shown : all) {
        LineWriter writer(context.console, all.size() > 1 ? shown.source.cluster : "");
        const auto diagnostics = each_line(shown, [&](const plan::Line& line) {
            writer.write(line);
            ++count;
        });
        writer.flush();
        warn(diagnostics, context);
    }
    return count;
}

std::size_t show_names(const std::vector<Shown>& all, cli::Context& context) {
    constexpr std::size_t k_names_block = std::size_t{1} << 16U;
    std::size_t count = 0;
    std::string block;
    for (const auto& shown : all) {
        const std::string cluster = all.size() > 1 ? shown.source.cluster + " " : "";
        const auto diagnostics = each_line(shown, [&](const plan::Line& line) {
            const std::size_t start = block.size();
            for (const std::string_view part :
                 {std::string_view(cluster), std::string_view(line.node.meta.name), std::string_view(" "),
                  std::string_view(line.entry.namespace_), std::string_view("/"), std::string_view(line.entry.module),
                  std::string_view("\n")}) {
                block += part;
            }
            static_cast<void>(cli::plain_name(std::string_view(block).substr(start, block.size() - 1 - start)));
            ++count;
            if (block.size() < k_names_block) {
                return;
            }
            context.console.out(block);
            block.clear();
        });
        context.console.out(block);
        block.clear();
        warn(diagnostics, context);
    }
    return count;
}

std::string mapping_text(const plan::Entry& entry) {
    if (!entry.mapping_index) { return "-"; }
    return fmt::format("[{}] {} {}", *entry.mapping_index, entry.mapping_literal ? "literal" : "regexp",
                       entry.mapping_text);
}

/// Action and reason matter more than a registry's name: on a narrow terminal images lose their beginning, the tag
/// stays.
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

void fill_row(const plan::Line& line, const std::string& cluster, bool wide, std::vector<std::string>& row) {
    const plan::Entry& entry = line.entry;
    std::size_t cell = 0;
    const auto put = [&](std::string_view text) { row[cell++] = text; };
    const auto put_or_dash = [&](const std::string& text) {
        put(text.empty() ? std::string_view("-") : std::string_view(text));
    };
    row.resize((cluster.empty() ? 7U : 8U) + (wide ? 2U : 0U));
    if (!cluster.empty()) { put(cluster); }
    put(line.node.meta.name);
    put_or_dash(entry.kernel);
    row[cell].assign(entry.namespace_).append("/").append(entry.module);
    ++cell;
    put_or_dash(entry.version);
    put_or_dash(entry.image);
    put(plan::to_string(entry.action));
    put(entry.reason);
    if (!wide) { return; }
    put(mapping_text(entry));
    put(entry.message);
}

using Row = std::vector<std::string>;

/// The rows of a table, made while they are taken, and what their lines do.
void each_row(const std::vector<Shown>& all, bool wide, const std::function<void(const Row&)>& take,
              const std::function<void(const plan::Entry&)>& see, const std::function<void(const Diagnostics&)>& end) {
    Row row;
    for (const auto& shown : all) {
        const std::string cluster = all.size() > 1 ? shown.source.cluster : "";
        end(each_line(shown, [&](const plan::Line& line) {
            fill_row(line, cluster, wide, row);
            see(line.entry);
            take(row);
        }));
    }
}

/// Where the table is too wide, the reason stands below its line: a code that is cut says nothing.
std::string with_reasons_below(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows,
                               std::size_t width, std::size_t image) {
    std::vector<std::string> reasons;
    for (auto& row : rows) {
        reasons.push_back(std::move(row.back()));
        row.pop_back();
    }
    shorten_images(rows, width, image);
    for (std::size_t i = 0; i < rows.size(); ++i) { rows[i].push_back(std::move(reasons[i])); }
    return cli::folded_table(std::move(headers), std::move(rows), 1, width);
}

/// The table of a terminal, whose width decides which form it has.
std::string terminal_table(const Row& headers, std::vector<Row> rows, bool several, std::size_t width) {
    const std::size_t image = several ? 5 : 4;
    auto shortened = rows;
    shorten_images(shortened, width, image);
    const std::string whole = cli::format_table(headers, shortened, 0);
    return cli::fits(whole, width) ? whole : with_reasons_below(headers, std::move(rows), width, image);
}

/// Returns how many lines the table has.
std::size_t show_table(const std::vector<Shown>& all, cli::Context& context) {
    const bool several = all.size() > 1;
    const bool wide = context.output == "wide";
    Row headers{"NODE", "KERNEL", "MODULE", "VERSION", "IMAGE", "ACTION", "REASON"};
    if (wide) { headers.insert(headers.end(), {"MAPPING", "MESSAGE"}); }
    if (several) { headers.insert(headers.begin(), "CLUSTER"); }
    ActionCounts counts;
    std::size_t lines = 0;
    const auto count = [&](const plan::Entry& entry) { ++counts[entry.action], ++lines; };
    const auto say = [&](const Diagnostics& diagnostics) { warn(diagnostics, context); };
    if (context.console.out_is_terminal() && !wide) {
        std::vector<Row> rows;
        each_row(all, wide, [&](const Row& row) { rows.push_back(row); }, count, say);
        if (lines > 0) {
            context.console.out(terminal_table(headers, std::move(rows), several, context.console.width()));
        }
    } else {
        bool is_first = true;  // the rows are asked for twice
        const auto rows = [&](const std::function<void(const Row&)>& take) {
            if (is_first) {
                each_row(all, wide, take, count, say);
            } else if (lines > 0) {
                each_row(
                    all, wide, take, [](const plan::Entry& /*entry*/) {}, [](const Diagnostics& /*diagnostics*/) {});
            }
            is_first = false;
        };
        cli::print_table(headers, rows, 0, [&](std::string_view text) {
            if (lines > 0) { context.console.out(text); }
        });
    }
    if (lines > 0) { context.console.out("\n" + summary_text(counts)); }
    return lines;
}

/// The plan file. Its lines are made twice: its end, which counts them, must be known before it is written.
std::size_t show_document(std::vector<Shown>& all, cli::Context& context) {
    std::size_t lines = 0;
    std::vector<std::pair<std::string, value::Node>> plans;
    for (auto& shown : all) {
        ActionCounts counts;
        auto diagnostics = each_line(shown, [&](const plan::Line& line) { ++counts[line.entry.action], ++lines; });
        warn(diagnostics, context);
        diagnostics.insert(diagnostics.end(), shown.source.diagnostics.begin(), shown.source.diagnostics.end());
        sort_and_merge(diagnostics);
        plans.emplace_back(shown.source.cluster,
                           plan_node(shown.source, std::move(shown.digests), counts, diagnostics, shown.options));
    }
    const bool several = all.size() > 1;
    const value::Node document = several ? joined_plan_node(plans) : std::move(plans.front().second);
    value::LongSequence entries;
    if (lines > 0) {
        entries.place = document.find("entries");
        entries.items = [&](const std::function<void(const value::Node&)>& take) {
            for (const auto& shown : all) {
                (void)each_line(shown, [&](const plan::Line& line) {
                    take(several ? with_cluster(shown.source.cluster, entry_node(line.own())) : entry_node(line.own()));
                });
            }
        };
    }
    cli::print_document(context, document, entries);
    return lines;
}

/// What to say if there are no lines: a misspelt selector is not to look like an empty cluster.
std::string nothing_text(const std::vector<Source>& sources, const std::vector<Selection>& selected,
                         const cli::Args& args) {
    const bool has_nodes = std::any_of(sources.begin(), sources.end(),
                                       [](const Source& source) { return !source.objects.nodes.empty(); });
    const bool none = has_nodes && std::all_of(selected.begin(), selected.end(),
                                               [](const Selection& selection) { return selection.nodes.empty(); });
    const std::string why =
        none ? fmt::format(": no node matches -l {}", base::escape(args.get("selector").value_or("")))
        : args.all("action").empty() ? ""
                                     : fmt::format(": no line has action {}", base::join(args.all("action"), " or "));
    return fmt::format("nothing to show{}; read: {}\n", why, read_summary(sources));
}

/// How many configurations of each Module the nodes have.
report::MetricFamily planned_objects(const std::vector<Source>& sources, const std::vector<Selection>& selected,
                                     const cli::Args& args) {
    auto objects = report::plan_objects();
    for (std::size_t i = 0; i < sources.size(); ++i) {
        (void)plan::visit_plan(sources[i].objects, plan_options(args, sources[i]), [&](const plan::Line& line) {
            if (selected[i].nodes.count(line.node.meta.name) == 0 || !selected[i].takes(line.entry)) { return; }
            const bool has_config = line.entry.action == plan::Action::load ||
                                    line.entry.action == plan::Action::keep ||
                                    line.entry.action == plan::Action::reload;
            objects.samples[{line.entry.namespace_ + "/" + line.entry.module, "ModuleConfig"}] += has_config ? 1 : 0;
        });
    }
    return objects;
}

Exit run_show(const cli::Args& args, cli::Context& context) {
    std::vector<Source> sources = read_valid_sources(args, context);
    const bool plan_file = context.output == "json" || context.output == "yaml";
    std::vector<value::Node> digests;
    for (auto& source : sources) {
        digests.push_back(plan_file ? digests_node(source.objects) : value::Node());
        apply_what_if(args, source, context);
    }
    check_namespace(sources, args);
    auto selected = selections(sources, args);
    const std::string nothing = nothing_text(sources, selected, args);
    if (args.get("metrics")) { write_metrics(args, context, {planned_objects(sources, selected, args)}); }
    // The process ends with this verb: memory of a fleet is not given back object by object.
    static auto& all = *new std::vector<Shown>;
    const bool several = sources.size() > 1;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        plan::Options options = plan_options(args, sources[i]);
        std::string place = several ? given_options(args, {"filename", "ignore", "kubeconfig"}) + " --context " +
                                          base::shell_word(sources[i].cluster)
                                    : place_options(args, context);
        all.push_back({std::move(sources[i]), std::move(options), std::move(selected[i]), std::move(digests[i]),
                       std::move(place)});
    }
    const bool is_table = context.output == "table" || context.output == "wide";
    const std::size_t lines = is_table                     ? show_table(all, context)
                              : plan_file                  ? show_document(all, context)
                              : context.output == "jsonl" ? show_lines(all, context)
                                                          : show_names(all, context);
    if (lines == 0 && (is_table || context.verbosity >= 0)) { context.console.err(nothing); }
    return Exit::ok;
}

}  // namespace

cli::Verb show_verb() {
    cli::Verb verb;
    verb.name = "show";
    verb.summary = "show what happens to each module on each node, and why";
    verb.description =
        "Prints the settled plan; --next prints what the next pass over the observed state does. -o json prints the "
        "plan file. Its source.digests identify the input: one SHA-256 for each kind, over the fields that decisions "
        "read, independent of files, order and format. Data of Secrets is not included.\n\n"
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
    auto action = cli::repeatable(cli::option("action", "ACTION", "only lines with this action"));
    for (const auto known : k_actions) { action.choices.emplace_back(plan::to_string(known)); }
    verb.options = std::vector<cli::Option>{action, metrics_option(), metrics_cluster_option()} + plan_option_list() +
                   what_if_option_list() +
                   source_options() + cli::common_options();
    verb.run = run_show;
    return verb;
}

}  // namespace kmm::tool_plan
