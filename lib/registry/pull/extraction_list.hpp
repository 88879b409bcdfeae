// SPDX-License-Identifier: Apache-2.0
// The list of what an extraction has made, in its file: a line that says what it is of, a line for each path, and a
// last line that proves those before it. It is written and read line by line, because an image may have 100,000 files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"
#include "image/platform.hpp"
#include "registry/layer/layer_view.hpp"
#include "registry/layer/path_rules.hpp"

namespace kmm::registry {

/// Everything that an extraction follows from: with the same key, the same tree is made.
struct ExtractionKey {
    image::Digest manifest;  ///< of the platform
    std::string text;        ///< all of it, and the version of this toolkit, always in the same form
    /// The digest of `text`, in hexadecimal digits: a file name.
    [[nodiscard]] std::string name() const;
    /// False if another version of this toolkit made it: no extraction here asks for it.
    [[nodiscard]] bool is_ours() const;
    friend bool operator==(const ExtractionKey&, const ExtractionKey&) = default;
};

[[nodiscard]] ExtractionKey extraction_key(const image::Digest& manifest, const Wanted& wanted,
                                           const image::Platform& platform, const Limits& limits);

/// What the first line of a list says.
struct ExtractionHead {
    ExtractionKey key;
    std::vector<std::string> kernels;   ///< LayerView::kernels
    std::vector<std::string> warnings;  ///< of the layers, not of their transport
    friend bool operator==(const ExtractionHead&, const ExtractionHead&) = default;
};

/// One path of a finished tree; a list has them sorted by path.
struct ExtractionEntry {
    std::string path;                  ///< relative to the root of the image
    EntryKind kind = EntryKind::file;  ///< directory, file, symlink or hardlink
    std::string target{};              ///< of links; of a hard link, a file that comes before
    image::Digest digest{};            ///< of files: of their bytes
    std::uint64_t size = 0;            ///< of files
    bool executable = false;
    friend bool operator==(const ExtractionEntry&, const ExtractionEntry&) = default;
};

using TakeEntry = std::function<void(const ExtractionEntry&)>;

/// The lines of a list, with their ends.
[[nodiscard]] std::string extraction_line(const ExtractionHead& head);
[[nodiscard]] std::string extraction_line(const ExtractionEntry& entry);
/// What a line says, without its end; nullopt for every line that is none.
[[nodiscard]] std::optional<ExtractionHead> parse_extraction_head(std::string_view line);
[[nodiscard]] std::optional<ExtractionEntry> parse_extraction_entry(std::string_view line);
/// At most as long is a line; a tree that would need a longer one is not kept.
inline constexpr std::size_t k_extraction_line_max = 8U << 20U;

/// Gives the bytes of a list to `put` in large pieces; `entries` gives its entries to its argument.
void write_extraction(const ExtractionHead& head, const std::function<void(const TakeEntry&)>& entries,
                      const std::function<void(std::string_view)>& put);

enum class ListState {
    sound,
    former,   ///< of the first form, and as it was written: no list for this toolkit
    damaged,  ///< cut, changed, or no list at all
};

struct ReadExtraction {
    ListState state = ListState::damaged;
    ExtractionHead head;  ///< of a sound list
};

/// Reads the list in `fd` from its start to its end. `take`, unless it is empty, hears the entries before it is known
/// whether the list is sound; an entry that is none makes it damaged. Without `take` the entries are proven to be as
/// they were written, and not looked at. Throws what `take` does.
[[nodiscard]] ReadExtraction read_extraction(int fd, const TakeEntry& take = {});
/// The first line alone, not proven; nullopt if it is none.
[[nodiscard]] std::optional<ExtractionHead> read_extraction_head(int fd);

}  // namespace kmm::registry
