// SPDX-License-Identifier: Apache-2.0
// Verified content that stays on the node: blobs under their digests, and what references meant when they were pulled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"
#include "image/platform.hpp"
#include "registry/blob.hpp"
#include "registry/hash.hpp"
#include "registry/store.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

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
    [[nodiscard]] std::uint64_t size() const;
};

/// What a look at every file of the cache found.
struct CacheReport {
    std::size_t blobs = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> damaged;  ///< digests whose files hold other bytes
};

/// What prune() removed.
struct PruneReport {
    std::vector<std::string> images;  ///< references
    std::size_t blobs = 0;
    std::uint64_t bytes = 0;
};

/// DIR/blobs/ALGORITHM/HEX and DIR/images/HEX. Users hold a shared lock on DIR/lock, so that prune(), which takes it alone, never
/// takes away what somebody reads. A file appears under its digest by one link(2), complete; every reader hashes it again. So
/// neither kills nor two runs at once can make the cache lie.
class Cache {
public:
    /// Makes `directory` with mode 0700 if it is not there. Errors: from_errno; no_permission "cache-unsafe" unless it belongs to
    /// this user (or root) and nobody else may write to it.
    explicit Cache(std::string directory);

    /// The file of `digest`, open for reading; empty if there is none.
    [[nodiscard]] sys::Fd open(const image::Digest& digest) const;
    /// The bytes of `digest`, proven; nullopt if there are none or others, which are removed then, or more than `cap`.
    [[nodiscard]] std::optional<std::string> read(const image::Digest& digest, std::uint64_t cap);
    /// Stores proven bytes. Errors: from_errno.
    void write(const image::Digest& digest, std::string_view bytes);
    /// A nameless file to write into, and its appearance under `digest`. Errors: from_errno.
    [[nodiscard]] sys::Fd new_file() const;
    void publish(const sys::Fd& file, const image::Digest& digest);
    void remove(const image::Digest& digest) noexcept;

    /// What `reference` meant for `platform` when it was pulled last; nullopt if never, or if its record is damaged.
    [[nodiscard]] std::optional<CachedImage> recall(const std::string& reference, const image::Platform& platform) const;
    void remember(const CachedImage& image);
    /// All images, the least recently used first.
    [[nodiscard]] std::vector<CachedImage> images() const;

    /// Reads and hashes every blob.
    [[nodiscard]] CacheReport verify() const;
    /// Removes blobs that no image needs, and images, the least recently used first, until at most `bytes_max` are left.
    /// Images called `last` go last. nullopt if somebody uses the cache right now: nothing is done then.
    [[nodiscard]] std::optional<PruneReport> prune(std::uint64_t bytes_max, const std::string& last = {});

private:
    [[nodiscard]] std::string path_of(const image::Digest& digest) const;
    [[nodiscard]] std::vector<CachedImage::Part> blobs() const;

    std::string directory_;
    sys::Fd lock_;
};

/// Puts the cache in front of `inner`, as request.policy says; `reference` is normalised. Errors beside those of `inner`:
/// not_found "image-not-cached" when the policy is Never. finished() notes that the image is whole in the cache.
class CachedStore final : public ImageStore {
public:
    CachedStore(std::unique_ptr<ImageStore> inner, Cache& cache, const PullRequest& request, const std::string& reference,
                sys::Clock& clock, std::vector<std::string>& warnings);
    std::string first_name() const override;
    std::optional<image::Digest> first_digest() const override;
    ManifestText manifest(const std::string& name, const std::optional<image::Digest>& expected, std::uint64_t cap) override;
    void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
              const ByteCount& on_bytes) override;
    void check_deadline() const override { inner_->check_deadline(); }
    /// To be called when every part of the image has been read. Keeps the cache within request.cache_bytes.
    void finished();
    /// Bytes of blobs that did not come out of the cache.
    [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

private:
    void note(const image::Digest& digest, std::uint64_t size);
    void keep(const image::Digest& digest, std::string_view bytes);
    void not_written(const Error& error);
    bool take_cached(const image::Descriptor& wanted, BlobTarget& target, const ByteCount& on_bytes);
    [[nodiscard]] Error not_cached() const;

    std::unique_ptr<ImageStore> inner_;
    Cache& cache_;
    const PullRequest& request_;
    sys::Clock& clock_;
    std::vector<std::string>& warnings_;
    CachedImage image_;
    std::optional<CachedImage> recalled_;
    bool writable_ = true;
    std::uint64_t fetched_ = 0;
};

}  // namespace kmm::registry
