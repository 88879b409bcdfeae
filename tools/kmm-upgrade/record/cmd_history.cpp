// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "kmm-upgrade/session/progress.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kmm-upgrade/record/story.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

std::string result_text(const upgrade::Run& run) {
    const auto counts = upgrade::count(run);
    auto text = fmt::format("{} of {} done", counts.done, counts.total);
    if (counts.failed > 0) text += fmt::format(", {} failed", counts.failed);
    if (counts.skipped > 0) text += fmt::format(", {} skipped", counts.skipped);
    if (!run.left_out.empty()) text += fmt::format(", {} left out", run.left_out.size());
    if (counts.rolled_back > 0) text += fmt::format(", {} rolled back", counts.rolled_back);
    return text;
}

/// "2026-09-21T14:13Z" of a time with seconds.
std::string minute_text(const std::string& time) {
    constexpr std::size_t k_minutes = 16;
    return base::parse_rfc3339(time) ? time.substr(0, k_minutes) + "Z" : time;
}

Exit tell(RecordAccess& record, const Story& story) {
    auto& context = record.call().context();
    if (context.output == "json" || context.output == "jsonl" || context.output == "yaml") {
        auto items = value::Node::sequence();
        for (const auto& entry : story.loaded.entries) {
            auto item = entry.payload;
            item.set("time", entry.time);
            items.push_back(std::move(item));
        }
        const auto node = value::Node::mapping(
            {{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeJournal"}, {"id", story.id}, {"entries", items}});
        static_cast<void>(print_list(context, node, "entries"));
        return Exit::ok;
    }
    if (context.output == "name") {
        context.console.out(fmt::format("{}\n", cli::plain_name(story.id)));
        return Exit::ok;
    }
    const auto words = upgrade::describe(story.run);
    context.console.out(fmt::format("{} {}: {}, by {}\n", clock_text(story.run.created), base::escape(words.subject()),
                                    words.versions(), base::escape(story.run.created_by)));
    for (const auto& node : story.run.left_out)
        context.console.out(
            base::escape(fmt::format("{} {} left out: {}", clock_text(story.run.created), node.name, node.reason)) +
            "\n");
    SaidCauses said;
    for (std::size_t index = 1; index < story.loaded.entries.size(); ++index) {
        const auto& entry = story.loaded.entries[index];
        const auto line = event_line(upgrade::decode_event(entry.payload), entry.time, said);
        if (!line.empty()) context.console.out(base::escape(line) + "\n");
    }
    return Exit::ok;
}

}  // namespace

Exit run_history(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    RecordAccess record(call);
    const auto all = stories(record);
    if (!args.positionals("RUN").empty()) return tell(record, named_story(all, args.positional("RUN")));
    auto items = value::Node::sequence();
    // The name of a run has the name of its Module in it; all columns would not fit into 80.
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"RUN", "VERSIONS", "STATE", "NODES", "STARTED"};
    if (wide) headers = {"RUN", "MODULE", "VERSIONS", "STATE", "NODES", "STARTED", "TOOK"};
    std::vector<std::vector<std::string>> rows;
    for (const auto& story : all) {
        const auto words = upgrade::describe(story.run);
        const auto versions = words.versions();
        if (wide)
            rows.push_back({story.id, words.subject(), versions, story.run.state, result_text(story.run),
                            story.run.created, took(story)});
        else
            rows.push_back(
                {story.id, versions, story.run.state, result_text(story.run), minute_text(story.run.created)});
        items.push_back(value::Node::mapping({{"id", story.id},
                                              {words.kind, words.subject()},
                                              {"from", story.run.from_version},
                                              {"to", story.run.to_version},
                                              {"state", story.run.state},
                                              {"started", story.run.created},
                                              {"ended", story.loaded.entries.back().time},
                                              {"by", story.run.created_by}}));
        if (!story.run.left_out.empty()) items.items().back().set("leftOut", encode(story.run.left_out));
    }
    if (print_list(context,
                   value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradeHistory"}, {"items", items}})))
        return Exit::ok;
    if (context.output == "name") {
        for (const auto& story : all) context.console.out(fmt::format("{}\n", cli::plain_name(story.id)));
        return Exit::ok;
    }
    if (all.empty()) {
        context.console.out(fmt::format("no upgrade is recorded in {}\n", base::escape(record.directory().path())));
        return Exit::ok;
    }
    context.console.out(cli::folded_table(headers, std::move(rows), 1, context.table_width()));
    return Exit::ok;
}

Exit run_delete(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    RecordAccess record(call);
    static_cast<void>(record.must_load());
    record.lock("delete");
    const auto run = record.must_load();
    if (!upgrade::is_final_run_state(run.state))
        throw Error(Exit::paused, "run-active",
                    fmt::format("the upgrade is in state {}, only an ended one can be deleted", run.state))
            .hint(upgrade::next_commands(run).front() + ", or: kmm-upgrade abort");
    const auto words = upgrade::describe(run);
    const PlaceOptions place(args, context.program);
    record.directory().archive(words.slug());
    const auto next = place.put_into("kmm-upgrade history");
    auto deleted = document(run, place);
    deleted.set("nextCommands", value::Node::strings({next}));
    if (print_document(context, deleted)) return Exit::ok;
    if (context.output == "name") {
        context.console.out(fmt::format("upgrade/{}\n", base::printable(words.subject())));
        return Exit::ok;
    }
    context.console.out(
        fmt::format("deleted the record of {} {}; it stays in the history\nnext       {}\n",
                    base::escape(words.subject()), words.is_one_of_many ? words.versions() : "to " + words.to,
                    base::escape(next)));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
