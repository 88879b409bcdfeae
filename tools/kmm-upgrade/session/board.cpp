// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/board.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::size_t k_gap = 2, k_message = 20, k_message_min = 8, k_name_min = 10;

struct Column {
    const char* header;
    std::string NodeLine::*text;
};
constexpr std::array k_columns{Column{"NODE", &NodeLine::name},     Column{"", &NodeLine::aspect},
                               Column{"CURRENT", &NodeLine::current}, Column{"TARGET", &NodeLine::target},
                               Column{"STATE", &NodeLine::state},   Column{"SINCE", &NodeLine::since},
                               Column{"MESSAGE", &NodeLine::message}};
/// What goes first where there is no room for all.
constexpr std::array k_dispensable{&NodeLine::aspect, &NodeLine::since, &NodeLine::current, &NodeLine::target};

/// The dot and all after it that every name ends in; "" if there is none. Of one name nothing can be left out.
std::string_view common_domain(const std::vector<NodeLine>& lines) {
    if (lines.size() < 2) return "";
    const std::string_view first = lines.front().name;
    const auto dot = first.find('.');
    std::string_view domain = dot == std::string_view::npos ? "" : first.substr(dot);
    for (const auto& line : lines) {
        while (!domain.empty() && !line.name.ends_with(domain)) {
            const auto next = domain.find('.', 1);
            domain = next == std::string_view::npos ? "" : domain.substr(next);
        }
    }
    return domain;
}

void shorten_names(std::vector<NodeLine>& lines, std::size_t width) {
    const auto is_wide = [&](const NodeLine& line) { return cli::display_width(line.name) > width; };
    if (std::none_of(lines.begin(), lines.end(), is_wide)) return;
    const auto domain = common_domain(lines).size();
    for (auto& line : lines) {
        line.name.resize(line.name.size() - domain);
        line.name = short_name(line.name, width);
    }
}

}  // namespace

NodeLine node_line(const upgrade::Run& run, const upgrade::NodeRecord& node) {
    auto [title, aspect] = upgrade::procedure_of(run).aspect(run, node);
    return {node.name,
            dash(aspect),
            node.current_known ? dash(node.current_version) : "?",
            upgrade::procedure_of(run).target_text(run, node),
            node.state,
            clock_text(node.since),
            node.state == "skipped" ? "skipped: " + node.message : node.message,
            std::move(title)};
}

std::string short_name(const std::string& name, std::size_t width) {
    if (cli::display_width(name) <= width) return name;
    if (!cli::is_plain(name) || width < 3) return cli::cut(name, width);
    const auto head = (width - 1) / 3;
    return name.substr(0, head) + "…" + name.substr(name.size() - (width - 1 - head));
}

std::string format_nodes(const std::vector<NodeLine>& lines, std::size_t width) {
    std::vector<Column> columns(k_columns.begin(), k_columns.end());
    const std::string aspect = lines.empty() ? NodeLine().aspect_title : lines.front().aspect_title;
    for (auto& column : columns)
        if (column.text == &NodeLine::aspect) column.header = aspect.c_str();
    auto shown = lines;
    if (width > 0) {
        std::vector<std::size_t> widths;
        const auto measure = [&] {
            widths.clear();
            for (const auto& column : columns) {
                auto widest = std::string_view(column.header).size();
                for (const auto& line : lines) widest = std::max(widest, cli::display_width(line.*column.text));
                widths.push_back(widest);
            }
        };
        const auto needed = [&](std::size_t message) {
            return std::accumulate(widths.begin(), widths.end() - 1, k_gap * (widths.size() - 1)) +
                   std::min(widths.back(), message);
        };
        measure();
        for (const auto& least : k_dispensable) {
            if (needed(k_message) <= width) break;
            std::erase_if(columns, [&](const Column& column) { return column.text == least; });
            measure();
        }
        if (const auto all = needed(k_message_min); all > width) {
            const auto over = all - width;
            shorten_names(shown, widths.front() > over + k_name_min ? widths.front() - over : k_name_min);
        }
    }
    std::vector<std::string> headers;
    for (const auto& column : columns) headers.emplace_back(column.header);
    std::vector<std::vector<std::string>> rows;
    rows.reserve(shown.size());
    for (auto& line : shown) {
        auto& row = rows.emplace_back();
        for (const auto& column : columns) row.push_back(std::move(line.*column.text));
    }
    return cli::format_table(headers, rows, width);
}

