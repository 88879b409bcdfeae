// SPDX-License-Identifier: Apache-2.0
// Reading verbs: they take no lock and write nothing.
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/kubernetes/stx.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/board.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/engine/replay.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Nothing follows of itself: the run has ended, and no apply is at work that goes on with its next Module.
bool is_over(RecordAccess& record, const upgrade::Run& run) {
    return upgrade::is_final_run_state(run.state) && !(upgrade::is_followed(run) && record.directory().holder());
}

std::optional<record::Owner> owner_of(RecordAccess& record, const upgrade::Run& run) {
    if (upgrade::is_final_run_state(run.state) && !upgrade::is_followed(run)) return std::nullopt;
    return record.directory().holder();
}

/// What the cluster says now of what the record says.
struct Comparison {
    std::vector<Difference> found;
    std::string problem;  ///< why the cluster was not asked, "" if it was
};

Comparison compare(RecordAccess& record, const upgrade::Run& run) {
    Comparison comparison;
    try {
        comparison.found = craft_of(record.call().context(), run).differences(record, run);
    } catch (const Error& error) {
        comparison.problem = error.message();
    }
    return comparison;
}

/// Where the output has no place for it.
void note_comparison(const Call& call, const Comparison& comparison) {
    const auto& output = call.context().output;
    if (output == "json" || output == "yaml") return;
    for (const auto& difference : comparison.found) call.note(to_string(difference));
    if (!comparison.problem.empty()) call.note("the cluster could not be asked what runs: " + comparison.problem);
}

void add_comparison(value::Node& document, const Comparison& comparison) {
    auto items = value::Node::sequence();
    for (const auto& each : comparison.found) {
        auto item = value::Node::mapping({{"node", each.node}, {"part", each.part}, {"recorded", each.recorded}});
        if (!each.runs.empty()) item.set("runs", each.runs);
        items.push_back(std::move(item));
    }
    if (!comparison.found.empty()) document.set("differences", std::move(items));
    if (!comparison.problem.empty()) document.set("clusterProblem", comparison.problem);
}

PlaceOptions named_place(const Call& call) { return {call.args(), call.context().program}; }

std::string show_text(RecordAccess& record, const upgrade::Run& run, std::size_t width,
                      const std::string& follow = "kmm-upgrade show --watch") {
    std::string commands;
    if (!upgrade::is_final_run_state(run.state)) {
        for (const auto& command : recorded_commands(run))
            commands += fmt::format("{:<9}  {}\n", "runs", base::escape(command));
    }
    if (const auto fault = seal_fault(record); !fault.empty())
        commands += fmt::format("{:<9}  not known to be this user's: {}\n", "record", fault);
    return properties(run, owner_of(record, run), width, follow, named_place(record.call())) + commands + "\n" +
           node_table(run, width);
}

/// As many lines as the terminal has: the summary, then the nodes that matter most.
std::vector<std::string> screen_lines(RecordAccess& record, const upgrade::Run& run) {
    const auto& console = record.call().context().console;
    constexpr std::size_t k_nodes = 4;  // lines of the table at least
    const auto width = console.width() - 1, rows = console.height() - 1;
    std::vector<std::string> lines;
    const auto summary = properties(run, owner_of(record, run), width, "", named_place(record.call()));
    for (const auto line : base::split(summary, '\n')) lines.emplace_back(line);
    if (const auto most = rows > k_nodes + 2 ? rows - k_nodes : 2; lines.size() > most) {
        lines.resize(most - 1);
        lines.back() = "…";
        lines.emplace_back();
    }
    for (auto& line : Board(run).lines(width, rows - lines.size())) lines.push_back(std::move(line));
    return lines;
}

/// The run, and what `resume` would run on this machine.
value::Node shown_document(RecordAccess& record, const upgrade::Run& run) {
    auto node = document(run, named_place(record.call()));
    if (const auto commands = recorded_commands(run); !commands.empty() && !upgrade::is_final_run_state(run.state))
        node.set("recordedCommands", value::Node::strings(commands));
    if (const auto seal = record.directory().seal(); seal != record::Seal::own) node.set("seal", to_string(seal));
    return node;
}

Exit show_idle(RecordAccess& record) {
    auto& context = record.call().context();
    const auto idle = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Upgrade"}, {"state", "idle"}});
    if (print_document(context, idle) || context.output == "name") return Exit::ok;
    context.console.out(fmt::format("state      idle: no upgrade is recorded in {}\n"
                                    "next       {}\n",
                                    base::escape(record.directory().path()),
                                    base::escape(named_place(record.call())
                                                     .put_into("kmm-upgrade start module MODULE --to VERSION"))));
    return Exit::ok;
}

