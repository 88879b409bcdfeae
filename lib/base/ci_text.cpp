// SPDX-License-Identifier: Apache-2.0
#include "base/ci_text.hpp"

#include <optional>
#include <utility>

namespace kmm::base {

namespace {

/// What .NET's TrimStart takes away may be any of many Unicode blanks: every byte beyond ASCII counts as one.
bool may_be_blank(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20U || byte >= 0x7FU;
}

/// GitLab folds its log at "section_start:SECONDS:NAME" and "section_end:SECONDS:NAME", anywhere in a line. Source:
/// gitlab-org/gitlab, lib/gitlab/regex.rb, build_trace_section_regex.
constexpr std::string_view k_section = "section_";

/// What comes before the next byte that ends a line or begins a mark.
std::string_view uneventful(std::string_view text) noexcept {
    text = text.substr(0, text.find('\n'));
    text = text.substr(0, text.find('\r'));
    text = text.substr(0, text.find('#'));
    const std::size_t section = text.find(k_section);
    if (section != std::string_view::npos) { return text.substr(0, section); }
    for (std::size_t cut = k_section.size() - 1; cut > 0; --cut) {
        if (text.ends_with(k_section.substr(0, cut))) { return text.substr(0, text.size() - cut); }
    }
    return text;
}

constexpr std::string_view k_start = "start:";
constexpr std::string_view k_end = "end:";

/// How much of a section's mark was seen: so many bytes of "section_", then of "section_start:", then, behind those, of
/// "section_end:", then a number.
constexpr unsigned k_in_start = k_section.size() + 1;
constexpr unsigned k_in_end = k_in_start + k_start.size();
constexpr unsigned k_colon = k_in_end + k_end.size();
constexpr unsigned k_number = k_colon + 1;

/// What was seen with `c` behind `seen`; nullopt if `c` is the colon behind the number, which makes it a mark.
std::optional<unsigned> seen_with(unsigned seen, char c) noexcept {
    const bool is_digit = c >= '0' && c <= '9';
    if (seen == k_number && c == ':') { return std::nullopt; }
    if ((seen == k_number || seen == k_colon) && is_digit) { return k_number; }
    if (seen < k_section.size() && c == k_section[seen]) { return seen + 1; }
    if (seen == k_section.size() && c == k_start[0]) { return k_in_start; }
    if (seen == k_section.size() && c == k_end[0]) { return k_in_end; }
    for (const auto& [first, word] : {std::pair(k_in_start, k_start), std::pair(k_in_end, k_end)}) {
        const unsigned at = seen < first ? 0 : seen - first + 1;
        if (at == 0 || at >= word.size() || c != word[at]) { continue; }
        return at + 1 == word.size() ? k_colon : seen + 1;
    }
    // "section_s" may be the start of another one.
    if (seen == k_in_start && c == 'e') { return 2; }
    return c == 's' ? 1 : 0;
}

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool CiFilter::escapes(char c) noexcept {
    bool escaped = false;
    if (c == '\n' || c == '\r') {
        line_ = Line::start;
    } else if (line_ == Line::colon) {
        escaped = c == ':';
        line_ = Line::inside;
    } else if (line_ == Line::start && !may_be_blank(c)) {
        line_ = c == ':' ? Line::colon : Line::inside;
    }
    if (c == '#') {
        mark_ = mark_ == Mark::one || mark_ == Mark::two ? Mark::two : Mark::one;
    } else if (is_letter(c) && (mark_ == Mark::two || mark_ == Mark::word)) {
        mark_ = Mark::word;
    } else {
        escaped = escaped || (c == '[' && (mark_ == Mark::two || mark_ == Mark::word));
        mark_ = Mark::none;
    }
    return escaped;
}

std::string_view CiFilter::pass(std::string_view piece, std::string& room) {
    room.clear();
    std::size_t at = 0, from = 0;  // what stands from there on is not in `room`
    // The state of both kinds of marks is kept in one member: that of sections above that of the others.
    constexpr unsigned k_marks = 4;
    const auto kept = static_cast<unsigned>(mark_);
    unsigned seen = kept / k_marks;
    mark_ = static_cast<Mark>(kept % k_marks);
    while (at < piece.size()) {
        // Most bytes stand where no command can begin.
        if (line_ == Line::inside && mark_ == Mark::none && seen == 0) {
            at += uneventful(piece.substr(at)).size();
            if (at == piece.size()) { break; }
        }
        const char c = piece[at++];
        const bool is_command = escapes(c);
        const auto now = seen_with(seen, c);
        seen = now.value_or(0);
        if (!is_command && now) { continue; }
        // JSON and YAML read it as a colon.
        room.append(piece.substr(from, at - 1 - from))
            .append(!now ? "\\u003a" : c == ':' ? "\\x3a" : "\\x5b");
        from = at;
    }
    mark_ = static_cast<Mark>(static_cast<unsigned>(mark_) + seen * k_marks);
    return from == 0 ? piece : std::string_view(room.append(piece.substr(from)));
}

std::string CiFilter::pass(std::string_view piece) {
    std::string room;
    return std::string(pass(piece, room));
}

bool CiFilter::changes(std::string_view piece) const { return CiFilter(*this).pass(piece) != piece; }

bool has_ci_command(std::string_view text) { return CiFilter().changes(text); }

}  // namespace kmm::base
