// SPDX-License-Identifier: Apache-2.0
// Reading verbs: they take no lock and write nothing.
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/session.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/view.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Nothing follows of itself: the run has ended, and no apply is at work that goes on with its next Module.
bool is_over(Session& session, const upgrade::Run& run) {
    return upgrade::is_final_run_state(run.state) && !(run.is_to_be_followed() && session.directory().holder());
}

std::string show_text(Session& session, const upgrade::Run& run, std::size_t width) {
    std::optional<record::Owner> owner;
    if (!upgrade::is_final_run_state(run.state) || run.is_to_be_followed()) owner = session.directory().holder();
    std::string commands;
    if (!upgrade::is_final_run_state(run.state)) {
        for (const auto& command : recorded_commands(run)) commands += fmt::format("{:<9}  {}\n", "runs", base::escape(command));
    }
    return properties(run, owner) + commands + "\n" + node_table(run, width);
}

/// The run, and what `resume` would run on this machine.
value::Node shown_document(const upgrade::Run& run) {
    auto node = document(run);
    if (const auto commands = recorded_commands(run); !commands.empty() && !upgrade::is_final_run_state(run.state))
        node.set("recordedCommands", value::Node::strings(commands));
    return node;
}

std::size_t table_width(const cli::Context& context) {
    return context.console.out_is_terminal() && context.output != "wide" ? context.console.width() : 0;
}

Exit show_idle(Session& session) {
    auto& context = session.context();
    const auto idle = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Upgrade"}, {"state", "idle"}});
    if (print_document(context, idle) || context.output == "name") return Exit::ok;
    context.console.out(fmt::format("state      idle: no upgrade is recorded in {}\n"
                                    "next       kmm-upgrade start module MODULE --to VERSION\n",
                                    base::escape(session.directory().path())));
    return Exit::ok;
}

/// A document for each change, until the run ends.
Exit watch_documents(Session& session) {
    auto& context = session.context();
    std::string last;
    for (;;) {
        const auto run = session.load();
        if (!run) return show_idle(session);
        const auto now = document(*run);
        auto text = value::to_json(now);
        if (text != last) static_cast<void>(print_document(context, now));
        if (is_over(session, *run) || context.console.out_is_gone()) return Exit::ok;
        if (session.stopped()) return session.stop_exit();
        last = std::move(text);
        session.clock().sleep_for(std::chrono::seconds(1));
    }
}

Exit watch(Session& session) {
    auto& context = session.context();
    if (context.output == "json" || context.output == "jsonl" || context.output == "yaml") return watch_documents(session);
    cli::LiveArea area(context.console);
    std::string last;
    for (;;) {
        const auto run = session.load();
        if (!run) {
            area.clear();
            return show_idle(session);
        }
        const bool ended = is_over(session, *run);
        const auto text = show_text(session, *run, table_width(context));
        if (ended || session.stopped()) {
            area.clear();
            if (context.console.err_is_terminal() || text != last) context.console.out(text);
            return ended ? Exit::ok : session.stop_exit();
        }
        if (context.console.err_is_terminal()) {
            std::vector<std::string> lines;
            for (const auto line : base::split(text, '\n')) lines.emplace_back(line);
            area.draw(lines);
        } else if (text != last) {
            context.console.out(text + "\n");
        }
        if (context.console.out_is_gone()) {
            area.clear();
            return Exit::ok;
        }
        last = text;
        session.clock().sleep_for(std::chrono::seconds(1));
    }
}

}  // namespace

Exit run_show(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    const auto run = session.load();
    if (run) session.require_named(*run);
    if (args.flag("watch")) return watch(session);
    if (!run) return show_idle(session);
    if (print_document(context, shown_document(*run))) return Exit::ok;
    if (context.output == "name") {
        context.console.out("upgrade/" + run->module() + "\n");
        return Exit::ok;
    }
    context.console.out(show_text(session, *run, table_width(context)));
    return Exit::ok;
}

Exit run_nodes(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    const auto run = session.must_load();
    auto list = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeNodeList"}});
    auto items = value::Node::sequence();
    for (const auto& node : run.nodes) items.push_back(upgrade::encode(node));
    list.set("items", std::move(items));
    if (print_list(context, list)) return Exit::ok;
    if (context.output == "name") {
        for (const auto& node : run.nodes) context.console.out("node/" + node.name + "\n");
        return Exit::ok;
    }
    context.console.out(node_table(run, table_width(context)));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
