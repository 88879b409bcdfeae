// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/page.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "kmm-upgrade/session/progress.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "report/report.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

using report::html_text;

constexpr std::size_t k_page_names = 40;              // of nodes with a cause in common
constexpr std::size_t k_single_max = 60;         // nodes that have a line of their own in the timeline
constexpr double k_line = 20, k_height_max = 1200;  // pixels: of one node, and of all nodes of a timeline
constexpr std::size_t k_events_bytes = 1'500'000;
constexpr std::int64_t k_axis = 1000;            // units of the timeline from its begin to its end
constexpr std::size_t k_colours = 8;             // of steps; more share them

/// A step on a node from its begin to its end.
struct Span {
    std::size_t step = 0;  ///< index into Journal::steps
    std::int64_t begin = 0, end = 0;
    bool has_failed = false;
    bool is_cut = false;  ///< it has neither ended well nor failed: something else followed
};

struct Work {
    std::vector<Span> spans;
    std::string first, last;  ///< times of the first and the last event
    bool is_open = false;     ///< of the last span
};

/// What the journal says, read once.
struct Journal {
    std::map<std::string, Work, std::less<>> nodes;
    std::vector<std::string> steps;  ///< in the order in which they were first begun
    std::vector<std::pair<std::int64_t, std::int64_t>> pauses;
    std::int64_t begin = 0, end = 0;  ///< of the run, seconds
    std::string events;               ///< rows of the table
    std::size_t left_out = 0;         ///< events without a row
};

std::size_t number_of(std::vector<std::string>& steps, const std::string& name) {
    const auto found = std::find(steps.begin(), steps.end(), name);
    if (found == steps.end()) steps.push_back(name);
    return static_cast<std::size_t>(std::distance(steps.begin(), std::find(steps.begin(), steps.end(), name)));
}

void take_over(Journal& journal, const upgrade::Event& event, const std::string& time, std::int64_t now) {
    using upgrade::EventKind;
    if (event.kind == EventKind::paused) journal.pauses.emplace_back(now, journal.end);
    if (event.kind == EventKind::resumed && !journal.pauses.empty()) journal.pauses.back().second = now;
    if (event.node.empty()) return;
    auto& work = journal.nodes[event.node];
    if (work.first.empty()) work.first = time;
    work.last = time;
    if (work.is_open) work.spans.back().end = std::max(now, work.spans.back().begin);
    const bool is_end = event.kind == EventKind::done || event.kind == EventKind::failed;
    if (work.is_open && (is_end || event.kind == EventKind::intent)) {
        work.is_open = false;
        work.spans.back().has_failed = event.kind == EventKind::failed;
        work.spans.back().is_cut = !is_end;
    }
    if (event.kind != EventKind::intent) return;
    work.spans.push_back({number_of(journal.steps, event.step), now, now, false, false});
    work.is_open = true;
}

Journal read_journal(const Story& story) {
    Journal journal;
    const auto& entries = story.loaded.entries;
    journal.begin = base::parse_rfc3339(entries.front().time).value_or(0);
    journal.end = std::max(journal.begin, base::parse_rfc3339(entries.back().time).value_or(0));
    SaidCauses said;
    std::string day;
    auto now = journal.begin;
    for (std::size_t index = 1; index < entries.size(); ++index) {
        const auto& time = entries[index].time;
        const auto event = upgrade::decode_event(entries[index].payload);
        now = std::clamp(base::parse_rfc3339(time).value_or(now), journal.begin, journal.end);
        take_over(journal, event, time, now);
        const auto text = event_text(event, said);
        if (text.change.empty()) continue;
        if (journal.events.size() > k_events_bytes) {
            ++journal.left_out;
            continue;
        }
        if (const auto date = time.substr(0, time.find('T')); date != day) {
            day = date;
            journal.events += fmt::format("<tr><th colspan=3>{}\n", html_text(date));
        }
        journal.events += fmt::format("<tr><td class=k>{}<td class=k>{}<td>{}\n", html_text(clock_text(time)),
                                      html_text(text.change), html_text(text.message));
    }
    for (auto& [name, work] : journal.nodes)
        if (work.is_open) work.spans.back().is_cut = true;
    return journal;
}

