// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/rewrite.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/resolve.hpp"
#include "registry/client/session.hpp"
#include "registry/client/signatures.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/layer/rewritten.hpp"
#include "registry/local/local.hpp"
#include "registry/pull/upload.hpp"
#include "registry/unpack/extract.hpp"
#include "registry/unpack/layer_writer.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

/// What has to be written, in order: one of the two.
struct WriteStep {
    std::optional<image::Descriptor> blob;
    std::optional<NewDocument> manifest;
};

bool is_foreign(const image::Descriptor& blob) {
    return blob.media_type.find("nondistributable") != std::string::npos ||
           blob.media_type.find("foreign") != std::string::npos;
}

image::Descriptor blob_of(const std::string& media_type, const image::Digest& digest, std::uint64_t size) {
    return {media_type, digest, size, std::nullopt};
}

class Rewrite {
public:
    Rewrite(const RewriteRequest& request, std::string work_dir, net::HttpClient& http, sys::Clock& clock)
        : request_(request), source_(request.source), work_dir_(std::move(work_dir)), http_(http), clock_(clock),
          deadline_(clock.monotonic() + request.source.deadline), used_(request.files.size(), false) {
        check_destination(request_.to);
        const Wanted wanted = wanted_from(source_);
        const std::string_view directory = parent_of(parent_of(wanted.modules_root));
        for (const std::string& pattern : request_.files) {
            const std::string path = pattern.starts_with('/') ? pattern.substr(1) : std::string();
            if (path.empty() || !is_in(path, directory)) {
                throw Error(Exit::data, "bad-path",
                            fmt::format("expected an absolute path below {}, found {}", source_.dir_name,
                                        base::escape(pattern)))
                    .hint("--dir-name names another directory of the image");
            }
            if (!is_in(path, wanted.modules_root)) {
                source_.firmware_path = source_.dir_name;  // what is not a kernel's may be looked at, too
            }
        }
    }

    RewriteResult run() {
        const auto context = [&] { return "image " + base::escape(result_.source); };
        result_.source = source_.reference;
        store_ = with_context(context, [&] { return open_source(); });
        const FetchedManifest top = with_context(context, [&] {
            return fetch_manifest(*store_, store_->first_name(), store_->first_digest(), nullptr, source_,
                                  notes_);
        });
        with_context(context, [&] {
            require_trust(*store_, origin_, {top.text}, source_, notes_);
        });  // an index as a whole: any image of it is changed
        result_.source_digest = store_->identity().value_or(top.digest).to_string();
        const NewDocument done = with_context(
            context, [&] { return top.kind == image::DocumentKind::index ? index(top, 1) : only_image(top); });
        check_all();
        write(done);
        warnings_.insert(notes_.begin(), notes_.end());
        result_.warnings.assign(warnings_.begin(), warnings_.end());
        return std::move(result_);
    }

private:
    void check_deadline() const {
        if (clock_.monotonic() >= deadline_) {
            throw pull_timeout(source_.deadline);
        }
    }

    std::unique_ptr<ImageStore> open_source() {
        if (const auto local = parse_local_reference(source_.reference)) {
            if (local->transport == Transport::directory) {
                throw Error(Exit::usage, "unsupported", "expected an image, found a directory of modules")
                    .hint("sign an image: a registry's, oci:, oci-archive: or docker-archive:");
            }
            return open_local(*local, source_, [this] { check_deadline(); });
        }
        origin_ = image::parse_reference(source_.reference);
        result_.source = origin_->to_string();
        return open_registry(*origin_, source_, http_, clock_, notes_);
    }

    std::unique_ptr<ImageSink> open_sink() {
        if (const auto local = parse_local_reference(request_.to)) {
            return local->transport == Transport::oci ? open_layout_sink(*local, source_.limits, source_.parser)
                                                      : open_archive_sink(*local);
        }
        const image::Reference to = image::parse_reference(request_.to);
        PullRequest own = source_;
        own.deadline = std::max(deadline_ - clock_.monotonic(), std::chrono::milliseconds(1));
        const bool same_registry = origin_ && origin_->registry == to.registry &&
                                   origin_->repository != to.repository && source_.mirrors.empty();
        return open_registry_sink(to, own, same_registry ? origin_->repository : "", http_, clock_);
    }

    /// A document that stays as it is.
    NewDocument keep(const FetchedManifest& fetched, std::uint64_t depth) {
        if (fetched.kind == image::DocumentKind::index) {
            for (const image::Descriptor& entry : entries_of(fetched, depth)) {
                add_manifest(keep(fetch_child(entry), depth + 1));
            }
        } else {
            value::Node root = fetched.root;
            if (value::Node* config = root.find("config"); config != nullptr && config->is_mapping()) {
                config->set("mediaType",
                            image::k_oci_config);  // of artifacts nothing needs to be understood but what they hold
            }
            keep_blobs(image::decode_manifest(root));
        }
        return {fetched.text, fetched.media_type, fetched.digest};
    }

