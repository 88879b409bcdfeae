// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade report: one run as a page that can be mailed or kept.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/record/page.hpp"
#include "kmm-upgrade/session/progress.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kmm-upgrade/record/story.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "report/report.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

using report::html_text;

std::string row(std::string_view key, std::string_view text) {
    return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", key, html_text(text));
}

std::string facts_table(RecordAccess& record, const Story& story) {
    const auto& run = story.run;
    std::string text = "<h2>Run</h2>\n<table class=facts>\n";
    text += row("run", story.id == "current" ? run.lineage : fmt::format("{} ({})", story.id, run.lineage));
    const auto words = upgrade::describe(run);
    text += row(words.kind, words.subject());
    text += row("versions", words.versions());
    text += row("state", run.state);
    text += row("nodes", counts_text(run));
    for (const auto& node : run.left_out) text += row("left out", fmt::format("{}: {}", node.name, node.reason));
    if (run.paused)
        text +=
            row("paused", run.pause_message.empty() ? run.pause_reason : run.pause_reason + ": " + run.pause_message);
    if (!run.step_message.empty()) text += row("failed", run.step_message);
    if (!run.step_hint.empty()) text += row("hint", run.step_hint);
    text += row("cluster", run.cluster_place);
    text += row("by", fmt::format("{}, kmm-upgrade {}", run.created_by, run.tool_version));
    text += row("started", run.created);
    text += row(upgrade::is_final_run_state(run.state) ? "ended" : "last event", story.loaded.entries.back().time);
    text += row("took", took(story));
    if (story.id == "current" && !upgrade::is_final_run_state(run.state) && !record.directory().holder())
        text += row("next", PlaceOptions(record.call().args(), record.call().context().program)
                                .put_into(upgrade::next_commands(run).front()));
    return text + "</table>\n";
}

}  // namespace

Exit run_report(const cli::Args& args, cli::Context& context) {
    const auto file =
        args.wanted("html", "FILE", "kmm-upgrade report --html upgrade.html, or - for standard output");
    Call call(args, context);
    RecordAccess record(call);
    const auto all = stories(record);
    const auto wanted = args.positional("RUN");
    if (wanted.empty() && all.empty())
        throw Error(Exit::not_found, "no-run", fmt::format("no upgrade is recorded in {}", record.directory().path()))
            .hint("name the record with --state-dir");
    const auto& story = wanted.empty() ? all.front() : named_story(all, wanted);
    const auto& run = story.run;
    const auto words = upgrade::describe(run);
    const auto page =
        report::html_page(fmt::format("{} {}: {}", words.subject(), words.versions(), run.state), page_style(),
                          page_summary(run) + facts_table(record, story) + page_details(story));
    cli::write_report(context, file, page);
    if (file == "-") return Exit::ok;
    if (print_document(
            context,
            value::Node::mapping(
                {{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeReport"}, {"id", story.id}, {"file", file}})))
        return Exit::ok;
    if (context.output == "name") context.console.out(file + "\n");
    else
        context.console.out(
            fmt::format("report     {}  of {}: {}\n", base::escape(file), base::escape(words.subject()), run.state));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