/// "check <1s · load 2s (2 times)": each step with the time of all its tries.
std::string durations(const Journal& journal, const Work& work) {
    std::vector<std::pair<std::size_t, std::pair<std::int64_t, int>>> sums;
    for (const auto& span : work.spans) {
        auto found = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == span.step; });
        if (found == sums.end()) found = sums.insert(sums.end(), {span.step, {0, 0}});
        found->second.first += span.end - span.begin;
        ++found->second.second;
    }
    std::string text;
    for (const auto& [step, sum] : sums) {
        if (!text.empty()) text += " · ";
        text += html_text(journal.steps[step]) + " " + html_text(seconds_text(std::chrono::seconds(sum.first)));
        if (sum.second > 1) text += fmt::format(" ({} times)", sum.second);
    }
    return text;
}

std::string_view class_of(const upgrade::NodeRecord& node) {
    if (upgrade::is_failed_node_state(node.state)) return "bad";
    if (node.state == "done") return "good";
    if (upgrade::is_final_node_state(node.state)) return "back";
    return node.touched != 0 ? "busy" : "idle";
}

/// Failed nodes, then those in flight, then the others in their order.
std::vector<const upgrade::NodeRecord*> ordered(const upgrade::Run& run) {
    std::vector<const upgrade::NodeRecord*> nodes;
    for (const auto& node : run.nodes) nodes.push_back(&node);
    const auto rank = [](const upgrade::NodeRecord* node) {
        const auto name = class_of(*node);
        return name == "bad" ? 0 : name == "busy" ? 1 : 2;
    };
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](const auto* left, const auto* right) { return rank(left) < rank(right); });
    return nodes;
}

/// Positions in the timeline.
class Axis {
public:
    explicit Axis(const Journal& journal)
        : begin_(journal.begin), seconds_(std::max<std::int64_t>(journal.end - journal.begin, 1)) {}
    /// Begin and length of an interval, which can be seen however short it is.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> place(std::int64_t begin, std::int64_t end) const {
        const auto from = std::min((begin - begin_) * k_axis / seconds_, k_axis - k_seen);
        return {from, std::max((end - begin_) * k_axis / seconds_ - from, k_seen)};
    }

private:
    static constexpr std::int64_t k_seen = 3;
    std::int64_t begin_, seconds_;
};

std::string colour_of(const Span& span) { return span.has_failed ? "f" : fmt::format("c{}", span.step % k_colours); }

/// One rectangle for each step, which names itself.
std::string single_shapes(const Journal& journal, const std::vector<const upgrade::NodeRecord*>& nodes,
                          const Axis& axis) {
    std::string text;
    for (std::size_t line = 0; line < nodes.size(); ++line) {
        const auto found = journal.nodes.find(nodes[line]->name);
        if (found == journal.nodes.end()) continue;
        for (const auto& span : found->second.spans) {
            const auto [x, width] = axis.place(span.begin, span.end);
            text += fmt::format(
                "<rect class=\"{}{}\" x=\"{}\" y=\"{}.15\" width=\"{}\" height=\".7\"><title>{}: {} "
                "{}{}</title></rect>\n",
                colour_of(span), span.is_cut ? " cut" : "", x, line, width, html_text(nodes[line]->name),
                html_text(journal.steps[span.step]),
                html_text(seconds_text(std::chrono::seconds(span.end - span.begin))),
                span.has_failed ? ", failed"
                : span.is_cut   ? ", cut off"
                                : "");
        }
    }
    return text;
}

/// One path for all that has a colour: thousands of shapes stay small.
std::string many_shapes(const Journal& journal, const std::vector<const upgrade::NodeRecord*>& nodes,
                        const Axis& axis) {
    std::map<std::string, std::string> paths;
    for (std::size_t line = 0; line < nodes.size(); ++line) {
        const auto found = journal.nodes.find(nodes[line]->name);
        if (found == journal.nodes.end()) continue;
        for (const auto& span : found->second.spans) {
            const auto [x, width] = axis.place(span.begin, span.end);
            paths[colour_of(span)] += fmt::format("M{} {}h{}v1h-{}z", x, line, width, width);
        }
    }
    std::string text;
    for (const auto& [colour, path] : paths) text += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", colour, path);
    return text;
}