/// The hosts of the cluster, where no upgrade is on record.
Exit show_idle_hosts(Call& call) {
    const auto inventory = read_inventory(call, drive::ReadExtent::control_plane);
    const auto seen = kubernetes::observe(inventory);
    if (seen.kubelets.empty() || seen.control_plane_nodes.empty()) throw Error::from_diagnostics(seen.faults);
    for (const auto& fault : seen.faults) call.note(fault.message);
    call.context().console.out(framed_hosts(seen));
    return Exit::ok;
}

/// A document for each change, until the run ends.
Exit watch_documents(RecordAccess& record) {
    auto& context = record.call().context();
    std::string last;
    for (;;) {
        const auto run = record.load();
        if (!run) return show_idle(record);
        const auto now = shown_document(record, *run);
        auto text = value::to_json(now);
        if (text != last) static_cast<void>(print_document(context, now));
        if (is_over(record, *run) || context.console.out_is_gone()) return Exit::ok;
        if (record.call().stopped()) return record.call().stop_exit();
        last = std::move(text);
        record.call().clock().sleep_for(std::chrono::seconds(1));
    }
}

Exit watch(RecordAccess& record) {
    auto& context = record.call().context();
    if (context.output == "json" || context.output == "jsonl" || context.output == "yaml")
        return watch_documents(record);
    cli::LiveArea area(context.console);
    std::string last;
    for (;;) {
        const auto run = record.load();
        if (!run) {
            area.clear();
            return show_idle(record);
        }
        const bool ended = is_over(record, *run);
        const auto text = show_text(record, *run, context.table_width(), "");
        if (ended || record.call().stopped()) {
            area.clear();
            if (context.console.err_is_terminal() || text != last) context.console.out(text);
            return ended ? Exit::ok : record.call().stop_exit();
        }
        if (context.console.err_is_terminal()) {
            area.draw(screen_lines(record, *run));
        } else if (text != last) {
            context.console.out(text + "\n");
        }
        if (context.console.out_is_gone()) {
            area.clear();
            return Exit::ok;
        }
        last = text;
        record.call().clock().sleep_for(std::chrono::seconds(1));
    }
}

}  // namespace

Exit run_show(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    RecordAccess record(call);
    const auto run = record.load();
    if (run) record.require_named(*run);
    if (args.flag("watch")) return watch(record);
    if (args.get("metrics")) write_metrics(args, context, run, run && owner_of(record, *run).has_value());
    if (!run) return show_idle(record);
    if (context.output == "name") {
        context.console.out(fmt::format("upgrade/{}\n", cli::plain_name(upgrade::describe(*run).subject())));
        return Exit::ok;
    }
    const auto comparison = compare(record, *run);
    auto shown = shown_document(record, *run);
    add_comparison(shown, comparison);
    note_comparison(call, comparison);
    if (print_document(context, shown)) return Exit::ok;
    context.console.out(args.flag("stx") ? craft_of(context, *run).frame(*run, Craft::Frame::upgrade)
                                         : show_text(record, *run, context.table_width()));
    return Exit::ok;
}

Exit run_nodes(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    RecordAccess record(call);
    // StarlingX has a row for each host whether there is an upgrade or not.
    if (args.flag("stx") && (context.output == "table" || context.output == "wide") && !record.load())
        return show_idle_hosts(call);
    const auto run = record.must_load();
    auto list = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeNodeList"}});
    auto items = value::Node::sequence();
    for (const auto& node : run.nodes) items.push_back(upgrade::encode(node, upgrade::procedure_of(run)));
    for (const auto& node : run.left_out)
        items.push_back(value::Node::mapping({{"name", node.name}, {"state", "left-out"}, {"reason", node.reason}}));
    list.set("items", std::move(items));
    if (context.output == "name") {
        for (const auto& node : run.nodes) context.console.out(fmt::format("node/{}\n", cli::plain_name(node.name)));
        return Exit::ok;
    }
    const auto comparison = compare(record, run);
    add_comparison(list, comparison);
    note_comparison(call, comparison);
    if (print_list(context, list)) return Exit::ok;
    context.console.out(args.flag("stx") ? craft_of(context, run).frame(run, Craft::Frame::hosts)
                                         : node_table(run, context.table_width()));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