    void keep_blobs(const image::Manifest& manifest) {
        keep_layers(manifest);
        steps_.push_back({manifest.config, std::nullopt});
    }

    void keep_layers(const image::Manifest& manifest) {
        for (const image::Descriptor& layer : manifest.layers) {
            if (!is_foreign(layer)) {
                steps_.push_back({layer, std::nullopt});
            }
        }
    }

    void add_manifest(NewDocument document) { steps_.push_back({std::nullopt, std::move(document)}); }

    FetchedManifest fetch_child(const image::Descriptor& entry) {
        return fetch_manifest(*store_, entry.digest.to_string(), entry.digest, &entry, source_, notes_);
    }

    std::vector<image::Descriptor> entries_of(const FetchedManifest& fetched, std::uint64_t depth) {
        if (depth > source_.limits.index_depth) {
            throw limit_error("the depth of nested indexes", "index_depth", source_.limits.index_depth);
        }
        std::vector<image::Descriptor> entries = image::decode_index(fetched.root).manifests;
        entries_ += entries.size();
        if (entries_ > source_.limits.index_entries) {
            throw limit_error("the number of entries of the index", "index_entries", source_.limits.index_entries);
        }
        return entries;
    }

    NewDocument index(const FetchedManifest& fetched, std::uint64_t depth) {
        value::Node root = fetched.root;
        auto& items = root.find("manifests")->items();
        const std::vector<image::Descriptor> entries = entries_of(fetched, depth);
        bool changed = false;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            const FetchedManifest child = fetch_child(entries[i]);
            NewDocument next = child.kind == image::DocumentKind::index ? index(child, depth + 1)
                               : may_change(entries[i])                 ? image(child)
                                                                        : keep(child, depth + 1);
            if (next.digest != child.digest) {
                set_content(items[i], next.digest, next.text.size());
                changed = true;
            }
            add_manifest(std::move(next));
        }
        if (!changed) {
            return {fetched.text, fetched.media_type, fetched.digest};
        }
        return rewritten(root, fetched.media_type);
    }

    /// Of several variants all are meant if none is named, else that one: an earlier one is another image.
    [[nodiscard]] bool is_asked_for(const image::Platform& platform) const {
        if (!request_.platform) {
            return true;
        }
        const auto found = image::distance(platform, *request_.platform);
        return found && (*found == 0 || platform.variant.empty() || request_.platform->variant.empty());
    }

    /// Entries that are no images for a machine ("unknown/unknown": attestations of build tools) stay.
    bool may_change(const image::Descriptor& entry) {
        if (!entry.platform || entry.platform->architecture.empty()) {
            return true;
        }
        offered_.insert(entry.platform->to_string());
        if (entry.platform->os == "unknown") {
            warnings_.insert(
                "attestation-kept: an entry of the index that is not an image describes the image as it was before");
            return false;
        }
        return is_asked_for(*entry.platform);
    }

    NewDocument only_image(const FetchedManifest& fetched) {
        const std::size_t before = changed_images_;
        NewDocument done = image(fetched);
        if (changed_images_ == before) {
            throw Error(Exit::data, "platform-mismatch",
                        fmt::format("expected an image for {}, found one for {}", request_.platform->to_string(),
                                    base::join(offered_names(), ", ")))
                .hint("leave out --platform, or name the image's");
        }
        return done;
    }

    NewDocument image(const FetchedManifest& fetched) {
        const image::Manifest manifest = image::decode_manifest(fetched.root);
        const value::Node config_root = fetch_config(*store_, manifest, source_, notes_);
        const image::ImageConfig config = image::decode_config(config_root);
        offered_.insert(config.platform.to_string());
        const NewDocument same{fetched.text, fetched.media_type, fetched.digest};
        if (!is_asked_for(config.platform)) {
            keep_blobs(manifest);
            return same;
        }
        ++changed_images_;
        static_cast<void>(check_layers(manifest, config, source_.limits));
        const std::vector<LayerFile> files = change_files(manifest, config);
        if (files.empty()) {
            keep_blobs(manifest);
            return same;
        }
        keep_layers(manifest);
        const image::Descriptor& top = manifest.layers.back();
        sys::Fd file = temporary_file();
        const WrittenLayer layer = write_layer(files, image::layer_compression(top), file.get());
        value::Node root = fetched.root;
        const image::Descriptor blob = blob_of(top.media_type, layer.digest, layer.size);
        root.find("layers")->push_back(value::Node::mapping(
            {{"mediaType", blob.media_type}, {"digest", blob.digest.to_string()}, {"size", blob.size}}));
        steps_.push_back({blob, std::nullopt});
        files_[layer.digest.to_string()] = std::move(file);

        const std::string new_config =
            value::to_json(with_layer(config_root, manifest.layers.size(), layer.diff_id, request_.created_by));
        const image::Digest config_digest = digest_of(new_config);
        sys::Fd config_file = temporary_file();
        FileTarget(config_file.get()).put(new_config);
        steps_.push_back({blob_of(manifest.config.media_type, config_digest, new_config.size()), std::nullopt});
        files_[config_digest.to_string()] = std::move(config_file);
        set_content(*root.find("config"), config_digest, new_config.size());
        return rewritten(root, fetched.media_type);
    }

    [[nodiscard]] std::vector<std::string> offered_names() const { return {offered_.begin(), offered_.end()}; }

    sys::Fd temporary_file() const { return spare_->unnamed_file(); }

    bool is_wanted(const std::string& path, const Wanted& wanted) {
        if (request_.files.empty()) {
            return ends_like_module(path) && is_in(path.substr(1), wanted.modules_root);
        }
        bool found = false;
        for (std::size_t i = 0; i < request_.files.size(); ++i) {
            if (::fnmatch(request_.files[i].c_str(), path.c_str(), FNM_PATHNAME) == 0) {
                used_[i] = true;
                found = true;
            }
        }
        return found;
    }

    /// The files that links to be changed lead to: under a link's name it is the file that is loaded.
    std::set<std::string> files_behind_links(const LayerView& view) {
        std::set<std::string> files;
        for (const auto& [below, node] : view.nodes()) {
            const auto file =
                node.kind == EntryKind::symlink ? view.nodes().find(end_of_link(view, below)) : view.nodes().end();
            if (file != view.nodes().end() && file->second.kind == EntryKind::file &&
                is_wanted("/" + below, view.wanted())) {
                files.insert(file->first);
            }
        }
        return files;
    }

    std::string subdirectory() {
        const std::string path = fmt::format("{}/{}", work_dir_, ++directories_);
        if (::mkdir(path.c_str(), 0700) != 0) {
            const int saved = errno;
            throw from_errno(saved, "making a directory in " + work_dir_);
        }
        return path;
    }

    std::vector<LayerFile> change_files(const image::Manifest& manifest, const image::ImageConfig& config) {
        const std::string directory = subdirectory();
        LayerView view(wanted_from(source_), source_.limits);
        Staging staging(directory);
        if (!spare_) {
            spare_ = std::make_unique<Staging>(subdirectory());
        }
        InflateBudget budget;
        Extraction extraction{view, staging,       budget, source_.limits, warnings_, [&] { store_->check_deadline(); },
                              true, source_.parser};
        read_image(extraction, [&] {
            for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
                with_context(
                    [&] {
                        return fmt::format("layer {} of {} ({})", i + 1, manifest.layers.size(),
                                           manifest.layers[i].digest.short_text());
                    },
                    [&] {
                        extract_layer(fetched(manifest.layers[i]), manifest.layers[i], config.diff_ids[i], extraction);
                    });
            }
        });
        const auto kernels = view.kernels();
        kernels_.insert(kernels.begin(), kernels.end());
        warnings_.insert(view.warnings().begin(), view.warnings().end());
        staging.publish(view);
        const std::set<std::string> linked = files_behind_links(view);
        std::vector<LayerFile> changed;
        std::set<std::string>
            seen;  // where files lie in the image: below a link in its place they would hide all that it leads to
        for (const auto& [below, node] : view.nodes()) {
            const std::string asked = "/" + below;
            const std::string path = view.real_path(below);
            const bool wanted =
                node.kind == EntryKind::file && (is_wanted(asked, view.wanted()) || linked.count(below) != 0);
            if (!wanted || !seen.insert(path).second) {
                continue;
            }
            check_deadline();
            const std::string place = directory + asked;
            const StoredFile& stored = staging.stored(node.number);
            const std::string sum = stored.sha256.hex();
            RewrittenFile report{asked, config.platform.to_string(), stored.size, sum, sum};
            auto bytes = change(asked, sys::read_file(place, source_.limits.file_bytes));
            if (bytes) {
                report.after = digest_of(*bytes).hex;
                report.size = bytes->size();
            }
            if (report.after != report.before) {
                put_aside(place, *bytes);
                changed.push_back({path, node.executable,
                                   [place, cap = source_.limits.file_bytes] { return sys::read_file(place, cap); }});
            }
            result_.files.push_back(std::move(report));
        }
        std::sort(changed.begin(), changed.end(),
                  [](const LayerFile& a, const LayerFile& b) { return a.path < b.path; });
        return changed;
    }

    /// What becomes of the file `asked`; an error names it.
    [[nodiscard]] std::optional<std::string> change(const std::string& asked, std::string bytes) const {
        try {
            return request_.change(asked, std::move(bytes));
        } catch (Error& error) {
            const std::string shown = base::escape(asked);
            if (!error.message().starts_with(shown)) {
                error.add_context(shown);
            }
            throw;
        }
    }

    /// `bytes` in the place of a file of the working directory. Nobody looks there after a crash, so nothing waits for
    /// the disk.
    static void put_aside(const std::string& place, std::string_view bytes) {
        sys::LinuxFileOps ops;
        const std::string beside = place + ".kmm-tmp";
        const sys::Fd out(ops.create(beside, 0600));
        ops.write(out.get(), bytes);
        ops.rename(beside, place);
    }

    /// The file with the bytes of a blob of the source, fetched once.
    int fetched(const image::Descriptor& blob) {
        sys::Fd& file = files_[blob.digest.to_string()];
        if (!file) {
            sys::Fd fresh = temporary_file();
            spare_->need_space(blob.size);
            FileTarget target(fresh.get());
            store_->blob(blob, target, notes_, [&](std::uint64_t have) {
                if (source_.progress) {
                    source_.progress(have, blob.size);
                }
            });
            file = std::move(fresh);
        }
        return file.get();
    }

    /// Before anything is written.
    void check_all() const {
        if (changed_images_ == 0) {
            throw Error(Exit::not_found, "no-platform",
                        fmt::format("expected an image for {} in the index, found {}",
                                    request_.platform ? request_.platform->to_string() : "any machine",
                                    offered_.empty() ? "none with a platform"
                                                     : base::escape(base::join(offered_names(), ", "))))
                .hint("build the image for that platform, or leave out --platform");
        }
        for (std::size_t i = 0; i < used_.size(); ++i) {
            if (!used_[i]) {
                throw Error(Exit::not_found, "file-not-in-image",
                            fmt::format("expected a file {} in the image, found none", base::escape(request_.files[i])))
                    .detail("image", base::escape(result_.source))
                    .hint("kmm-worker pull IMAGE --kernel all --out DIR shows what is in it");
            }
        }
        if (!request_.files.empty()) {
            return;
        }
        check_kernels(source_, {kernels_.begin(), kernels_.end()}, result_.source);
        if (result_.files.empty()) {
            throw Error(Exit::not_found, "module-not-in-image",
                        fmt::format("expected .ko files below {}/lib/modules, found none",
                                    source_.dir_name == "/" ? "" : source_.dir_name))
                .detail("image", base::escape(result_.source))
                .hint("build the image with the modules, or correct --dir-name");
        }
    }

    void write(const NewDocument& top) {
        const auto sink = open_sink();
        with_context([&] { return "writing " + base::escape(sink->name()); }, [&] {
            std::set<std::string> done;
            for (const WriteStep& step : steps_) {
                if (step.manifest) {
                    if (done.insert(step.manifest->digest.to_string()).second) {
                        sink->put_manifest(step.manifest->media_type, step.manifest->text, step.manifest->digest);
                    }
                } else if (done.insert(step.blob->digest.to_string()).second && !sink->has(*step.blob)) {
                    if (!spare_) {
                        spare_ = std::make_unique<Staging>(subdirectory());
                    }
                    sink->put_blob(*step.blob, fetched(*step.blob));
                }
            }
            sink->publish(top.media_type, top.text, top.digest);
        });
        result_.reference = sink->name();
        result_.digest = top.digest.to_string();
    }

    const RewriteRequest& request_;
    PullRequest source_;
    std::string work_dir_;
    net::HttpClient& http_;
    sys::Clock& clock_;
    std::chrono::milliseconds deadline_;
    std::optional<image::Reference> origin_;
    std::unique_ptr<ImageStore> store_;
    std::unique_ptr<Staging> spare_;          ///< where files without a name are made
    std::map<std::string, sys::Fd> files_;    ///< digest of a blob -> its bytes
    std::vector<WriteStep> steps_;
    std::vector<bool> used_;                  ///< which patterns matched
    std::set<std::string> kernels_, offered_, warnings_;
    std::vector<std::string> notes_;
    std::uint64_t entries_ = 0;
    std::size_t changed_images_ = 0;
    int directories_ = 0;
    RewriteResult result_;
};

}  // namespace

RewriteResult rewrite_image(const RewriteRequest& request, const std::string& work_dir, net::HttpClient& http,
                            sys::Clock& clock) {
    return Rewrite(request, work_dir, http, clock).run();
}

}  // namespace kmm::registry