std::string timeline(const Story& story, const Journal& journal) {
    const auto nodes = ordered(story.run);
    if (journal.nodes.empty() || nodes.empty()) return "";
    const bool is_single = nodes.size() <= k_single_max;
    const double line = is_single ? k_line : k_height_max / static_cast<double>(nodes.size());
    const auto step = is_single ? std::size_t{1} : static_cast<std::size_t>(k_line / line) + 1;
    std::string names;
    for (std::size_t index = 0; index < nodes.size(); index += step)
        names += fmt::format("<div style=\"height:{:.2f}px\">{}</div>\n",
                             line * static_cast<double>(std::min(step, nodes.size() - index)),
                             html_text(nodes[index]->name));
    const Axis axis(journal);
    std::string shapes;
    for (const auto& [begin, end] : journal.pauses) {
        const auto [x, width] = axis.place(begin, end);
        shapes += fmt::format(
            "<rect class=\"pause\" x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\"><title>paused {}</title></rect>\n", x,
            width, nodes.size(), html_text(seconds_text(std::chrono::seconds(end - begin))));
    }
    shapes += is_single ? single_shapes(journal, nodes, axis) : many_shapes(journal, nodes, axis);
    std::string legend;
    for (std::size_t index = 0; index < journal.steps.size(); ++index)
        legend +=
            fmt::format("<span><i class=\"c{}\"></i>{}</span> ", index % k_colours, html_text(journal.steps[index]));
    return fmt::format(
        "<h2>Timeline</h2>\n<p class=legend>{}<span><i class=f></i>failed</span> {}</p>\n"
        "<div class=time><div class=names><div class=axis></div>\n{}</div><div class=bars><div "
        "class=axis><span>{}</span><span>{}</span></div>\n"
        "<svg role=\"img\" aria-label=\"steps of each node over time\" viewBox=\"0 0 {} {}\" "
        "preserveAspectRatio=\"none\" width=\"100%\" "
        "height=\"{:.0f}\">\n{}</svg></div></div>\n",
        legend, journal.pauses.empty() ? "" : "<span><i class=pause></i>paused</span>", names,
        html_text(story.loaded.entries.front().time), html_text(story.loaded.entries.back().time), k_axis, nodes.size(),
        line * static_cast<double>(nodes.size()), shapes);
}

std::string nodes_table(const Story& story, const Journal& journal) {
    std::string text =
        "<h2>Nodes</h2>\n"
        "<div class=scroll><table class=nodes>\n"
        "<tr><th>node<th>state<th>message<th>steps<th>time<th>before<th>now<th>target<th>kernel\n";
    SaidCauses said;
    for (const auto* node : ordered(story.run)) {
        const auto found = journal.nodes.find(node->name);
        const bool is_begun = found != journal.nodes.end();
        auto message = node->message;
        if (!node->reason.empty()) {
            message = said.text(node->name, node->reason, message);
            message = node->reason + (message.empty() ? "" : ": " + message);
        }
        auto cell = html_text(message);
        if (const auto line = upgrade::module::text_of(*node, "kernelLine"); !line.empty())
            cell += "<br>kernel: " + html_text(line);
        const auto when = is_begun ? clock_text(found->second.first) + " - " + clock_text(found->second.last) : "-";
        text += fmt::format(
            "<tr><td class=k>{}<td class=\"k {}\">{}<td class=m>{}<td class=k>{}<td class=k>{}<td class=k>{}<td "
            "class=k>{}<td class=k>{}<td class=k>{}\n",
            html_text(node->name), class_of(*node), html_text(node->state), cell,
            is_begun ? durations(journal, found->second) : "", html_text(when), html_text(dash(node->from_version)),
            html_text(node->current_known ? dash(node->current_version) : "?"),
            html_text(upgrade::procedure_of(story.run).target_text(story.run, *node)), html_text(dash(node->kernel)));
    }
    return text + "</table></div>\n";
}

std::string events_table(const Story& story, const Journal& journal) {
    std::string more;
    if (journal.left_out > 0)
        more = fmt::format("<p>{} more events: <code>kmm-upgrade history {}</code>\n", journal.left_out,
                           html_text(story.id));
    return fmt::format(
        "<h2>Events</h2>\n<details><summary>{} events</summary>\n<div class=scroll><table "
        "class=events>\n{}</table></div>\n{}</details>\n",
        story.loaded.entries.size() - 1, journal.events, more);
}

}  // namespace

