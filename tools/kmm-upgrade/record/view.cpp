// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/record/view.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/join_some.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/text.hpp"
#include "kmm-upgrade/session/board.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "report/metrics.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/engine/table.hpp"
#include "upgrade/recipe/subject.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

struct Line {
    std::string key, left, right;
};

std::map<std::string, std::vector<std::string>> left_out_by_reason(const upgrade::Run& run) {
    std::map<std::string, std::vector<std::string>> reasons;
    for (const auto& node : run.left_out) reasons[node.reason].push_back(node.name);
    return reasons;
}

std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t k_named = 8;
    return base::join_some(names, k_named);
}

std::string left_out_hint(const upgrade::Run& run) {
    const auto words = upgrade::describe(run);
    const auto when = [&](const char* then) {
        return upgrade::is_final_run_state(run.state) ? then : "after this upgrade";
    };
    if (!words.again_for_left_out.empty())
        return fmt::format("{}: {}", when("once it can take part"), words.again_for_left_out);
    return fmt::format("{}: {}{}", when("once nothing keeps it out"), words.again,
                       words.is_one_of_many ? "" : " --node " + run.left_out.front().name);
}

constexpr std::size_t k_names = 12;  // of nodes with a cause in common

void add_causes(std::vector<Line>& lines, const upgrade::Run& run) {
    const std::string key = run.paused ? "paused" : "failed";
    for (const auto& cause : causes_of(run)) {
        if (cause.nodes.size() == 1) {
            lines.push_back({key, cause.nodes.front() + ": " + cause.code, cause.message});
        } else {
            lines.push_back({key, fmt::format("{} nodes: {}: {}", cause.nodes.size(), cause.code, cause.message), ""});
            lines.push_back({"", base::join_some(cause.nodes, k_names), ""});
        }
        if (!cause.hint.empty()) lines.push_back({"hint", cause.hint, ""});
    }
}

std::vector<Line> lines_of(const upgrade::Run& run, const std::optional<record::Owner>& owner,
                           const std::string& follow) {
    std::vector<Line> lines;
    const auto words = upgrade::describe(run);
    lines.push_back({words.kind, words.subject(), words.versions()});
    lines.push_back({"state", run.state, counts_text(run)});
    if (!words.follows.empty() && !run.rollback) lines.push_back({"follows", base::join(words.follows, ", "), ""});
    for (const auto& [reason, names] : left_out_by_reason(run))
        lines.push_back({"left out", listed(names) + ": " + reason, ""});
    // Where a way goes on, the next run takes skipped nodes along.
    const bool is_left_behind = !words.again_for_left_out.empty() && run.state == upgrade::k_run_complete &&
                                !upgrade::is_followed(run) && upgrade::count(run).skipped > 0;
    if ((!run.left_out.empty() || is_left_behind) && !run.rollback)
        lines.push_back({"hint", left_out_hint(run), ""});
    for (const auto& [key, text] : words.notes) lines.push_back({key, text, ""});
    if (!run.until.empty() && !upgrade::is_final_run_state(run.state) && run.pause_reason != upgrade::k_pause_until)
        lines.push_back({"until", run.until, "the upgrade stops there"});
    add_causes(lines, run);
    if (run.paused && std::none_of(run.nodes.begin(), run.nodes.end(),
                                   [](const auto& node) { return upgrade::is_failed_node_state(node.state); })) {
        if (run.pause_reason == upgrade::k_pause_step_failed && !run.step_reason.empty()) {
            lines.push_back({"paused", run.pause_message, run.step_message});
            if (!run.step_hint.empty()) lines.push_back({"hint", run.step_hint, ""});
        } else {
            lines.push_back({"paused", run.pause_reason, run.pause_message});
        }
    }
    if (const auto cordoned = upgrade::cordoned_nodes(run); !cordoned.empty())
        lines.push_back(
            {words.hold, base::join_some(cordoned, k_names), "by this upgrade; resume, skip or abort lifts it"});
    if (owner) {
        lines.push_back(
            {"running", owner->operation, fmt::format("pid {} on {} since {}", owner->pid, owner->host, owner->since)});
        if (!follow.empty()) lines.push_back({"next", follow, "follows it"});
        return lines;
    }
    const auto commands = upgrade::next_commands(run);
    std::string others;
    for (std::size_t i = 1; i < commands.size(); ++i) others += (others.empty() ? "or: " : ", ") + commands[i];
    lines.push_back({"next", commands.front(), others});
    return lines;
}

/// lines_of, with `place` in every command.
std::vector<Line> placed_lines_of(const upgrade::Run& run, const std::optional<record::Owner>& owner,
                                  const std::string& follow, const PlaceOptions& place) {
    auto lines = lines_of(run, owner, follow);
    for (auto& line : lines) {
        if (line.key != "next" && line.key != "hint" && line.key != "back") continue;
        line.left = place.put_into(line.left);
        line.right = place.put_into(line.right);
    }
    return lines;
}

