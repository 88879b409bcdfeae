// SPDX-License-Identifier: Apache-2.0
#include "value/text_scan.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::value {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
bool is_space(char c) noexcept { return is_blank(c) || c == '\r' || c == '\n'; }
bool is_flow_mark(char c) noexcept { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'; }

}  // namespace

std::size_t TextScan::skip_blanks(std::size_t offset) const noexcept {
    while (offset < text_.size() && is_blank(text_[offset])) ++offset;
    return offset;
}

std::size_t TextScan::skip_properties(std::size_t offset) const noexcept {
    return skip_yaml_properties(text_, offset);
}

std::size_t TextScan::line_end(std::size_t offset) const noexcept {
    auto end = std::min(text_.find('\n', offset), text_.size());
    if (end > offset && text_[end - 1] == '\r' && end < text_.size()) --end;
    return end;
}

bool TextScan::is_first_in_line(std::size_t offset) const noexcept {
    return skip_blanks(index_.line_start(offset)) >= offset;
}

bool TextScan::is_rest_empty(std::size_t offset) const noexcept {
    const auto end = line_end(offset);
    const auto rest = skip_blanks(offset);
    return rest >= end || (text_[rest] == '#' && (rest > offset || rest == index_.line_start(rest)));
}

std::size_t TextScan::quoted_end(std::size_t offset) const noexcept {
    return find_quoted_end(text_, offset).value_or(text_.size());
}

std::size_t TextScan::key_end(std::size_t key, Within within) const noexcept {
    auto at = skip_properties(key);
    if (at >= text_.size()) return at;
    if (text_[at] == '"' || text_[at] == '\'') return quoted_end(at);
    const auto begin = at;
    for (; at < text_.size() && text_[at] != '\n'; ++at) {
        const bool last = at + 1 >= text_.size();
        if (text_[at] == ':' && (last || is_space(text_[at + 1]) || is_flow_mark(text_[at + 1]))) break;
        if (within == Within::flow && is_flow_mark(text_[at])) break;
    }
    while (at > begin && is_space(text_[at - 1])) --at;
    return at;
}

std::optional<std::size_t> TextScan::colon_end(std::size_t key, Within within) const noexcept {
    auto at = key_end(key, within);
    while (at < text_.size() && is_space(text_[at])) ++at;
    if (at >= text_.size() || text_[at] != ':') return std::nullopt;
    return at + 1;
}

Style TextScan::style(const Node& node, std::size_t colon) const noexcept {
    const auto mark = start(node);
    if (mark < colon) return Style::alias;  // an expanded part of an anchor that stands elsewhere
    const auto at = skip_properties(mark);
    if (at >= text_.size()) return Style::empty;
    if (text_[at] == '*' && mark == at) return Style::alias;
    if (node.is_null()) {
        const auto word = text_.substr(at, 4);
        const auto lower = base::to_lower(word);
        return lower == "null" || word.substr(0, 1) == "~" ? Style::plain : Style::empty;
    }
    if (node.is_mapping() || node.is_sequence()) {
        return text_[at] == '{' || text_[at] == '[' ? Style::flow : Style::block;
    }
    if (text_[at] == '"' || text_[at] == '\'') return Style::quoted;
    if (text_[at] == '|' || text_[at] == '>') return Style::block_text;
    return Style::plain;
}

std::size_t TextScan::plain_flow_end(std::size_t offset) const noexcept {
    auto at = offset;
    for (; at < text_.size(); ++at) {
        const char c = text_[at];
        if (is_flow_mark(c)) break;
        if (c == ':' && (at + 1 >= text_.size() || is_space(text_[at + 1]))) break;
        if (c == '#' && at > offset && is_space(text_[at - 1])) break;
    }
    while (at > offset && is_space(text_[at - 1])) --at;
    return at;
}

