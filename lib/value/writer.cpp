// SPDX-License-Identifier: Apache-2.0
#include "value/writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/ci_text.hpp"
#include "base/invisible.hpp"
#include "base/text.hpp"
#include "value/scalar.hpp"

namespace kmm::value {
namespace {

/// The double quotes of YAML know no surrogates, those of JSON nothing else beyond U+FFFF.
enum class Quotes { yaml, json };

void append_code_point(std::string& out, std::uint32_t point, Quotes quotes) {
    constexpr std::uint32_t k_plane = 0x10000;
    if (point < k_plane) {
        out += fmt::format("\\u{:04x}", point);
    } else if (quotes == Quotes::yaml) {
        out += fmt::format("\\U{:08x}", point);
    } else {
        out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + ((point - k_plane) >> 10U),
                           0xDC00U + ((point - k_plane) & 0x3FFU));
    }
}

/// The first place from `at` on of a byte that is not printed as it is, or the size of the text.
std::size_t end_of_plain(std::string_view text, std::size_t at) {
    while (at < text.size()) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x20U || byte >= 0x7FU || byte == '"' || byte == '\\') { break; }
        ++at;
    }
    return at;
}

/// Characters that nobody sees are escaped, and a '[' that a CI system could take for the end of a command's start: a
/// document may be printed in a log, and reviewed.
void append_quoted(std::string& out, std::string_view text, Quotes quotes) {
    out += '"';
    base::CiFilter commands;
    const bool has_commands = text.find("##") != std::string_view::npos;
    for (std::size_t at = 0; at < text.size();) {
        if (!has_commands) {
            const auto end = end_of_plain(text, at);
            out.append(text, at, end - at);
            at = end;
            if (at == text.size()) break;
        }
        const auto lead = static_cast<unsigned char>(text[at]);
        if (lead < 0x80U) {
            const bool is_command = has_commands && commands.changes(text.substr(at, 1));
            if (has_commands) (void)commands.pass(text.substr(at, 1));
            switch (text[at]) {
                case '"': out += "\\\""; break;
                case '\\': out += "\\\\"; break;
                case '\n': out += "\\n"; break;
                case '\r': out += "\\r"; break;
                case '\t': out += "\\t"; break;
                default:
                    if (lead < 0x20U || lead == 0x7FU || (is_command && text[at] == '[')) {
                        out += fmt::format("\\u{:04x}", static_cast<unsigned>(lead));
                    } else {
                        out += text[at];
                    }
            }
            ++at;
            continue;
        }
        const std::size_t length = lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
        const auto sequence = text.substr(at, length);
        if (sequence.size() != length || !base::is_utf8(sequence)) {
            out += "\\ufffd";
            ++at;
        } else {
            const auto point = base::code_point(sequence);
            if (base::is_invisible(point)) {
                append_code_point(out, point, quotes);
            } else {
                out += sequence;
            }
            at += length;
        }
    }
    out += '"';
}

void append_scalar_json(std::string& out, const Node& node) {
    if (node.is_null()) {
        out += "null";
    } else if (node.is_string()) {
        append_quoted(out, node.text(), Quotes::json);
    } else {
        out += node.text();
    }
}

constexpr std::size_t k_piece = 64U << 10U;

/// Where the items of a long sequence come from, and where the text goes meanwhile.
struct Spill {
    const LongSequence& sequence;
    const std::function<void(std::string_view)>& out;
};

bool is_long(const Node& node, const Spill* spill) noexcept {
    return spill != nullptr && spill->sequence.place == &node;
}

/// Calls `take`, which adds to `out`, with the items of `node`.
template <typename Take>
void each_item(std::string& out, const Node& node, const Spill* spill, const Take& take) {
    if (!is_long(node, spill)) {
        for (const auto& item : node.items()) take(item);
        return;
    }
    spill->sequence.items([&](const Node& item) {
        take(item);
        if (out.size() < k_piece) return;
        spill->out(out);
        out.clear();
    });
}

void append_json(std::string& out, const Node& node, bool pretty, std::size_t indent, const Spill* spill = nullptr) {
    const auto line = [&](std::size_t width) {
        if (!pretty) return;
        out += '\n';
        out.append(width, ' ');
    };
    std::size_t done = 0;
    if (node.is_mapping()) {
        out += '{';
        for (const auto& member : node.members()) {
            if (done++ > 0) out += ',';
            line(indent + 2);
            append_quoted(out, member.key, Quotes::json);
            out += pretty ? ": " : ":";
            append_json(out, member.value, pretty, indent + 2, spill);
        }
        if (done > 0) line(indent);
        out += '}';
    } else if (node.is_sequence()) {
        out += '[';
        each_item(out, node, spill, [&](const Node& item) {
            if (done++ > 0) out += ',';
            line(indent + 2);
            append_json(out, item, pretty, indent + 2, spill);
        });
        if (done > 0) line(indent);
        out += ']';
    } else {
        append_scalar_json(out, node);
    }
}

