// SPDX-License-Identifier: Apache-2.0
// Verified content that stays on the node: blobs under their digests, and what references meant when they were pulled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "image/digest.hpp"
#include "image/platform.hpp"
#include "registry/client/blob.hpp"
#include "registry/client/learnt.hpp"
#include "registry/client/store.hpp"
#include "registry/layer/hash.hpp"
#include "registry/pull/digest_values.hpp"
#include "registry/pull/extraction_record.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

struct KeptExtraction;

/// An image that was pulled whole.
struct CachedImage {
    std::string reference;  ///< normalised
    image::Platform platform;
    image::Digest digest;   ///< what the reference meant: of the manifest or the index
    struct Part {
        image::Digest digest;
        std::uint64_t size = 0;
    };
    std::vector<Part> parts;     ///< manifests, configuration and layers
    std::int64_t last_used = 0;  ///< Unix seconds
    std::optional<Learnt> learnt;  ///< nullopt in a record of the form before: nothing is known, and it serves nobody
    std::uint64_t extracted =
        0;  ///< bytes of extracted files and their lists, beside the parts; as Cache::images() counted them
    /// Bytes of everything.
    [[nodiscard]] std::uint64_t size() const;
    /// True if `list` is of this image.
    [[nodiscard]] bool needs(const KeptExtraction& list) const;
};

/// A list of extracted files, in its file, by its first line: whether the rest is sound has not been looked at.
struct KeptExtraction {
    std::string name;                             ///< of its file
    std::uint64_t size = 0;                       ///< of its file
    std::pair<std::int64_t, std::int64_t> used;   ///< last, seconds and nanoseconds
    std::optional<image::Digest> manifest;        ///< nullopt if the list is damaged, or of the first form
    bool ours = false;                            ///< made by this version of the toolkit; others are never used
};

/// What a look at every file of the cache found.
struct CacheReport {
    std::size_t blobs = 0;  ///< and lists of extracted files
    std::uint64_t bytes = 0;
    std::vector<std::string> damaged;        ///< digests whose files hold other bytes
    std::vector<std::string> damaged_lists;  ///< names of lists of extracted files that are not what was written
    std::vector<std::string>
        damaged_records;  ///< names of records of images that are not what was written; they count as files, too
    /// An image some of whose blobs are not there.
    struct Incomplete {
        std::string reference;
        std::size_t absent = 0, all = 0;
    };
    std::vector<Incomplete> incomplete;
};

/// The warning about something in the cache that was not what was written.
[[nodiscard]] std::string damage_text(const std::string& what, bool removed);

/// What prune() removed.
struct PruneReport {
    std::vector<std::string> images;  ///< references
    std::size_t blobs = 0;
    std::uint64_t bytes = 0;
    std::optional<Error> failure;  ///< why some of what was to go is still there
};

/// DIR/blobs/ALGORITHM/HEX, DIR/images/HEX and DIR/extractions/HEX. Users hold a shared lock on DIR/lock, so that
/// prune(), which takes it alone, never takes away what somebody reads. A file appears under its digest by one link(2),
/// complete; every reader hashes it again. So neither kills nor two runs at once can make the cache lie.
class Cache {
public:
    /// Makes `directory` with mode 0700 if it is not there. Errors: from_errno; no_permission "cache-unsafe" unless it
    /// belongs to this user (or root) and nobody else may write to it; those of sys::wait_for_lock.
    explicit Cache(std::string directory);

    /// A file of the cache, open for reading; empty if there is none, or something else in its place.
    [[nodiscard]] static sys::Fd open_file(const std::string& path);
    /// The file of `digest`, open for reading; empty if there is none.
    [[nodiscard]] sys::Fd open(const image::Digest& digest) const;
    /// The bytes of `digest`, proven; nullopt if there are none or others, which are removed then, or more than `cap`.
    [[nodiscard]] std::optional<std::string> read(const image::Digest& digest, std::uint64_t cap);
    /// Stores proven bytes. Errors: from_errno.
    void write(const image::Digest& digest, std::string_view bytes);
    /// A nameless file to write into, and its appearance under `digest`. Errors: from_errno.
    [[nodiscard]] sys::Fd new_file() const;
    void publish(const sys::Fd& file, const image::Digest& digest);
    /// True if nothing is left there.
    bool remove(const image::Digest& digest) noexcept;

    /// What `reference` meant for `platform` when it was pulled last; nullopt if never, or if its record is damaged.
    /// Whether that was learnt as well as it must be is the caller's question.
    [[nodiscard]] std::optional<CachedImage> recall(const std::string& reference,
                                                    const image::Platform& platform) const;
    void remember(const CachedImage& image);

    /// What the extraction `key` made when it was done last; nullopt if it never was. A list that is damaged is
    /// removed; one of the first form is none.
    [[nodiscard]] std::optional<KeptList> extraction(const ExtractionKey& key, std::vector<std::string>& warnings);
    /// Stores the files of an extraction, and last of all its list. Errors: from_errno.
    void keep_extraction(const FinishedExtraction& finished, const Staging& staging);
    /// True if `bytes` and a tenth more are free where the cache lies.
    [[nodiscard]] bool has_space(std::uint64_t bytes) const;
    /// Removes a list that is not right.
    void forget(const ExtractionKey& key, std::vector<std::string>& warnings);
    /// Removes the list of extracted files with this name. True if nothing is left there.
    bool remove_list(const std::string& name) noexcept;
    /// Removes the record of an image with this name. True if nothing is left there.
    bool remove_record(const std::string& name) noexcept;
    /// All lists of extracted files, the least recently used first.
    [[nodiscard]] std::vector<KeptExtraction> extractions() const;
    /// Bytes of the parts of all images, what is extracted not counted.
    [[nodiscard]] std::uint64_t image_bytes() const;

