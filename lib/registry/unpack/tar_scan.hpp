// SPDX-License-Identifier: Apache-2.0
// Looks over the headers of a tar while it passes by, for what the tar reader does not tell.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "registry/layer/source.hpp"

namespace kmm::registry {

/// Passes a tar's bytes on. Follows it from header to header (ustar, GNU, pax with a size of its own), and refuses it
/// where that cannot be done with certainty: the reader might go on, unwatched. What readers understand in
/// different ways is refused: an entry would have another name here than in what a container runtime makes of the
/// layer.
class TarScan final : public ByteSource {
public:
    /// `input` must outlive this.
    explicit TarScan(ByteSource& input) : input_(input) {}
    /// Errors: data "bad-layer" for a block that is no header where one must be, for a number that Go's reader
    /// refuses, for an entry of a type that neither POSIX nor GNU tar, star or Solaris know, for a sparse file in no
    /// format of GNU tar or with other bytes than its map lists, for a pax header that is malformed or whose keys or
    /// names hold a NUL, for an entry that is given two names or two pax headers, for a file whose name ends with a
    /// slash, for a prefix, a size or a map of holes that not every reader takes, for a hard link with content in a pax
    /// archive and content of what is neither file nor link, for a pax header of over 1 MiB, for a name or a size that
    /// is said of all entries, for a block that follows a single one of zeros, for bytes after an end without entries
    /// (an ISO image begins with zeros); those of the input.
    [[nodiscard]] std::string_view next() override;
    /// Reads on to the end where no entry was seen: what lies there is no tar if it is not empty. Errors: as next().
    void look_to_end();
    /// True if the input has ended between two entries, without the blocks of zeros that a tar ends with.
    [[nodiscard]] bool lacks_end() const noexcept {
        return at_end_ && following_ && !seen_end_ && !seen_zeros_ && have_ == 0 && skip_ == 0 && !empty_;
    }

private:
    void look(std::string_view piece);
    void only_zeros(std::string_view piece) const;
    void header();
    void add_segments(std::optional<std::uint64_t> bytes);
    void check_stored(std::uint64_t segments) const;
    void entry(char type, std::string_view block) const;
    void take_extension(std::string_view bytes);
    void take_pax(std::string_view bytes);
    void take_global(std::string_view bytes) const;
    void name(std::optional<std::string>& which, std::string_view text) const;

    /// What comes before an entry and is said of it.
    struct Said {
        bool pax = false;
        std::optional<std::string> path, target;
        std::optional<std::uint64_t> size;      ///< in a pax header
        std::optional<std::uint64_t> segments;  ///< bytes of those of a sparse file, as its records list them
    };

    ByteSource& input_;
    std::array<char, 512> block_{};
    std::size_t have_ = 0;       ///< bytes of block_
    std::uint64_t skip_ = 0;     ///< of the entry's content and padding
    std::uint64_t wanted_ = 0;   ///< of the content of a pax header or a long name
    std::string extension_;      ///< that content
    char extension_type_ = 0;    ///< what it is
    Said said_;                  ///< of the next entry
    std::optional<std::uint64_t> behind_holes_;  ///< what is skipped after blocks that tell of more holes
    std::uint64_t stored_ = 0;         ///< bytes of the entry's content in the tar
    std::uint64_t segment_bytes_ = 0;  ///< of the segments of a sparse file that were seen so far
    bool any_pax_ = false;       ///< a pax header was seen
    bool following_ = true;
    bool seen_zeros_ = false;    ///< the first of the two blocks of an end
    bool seen_end_ = false;
    bool at_end_ = false;
    bool empty_ = true;
    bool no_entry_ = true;
};

}  // namespace kmm::registry
