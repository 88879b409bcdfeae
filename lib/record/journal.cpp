// SPDX-License-Identifier: Apache-2.0
#include "record/journal.hpp"

#include <algorithm>

#include "digest/digest.hpp"
#include "record/crc32c.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::record {
namespace {

constexpr std::string_view k_mac_member = R"(,"mac":")";
constexpr std::size_t k_mac_digits = 64;
constexpr std::string_view k_crc_member = R"(,"crc":")";
constexpr std::string_view k_line_end = R"("})";
constexpr std::string_view k_journal_begin = R"({"seq":1,"formatVersion":1,)";
static_assert(k_format_version == 1);
constexpr std::size_t k_line_end_size = k_crc_member.size() + 8 + k_line_end.size();

/// `line` (without newline) without its CRC.
std::string_view body_of(std::string_view line) { return line.substr(0, line.size() - k_line_end_size); }

/// True if the CRC at the end of `line` (without newline) is the one of the rest.
bool is_whole(std::string_view line) {
    if (line.size() <= k_line_end_size) {
        return false;
    }
    std::string end(k_crc_member);
    end += crc32c_hex(body_of(line));
    end += k_line_end;
    return line.substr(body_of(line).size()) == end;
}

/// Of a whole line.
Seal seal_of(std::string_view line, const std::optional<std::string>& key) {
    const std::string_view body = body_of(line);
    constexpr std::size_t k_size = k_mac_member.size() + k_mac_digits + 1;
    if (body.size() <= k_size || body.back() != '"' ||
        body.substr(body.size() - k_size, k_mac_member.size()) != k_mac_member) {
        return Seal::none;
    }
    if (!key) {
        return Seal::unknown;
    }
    const std::string_view found = body.substr(body.size() - k_mac_digits - 1, k_mac_digits);
    return is_same_mac(found, line_mac(*key, body.substr(0, body.size() - k_size))) ? Seal::own : Seal::foreign;
}

std::optional<value::Node> read_mapping(std::string_view text, const std::string& file) {
    Diagnostics faults;
    std::vector<value::Document> documents = value::read_json(text, file, faults);
    if (has_errors(faults) || documents.size() != 1 || !documents.front().root.is_mapping()) {
        return std::nullopt;
    }
    return std::move(documents.front().root);
}

/// The entry in a whole line, verified against its place in the chain.
Entry decode_line(std::string_view line, std::uint64_t seq, const std::string& prev, const std::string& file) {
    const std::optional<value::Node> document = read_mapping(line, file);
    if (!document) {
        throw damaged(file, seq, "the line is not JSON");
    }
    const value::Node* found_seq = document->find("seq");
    const value::Node* payload = document->find("payload");
    if (found_seq == nullptr || found_seq->as_uint() != seq) {
        throw damaged(file, seq, "expected entry " + std::to_string(seq) + ", found " +
                                     (found_seq == nullptr ? "no number" : found_seq->text()));
    }
    if (document->get_string({"prev"}) != prev) {
        throw damaged(file, seq, "the line does not follow from the one before it");
    }
    if (payload == nullptr) {
        throw damaged(file, seq, "the line has no payload");
    }
    return Entry{seq, document->get_string({"time"}), *payload};
}

/// True if `text` has, from `start` on, a run of zeros that fills whole sectors as far as the line goes: a block that
/// was never written. A flipped byte is no such run.
bool has_unwritten_sector(std::string_view text, std::size_t start) {
    constexpr std::size_t k_sector = 512;
    constexpr std::size_t k_run_min = 2;
    std::size_t from = text.find('\0', start);
    while (from != std::string_view::npos) {
        const std::size_t to = std::min(text.find_first_not_of('\0', from), text.size());
        const bool starts_well = from == start || from % k_sector == 0;
        const bool ends_well = to == text.size() || to % k_sector == 0;
        if (starts_well && ends_well && to - from >= k_run_min) {
            return true;
        }
        from = text.find('\0', to);
    }
    return false;
}

/// Could an append that never finished have left what follows `start`, where the last good line ends?
bool is_interrupted_append(std::string_view text, std::size_t start) {
    const std::size_t newline = text.find('\n', start);
    if (newline != std::string_view::npos) {
        // All of the line's length is there: only unwritten blocks excuse it.
        return newline + 1 == text.size() && has_unwritten_sector(text, start);
    }
    // A whole line with something else in the place of its newline is no prefix of anything we write.
    return !is_whole(text.substr(start, text.size() - start - 1));
}

