// SPDX-License-Identifier: Apache-2.0
// One layer blob -> the view of the image and the staged files.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "image/manifest.hpp"
#include "registry/layer/entry_reader.hpp"
#include "registry/layer/source.hpp"
#include "registry/unpack/staging.hpp"
#include "sandbox/confined.hpp"

namespace kmm::registry {

/// What the layers of one image are extracted into.
struct Extraction {
    LayerView& view;
    Staging& staging;
    InflateBudget& budget;
    const Limits& limits;
    std::set<std::string>& warnings;
    std::function<void()> on_piece;  ///< called often; may throw (deadline)
    bool file_digests = true;        ///< the files' digests are needed: StoredFile::sha256
    sandbox::Confined* parser = nullptr; ///< which reads the layers' bytes; nullptr: this process does
};

/// Adds every entry of `reader` to the view and stores the wanted contents. Errors: those of the parts.
void add_entries(EntryReader& reader, Extraction& into);

/// Reads `blob` to its end, in `into.parser` if there is one, adds its entries, and compares the digest of the inflated
/// bytes with `diff_id`. Whether the blob is that of `layer` is the caller's matter, before or after. Errors: those of
/// the parts; integrity 76 "digest-mismatch" for the diff id (M31).
void extract_layer(ByteSource& blob, const image::Descriptor& layer, const image::Digest& diff_id, Extraction& into);
/// Errors: integrity 76 "digest-mismatch" unless `found` is the hexadecimal part of `diff_id`.
void require_diff_id(const image::Digest& diff_id, const std::string& found);
/// extract_layer for a blob in the file `fd`.
void extract_layer(int fd, const image::Descriptor& layer, const image::Digest& diff_id, Extraction& into);

/// Calls `read` to extract all layers into the empty `into`, and finishes the view. Again if only the end has shown
/// where links lead: once for directories, once for files.
void read_image(Extraction& into, const std::function<void()>& read);

/// What an extraction consisted of, to return to when bytes turn out not to have been those of the image.
class ExtractionMark {
public:
    explicit ExtractionMark(const Extraction& extraction);
    /// Forgets everything that was added since, and removes its files.
    void rewind(Extraction& extraction) const;

private:
    LayerView view_;
    InflateBudget budget_;
    std::set<std::string> warnings_;
    std::size_t files_;
};

}  // namespace kmm::registry
