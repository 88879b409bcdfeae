// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace kmm::cli {
namespace {

/// Bytes of the escape sequence "ESC [ ... final" at `at`, 0 if there is none.
std::size_t escape_length(std::string_view text, std::size_t at) noexcept {
    if (at + 1 >= text.size() || text[at] != '\x1b' || text[at + 1] != '[') return 0;
    for (std::size_t i = at + 2; i < text.size(); ++i) {
        if (text[i] >= '@' && text[i] <= '~') return i + 1 - at;
    }
    return text.size() - at;
}

/// Bytes of the code point at `at`; 1 for a byte that starts none.
std::size_t point_length(std::string_view text, std::size_t at) noexcept {
    const auto lead = static_cast<unsigned char>(text[at]);
    std::size_t length = 1;
    if (lead >= 0xF0) {
        length = 4;
    } else if (lead >= 0xE0) {
        length = 3;
    } else if (lead >= 0xC0) {
        length = 2;
    }
    if (at + length > text.size() || !base::is_utf8(text.substr(at, length))) return 1;
    return length;
}

bool is_of_name(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/// "-b7k2p" at its end, as Kubernetes makes names unique.
bool has_generated_end(std::string_view name) noexcept {
    constexpr std::size_t k_end = 6;
    return name.size() > k_end && name[name.size() - k_end] == '-' &&
           name.substr(name.size() - k_end + 1).find_first_not_of("bcdfghjklmnpqrstvwxz2456789") ==
               std::string_view::npos;
}

/// A name, which is not `node` itself, without it.
std::string name_without(std::string_view name, std::string_view node) {
    const auto at = name.find(node);
    if (at == std::string_view::npos || at == 0 || name[at - 1] != '-' || !has_generated_end(name))
        return std::string(name);
    const auto rest = name.substr(at + node.size());
    if (!rest.starts_with('-')) return std::string(name);
    return std::string(name.substr(0, at)) + "NODE" + std::string(rest.substr(0, rest.size() - 5)) + "…";
}

}  // namespace

bool is_plain(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::size_t display_width(std::string_view text) noexcept {
    // Most text is this simple, and a table of a large fleet has millions of cells.
    if (is_plain(text)) return text.size();
    std::size_t columns = 0;
    for (std::size_t i = 0; i < text.size();) {
        if (const std::size_t escape = escape_length(text, i); escape > 0) {
            i += escape;
            continue;
        }
        i += point_length(text, i);
        ++columns;
    }
    return columns;
}

std::string cut(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return std::string(text);
    std::string kept;
    std::size_t columns = 0;
    for (std::size_t i = 0; i < text.size();) {
        if (const std::size_t escape = escape_length(text, i); escape > 0) {
            kept.append(text.substr(i, escape));
            i += escape;
            continue;
        }
        const std::size_t length = point_length(text, i);
        if (columns + 1 < width) kept.append(text.substr(i, length));
        if (columns + 1 == width) kept.append("…");
        ++columns;
        i += length;
    }
    return kept;
}

std::string pad(std::string_view text, std::size_t width) {
    const std::size_t columns = display_width(text);
    return std::string(text) + std::string(width > columns ? width - columns : 0, ' ');
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
    if (text.empty()) return {};
    const std::string margin(indent, ' ');
    const std::size_t room = width > indent ? width - indent : 1;
    std::string wrapped;
    for (const auto line : base::split(text, '\n')) {
        if (line.empty()) {
            wrapped.push_back('\n');
            continue;
        }
        if (line.front() == ' ') {
            wrapped.append(margin).append(line).push_back('\n');
            continue;
        }
        std::string current;
        for (const auto word : base::split(line, ' ')) {
            if (word.empty()) continue;
            if (!current.empty() && display_width(current) + 1 + display_width(word) > room) {
                wrapped.append(margin).append(current).push_back('\n');
                current.clear();
            }
            if (!current.empty()) current.push_back(' ');
            current.append(word);
        }
        wrapped.append(margin).append(current).push_back('\n');
    }
    return wrapped;
}

std::string without_node(std::string_view text, std::string_view node) {
    if (node.empty()) return std::string(text);
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_of_name(text[end])) ++end;
        auto name = text.substr(at, end - at);
        while (name.ends_with('.')) name.remove_suffix(1);
        if (name.empty()) {
            result.push_back(text[at++]);
            continue;
        }
        result.append(name == node ? "NODE" : name_without(name, node));
        at += name.size();
    }
    return result;
}

}  // namespace kmm::cli