    /// All images, the least recently used first.
    [[nodiscard]] std::vector<CachedImage> images() const;

    /// Reads and hashes every blob, and reads every list and record.
    [[nodiscard]] CacheReport verify() const;
    /// Removes blobs that no image needs, lists that are of none, and lists of other versions of this toolkit; then
    /// lists, and then images, the least recently used first, until at most `bytes_max` are left: no image goes so that
    /// a list may stay. What is of images called `last` goes last. nullopt if somebody uses the cache right now:
    /// nothing is done then.
    [[nodiscard]] std::optional<PruneReport> prune(std::uint64_t bytes_max, const std::string& last = {});

private:
    /// Errors: from_errno; those of sys::wait_for_lock.
    void share_lock();
    [[nodiscard]] std::string path_of(const image::Digest& digest) const;
    [[nodiscard]] std::string list_path(const std::string& name) const;
    static bool remove_entry(const std::string& path) noexcept;
    static void make_room(const std::string& path) noexcept;
    [[nodiscard]] bool is_sound(const image::Digest& digest) const;
    /// With nullopt for a record that is not what was written.
    void each_record(const std::function<void(const std::string& name, std::optional<CachedImage> image)>& take) const;
    void each_blob(const std::function<void(const CachedImage::Part&)>& take) const;
    [[nodiscard]] std::vector<CachedImage> records() const;
    [[nodiscard]] ListState read_list(const std::string& name, const TakeEntry& take) const;
    void count_extracted(std::vector<CachedImage>& images) const;
    [[nodiscard]] DigestValues last_needs(std::vector<KeptExtraction>& lists, const std::vector<CachedImage>& images,
                                          const std::function<void(const KeptExtraction&)>& drop) const;
    void take_in(int fd, const image::Digest& digest, std::uint64_t size);

    std::string directory_;
    sys::Fd lock_;
};

/// Puts the cache in front of `inner`, as request.policy says; `reference` is normalised. Errors beside those of
/// `inner`: not_found "image-not-cached" when the policy is Never. finished() notes that the image is whole in the
/// cache. What a tag means is taken from the cache only if it was learnt at least as well as `request` would learn it
/// (Learnt), and never replaced by what anybody on the way could have answered.
class CachedStore final : public ImageStore {
public:
    CachedStore(std::unique_ptr<ImageStore> inner, Cache& cache, const PullRequest& request,
                const std::string& reference, sys::Clock& clock, std::vector<std::string>& warnings);
    std::string first_name() const override;
    std::optional<image::Digest> first_digest() const override;
    ManifestText manifest(const std::string& name, const std::optional<image::Digest>& expected,
                          std::uint64_t cap) override;
    std::string referrers(const image::Digest& digest, std::uint64_t cap) override {
        return request_.policy == PullPolicy::never ? std::string() : inner_->referrers(digest, cap);
    }
    void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
              const ByteCount& on_bytes) override;
    void check_deadline() const override { inner_->check_deadline(); }
    /// To be called when the image meets request.requirements: only then is anything of it put into the cache.
    void accept();
    /// To be called in place of blob() for all layers when what was extracted of them is used, and they are not read.
    void not_needed(const std::vector<image::Descriptor>& layers);
    /// To be called when every part of the image has been read. Keeps the cache within request.cache_bytes.
    void finished();
    /// Keeps what was extracted, after finished(), if that fits beside the images.
    void keep_extraction(const FinishedExtraction& finished, const Staging& staging);
    /// Bytes of blobs that did not come out of the cache.
    [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

private:
    void note(const image::Digest& digest, std::uint64_t size);
    void keep(const image::Digest& digest, std::string_view bytes);
    void not_written(const Error& error);
    void prune();
    bool take_cached(const image::Descriptor& wanted, BlobTarget& target, const ByteCount& on_bytes);
    void store_file(const sys::Fd& file, const image::Digest& digest);
    ManifestText signatures(const std::string& tag, std::uint64_t cap);
    /// `part`: what is missing, of an image of which something is known.
    [[nodiscard]] Error not_cached(const std::optional<image::Digest>& part) const;

    std::unique_ptr<ImageStore> inner_;
    Cache& cache_;
    const PullRequest& request_;
    sys::Clock& clock_;
    std::vector<std::string>& warnings_;
    Learnt learnt_;
    CachedImage image_;
    std::optional<CachedImage> recalled_;
    std::string passed_over_;   ///< why recalled_ is not what the cache knows of the reference; "" if it is
    std::string digest_name_;   ///< the passed over image by its digest, which needs nobody's word
    bool writable_ = true;
    std::uint64_t fetched_ = 0;
    /// What has come before accept().
    struct Held {
        image::Digest digest;
        std::string bytes;
        sys::Fd file;  ///< in place of the bytes
    };
    bool holds_;
    std::vector<Held> held_;
    std::vector<CachedImage> signatures_;  ///< what was found under tags of signatures
};

}  // namespace kmm::registry
