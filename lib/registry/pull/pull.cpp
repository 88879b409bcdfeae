// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/request.hpp"
#include "registry/client/resolve.hpp"
#include "registry/client/session.hpp"
#include "registry/client/signatures.hpp"
#include "registry/layer/hash.hpp"
#include "registry/local/local.hpp"
#include "registry/pull/cache.hpp"
#include "registry/pull/extraction_record.hpp"
#include "registry/pull/layer_feed.hpp"
#include "registry/pull/puller.hpp"
#include "registry/unpack/extract.hpp"
#include "registry/unpack/extracted.hpp"

namespace kmm::registry {

namespace {

/// The identity of files that have no manifest: the digest of their list, as sha256sum writes it.
std::string digest_of_files(const ExtractedFiles& files) {
    Hasher hasher;
    files.each([&](const ExtractedFile& file) { hasher.update(file.digest() + "  " + file.path + "\n"); });
    return hasher.finish().to_string();
}

/// One pull: what is known of it while it runs.
class Pull {
public:
    Pull(const PullRequest& request, const std::string& out_dir, net::HttpClient& http, sys::Clock& clock)
        : request_(with_stop(request)), http_(http), clock_(clock), deadline_(clock.monotonic() + request.deadline),
          view_(wanted_from(request), request.limits),
          staging_(out_dir, request.durable ? Durability::durable : Durability::scratch) {}

    PullResult run() {
        const auto local = parse_local_reference(request_.reference);
        result_.reference = request_.reference;
        std::unique_ptr<ImageStore> store;  // as long as cached_ is used
        if (local && local->transport == Transport::directory) {
            take_directory(*local);
        } else {
            store =
                with_context([&] { return "image " + base::escape(request_.reference); }, [&] { return open(local); });
            take_image(*store);
            if (cached_ != nullptr) {
                cached_->finished();
                result_.bytes_downloaded = cached_->fetched();
            }
        }
        result_.kernels_found = view_.kernels();
        check_kernels(request_, result_.kernels_found, result_.reference);
        warnings_.insert(view_.warnings().begin(), view_.warnings().end());
        if (to_keep_) {
            keep_extraction();
        }
        warnings_.insert(notes_.begin(), notes_.end());
        result_.warnings.assign(warnings_.begin(), warnings_.end());
        staging_.publish(view_);
        result_.files = ExtractedFiles(
            std::make_shared<const ExtractedTree>(ExtractedTree{view_.take_nodes(), staging_.take_stored()}));
        if (result_.digest.empty()) {
            result_.digest = digest_of_files(result_.files);
        }
        return std::move(result_);
    }

private:
    /// `request`, and given up as soon as one side of the pull has failed.
    PullRequest with_stop(PullRequest request) {
        request.cancelled = [this, asked = std::move(request.cancelled)] { return stop_ || (asked && asked()); };
        return request;
    }

    /// Downloads layer `index` of `image` into `target`, proven. In the feed's thread.
    void fetch(ImageStore& store, const ResolvedImage& image, std::size_t index, BlobTarget& target,
               std::uint64_t total) {
        const std::vector<image::Descriptor>& layers = image.manifest.layers;
        const std::uint64_t before =
            std::accumulate(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index), std::uint64_t{0},
                            [](std::uint64_t sum, const image::Descriptor& layer) { return sum + layer.size; });
        staging_.need_space(layers[index].size);
        store.blob(layers[index], target, notes_, [&](std::uint64_t have) {
            if (stop_) {
                throw Error(Exit::interrupted, "interrupted", "the pull was given up");
            }
            if (request_.progress) {
                request_.progress(before + have, total);
            }
        });
    }

    /// Extracts the layer that comes out of `feed`, while it comes. What was made of bytes that were not the blob's is
    /// undone, and what was wrong with such bytes is not worth a word: the blob's own fault comes first.
    static void extract_arriving(LayerFeed& feed, const image::Descriptor& layer, const image::Digest& diff_id,
                                 Extraction& into) {
        const ExtractionMark mark(into);
        while (true) {
            std::exception_ptr fault;
            try {
                extract_layer(feed, layer, diff_id, into);
            } catch (const Withdrawn&) {
            } catch (const Error& error) {
                if (error.exit() == Exit::io || error.exit() == Exit::interrupted || error.exit() == Exit::timeout) {
                    throw;  // nothing that other bytes would change
                }
                fault = std::current_exception();
            }
            if (feed.settle()) {
                if (fault) {
                    std::rethrow_exception(fault);
                }
                return;
            }
            mark.rewind(into);
        }
    }

    void check_deadline() const {
        if (clock_.monotonic() >= deadline_) {
            throw pull_timeout(request_.deadline);
        }
    }

    std::unique_ptr<ImageStore> open(const std::optional<LocalReference>& local) {
        if (local) {
            return open_local(*local, request_, [this] { check_deadline(); });
        }
        const image::Reference reference = image::parse_reference(request_.reference);
        result_.reference = reference.to_string();
        name_ = reference;
        auto registry = open_registry(reference, request_, http_, clock_, notes_);
        if (request_.cache_dir.empty()) {
            if (request_.policy == PullPolicy::never) {
                throw Error(Exit::usage, "missing-option",
                            "expected a cache, which imagePullPolicy Never takes images from, found none")
                    .hint("--cache-dir DIR names one");
            }
            return registry;
        }
        if (!open_cache()) {
            return registry;
        }
        auto cached =
            std::make_unique<CachedStore>(std::move(registry), *cache_, request_, result_.reference, clock_, notes_);
        cached_ = cached.get();
        return cached;
    }

