// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

std::string versions(const upgrade::Run& run) { return fmt::format("{} -> {}", run.from_text(), run.to_text()); }

struct Line {
    std::string key, left, right;
};

std::vector<Line> lines_of(const upgrade::Run& run, const std::optional<record::Owner>& owner) {
    std::vector<Line> lines;
    lines.push_back({"module", run.module(), versions(run)});
    lines.push_back({"state", run.state, counts_text(run)});
    if (!run.rest.modules.empty() && !run.rollback) {
        const auto names = base::split(run.rest.modules, ' ');
        lines.push_back({"follows", base::join(std::vector<std::string>(names.begin(), names.end()), ", "), ""});
    }
    for (const auto name : base::split(run.created_definitions, ','))
        if (!name.empty()) lines.push_back({"created", fmt::format("CustomResourceDefinition {}", name), ""});
    for (const auto& node : run.nodes) {
        if (!upgrade::is_failed_node_state(node.state)) continue;
        const auto message = node.kernel_line.empty() ? node.message : "kernel said " + node.kernel_line;
        lines.push_back({run.paused ? "paused" : "failed", node.name + ": " + node.reason, message});
        if (!node.hint.empty()) lines.push_back({"hint", node.hint, ""});
    }
    if (run.paused && std::none_of(run.nodes.begin(), run.nodes.end(),
                                   [](const auto& node) { return upgrade::is_failed_node_state(node.state); }))
        lines.push_back({"paused", run.pause_reason, run.pause_message});
    if (const auto cordoned = upgrade::cordoned_nodes(run); !cordoned.empty())
        lines.push_back({"cordoned", base::join(cordoned, ", "), "by this upgrade; resume, skip or abort lifts it"});
    if (owner) {
        lines.push_back({"running", owner->operation, fmt::format("pid {} on {} since {}", owner->pid, owner->host, owner->since)});
        lines.push_back({"next", "kmm-upgrade show --watch", "follows it"});
        return lines;
    }
    const auto commands = upgrade::next_commands(run);
    lines.push_back({"next", commands.front(), commands.size() > 1 ? "or: " + commands[1] : ""});
    return lines;
}

}  // namespace

std::string dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string counts_text(const upgrade::Run& run) {
    const auto counts = upgrade::count(run);
    auto text = fmt::format("{} of {} nodes done", counts.done, counts.total);
    const auto add = [&](std::size_t number, const char* word) {
        if (number > 0) text += fmt::format(", {} {}", number, word);
    };
    add(counts.failed, "failed");
    add(counts.skipped, "skipped");
    add(counts.rolled_back, "rolled back");
    if (!upgrade::is_final_run_state(run.state)) text += fmt::format(", {} in flight", counts.active);
    return text;
}

std::string clock_text(const std::string& time) {
    return base::parse_rfc3339(time) ? time.substr(11, 8) : time;
}

std::string node_table(const upgrade::Run& run, std::size_t width) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& node : run.nodes) {
        auto message = node.message;
        if (node.state == "skipped") message = "skipped: " + message;
        rows.push_back({node.name, dash(node.kernel), node.current_known ? dash(node.current_version) : "?",
                        upgrade::target_text(run, node), node.state, clock_text(node.since), message});
    }
    return cli::format_table({"NODE", "KERNEL", "CURRENT", "TARGET", "STATE", "SINCE", "MESSAGE"}, rows, width);
}

std::string properties(const upgrade::Run& run, const std::optional<record::Owner>& owner) {
    const auto lines = lines_of(run, owner);
    std::size_t left = 0;
    for (const auto& line : lines)
        if (!line.right.empty()) left = std::max(left, line.left.size());
    std::string text;
    for (const auto& line : lines) {
        auto row = line.right.empty() ? fmt::format("{:<9}  {}", line.key, line.left)
                                      : fmt::format("{:<9}  {:<{}}  {}", line.key, line.left, left, line.right);
        text += base::escape(row) + "\n";
    }
    return text;
}

value::Node document(const upgrade::Run& run) {
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
    node.set("nextCommands", value::Node::strings(upgrade::next_commands(run)));
    return node;
}

void print_summary(cli::Context& context, const upgrade::Run& run, bool interrupted) {
    if (print_document(context, document(run))) return;
    if (context.output == "name") {
        context.console.out("upgrade/" + run.module() + "\n");
        return;
    }
    auto& console = context.console;
    const bool table = console.out_is_terminal() || run.rollback || upgrade::count(run).failed > 0;
    if (table) console.out(node_table(run, console.out_is_terminal() ? console.width() : 0) + "\n");
    if (interrupted && context.verbosity >= 0) console.err("interrupted: everything done so far is recorded\n");
    console.out(properties(run));
}

}  // namespace kmm::tool_upgrade
