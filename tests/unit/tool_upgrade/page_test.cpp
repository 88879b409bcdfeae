// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/event.hpp"
#include "kmm-upgrade/record/page.hpp"

#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include "base/text.hpp"
#include "report/report.hpp"
#include "upgrade/engine/event.hpp"
#include "unit/tool_upgrade/make_nodes.hpp"

namespace kmm::tool_upgrade {
namespace {

using test::fail;
using test::make_nodes;

/// A journal whose nodes went through three steps each, one second a step; every `bad`th failed at the last one.
struct Told {
    Story story;
    std::int64_t now = 1'790'000'000;

    explicit Told(std::size_t nodes, std::size_t bad = 0) {
        story.id = "current";
        story.run = make_nodes(nodes);
        add(upgrade::encode(story.run));
        for (std::size_t index = 0; index < nodes; ++index) {
            auto& node = story.run.nodes[index];
            const bool fails = bad != 0 && index % bad == bad - 1;
            step(node.name, "check", "pending", "checking", "unloading");
            step(node.name, "unload", "unloading", "unloading", "unloaded");
            step(node.name, "load", "unloaded", "loading", fails ? "" : "done");
            if (fails) fail(node, "load-failed", "module kmm_hello: Invalid argument");
            else test::put(node, "done", "loaded kmm_hello BBBB2222");
        }
    }
    void add(value::Node payload) {
        record::Entry entry;
        entry.time = base::format_rfc3339(now);
        entry.payload = std::move(payload);
        story.loaded.entries.push_back(std::move(entry));
    }
    void step(const std::string& node, const std::string& name, const std::string& from, const std::string& during,
              const std::string& to) {
        upgrade::Event event;
        event.node = node;
        event.step = name;
        event.from = from;
        event.to = during;
        add(upgrade::encode(event));
        ++now;
        event.kind = to.empty() ? upgrade::EventKind::failed : upgrade::EventKind::done;
        event.from = during;
        event.to = to.empty() ? "loading-failed" : to;
        if (to.empty()) event.reason = "load-failed";
        event.message = to.empty() ? "module kmm_hello: Invalid argument" : "well";
        add(upgrade::encode(event));
    }
};

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST_SUITE("tool_upgrade::unit") {
    TEST_CASE("durations are one line, messages have a column, events are folded, and no script is in it") {
        const auto page = page_details(Told(3).story);
        CHECK(page.find("check 1s · unload 1s · load 1s") != std::string::npos);
        CHECK(page.find("<td class=k>node-0002 loading -&gt; done<td>well") != std::string::npos);
        CHECK(page.find("<details>") != std::string::npos);
        CHECK(page.find("<svg") != std::string::npos);
        CHECK(page.find("<title>node-0002: load 1s</title>") != std::string::npos);
        CHECK(page.find("<script") == std::string::npos);
        CHECK(page.find("http") == std::string::npos);
    }

    TEST_CASE("what failed stands first: as one cause, in the table and in the timeline") {
        const Told told(6, 3);
        const auto summary = page_summary(told.story.run);
        CHECK(summary.find("<span class=\"state bad\">2 failed</span>") != std::string::npos);
        CHECK(summary.find("<b>2 nodes: load-failed</b><p>module kmm_hello: Invalid argument</p>") !=
              std::string::npos);
        CHECK(summary.find("node-0003, node-0006") != std::string::npos);
        const auto page = page_details(told.story);
        const auto table = page.substr(page.find("<h2>Nodes"));
        CHECK(table.find("node-0006") < table.find("node-0001"));
        CHECK(table.find("<td class=\"k bad\">") != std::string::npos);
        CHECK(count_of(page, "class=\"f\"") == 2);
    }

    TEST_CASE("what nodes say is text, no markup") {
        Told told(1, 1);
        told.story.run.nodes[0].message = "<script>alert(1)</script>";
        CHECK(page_summary(told.story.run).find("<script") == std::string::npos);
        CHECK(page_details(told.story).find("<script") == std::string::npos);
    }

    TEST_CASE("two thousand nodes are a small page, with a timeline of bounded height") {
        Told told(2000, 100);
        const auto page = page_details(told.story);
        CHECK(page.size() < 3'000'000);
        CHECK(page.find("height=\"1200\"") != std::string::npos);
        const auto timeline = page.substr(0, page.find("<h2>Nodes"));
        CHECK(timeline.size() < 300'000);
        CHECK(count_of(timeline, "<path") == 4);
    }

    TEST_CASE("pages that are laid out") {
        // tests/unit/tool_upgrade/run_layout.py asks for them.
        const char* directory = std::getenv("KMM_PAGES");
        for (const std::size_t nodes : {3U, 2000U}) {
            Told told(nodes, nodes == 3 ? 3 : 100);
            told.story.run.nodes[0].name.append("-of-a-very-long-pool-name.compute.internal.example.com");
            told.story.run.nodes[1].message =
                "image registry.example/" + std::string(300, 'x') + "@sha256:" + std::string(64, 'a');
            fail(told.story.run.nodes[2], "load-failed", std::string(900, 'y') + " " + std::string(100, 'z'),
                 "modinfo " + std::string(200, '/'));
            const auto page =
                report::html_page("drivers/" + std::string(120, 'm') + " v1 -> v2: upgrading-nodes-failed",
                                  page_style(), page_summary(told.story.run) + page_details(told.story));
            CHECK(page.size() < 3'000'000);
            if (directory != nullptr) std::ofstream(fmt::format("{}/{}.html", directory, nodes)) << page;
        }
    }

    TEST_CASE("of a journal that is too long for a page the last events are counted") {
        Told told(1);
        for (int i = 0; i < 30'000; ++i) told.step("node-0001", "load", "unloaded", "loading", "unloaded");
        const auto page = page_details(told.story);
        CHECK(page.size() < 9'000'000);
        CHECK(page.find(" more events: <code>kmm-upgrade history current</code>") != std::string::npos);
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