/// True if a literal block gives back exactly this text in every reader.
bool fits_literal(std::string_view text) noexcept {
    const auto last = text.find_last_not_of('\n');
    if (last == std::string_view::npos || text.find('\n') == std::string_view::npos) return false;
    if (text.size() - last > 2 || text[0] == ' ' || text[0] == '\n') return false;
    char before = '\n';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20U && c != '\n') || byte >= 0x7FU) return false;
        if (c == '\n' && before == ' ') return false;
        before = c;
    }
    return before != ' ' && !base::has_ci_command(text);
}

void append_text_yaml(std::string& out, std::string_view text) {
    if (needs_quotes(text)) {
        append_quoted(out, text, Quotes::yaml);
    } else {
        out += text;
    }
}

void append_literal(std::string& out, std::string_view text, std::size_t indent) {
    const bool ends_with_break = text.back() == '\n';
    out += ends_with_break ? "|\n" : "|-\n";
    if (ends_with_break) text.remove_suffix(1);
    for (const auto piece : base::split(text, '\n')) {
        if (!piece.empty()) out.append(indent, ' ');
        out += piece;
        out += '\n';
    }
}

void append_members(std::string& out, const Node& node, std::size_t indent, std::size_t first_indent,
                    const Spill* spill);
void append_items(std::string& out, const Node& node, std::size_t indent, std::size_t first_indent, const Spill* spill);

/// A value without block children, and its line end. `indent` is the parent's.
void append_inline(std::string& out, const Node& node, std::size_t indent) {
    if (node.is_mapping()) {
        out += "{}\n";
    } else if (node.is_sequence()) {
        out += "[]\n";
    } else if (node.is_string() && fits_literal(node.text())) {
        append_literal(out, node.text(), indent + 2);
    } else {
        if (node.is_string()) {
            append_text_yaml(out, node.text());
        } else {
            append_scalar_json(out, node);
        }
        out += '\n';
    }
}

/// YAML 1.2, 7.4.2: a key on one line with its value has at most 1024 characters.
constexpr std::size_t k_simple_key_max = 1000;

void append_members(std::string& out, const Node& node, std::size_t indent, std::size_t first_indent,
                    const Spill* spill) {
    std::size_t width = first_indent;
    for (const auto& member : node.members()) {
        out.append(width, ' ');
        width = indent;
        const std::size_t start = out.size();
        append_text_yaml(out, member.key);
        if (out.size() - start > k_simple_key_max) {
            out.insert(start, "? ");
            out += '\n';
            out.append(indent, ' ');
        }
        out += ':';
        if (!member.value.members().empty()) {
            out += '\n';
            append_members(out, member.value, indent + 2, indent + 2, spill);
        } else if (!member.value.items().empty() || is_long(member.value, spill)) {
            out += '\n';
            append_items(out, member.value, indent, indent, spill);
        } else {
            out += ' ';
            append_inline(out, member.value, indent);
        }
    }
}

void append_items(std::string& out, const Node& node, std::size_t indent, std::size_t first_indent,
                  const Spill* spill) {
    std::size_t width = first_indent;
    each_item(out, node, spill, [&](const Node& item) {
        out.append(width, ' ');
        width = indent;
        out += "- ";
        if (!item.members().empty()) {
            append_members(out, item, indent + 2, 0, spill);
        } else if (!item.items().empty()) {
            append_items(out, item, indent + 2, 0, spill);
        } else {
            append_inline(out, item, indent);
        }
    });
}

void append_yaml(std::string& out, const Node& node, const Spill* spill) {
    if (!node.members().empty()) {
        append_members(out, node, 0, 0, spill);
    } else if (!node.items().empty() || is_long(node, spill)) {
        append_items(out, node, 0, 0, spill);
    } else {
        append_inline(out, node, 0);
    }
}

}  // namespace

std::string to_json(const Node& node) {
    std::string out;
    append_json(out, node, false, 0);
    return out;
}

std::string to_json_pretty(const Node& node) {
    std::string out;
    append_json(out, node, true, 0);
    out += '\n';
    return out;
}

std::string to_yaml(const Node& node) {
    std::string out;
    append_yaml(out, node, nullptr);
    return out;
}

void write(const Node& node, Form form, const LongSequence& sequence,
           const std::function<void(std::string_view)>& out) {
    const Spill spill{sequence, out};
    std::string text;
    if (form == Form::yaml) {
        append_yaml(text, node, &spill);
    } else {
        append_json(text, node, form == Form::json_pretty, 0, &spill);
        text += '\n';
    }
    out(text);
}

}  // namespace kmm::value
