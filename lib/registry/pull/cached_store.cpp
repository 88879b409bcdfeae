// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"
#include "registry/pull/cache.hpp"

namespace kmm::registry {

namespace {

/// Passes bytes on, and puts them into the cache's file as long as that can be written.
class TeeTarget final : public BlobTarget {
public:
    TeeTarget(BlobTarget& target, int fd) : target_(target), copy_(fd) {}
    void put(std::string_view bytes) override {
        target_.put(bytes);
        try_copy([&] { copy_.put(bytes); });
    }
    void restart() override {
        target_.restart();
        try_copy([&] { copy_.restart(); });
    }
    [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

private:
    template <typename Step>
    void try_copy(const Step& step) {
        if (failure_) {
            return;
        }
        try {
            step();
        } catch (const Error& error) {
            failure_ = error;
        }
    }

    BlobTarget& target_;
    FileTarget copy_;
    std::optional<Error> failure_;
};

/// A file of the cache. What of it cannot be read is damaged, and no reason to end a pull.
class KeptSource final : public ByteSource {
public:
    explicit KeptSource(int fd) : file_(fd) {}
    [[nodiscard]] std::string_view next() override {
        try {
            return file_.next();
        } catch (const Error& error) {
            throw Error(Exit::integrity, "cache-damaged", error.message());
        }
    }

private:
    FileSource file_;
};

}  // namespace

CachedStore::CachedStore(std::unique_ptr<ImageStore> inner, Cache& cache, const PullRequest& request,
                         const std::string& reference, sys::Clock& clock, std::vector<std::string>& warnings)
    : inner_(std::move(inner)), cache_(cache), request_(request), clock_(clock), warnings_(warnings),
      learnt_(learnt_by(image::parse_reference(reference), request)), holds_(!request.requirements.empty()) {
    image_.reference = reference;
    image_.learnt = learnt_;
    image_.platform = {request.os, request.architecture, request.variant};
    if (request.policy == PullPolicy::always || inner_->first_digest()) {
        return;
    }
    recalled_ = cache_.recall(reference, image_.platform);
    if (recalled_) {
        passed_over_ =
            recalled_->learnt ? recalled_->learnt->shortcoming(learnt_) : "pulled by another version of this program";
    }
    if (!passed_over_.empty()) {
        digest_name_ = image::parse_reference(reference).name() + "@" + recalled_->digest.to_string();
        recalled_.reset();
    }
    if (recalled_ && request.policy == PullPolicy::if_not_present && !cache_.open(recalled_->digest)) {
        recalled_.reset();
    }
    if (!recalled_ && request.policy == PullPolicy::never) {
        throw not_cached({});
    }
}

std::string CachedStore::first_name() const { return recalled_ ? recalled_->digest.to_string() : inner_->first_name(); }

std::optional<image::Digest> CachedStore::first_digest() const {
    return recalled_ ? std::optional(recalled_->digest) : inner_->first_digest();
}

Error CachedStore::not_cached(const std::optional<image::Digest>& part) const {
    if (!passed_over_.empty() && image_.parts.empty()) {
        return Error(Exit::not_found, "image-not-cached",
                     fmt::format("the image in the cache was {}; imagePullPolicy Never asks nobody else", passed_over_))
            .hint(fmt::format("pull it again with the options of this command, or name its digest: {}", digest_name_));
    }
    std::string others;
    if (!part) {
        for (const CachedImage& each : cache_.images()) {
            if (each.reference == image_.reference && each.platform != image_.platform) {
                others += (others.empty() ? "" : ", ") + each.platform.to_string();
            }
        }
    }
    if (!others.empty()) {
        return Error(Exit::not_found, "image-not-cached",
                     fmt::format("the cache has the image for {}, not for {}; imagePullPolicy Never asks nobody else",
                                 others, image_.platform.to_string()))
            .hint("pull it for this platform, or name the other with --platform");
    }
    const std::string what =
        part && (recalled_ || !image_.parts.empty())
            ? fmt::format("the cache has no sound copy of {}, a part of the image", part->short_text())
            : "the image is not in the cache";
    return Error(Exit::not_found, "image-not-cached", what + ", and imagePullPolicy Never asks nobody else")
        .hint("kmm-worker pull brings it there, or use the policy IfNotPresent");
}

void CachedStore::not_written(const Error& error) {
    if (writable_) {
        warnings_.push_back("cache-not-written: " + error.message());
    }
    writable_ = false;
}

/// One more part of the image.
void CachedStore::note(const image::Digest& digest, std::uint64_t size) {
    const bool known =
        std::any_of(image_.parts.begin(), image_.parts.end(), [&](const auto& part) { return part.digest == digest; });
    if (!known) {
        image_.parts.push_back({digest, size});
    }
}

void CachedStore::keep(const image::Digest& digest, std::string_view bytes) {
    if (image_.parts.empty()) {
        image_.digest = digest;
    }
    note(digest, bytes.size());
    if (holds_) {
        held_.push_back({digest, std::string(bytes), {}});
        return;
    }
    if (!writable_) {
        return;
    }
    try {
        cache_.write(digest, bytes);
    } catch (const Error& error) {
        not_written(error);
    }
}

void CachedStore::accept() {
    holds_ = false;
    for (const Held& part : std::exchange(held_, {})) {
        if (part.file) {
            store_file(part.file, part.digest);
        } else {
            keep(part.digest, part.bytes);
        }
    }
}

/// Signatures prove themselves: how they were learnt does not matter. They are kept for pulls that ask nobody.
ManifestText CachedStore::signatures(const std::string& tag, std::uint64_t cap) {
    const std::string name = image::parse_reference(image_.reference).name() + ":" + tag;
    if (request_.policy == PullPolicy::never || recalled_) {
        const auto record = cache_.recall(name, image_.platform);
        if (auto bytes = record ? cache_.read(record->digest, cap) : std::nullopt) {
            keep(record->digest, *bytes);
            return {std::move(*bytes), {}, {}, true};
        }
    }
    if (request_.policy == PullPolicy::never) {
        throw not_cached(std::nullopt);
    }
    ManifestText text = inner_->manifest(tag, std::nullopt, cap);
    if (text.body.size() <= cap) {
        const image::Digest digest = verified_manifest(text.body, std::nullopt);
        keep(digest, text.body);
        signatures_.push_back(CachedImage{name, image_.platform, digest, {{digest, text.body.size()}}, 0, learnt_, 0});
    }
    return text;
}

ManifestText CachedStore::manifest(const std::string& name, const std::optional<image::Digest>& expected,
                                   std::uint64_t cap) {
    if (!expected && name != first_name()) {
        return signatures(name, cap);
    }
    if (expected) {
        if (auto bytes = cache_.read(*expected, cap)) {
            keep(*expected, *bytes);
            return {std::move(*bytes), {}, {}, true};
        }
    }
    if (request_.policy == PullPolicy::never) {
        throw not_cached(expected);
    }
    ManifestText text = inner_->manifest(name, expected, cap);
    if (text.body.size() <= cap) {
        keep(verified_manifest(text.body, expected), text.body);
    }
    return text;
}

bool CachedStore::take_cached(const image::Descriptor& wanted, BlobTarget& target, const ByteCount& on_bytes) {
    const sys::Fd fd = cache_.open(wanted.digest);
    if (!fd) {
        return false;
    }
    KeptSource source(fd.get());
    try {
        copy_verified(source, wanted, target, on_bytes, [this] { check_deadline(); });
        return true;
    } catch (const Error& error) {
        if (error.exit() != Exit::integrity) {
            throw;
        }
        warnings_.push_back(damage_text(wanted.digest.to_string(), cache_.remove(wanted.digest)));
        target.restart();
        return false;
    }
}

void CachedStore::blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& warnings,
                       const ByteCount& on_bytes) {
    note(wanted.digest, wanted.size);
    if (holds_ && !signatures_.empty()) {
        signatures_.back().parts.push_back({wanted.digest, wanted.size});
    }
    if (take_cached(wanted, target, on_bytes)) {
        return;
    }
    if (request_.policy == PullPolicy::never) {
        throw not_cached(wanted.digest);
    }
    fetched_ += wanted.size;
    sys::Fd file;
    try {
        if (writable_) {
            file = cache_.new_file();
        }
    } catch (const Error& error) {
        not_written(error);
    }
    if (!file) {
        inner_->blob(wanted, target, warnings, on_bytes);
        return;
    }
    TeeTarget tee(target, file.get());
    inner_->blob(wanted, tee, warnings, on_bytes);
    if (tee.failure()) {
        not_written(*tee.failure());
        return;
    }
    if (holds_) {
        held_.push_back({wanted.digest, {}, std::move(file)});
    } else {
        store_file(file, wanted.digest);
    }
}

void CachedStore::store_file(const sys::Fd& file, const image::Digest& digest) {
    try {
        if (writable_) {
            cache_.publish(file, digest);
        }
    } catch (const Error& error) {
        not_written(error);
    }
}

void CachedStore::not_needed(const std::vector<image::Descriptor>& layers) {
    for (const image::Descriptor& layer : layers) {
        note(layer.digest, layer.size);
    }
}

void CachedStore::finished() {
    if (!writable_ || image_.parts.empty()) {
        return;
    }
    image_.last_used = clock_.now_unix();
    if (recalled_) {
        image_.learnt = recalled_->learnt;  // this pull has asked nobody what the tag means
    } else if (learnt_.is_hearsay() && !inner_->first_digest()) {
        const auto before = cache_.recall(image_.reference, image_.platform);
        if (before && before->learnt && !before->learnt->is_hearsay()) {  // what is known better stays known
            image_.reference = image::parse_reference(image_.reference).name() + "@" + image_.digest.to_string();
        }
    }
    try {
        for (CachedImage& signatures : signatures_) {
            signatures.last_used = image_.last_used;
            cache_.remember(signatures);
        }
        cache_.remember(image_);
        prune();
    } catch (const Error& error) {
        const auto before = error.errno_cause() == EROFS && fetched_ == 0
                                ? cache_.recall(image_.reference, image_.platform)
                                : std::nullopt;
        if (before && before->digest == image_.digest) {
            writable_ = false;  // it is there, and made to be read alone: only the time of its use is not on record
            return;
        }
        not_written(error);
    }
}

void CachedStore::prune() {
    const auto report = cache_.prune(request_.cache_bytes, image_.reference);
    const bool gone =
        report && std::find(report->images.begin(), report->images.end(), image_.reference) != report->images.end();
    if (gone) {
        warnings_.push_back(fmt::format("cache-too-small: the image's {} do not fit into {}",
                                        base::format_bytes(image_.size()), base::format_bytes(request_.cache_bytes)));
    }
    if (report && report->failure) {
        not_written(*report->failure);
    }
}

void CachedStore::keep_extraction(const FinishedExtraction& finished, const Staging& staging) {
    if (!writable_ || image_.parts.empty()) {
        return;
    }
    try {
        const std::uint64_t images = cache_.image_bytes();
        const std::uint64_t bytes = finished.bytes();
        if (images > request_.cache_bytes || bytes > request_.cache_bytes - images || !cache_.has_space(bytes)) {
            return;  // it would be removed at once, or fill the disk
        }
        try {
            cache_.keep_extraction(finished, staging);
        } catch (const Error& error) {
            not_written(error);
        }
        prune();  // also of files that have come to no list
    } catch (const Error& error) {
        not_written(error);
    }
}

}  // namespace kmm::registry