constexpr std::size_t k_rows_min = 5;  // of nodes in a summary
constexpr std::size_t k_margin = 11;  // of the first column and what is between

/// `text` under the first column, broken at blanks, its first line after `key`.
std::string wrapped(const std::string& key, const std::string& text, std::size_t width) {
    auto block = cli::wrap(text, width, k_margin);
    if (block.size() < k_margin) return fmt::format("{}\n", key);
    return fmt::format("{:<{}}", key, k_margin) + block.substr(k_margin);
}

}  // namespace

std::string dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string counts_text(const upgrade::Run& run) {
    const auto counts = upgrade::count(run);
    auto text = fmt::format("{} of {} done", counts.done, base::counted(counts.total, upgrade::describe(run).member));
    const auto add = [&](std::size_t number, const char* word) {
        if (number > 0) text += fmt::format(", {} {}", number, word);
    };
    add(counts.failed, "failed");
    add(counts.skipped, "skipped");
    add(run.left_out.size(), "left out");
    add(counts.rolled_back, "rolled back");
    if (!upgrade::is_final_run_state(run.state)) text += fmt::format(", {} in flight", counts.active);
    return text;
}

std::string clock_text(const std::string& time) {
    return base::parse_rfc3339(time) ? time.substr(11, 8) : time;
}

std::string seconds_text(std::chrono::seconds duration) {
    const auto seconds = duration.count();
    if (seconds < 1) return "<1s";
    if (seconds < 60) return fmt::format("{}s", seconds);
    return base::format_duration(duration);
}

std::string node_table(const upgrade::Run& run, std::size_t width) {
    std::vector<NodeLine> lines;
    lines.reserve(run.nodes.size());
    SaidCauses said;
    const auto add = [&](const auto& is_wanted) {
        for (const auto& node : run.nodes) {
            if (!is_wanted(node)) continue;
            lines.push_back(node_line(run, node));
            if (upgrade::is_failed_node_state(node.state))
                lines.back().message = said.text(node.name, node.reason, node.message);
        }
    };
    if (width == 0) {
        add([](const auto&) { return true; });
    } else {
        const auto is_failed = [](const auto& node) { return upgrade::is_failed_node_state(node.state); };
        const auto is_busy = [&](const auto& node) {
            return !is_failed(node) && node.touched != 0 && !upgrade::is_final_node_state(node.state);
        };
        add(is_failed);
        add(is_busy);
        add([&](const auto& node) { return !is_failed(node) && !is_busy(node); });
    }
    for (const auto& node : run.left_out) lines.push_back({node.name, "-", "-", "-", "left-out", "-", node.reason});
    return format_nodes(lines, width);
}

std::string properties(const upgrade::Run& run, const std::optional<record::Owner>& owner, std::size_t width,
                       const std::string& follow, const PlaceOptions& place) {
    const auto lines = placed_lines_of(run, owner, follow, place);
    std::size_t left = 0;
    for (const auto& line : lines)
        if (!line.right.empty()) left = std::max(left, line.left.size());
    std::string text;
    for (const auto& line : lines) {
        const auto row =
            base::escape(line.right.empty() ? fmt::format("{:<9}  {}", line.key, line.left)
                                            : fmt::format("{:<9}  {:<{}}  {}", line.key, line.left, left, line.right));
        if (width == 0 || cli::display_width(row) <= width) {
            text += row + "\n";
            continue;
        }
        text += wrapped(line.key, base::escape(line.left), width);
        if (!line.right.empty()) text += wrapped("", base::escape(line.right), width);
    }
    return text;
}

value::Node document(const upgrade::Run& run, const PlaceOptions& place) {
    auto node = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Upgrade"}});
    auto tree = upgrade::encode(run);
    for (const auto* key : {"event", "formatVersion", "minReader", "tool"}) tree.erase(key);
    for (auto& member : tree.members()) node.set(member.key, std::move(member.value));
    const auto counts = upgrade::count(run);
    node.set("summary", value::Node::mapping({{"nodes", static_cast<std::uint64_t>(counts.total)},
                                              {"done", static_cast<std::uint64_t>(counts.done)},
                                              {"failed", static_cast<std::uint64_t>(counts.failed)},
                                              {"skipped", static_cast<std::uint64_t>(counts.skipped)},
                                              {"rolledBack", static_cast<std::uint64_t>(counts.rolled_back)},
                                              {"inFlight", static_cast<std::uint64_t>(counts.active)},
                                              {"pending", static_cast<std::uint64_t>(counts.pending)}}));
    auto commands = upgrade::next_commands(run);
    for (auto& command : commands) command = place.put_into(command);
    node.set("nextCommands", value::Node::strings(commands));
    return node;
}