std::size_t TextScan::flow_end(std::size_t offset) const noexcept {
    offset = skip_properties(offset);
    if (offset >= text_.size()) return offset;
    if (text_[offset] == '"' || text_[offset] == '\'') return quoted_end(offset);
    if (text_[offset] != '{' && text_[offset] != '[') return plain_flow_end(offset);
    std::size_t depth = 0;
    bool fresh = true;  // at the start of a token, where a quote opens and a '#' comments
    for (auto at = offset; at < text_.size(); ++at) {
        const char c = text_[at];
        if (c == '#' && at > offset && is_space(text_[at - 1])) {
            at = line_end(at);
            fresh = true;
        } else if (fresh && (c == '"' || c == '\'')) {
            at = quoted_end(at) - 1;
            fresh = false;
        } else if (c == '{' || c == '[') {
            ++depth;
            fresh = true;
        } else if (c == '}' || c == ']') {
            if (--depth == 0) return at + 1;
            fresh = false;
        } else {
            fresh =
                c == ',' || c == ':' || (is_space(c) && fresh) || c == '\n' || (is_space(c) && text_[at - 1] == ':');
        }
    }
    return text_.size();
}

std::size_t
TextScan::block_text_end(std::size_t offset, std::size_t key_column, std::size_t bound) const noexcept {
    auto end = line_end(offset);
    bool keep = false;
    bool has_width = false;
    for (auto at = offset + 1; at < end && !is_blank(text_[at]); ++at) {
        keep = keep || text_[at] == '+';
        has_width = has_width || (text_[at] >= '1' && text_[at] <= '9');
    }
    std::size_t width = has_width ? key_column + 1 : 0;
    for (auto at = index_.next_line(offset); at < bound && at > offset; at = index_.next_line(at)) {
        const auto stop = line_end(at);
        auto content = at;
        while (content < stop && text_[content] == ' ') ++content;
        if (content == stop) {
            if (keep) end = stop;
        } else {
            const auto indent = content - at;
            if (indent <= key_column || indent < width) break;
            if (width == 0) width = indent;
            end = stop;
        }
        if (index_.next_line(at) == at || index_.next_line(at) >= text_.size()) break;
    }
    return end;
}

std::size_t TextScan::trim_back(std::size_t low, std::size_t bound) const noexcept {
    while (bound > low) {
        const auto line = std::max(index_.line_start(bound - 1), low);
        const auto stop = std::min(bound, line_end(line));
        auto content = skip_blanks(line);
        const bool comment =
            content < stop && text_[content] == '#' && (content > line || line == index_.line_start(line));
        if (content < stop && !comment) {
            auto end = stop;
            for (auto at = content + 1; at < stop; ++at) {
                if (text_[at] == '#' && is_blank(text_[at - 1])) {
                    end = at;
                    break;
                }
            }
            while (end > low && is_space(text_[end - 1])) --end;
            return end;
        }
        bound = line;
    }
    return low;
}

std::size_t TextScan::block_end(const Node& node, std::size_t colon, std::size_t key_column,
                                std::size_t bound) const noexcept {
    const auto at = skip_properties(start(node));
    switch (style(node, colon)) {
        case Style::empty: return trim_back(colon, bound);
        case Style::alias: {
            auto end = colon;
            while (end < bound && is_space(text_[end])) ++end;
            while (end < bound && !is_space(text_[end])) ++end;
            return end;
        }
        case Style::quoted:
        case Style::flow: return flow_end(at);
        case Style::block_text: return block_text_end(at, key_column, bound);
        case Style::plain: return trim_back(at, bound);
        case Style::block: break;
    }
    if (node.is_mapping()) {
        const auto& last = node.members().back();
        const auto inner = colon_end(index_.offset(last.key_mark), Within::block);
        return block_end(last.value, inner.value_or(colon), key_column, bound);
    }
    const auto& last = node.items().back();
    const auto inner = std::max(colon, start(last));
    if (start(last) >= bound) return trim_back(colon, bound);
    return block_end(last, std::min(inner, start(last)), key_column, bound);
}

}  // namespace kmm::value