std::string_view page_style() {
    return "body { margin: 1.5em auto; max-width: 90em; padding: 0 1em; line-height: 1.35 }\n"
           "h1 { font-size: 1.4em; overflow-wrap: anywhere }\nh2 { font-size: 1.1em; margin-top: 1.6em }\n"
           "td { overflow-wrap: anywhere }\n.k, .nodes th, .facts th { white-space: nowrap; overflow-wrap: normal "
           "}\n.m { min-width: 16em }\n"
           ".scroll { overflow-x: auto }\ntable { font-size: 0.9em }\n"
           ".good { background: #dfd }\n.bad { background: #c22; color: #fff }\n.back { background: #fe9 }\n.busy { "
           "background: #cdf }\n"
           ".state { display: inline-block; padding: 0.1em 0.6em; margin: 0 0.4em 0.3em 0; border: 1px solid #999 }\n"
           ".cause { border-left: 4px solid #c22; padding: 0.2em 0 0.2em 0.8em; margin: 0.8em 0; overflow-wrap: "
           "anywhere }\n"
           ".cause b, .cause p { margin: 0.2em 0 }\n"
           ".time { display: flex; border: 1px solid #999; max-width: 100% }\n"
           ".names { flex: none; max-width: 40%; overflow: hidden; font-size: 12px; line-height: 20px; border-right: "
           "1px solid #999 }\n"
           ".names div { padding: 0 0.5em; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; box-sizing: "
           "border-box }\n"
           ".bars { flex: 1; min-width: 0 }\n.axis { height: 20px; border-bottom: 1px solid #999 }\n"
           ".bars .axis { display: flex; flex-wrap: wrap; justify-content: space-between; overflow: hidden; font-size: "
           "12px; line-height: 20px; "
           "padding: 0 0.3em; box-sizing: border-box }\nsvg { display: block }\n.cut { opacity: 0.5 }\n"
           ".legend span { display: inline-block; margin-right: 1em }\n"
           ".legend i { display: inline-block; width: 0.9em; height: 0.9em; margin-right: 0.3em; vertical-align: "
           "-0.1em }\n"
           ".c0 { fill: #4e79a7; background: #4e79a7 }\n.c1 { fill: #f2a33c; background: #f2a33c }\n.c2 { fill: "
           "#59a14f; background: #59a14f }\n"
           ".c3 { fill: #76b7b2; background: #76b7b2 }\n.c4 { fill: #9c6bb3; background: #9c6bb3 }\n.c5 { fill: "
           "#b07aa1; background: #b07aa1 }\n"
           ".c6 { fill: #9c755f; background: #9c755f }\n.c7 { fill: #7a8fa6; background: #7a8fa6 }\n.f { fill: #c22; "
           "background: #c22 }\n"
           ".pause { fill: #e4e4e4; background: #e4e4e4 }\n"
           "@media (max-width: 700px) {\n"
           ".nodes td:nth-child(n+4), .nodes th:nth-child(n+4) { display: none }\n.m { min-width: 10em }\n"
           ".facts th, .facts td { display: block; border: 0; padding: 0 }\n.facts td { margin-bottom: 0.5em }\n}\n";
}

std::string page_summary(const upgrade::Run& run) {
    const auto counts = upgrade::count(run);
    std::string text = "<p>";
    const auto add = [&](std::size_t number, std::string_view name, std::string_view word) {
        if (number > 0) text += fmt::format("<span class=\"state {}\">{} {}</span>", name, number, word);
    };
    add(counts.failed, "bad", "failed");
    add(counts.active, "busy", "in flight");
    add(counts.done, "good", "done");
    add(counts.skipped, "back", "skipped");
    add(counts.rolled_back, "back", "rolled back");
    add(counts.pending, "idle", "waiting");
    text += "</p>\n";
    const auto causes = causes_of(run);
    if (!causes.empty()) text += "<h2>What failed</h2>\n";
    for (const auto& cause : causes) {
        text += fmt::format(
            "<div class=cause><b>{}: {}</b><p>{}</p>\n",
            html_text(cause.nodes.size() == 1 ? cause.nodes.front() : fmt::format("{} nodes", cause.nodes.size())),
            html_text(cause.code), html_text(cause.message));
        if (!cause.hint.empty()) text += fmt::format("<p>hint: {}</p>\n", html_text(cause.hint));
        if (cause.nodes.size() > 1)
            text += fmt::format("<p><small>{}</small></p>\n", html_text(base::join_some(cause.nodes, k_page_names)));
        text += "</div>\n";
    }
    return text;
}

std::string page_details(const Story& story) {
    const auto journal = read_journal(story);
    return timeline(story, journal) + nodes_table(story, journal) + events_table(story, journal);
}

}  // namespace kmm::tool_upgrade
