// SPDX-License-Identifier: Apache-2.0
// What the extraction of one image has made, written down, so that the next pull of the same need not read a layer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"
#include "image/platform.hpp"
#include "registry/extract.hpp"
#include "registry/path_rules.hpp"
#include "registry/staging.hpp"

namespace kmm::registry {

/// Everything that an extraction follows from: with the same key, the same tree is made.
struct ExtractionKey {
    image::Digest manifest;  ///< of the platform
    std::string text;        ///< all of it, and the version of this toolkit, always in the same form
    /// The digest of `text`, in hexadecimal digits: a file name.
    [[nodiscard]] std::string name() const;
    /// False if another version of this toolkit made it: no extraction here asks for it.
    [[nodiscard]] bool is_ours() const;
};

[[nodiscard]] ExtractionKey extraction_key(const image::Digest& manifest, const Wanted& wanted, const image::Platform& platform, const Limits& limits);

/// The finished tree of one extraction, without the bytes of its files.
struct ExtractionRecord {
    struct Entry {
        std::string path;                    ///< relative to the root of the image
        EntryKind kind = EntryKind::file;    ///< directory, file, symlink or hardlink
        std::string target{};                ///< of links; of a hard link, a file that comes before
        image::Digest digest{};              ///< of files: of their bytes
        std::uint64_t size = 0;              ///< of files
        bool executable = false;
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    ExtractionKey key;
    std::vector<Entry> entries;         ///< sorted by path
    std::vector<std::string> kernels;   ///< LayerView::kernels
    std::vector<std::string> warnings;  ///< of the layers, not of their transport

    /// Bytes of the files together.
    [[nodiscard]] std::uint64_t bytes() const;
};

/// A record and the contents that its files have in the staging, in their order.
struct StagedRecord {
    ExtractionRecord record;
    std::vector<ContentId> contents;
};

/// Writes down the finished `view`. nullopt if the record would not give the same tree again, as with names that JSON cannot hold.
[[nodiscard]] std::optional<StagedRecord> record_extraction(const ExtractionKey& key, const LayerView& view, const Staging& staging,
                                                            const std::set<std::string>& warnings, const Limits& limits);

/// As it is kept: a line with the digest of the rest, and the rest.
[[nodiscard]] std::string extraction_text(const ExtractionRecord& record);
/// nullopt for every text but those of extraction_text().
[[nodiscard]] std::optional<ExtractionRecord> parse_extraction(std::string_view text);
/// At most as long is the text of a record that is kept.
inline constexpr std::size_t k_extraction_text_max = 64U << 20U;

/// What add_recorded() throws when a file cannot be had from the cache.
struct LostContent {
    image::Digest digest;
    bool damaged = false;  ///< it is there, and is something else
};

/// Adds the tree of `record` under all rules of a layer and finishes the view, with files from `open` (empty for none there is), whose every byte is hashed
/// on the way. Throws LostContent; data and unsafe for a record that breaks a rule; what the staging and `into.on_piece` throw.
void add_recorded(const ExtractionRecord& record, const std::function<sys::Fd(const image::Digest&)>& open, Extraction& into);

}  // namespace kmm::registry