/// The verified lines, without newlines, up to an interrupted append. Cheap, so it comes before any line is decoded.
std::vector<std::string_view> whole_lines(std::string_view text, const std::string& file) {
    std::vector<std::string_view> lines;
    std::size_t start = 0;
    while (start < text.size()) {
        const std::size_t newline = text.find('\n', start);
        std::string_view line = text.substr(start, newline - start);
        if (newline == std::string_view::npos && line.back() == '\0' && is_whole(line.substr(0, line.size() - 1))) {
            line.remove_suffix(1);  // whole but for a newline that was never written
        }
        if (!is_whole(line)) {
            if (lines.empty() || !is_interrupted_append(text, start)) {
                throw damaged(file, lines.size() + 1, "the line was changed or cut (its checksum differs)");
            }
            break;
        }
        lines.push_back(line);
        if (newline == std::string_view::npos) {
            break;
        }
        start = newline + 1;
    }
    return lines;
}

}  // namespace

std::string encode_line(std::uint64_t seq, std::string_view prev, const std::string& time, const value::Node& payload,
                        const std::optional<std::string>& key) {
    value::Node document = value::Node::mapping();
    document.set("seq", value::Node(seq));
    if (seq == 1) {
        document.set("formatVersion", value::Node(k_format_version));
        document.set("tool", value::Node("kmm-upgrade " KMM_VERSION));
    }
    document.set("prev", value::Node(prev));
    document.set("time", value::Node(time));
    document.set("payload", payload);
    std::string line = value::to_json(document);
    line.pop_back();  // the closing brace comes last
    if (key) {
        line += std::string(k_mac_member) + line_mac(*key, line);
        line += '"';
    }
    line += std::string(k_crc_member) + crc32c_hex(line);
    line += k_line_end;
    line += '\n';
    return line;
}

ParsedJournal parse_journal(std::string_view text, const std::string& file, const std::optional<std::string>& key) {
    ParsedJournal parsed;
    parsed.last_hash = k_no_previous;
    if (text.empty()) {
        throw damaged(file, 0, "the file is empty");
    }
    // A newer program may end its lines in another way, so its version counts before anything else.
    if (text.substr(0, k_journal_begin.size()) != k_journal_begin) {
        if (const auto first = read_mapping(text.substr(0, text.find('\n')), file)) {
            check_format_version(*first, file);
        }
    }
    const std::vector<std::string_view> lines = whole_lines(text, file);
    for (const std::string_view line : lines) {
        parsed.entries.push_back(decode_line(line, parsed.entries.size() + 1, parsed.last_hash, file));
        parsed.last_hash = digest::sha256_hex(line);
        parsed.good.append(line);
        parsed.good.push_back('\n');
    }
    parsed.partial_tail = parsed.good != text;
    parsed.seal = seal_of(lines.back(), key);
    return parsed;
}

Error damaged(const std::string& file, std::size_t line, const std::string& why) {
    return Error(Exit::io, "state-damaged", "the upgrade record is damaged: " + why)
        .at(Position{file, line, 0})
        .hint("nothing was changed; keep a copy of the directory, then restore it from a backup, or move it away: "
              "kmm-upgrade adopt makes a record of what the cluster says");
}

void check_format_version(const value::Node& document, const std::string& file) {
    const value::Node* version = document.find("formatVersion");
    const std::optional<std::int64_t> number =
        version != nullptr && version->kind() == value::Kind::integer ? version->as_int() : std::nullopt;
    const bool beyond_int = version != nullptr && version->as_uint().has_value() && !number;
    if (beyond_int || (number && *number > k_format_version)) {
        Error error(Exit::config, "state-newer",
                    "the upgrade record has format " + version->text() + ", this program reads up to " +
                        std::to_string(k_format_version));
        error.at(Position{file, 0, 0});
        const std::string tool = document.get_string({"tool"});
        if (!tool.empty()) {
            error.detail("written by", tool);
        }
        error.hint("use " + (tool.empty() ? std::string("the newer kmm-upgrade that wrote it") : tool + " or newer") +
                   "; nothing was changed");
        throw error;
    }
    if (!number || *number < 1) {
        throw damaged(file, 1, "expected a format version, found " +
                                   (version == nullptr ? std::string("none") : "\"" + version->text() + "\""));
    }
}

}  // namespace kmm::record
