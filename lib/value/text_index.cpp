// SPDX-License-Identifier: Apache-2.0
#include "value/text_index.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::value {

TextIndex::TextIndex(std::string_view text) : text_(text), starts_{0} {
    for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
        starts_.push_back(at + 1);
}

Mark TextIndex::mark(std::size_t offset) const noexcept {
    const auto place = std::min(offset, text_.size());
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), place);
    const auto line = static_cast<std::size_t>(after - starts_.begin());
    return Mark{static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(place - starts_[line - 1] + 1)};
}

std::size_t TextIndex::offset(Mark mark) const noexcept {
    if (mark.line == 0 || mark.column == 0 || mark.line > starts_.size()) return text_.size();
    return std::min(starts_[mark.line - 1] + mark.column - 1, text_.size());
}

std::size_t TextIndex::line_start(std::size_t offset) const noexcept { return starts_[mark(offset).line - 1]; }

std::size_t TextIndex::next_line(std::size_t offset) const noexcept {
    const auto line = mark(offset).line;
    return line < starts_.size() ? starts_[line] : text_.size();
}

std::string_view without_bom(std::string_view text) noexcept {
    return text.substr(0, 3) == "\xEF\xBB\xBF" ? text.substr(3) : text;
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept {
    if (base::is_utf8(text)) return std::nullopt;
    std::size_t at = 0;
    while (at < text.size()) {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
        if (at + length > text.size() || !base::is_utf8(text.substr(at, length))) return at;
        at += length;
    }
    return std::nullopt;
}

std::optional<std::size_t> find_quoted_end(std::string_view text, std::size_t offset) noexcept {
    const char quote = text[offset];
    for (auto at = offset + 1; at < text.size(); ++at) {
        if (quote == '"' && text[at] == '\\') {
            ++at;
        } else if (text[at] == quote) {
            if (quote == '"' || at + 1 >= text.size() || text[at + 1] != quote) return at + 1;
            ++at;
        }
    }
    return std::nullopt;
}

std::size_t skip_yaml_properties(std::string_view text, std::size_t offset) noexcept {
    while (offset < text.size() && (text[offset] == '&' || text[offset] == '!')) {
        offset = std::min(text.find_first_of(" \t\r\n,[]{}", offset), text.size());
        offset = std::min(text.find_first_not_of(" \t\r\n", offset), text.size());
    }
    return offset;
}

Diagnostic fault(std::string code, std::string message, std::string_view file, Mark mark, std::string hint) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::error;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.position = Position{std::string(file), mark.line, mark.column};
    diagnostic.hint = std::move(hint);
    return diagnostic;
}

Diagnostic duplicate_key(std::string_view key, std::string_view file, Mark mark, Mark first) {
    return fault(
        "duplicate-key",
        fmt::format("expected each key once, found '{}' again (first in line {})", base::escape(key), first.line), file,
        mark, "remove one of the two");
}

namespace {

/// Whether two characters of four bytes begin it, in either order of the bytes, or a byte order mark of such a text.
bool is_utf32(std::string_view text) noexcept {
    constexpr std::string_view k_nuls("\0\0\0", 3);
    if (text.size() < 8) { return false; }
    const bool is_little = text.substr(1, 3) == k_nuls && text.substr(5, 3) == k_nuls;
    const bool is_big = text.substr(0, 3) == k_nuls && text.substr(4, 3) == k_nuls;
    const std::string_view mark = text.substr(0, 4);
    return is_little || is_big || mark == std::string_view("\xff\xfe\0\0", 4) ||
           mark == std::string_view("\0\0\xfe\xff", 4);
}

/// What else the bytes are that are no UTF-8.
std::string hint_of_bytes(std::string_view text) {
    struct Packed {
        std::string_view front, name, program;
    };
    constexpr std::array<Packed, 5> k_packed = {{{"\x1f\x8b", "compressed with gzip", "gunzip"},
                                                 {"\xfd" "7zXZ", "compressed with xz", "unxz"},
                                                 {"\x28\xb5\x2f\xfd", "compressed with zstd", "unzstd"},
                                                 {"BZh", "compressed with bzip2", "bunzip2"},
                                                 {"PK\x03\x04", "a zip archive", "unzip"}}};
    for (const auto& row : k_packed) {
        if (text.starts_with(row.front)) { return fmt::format("it is {}: unpack it with {}", row.name, row.program); }
    }
    constexpr std::size_t k_tar_magic_at = 257;
    if (text.size() > k_tar_magic_at && text.substr(k_tar_magic_at).starts_with("ustar")) {
        return "it is a tar archive: unpack it with tar -xf";
    }
    if (is_utf32(text)) { return "it is UTF-32: iconv -f UTF-32 -t UTF-8 FILE converts it"; }
    const bool has_mark = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
    const bool is_wide = text.size() > 1 && (text[0] == '\0') != (text[1] == '\0');
    if (has_mark || is_wide) {
        return "it is UTF-16, as PowerShell writes: iconv -f UTF-16 -t UTF-8 FILE converts it";
    }
    return "save the file as UTF-8";
}

}  // namespace

bool check_text(std::string_view text, std::string_view file, const ReadLimits& limits, Diagnostics& diagnostics) {
    if (text.size() > limits.bytes_max) {
        diagnostics.push_back(fault("document-limit",
                                    fmt::format("expected at most {}, found {}", base::format_bytes(limits.bytes_max),
                                                base::format_bytes(text.size())),
                                    file, Mark{}));
        return false;
    }
    if (const auto bad = find_invalid_utf8(text); bad) {
        diagnostics.push_back(fault("not-utf8",
                                    fmt::format("expected UTF-8 text, found the byte 0x{:02x}",
                                                static_cast<unsigned>(static_cast<unsigned char>(text[*bad]))),
                                    file, TextIndex(text).mark(*bad), hint_of_bytes(text)));
        return false;
    }
    if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
        std::string hint = hint_of_bytes(text);
        if (hint.starts_with("save")) { hint += " without NUL bytes"; }
        diagnostics.push_back(
            fault("not-utf8", "expected text, found a NUL byte", file, TextIndex(text).mark(nul), std::move(hint)));
        return false;
    }
    return true;
}

namespace {

/// "<<<<<<< HEAD", "||||||| 1a2b3c4", "=======" or ">>>>>>> branch".
bool is_conflict_marker(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    for (const std::string_view marker : {"<<<<<<<", "|||||||", "=======", ">>>>>>>"})
        if (line.starts_with(marker) && (line.size() == marker.size() || line[marker.size()] == ' ')) return true;
    return false;
}

}  // namespace

void explain_conflict(std::string_view text, std::string_view file, std::string code, std::size_t before,
                      Diagnostics& diagnostics) {
    if (std::none_of(diagnostics.begin() + static_cast<std::ptrdiff_t>(before), diagnostics.end(),
                     [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; }))
        return;
    std::size_t number = 0;
    for (const auto line : base::split(text, '\n')) {
        ++number;
        if (!is_conflict_marker(line)) continue;
        diagnostics.resize(before);
        diagnostics.push_back(fault(std::move(code),
                                    fmt::format("expected a resolved file, found a conflict marker of git: '{}'",
                                                base::escape(base::trim(line))),
                                    file, Mark{static_cast<std::uint32_t>(number), 1},
                                    "keep one side of the conflict and delete the lines <<<<<<<, ======= and >>>>>>>"));
        return;
    }
}

}  // namespace kmm::value
