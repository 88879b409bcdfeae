// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/text.hpp"

namespace kmm::cli {
namespace {

constexpr std::size_t k_gap = 2;
constexpr std::size_t k_column_min = 8;
constexpr std::size_t k_piece = 64U << 10U;  // of the text of a long table

template <typename Cells>
void append_row(std::string& text, const Cells& cells, const std::vector<std::size_t>& widths) {
    const std::size_t begin = text.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (i > 0) text.append(k_gap, ' ');
        if (i >= cells.size()) {
            text.append(widths[i], ' ');
            continue;
        }
        const std::size_t columns = display_width(cells[i]);
        if (columns > widths[i]) {
            text.append(pad(cut(cells[i], widths[i]), widths[i]));
        } else {
            text.append(cells[i]).append(widths[i] - columns, ' ');
        }
    }
    const std::size_t last = text.find_last_not_of(' ');
    text.resize(last == std::string::npos || last < begin ? begin : last + 1);
    text.push_back('\n');
}

std::vector<std::size_t> widths_of(const std::vector<std::string>& headers) {
    std::vector<std::size_t> widths;
    for (const auto& header : headers) widths.push_back(display_width(header));
    return widths;
}

/// Makes room for a row of at most as many cells.
template <typename Cells>
void widen(std::vector<std::size_t>& widths, const Cells& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], display_width(cells[i]));
}

/// Makes the columns `widths` of a table fit into `width`; 0 is room enough.
void fit(std::vector<std::size_t>& widths, std::size_t width) {
    if (width == 0 || widths.empty()) return;
    std::size_t total = std::accumulate(widths.begin(), widths.end(), k_gap * (widths.size() - 1));
    for (std::size_t i = widths.size(); i-- > 0 && total > width;) {
        const std::size_t spare = widths[i] > k_column_min ? widths[i] - k_column_min : 0;
        const std::size_t less = std::min(spare, total - width);
        widths[i] -= less;
        total -= less;
    }
}

}  // namespace

std::string format_table(const std::vector<std::string>& headers, const std::vector<std::vector<std::string>>& rows,
                         std::size_t width) {
    std::vector<std::vector<std::string_view>> safe;
    safe.reserve(rows.size());
    std::deque<std::string> escaped;  // of the few cells that are not as they are given
    auto widths = widths_of(headers);
    for (const auto& row : rows) {
        auto& cells = safe.emplace_back();
        cells.reserve(headers.size());
        for (std::size_t i = 0; i < row.size() && i < headers.size(); ++i) {
            cells.push_back(is_plain(row[i]) ? std::string_view(row[i])
                                             : escaped.emplace_back(base::printable(row[i])));
        }
        widen(widths, cells);
    }
    fit(widths, width);
    std::string text;
    append_row(text, headers, widths);
    for (const auto& cells : safe) append_row(text, cells, widths);
    return text;
}

void print_table(const std::vector<std::string>& headers,
                 const std::function<void(const std::function<void(const std::vector<std::string>&)>&)>& rows,
                 std::size_t width, const std::function<void(std::string_view)>& out) {
    auto widths = widths_of(headers);
    std::vector<std::string> cells;
    const auto escape = [&](const std::vector<std::string>& row) {
        cells.assign(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), headers.size())));
        for (auto& cell : cells) {
            if (!is_plain(cell)) cell = base::printable(cell);
        }
    };
    rows([&](const std::vector<std::string>& row) {
        escape(row);
        widen(widths, cells);
    });
    fit(widths, width);
    std::string text;
    append_row(text, headers, widths);
    rows([&](const std::vector<std::string>& row) {
        escape(row);
        append_row(text, cells, widths);
        if (text.size() < k_piece) return;
        out(text);
        text.clear();
    });
    out(text);
}

bool fits(std::string_view text, std::size_t width) {
    const auto lines = base::split(text, '\n');
    return std::all_of(lines.begin(), lines.end(), [&](std::string_view line) { return display_width(line) <= width; });
}

namespace {

/// Lines of at most `width` columns, indented, that have the pieces with their ends; one that is longer stays whole.
std::string folded_lines(const std::vector<std::string>& pieces, std::size_t width) {
    constexpr std::string_view k_indent = "  ";
    std::string text, line;
    for (const auto& piece : pieces) {
        if (!line.empty() && display_width(line) + 1 + display_width(piece) > width) {
            text.append(line).push_back('\n');
            line.clear();
        }
        line.append(line.empty() ? k_indent : " ").append(piece);
    }
    return line.empty() ? text : text + line + "\n";
}

/// What stands below a row: the first `named` of `cells` with their headers, the others with ": " between them.
std::string folded_cells(const std::vector<std::string>& headers, const std::vector<std::string>& cells,
                         std::size_t named, std::size_t width) {
    const auto is_empty = [](const std::string& cell) { return cell == "-"; };
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < named; ++i)
        if (!is_empty(cells[i]))
            pieces.push_back(base::to_lower(headers[i]) + " " + base::printable(cells[i]) + ",");
    const auto first = cells.begin() + static_cast<std::ptrdiff_t>(named);
    if (!std::all_of(first, cells.end(), is_empty)) {
        pieces.push_back(base::printable(base::join(std::vector(first, cells.end()), ": ")));
    } else if (!pieces.empty()) {
        pieces.back().pop_back();
    }
    return folded_lines(pieces, width);
}

}  // namespace

std::string folded_table(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows,
                         std::size_t below, std::size_t width) {
    auto whole = format_table(headers, rows, 0);
    if (width == 0 || fits(whole, width)) return whole;
    const auto left = [&](std::size_t folded) {
        const std::vector<std::string> first(headers.begin(), headers.end() - static_cast<std::ptrdiff_t>(folded));
        return format_table(first, rows, 0);  // which leaves out cells without a header
    };
    std::size_t folded = below;
    whole = left(folded);
    while (folded + 1 < headers.size() && !fits(whole, width)) whole = left(++folded);
    const std::vector<std::string> names(headers.end() - static_cast<std::ptrdiff_t>(folded), headers.end());
    std::vector<std::string> details{""};  // below the headers
    for (const auto& row : rows)
        details.push_back(folded_cells(names, {row.end() - static_cast<std::ptrdiff_t>(folded), row.end()},
                                       folded - below, width));
    return interleaved(whole, details);
}

std::string interleaved(std::string_view table, const std::vector<std::string>& below) {
    std::string text;
    std::size_t index = 0;
    for (const auto line : base::split(table, '\n')) {
        if (index < below.size()) text.append(line).append("\n").append(below[index++]);
    }
    return text;
}

std::string format_properties(const std::vector<std::pair<std::string, std::string>>& rows) {
    std::size_t key_width = 0;
    for (const auto& row : rows) key_width = std::max(key_width, display_width(row.first));
    std::string text;
    for (const auto& [key, value] : rows) {
        const std::string line = pad(key, key_width) + "   " + base::printable(value);
        text.append(line, 0, line.find_last_not_of(' ') + 1).push_back('\n');
    }
    return text;
}

LiveArea::~LiveArea() {
    try {
        clear();
    } catch (...) {  // a progress display must not turn a finished run into a crash
    }
}

void LiveArea::draw(std::vector<std::string> lines) {
    is_drawn_ = !lines.empty();
    console_.draw(std::move(lines));
}

void LiveArea::clear() {
    if (is_drawn_) draw({});
}

}  // namespace kmm::cli
