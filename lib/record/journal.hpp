// SPDX-License-Identifier: Apache-2.0
// The text of the journal, without any disk: one line an entry, each checked by a CRC, chained to the line before it,
// and sealed by a MAC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/state_dir.hpp"

namespace kmm::record {

/// `prev` of the first line.
inline constexpr std::string_view k_no_previous = "0000000000000000000000000000000000000000000000000000000000000000";

/// One line with its newline: {"seq","prev","time","payload","mac","crc"}; `prev` is the SHA-256 of the line before
/// without its newline, `mac` the line_mac of everything before it, `crc` the CRC-32C of everything before that. The
/// line with seq 1 also says formatVersion and tool. Without `key` there is no mac.
[[nodiscard]] std::string encode_line(std::uint64_t seq, std::string_view prev, const std::string& time,
                                      const value::Node& payload,
                                      const std::optional<std::string>& key = std::nullopt);

/// What the text of a journal holds.
struct ParsedJournal {
    std::vector<Entry> entries;
    std::string good;       ///< the verified lines, each with its newline
    std::string last_hash;  ///< `prev` of the next line
    Seal seal = Seal::none;  ///< by the last verified line
    /// The text ends in an interrupted append: bytes after the last newline that are not a whole line, a last line with
    /// blocks of zeros, or a whole line that only lacks its newline (which is then among the entries).
    bool partial_tail = false;
};

/// Verifies every line, and the MAC of the last one with `key`, if there is one: a MAC that is another one is no error.
/// `file` is for messages. Errors: config (78) "state-newer"; io (74) "state-damaged" with the
/// line number for everything that an interrupted append cannot have left, an empty text and a missing first line
/// included.
[[nodiscard]] ParsedJournal parse_journal(std::string_view text, const std::string& file,
                                          const std::optional<std::string>& key = std::nullopt);

/// The error "state-damaged" (exit 74) about `line` of `file` (0: the file as a whole).
[[nodiscard]] Error damaged(const std::string& file, std::size_t line, const std::string& why);

/// Throws "state-newer" (78) if the member formatVersion of `document` is a number above ours, "state-damaged" if it is
/// not a positive integer.
void check_format_version(const value::Node& document, const std::string& file);

}  // namespace kmm::record