void print_summary(const cli::Args& args, cli::Context& context, const upgrade::Run& run, bool interrupted) {
    const PlaceOptions place(args, context.program);
    if (print_document(context, document(run, place))) return;
    if (context.output == "name") {
        context.console.out(fmt::format("upgrade/{}\n", base::printable(upgrade::describe(run).subject())));
        return;
    }
    auto& console = context.console;
    const bool table = console.out_is_terminal() || run.rollback || upgrade::count(run).failed > 0;
    const auto width = console.out_is_terminal() ? console.width() : 0;
    const auto text = properties(run, std::nullopt, width, "", place);
    if (table && width == 0) {
        console.out(node_table(run, 0) + "\n");
    } else if (table) {
        // What is above would not be seen: `show` and `nodes` have every node.
        const auto below = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 2;
        const auto lines = Board(run).lines(width, std::max(console.height(), below + k_rows_min) - below);
        console.out(base::join(lines, "\n") + "\n\n");
    }
    if (interrupted && context.verbosity >= 0) console.err("interrupted: everything done so far is recorded\n");
    console.out(text);
}

namespace {

/// Of a node, in words that stay few whatever the procedure is.
std::string metric_state(const upgrade::NodeRecord& node) {
    if (upgrade::is_failed_node_state(node.state)) return "failed";
    if (node.state == upgrade::k_node_pending || upgrade::is_final_node_state(node.state)) return node.state;
    return "running";
}

/// Whether what the state has of the recipe is there and ready: of this release, or of the one that an abort brought
/// back. nullopt: it is being removed, or this run ended before it was begun.
std::optional<bool> is_state_ready(const upgrade::Run& run, const upgrade::NodeRecord& state) {
    if (state.state == upgrade::k_node_rolled_back)
        return state.from_version.empty() ? std::nullopt : std::optional(true);
    if (upgrade::recipe::is_removal(run)) return std::nullopt;
    if (state.state == upgrade::k_node_done) return true;
    const bool is_never_begun = run.state == upgrade::k_run_aborted && state.state == upgrade::k_node_pending;
    return is_never_begun ? std::nullopt : std::optional(false);
}

std::vector<report::MetricFamily> metrics_of(const std::optional<upgrade::Run>& run, bool is_worked_on) {
    auto states = report::state_completed(), nodes = report::upgrade_nodes(), paused = report::upgrade_paused();
    auto downgrades = report::downgrade_in_progress();
    if (run) {
        const auto words = upgrade::describe(*run);
        const bool has_states = words.member == "state";
        const auto resource = has_states ? words.name : words.subject();
        // One that was interrupted or killed does not go on by itself either, nor does what follows it.
        const bool is_over = upgrade::is_final_run_state(run->state) && !upgrade::is_followed(*run);
        const bool is_left = !is_worked_on && !is_over;
        paused.samples[{resource}] = run->paused || is_left ? 1 : 0;
        for (const auto& node : run->nodes) {
            if (const auto driver = has_states ? upgrade::recipe::driver_node_of(node) : std::nullopt) {
                auto& held = downgrades.samples[{driver->node}];
                if (node.cordon == upgrade::k_cordon_ours) held = 1;
                continue;
            }
            const auto slash = node.name.find('/');
            if (!has_states) ++nodes.samples[{resource, metric_state(node)}];
            else if (const auto ready = is_state_ready(*run, node))
                states.samples[{node.name.substr(0, slash),
                                slash == std::string::npos ? "" : node.name.substr(slash + 1)}] = *ready ? 1 : 0;
        }
        if (!has_states)
            for (const char* state : {"pending", "running", "done", "failed", "skipped", "rolled-back"})
                nodes.samples.try_emplace({resource, state}, 0);
    }
    if (downgrades.samples.empty()) return {states, nodes, paused};
    return {states, nodes, paused, downgrades};
}

}  // namespace

cli::Option metrics_option() { return cli::option("metrics", "FILE", "write the run as OpenMetrics text"); }

cli::Option metrics_cluster_option() {
    return cli::option("metrics-cluster", "NAME", report::k_metrics_cluster_help);
}

std::string metrics_text(const cli::Args& args, const std::vector<report::MetricFamily>& families) {
    return report::openmetrics_text(families, args.get("metrics-cluster").value_or(""));
}

void write_metrics(const cli::Args& args, cli::Context& context, const std::optional<upgrade::Run>& run,
                   bool is_worked_on) {
    if (const auto file = args.get("metrics"))
        cli::write_report(context, *file, metrics_text(args, metrics_of(run, is_worked_on)));
}

}  // namespace kmm::tool_upgrade