Board::Board(const upgrade::Run& run) : head_(run) {
    head_.nodes.clear();
    for (const auto& node : run.nodes) {
        const auto index = lines_.size();
        index_.emplace(node.name, index);
        lines_.push_back(node_line(head_, node));
        phases_.push_back(phase_of(node));
        place(index, node);
    }
}

Board::Phase Board::phase_of(const upgrade::NodeRecord& node) {
    if (upgrade::is_failed_node_state(node.state)) return Phase::failed;
    if (upgrade::is_final_node_state(node.state)) return Phase::final;
    return node.touched != 0 ? Phase::in_flight : Phase::waiting;
}

void Board::place(std::size_t index, const upgrade::NodeRecord& node) {
    phases_[index] = phase_of(node);
    groups_[static_cast<std::size_t>(phases_[index])].insert(index);
    if (phases_[index] == Phase::final) ++finals_[node.state];
}

void Board::update(const upgrade::NodeRecord& node) {
    const auto found = index_.find(node.name);
    if (found == index_.end()) return;
    const auto index = found->second;
    groups_[static_cast<std::size_t>(phases_[index])].erase(index);
    if (phases_[index] == Phase::final) --finals_[lines_[index].state];
    lines_[index] = node_line(head_, node);
    place(index, node);
}

std::size_t Board::finals() const { return in(Phase::final).size(); }

std::vector<std::string> Board::lines(std::size_t width, std::size_t rows) const {
    std::vector<NodeLine> shown;
    std::vector<std::string> others;
    if (lines_.size() + 1 <= rows) {
        shown = lines_;
    } else {
        const auto room = std::max<std::size_t>(rows, 3) - 2;
        const auto take = [&](Phase phase, std::size_t most) {
            for (auto index = in(phase).begin(); index != in(phase).end() && most > 0; ++index, --most)
                shown.push_back(lines_[*index]);
        };
        const auto active = in(Phase::in_flight).size();
        take(Phase::failed, room - std::min(active, room / 2));
        const auto failed = shown.size();
        take(Phase::in_flight, room - failed);
        const auto begun = shown.size();
        take(Phase::waiting, room - begun);
        const auto add = [&](std::size_t number, std::string_view word) {
            if (number > 0) others.push_back(fmt::format("{} {}", number, word));
        };
        for (const auto& [state, number] : finals_) add(number, state == "rolled-back" ? "rolled back" : state);
        add(in(Phase::failed).size() - failed, "more failed");
        add(active - (begun - failed), "more in flight");
        add(in(Phase::waiting).size() - (shown.size() - begun), shown.size() > begun ? "more waiting" : "waiting");
    }
    std::vector<std::string> made;
    const auto table = format_nodes(shown, width);
    for (const auto line : base::split(table, '\n'))
        if (!line.empty()) made.emplace_back(line);
    if (!others.empty()) made.push_back(cli::cut("… " + base::join(others, ", "), width));
    return made;
}

std::string Board::bar(std::size_t width, const std::string& tail) const {
    constexpr std::size_t k_bar = 24, k_bar_min = 4;
    auto text = fmt::format("{} of {}", finals(), base::counted(total(), "node"));
    if (const auto failed = in(Phase::failed).size(); failed > 0) text += fmt::format(", {} failed", failed);
    const auto brief = text;
    if (!tail.empty()) text += "  " + tail;
    const auto room_of = [&](const std::string& said) { return width > said.size() + 3 ? width - said.size() - 3 : 0; };
    if (room_of(text) < k_bar_min) text = brief;
    const auto bar = std::min(k_bar, room_of(text));
    if (bar < k_bar_min) return cli::cut(text, width);
    const auto filled = total() == 0 ? 0 : bar * finals() / total();
    return fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(bar - filled, '.'), text);
}

}  // namespace kmm::tool_upgrade
