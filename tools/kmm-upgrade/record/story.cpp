// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/story.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive/recorder.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "upgrade/engine/replay.hpp"
#include "kmm-upgrade/craft.hpp"

namespace kmm::tool_upgrade {

std::string took(const Story& story) {
    const auto begin = base::parse_rfc3339(story.loaded.entries.front().time);
    const auto end = base::parse_rfc3339(story.loaded.entries.back().time);
    if (!begin || !end || *end < *begin) return "-";
    return seconds_text(std::chrono::seconds(*end - *begin));
}

std::vector<Story> stories(RecordAccess& record) {
    std::vector<Story> all;
    std::vector<std::string> warnings;
    try {
        record.directory().open(false);
    } catch (const Error& error) {
        if (error.exit() == Exit::not_found) return all;
        throw;
    }
    const auto add = [&](const std::string& id, record::Loaded loaded) {
        auto run = drive::load_run(loaded, procedures_of(record.call().context()), warnings);
        if (run) all.push_back(Story{id, *run, std::move(loaded)});
    };
    add("current", record.directory().load());
    for (const auto& item : record.directory().history()) {
        try {
            add(item.id, record.directory().load_history(item));
        } catch (const Error& error) {
            warnings.push_back(fmt::format("{}: {}", item.id, error.message()));
        }
    }
    if (record.call().context().verbosity >= 0)
        for (const auto& warning : warnings)
            record.call().context().console.err("warning: " + base::escape(warning) + "\n");
    if (const auto ns = record.call().args().get("namespace"); ns && !all.empty()) {
        std::erase_if(all, [&](const Story& story) { return upgrade::describe(story.run).space != *ns; });
        if (all.empty())
            throw Error(Exit::not_found, "history-not-found",
                        fmt::format("no upgrade of namespace {} is recorded", base::escape(*ns)))
                .hint("leave --namespace out for all runs");
    }
    return all;
}

const Story& named_story(const std::vector<Story>& all, const std::string& id) {
    std::vector<std::string> ids;
    for (const auto& story : all) {
        if (story.id == id) return story;
        ids.push_back(story.id);
    }
    const auto near = base::nearest(id, ids);
    throw Error(Exit::not_found, "history-not-found",
                fmt::format("there is no run '{}' in the history", base::escape(id)))
        .hint(near ? "did you mean " + *near + "?" : "kmm-upgrade history lists the runs");
}

}  // namespace kmm::tool_upgrade