    /// False, with a warning, if there can be no cache: it is an aid, and a module is loaded without it as well.
    bool open_cache() {
        try {
            cache_.emplace(request_.cache_dir);
            return true;
        } catch (Error& error) {
            if (error.code() == "cache-unsafe") {
                throw;
            }
            if (request_.policy == PullPolicy::never && error.code() != "no-cache") {
                const bool forbidden = error.exit() == Exit::no_permission;
                error.hint(
                    forbidden
                        ? "run as the user whose cache it is, on a node root, or name another one: --cache-dir DIR"
                        : fmt::format("remove {}, or name another cache: --cache-dir DIR",
                                      base::escape(request_.cache_dir)));
            }
            if (request_.policy == PullPolicy::never) {
                throw;
            }
            notes_.push_back("cache-not-used: " + error.message());
            return false;
        }
    }

    void take_directory(const LocalReference& local) {
        with_context([&] { return "directory " + base::escape(local.path); },
                     [&] { require_trust(nullptr, request_, notes_); });
        const auto reader = read_module_directory(local, view_.asked(), request_.limits);
        Extraction extraction{view_,     staging_,
                              budget_,   request_.limits,
                              warnings_, [this] { check_deadline(); }};  // hashed: the files' digests are the identity
        view_.begin_layer();
        with_context([&] { return "directory " + base::escape(local.path); },
                     [&] { add_entries(*reader, extraction); });
        view_.finish();
    }

    void take_image(ImageStore& store) {
        const ResolvedImage image = with_context([&] { return "image " + result_.reference; },
                                                 [&] { return resolve_image(store, request_, notes_); });
        result_.digest = store.identity().value_or(image.digest).to_string();
        result_.index_digest = image.index_digest;
        with_context([&] { return "image " + base::escape(result_.reference); },
                     [&] { require_trust_of(store, image); });
        const std::uint64_t total =
            with_context([&] { return "image " + base::escape(result_.reference); },
                         [&] { return check_layers(image.manifest, image.config, request_.limits); });
        Extraction extraction{view_, staging_, budget_, request_.limits, warnings_, [&] { store.check_deadline(); },
                              request_.file_digests || cached_ != nullptr, request_.parser};
        if (cached_ != nullptr && take_extracted(image, extraction)) {
            return;
        }
        read_image(extraction, [&] {
            read_layers(store, image, total, extraction);
            result_.bytes_downloaded += total;
        });
    }

    void require_trust_of(ImageStore& store, const ResolvedImage& image) {
        require_trust(store, name_, image.manifests, request_, notes_);
        if (cached_ != nullptr) {
            cached_->accept();
        }
    }

    void read_layers(ImageStore& store, const ResolvedImage& image, std::uint64_t total, Extraction& extraction) {
        const std::size_t count = image.manifest.layers.size();
        stop_ = false;  // an earlier feed has ended
        LayerFeed feed(count, [&](std::size_t index, BlobTarget& target) { fetch(store, image, index, target, total); },
                       [this] { stop_ = true; });
        for (std::size_t i = 0; i < count; ++i) {
            const image::Descriptor& layer = image.manifest.layers[i];
            with_context(
                [&] {
                    return fmt::format("image {}: layer {} of {} ({})", result_.reference, i + 1, count,
                                       layer.digest.short_text());
                },
                [&] { extract_arriving(feed, layer, image.config.diff_ids[i], extraction); });
        }
    }

    /// Takes the files from the cache, where an earlier pull of the same has left them: no layer is read. False if it
    /// did not, or if something of that is no longer what it was; then nothing of it stays.
    bool take_extracted(const ResolvedImage& image, Extraction& extraction) {
        const ExtractionKey key = extraction_key(
            image.digest, view_.asked(), {request_.os, request_.architecture, request_.variant}, request_.limits);
        const auto list = cache_->extraction(key, notes_);
        const ExtractionMark mark(extraction);
        try {
            if (list) {
                add_recorded(*list, [this](const image::Digest& digest) { return cache_->open(digest); }, extraction);
                cached_->not_needed(image.manifest.layers);
                return true;
            }
        } catch (const LostContent& lost) {
            mark.rewind(extraction);
            if (lost.damaged) {
                notes_.push_back(damage_text(lost.digest.to_string(), cache_->remove(lost.digest)));
            }
        } catch (const Error& error) {
            if (error.exit() != Exit::data && error.exit() != Exit::unsafe) {
                throw;
            }
            mark.rewind(extraction);
            cache_->forget(key, notes_);
        }
        to_keep_ = key;
        return false;
    }

    /// Writes down what was extracted of the layers, for the next pull.
    void keep_extraction() {
        const FinishedExtraction finished(*to_keep_, view_, staging_, warnings_);
        if (finished.comes_again(request_.limits)) {
            cached_->keep_extraction(finished, staging_);
        }
    }

    std::atomic<bool> stop_{false};
    std::optional<image::Reference> name_;  ///< nullopt for an image of a file
    const PullRequest request_;
    net::HttpClient& http_;
    sys::Clock& clock_;
    std::chrono::milliseconds deadline_;
    LayerView view_;
    Staging staging_;
    std::optional<Cache> cache_;
    CachedStore* cached_ = nullptr;  ///< the store that is open, if it has a cache
    std::optional<ExtractionKey> to_keep_;  ///< what the layers are extracted by, if there is a cache
    InflateBudget budget_;
    PullResult result_;
    std::set<std::string> warnings_;
    std::vector<std::string> notes_;
};

}  // namespace

PullResult pull(const PullRequest& request, const std::string& out_dir, net::HttpClient& http, sys::Clock& clock) {
    if (!parse_local_reference(request.reference)) {
        static_cast<void>(image::parse_reference(request.reference));  // before anything is looked at
    }
    return Pull(request, out_dir, http, clock).run();
}

}  // namespace kmm::registry
