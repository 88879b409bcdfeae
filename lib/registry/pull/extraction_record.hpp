// SPDX-License-Identifier: Apache-2.0
// What the extraction of one image has made, written down, so that the next pull of the same need not read a layer.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "image/digest.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/pull/extraction_list.hpp"
#include "registry/unpack/extract.hpp"
#include "registry/unpack/staging.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

/// The finished tree of one extraction, whose entries are made when they are asked for.
class FinishedExtraction {
public:
    /// `view`, with its contents in `staging`, is finished; both must outlive this.
    FinishedExtraction(ExtractionKey key, const LayerView& view, const Staging& staging,
                       const std::set<std::string>& warnings);
    [[nodiscard]] const ExtractionHead& head() const noexcept { return head_; }
    /// Gives the entries, sorted by path, to `take`, each with the content that it has in the staging if it is a file.
    void each(const std::function<void(const ExtractionEntry&, ContentId)>& take) const;
    /// Bytes of the files together.
    [[nodiscard]] std::uint64_t bytes() const;
    /// True if its list would give the same tree again, which names that JSON cannot hold do not, for example.
    [[nodiscard]] bool comes_again(const Limits& limits) const;

private:
    ExtractionHead head_;
    const LayerView& view_;
    const Staging& staging_;
};

/// A list that was proven, to be read again.
struct KeptList {
    sys::Fd fd;
    ExtractionHead head;
};

/// What add_recorded() throws when a file cannot be had from the cache.
struct LostContent {
    image::Digest digest;
    bool damaged = false;  ///< it is there, and is something else
};

/// Adds the tree of `list` under all rules of a layer and finishes the view, with files from `open` (empty for none
/// there is), whose every byte is hashed on the way. Throws LostContent; data and unsafe for a list that breaks a rule
/// or is no longer the one that was proven; what the staging and `into.on_piece` throw.
void add_recorded(const KeptList& list, const std::function<sys::Fd(const image::Digest&)>& open, Extraction& into);

}  // namespace kmm::registry
