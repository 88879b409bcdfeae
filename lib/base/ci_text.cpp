// SPDX-License-Identifier: Apache-2.0
#include "base/ci_text.hpp"

namespace kmm::base {

namespace {

/// What .NET's TrimStart takes away may be any of many Unicode blanks: every byte beyond ASCII counts as one.
bool may_be_blank(char c) noexcept {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20U || byte >= 0x7FU;
}

/// What comes before the next byte that ends a line or begins a mark.
std::string_view uneventful(std::string_view text) noexcept {
    text = text.substr(0, text.find('\n'));
    text = text.substr(0, text.find('\r'));
    return text.substr(0, text.find('#'));
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
    while (at < piece.size()) {
        // Most bytes stand where no command can begin.
        if (line_ == Line::inside && mark_ == Mark::none) {
            at += uneventful(piece.substr(at)).size();
            if (at == piece.size()) { break; }
        }
        const char c = piece[at++];
        if (!escapes(c)) { continue; }
        room.append(piece.substr(from, at - 1 - from)).append(c == ':' ? "\\x3a" : "\\x5b");
        from = at;
    }
    return from == 0 ? piece : std::string_view(room.append(piece.substr(from)));
}

std::string CiFilter::pass(std::string_view piece) {
    std::string room;
    return std::string(pass(piece, room));
}

bool CiFilter::changes(std::string_view piece) const { return CiFilter(*this).pass(piece) != piece; }

bool has_ci_command(std::string_view text) { return CiFilter().changes(text); }

}  // namespace kmm::base
