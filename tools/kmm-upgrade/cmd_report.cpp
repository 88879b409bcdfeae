// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade report: one run as a page that can be mailed or kept.
#include <map>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/progress.hpp"
#include "kmm-upgrade/record_access.hpp"
#include "kmm-upgrade/story.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/view.hpp"
#include "report/report.hpp"
#include "upgrade/event.hpp"

namespace kmm::tool_upgrade {
namespace {

using report::html_text;

constexpr std::string_view k_style =
    "tr.failed td.state { background: #c22; color: #fff }\ntr.skipped td.state { background: #fd8 }\n"
    "tr.done td.state { background: #dfd }\n";

/// What was done on one node, and how long: steps in the order of their first begin. A step that was cut off counts as begun only.
struct Work {
    struct Step {
        std::string name;
        std::int64_t seconds = 0;
        int begun = 0;
    };
    std::vector<Step> steps;
    std::string first, last;  ///< times of the first and the last event
    std::optional<std::int64_t> begin;  ///< of the step under way

    Step& step(const std::string& name) {
        for (auto& each : steps)
            if (each.name == name) return each;
        return steps.emplace_back(Step{name});
    }
};

std::map<std::string, Work> work_of(const Story& story) {
    std::map<std::string, Work> all;
    for (std::size_t index = 1; index < story.loaded.entries.size(); ++index) {
        const auto& entry = story.loaded.entries[index];
        const auto event = upgrade::decode_event(entry.payload);
        if (event.node.empty()) continue;
        auto& work = all[event.node];
        if (work.first.empty()) work.first = entry.time;
        work.last = entry.time;
        const auto now = base::parse_rfc3339(entry.time);
        if (event.kind == upgrade::EventKind::intent) {
            ++work.step(event.step).begun;
            work.begin = now;
        } else if (event.kind == upgrade::EventKind::done || event.kind == upgrade::EventKind::failed) {
            if (work.begin && now && *now >= *work.begin) work.step(event.step).seconds += *now - *work.begin;
            work.begin.reset();
        }
    }
    return all;
}

/// The journal's clock has seconds.
std::string seconds_text(std::int64_t seconds) {
    return seconds == 0 ? "under 1s" : base::format_duration(std::chrono::seconds(seconds));
}

std::string row(std::string_view key, std::string_view text) {
    return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", key, html_text(text));
}

std::string facts_table(RecordAccess& record, const Story& story) {
    const auto& run = story.run;
    std::string text = "<table>\n";
    text += row("run", story.id == "current" ? run.lineage : fmt::format("{} ({})", story.id, run.lineage));
    text += row("module", run.module());
    text += row("versions", fmt::format("{} -> {}", run.from_text(), run.to_text()));
    text += row("state", run.state);
    text += row("nodes", counts_text(run));
    for (const auto& node : run.left_out) text += row("left out", fmt::format("{}: {}", node.name, node.reason));
    if (run.paused) text += row("paused", run.pause_message.empty() ? run.pause_reason : run.pause_reason + ": " + run.pause_message);
    text += row("cluster", run.cluster_place);
    text += row("by", fmt::format("{}, kmm-upgrade {}", run.created_by, run.tool_version));
    text += row("started", run.created);
    text += row(upgrade::is_final_run_state(run.state) ? "ended" : "last event", story.loaded.entries.back().time);
    text += row("took", took(story));
    if (story.id == "current" && !upgrade::is_final_run_state(run.state) && !record.directory().holder())
        text += row("next", upgrade::next_commands(run).front());
    return text + "</table>\n";
}

/// The attribute that colours a node's row, if anything does.
std::string class_of(const upgrade::NodeRecord& node) {
    if (upgrade::is_failed_node_state(node.state)) return " class=\"failed\"";
    return node.state == "skipped" || node.state == "done" ? fmt::format(" class=\"{}\"", node.state) : "";
}

std::string nodes_table(const Story& story) {
    const auto work = work_of(story);
    std::string text =
        "<h2>Nodes</h2>\n<table>\n<tr><th>node</th><th>kernel</th><th>before</th><th>now</th><th>target</th><th>state</th><th>begun</th>"
        "<th>last event</th><th>steps</th><th>message</th></tr>\n";
    for (const auto& node : story.run.nodes) {
        const auto found = work.find(node.name);
        std::string steps;
        if (found != work.end())
            for (const auto& step : found->second.steps)
                steps += fmt::format("{}{}{} {}", steps.empty() ? "" : "<br>", html_text(step.name),
                                     step.begun > 1 ? fmt::format(" ({} times)", step.begun) : "", seconds_text(step.seconds));
        auto message = node.message;
        if (!node.reason.empty()) message = node.reason + (message.empty() ? "" : ": " + message);
        auto cell = html_text(message);
        if (!node.kernel_line.empty()) cell += "<br>kernel: " + html_text(node.kernel_line);
        if (!node.hint.empty()) cell += "<br><small>hint: " + html_text(node.hint) + "</small>";
        text += fmt::format("<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"state\">{}</td><td>{}</td>"
                            "<td>{}</td><td>{}</td><td>{}</td></tr>\n",
                            class_of(node), html_text(node.name), html_text(dash(node.kernel)), html_text(dash(node.from_version)),
                            html_text(node.current_known ? dash(node.current_version) : "?"),
                            html_text(upgrade::target_text(story.run, node)), html_text(node.state),
                            html_text(found == work.end() ? "-" : found->second.first), html_text(found == work.end() ? "-" : found->second.last),
                            steps, cell);
    }
    return text + "</table>\n";
}

std::string events_table(const Story& story) {
    std::string text = "<h2>Events</h2>\n<table>\n<tr><th>time</th><th>event</th></tr>\n";
    for (std::size_t index = 1; index < story.loaded.entries.size(); ++index) {
        const auto& entry = story.loaded.entries[index];
        const auto line = event_text(upgrade::decode_event(entry.payload));
        if (!line.empty()) text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(entry.time), html_text(line));
    }
    return text + "</table>\n";
}

}  // namespace

Exit run_report(const cli::Args& args, cli::Context& context) {
    const auto file = args.get("html");
    if (!file || file->empty())
        throw Error(Exit::usage, "missing-option", "--html FILE is missing").hint("kmm-upgrade report --html upgrade.html, or - for standard output");
    Call call(args, context);
    RecordAccess record(call);
    const auto all = stories(record);
    const auto wanted = args.positional("RUN");
    if (wanted.empty() && all.empty())
        throw Error(Exit::not_found, "no-run", fmt::format("no upgrade is recorded in {}", record.directory().path()))
            .hint("name the record with --state-dir");
    const auto& story = wanted.empty() ? all.front() : named_story(all, wanted);
    const auto& run = story.run;
    const auto page = report::html_page(fmt::format("{} {} -> {}: {}", run.module(), run.from_text(), run.to_text(), run.state), k_style,
                                        facts_table(record, story) + nodes_table(story) + events_table(story));
    cli::write_report(context, *file, page);
    if (*file == "-") return Exit::ok;
    if (print_document(context, value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeReport"}, {"id", story.id}, {"file", *file}})))
        return Exit::ok;
    if (context.output == "name") context.console.out(*file + "\n");
    else context.console.out(fmt::format("report     {}  of {}: {}\n", base::escape(*file), base::escape(run.module()), run.state));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
