// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/document_service.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/source.hpp"
#include "registry/local/held_directories.hpp"
#include "registry/local/image_sink.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"
#include "sys/file_lock.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

constexpr std::string_view k_ref_name_key = "org.opencontainers.image.ref.name";
constexpr unsigned k_file_mode = 0644;

class LayoutSink final : public ImageSink {
public:
    LayoutSink(const LocalReference& reference, const Limits& limits, sandbox::Confined* parser)
        : reference_(reference), limits_(limits), parser_(parser) {
        (void)read_index();
        for (const char* below : {"", "/blobs", "/blobs/sha256"}) (void)ops_.hold(reference_.path + below);
        remove_what_kills_left();
        sys::write_file_atomically(ops_, reference_.path + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})",
                                   k_file_mode);
    }

    /// What was written for an image that got no name is removed, unless somebody else writes here, who may have found
    /// it.
    ~LayoutSink() override {
        if (alive_ && ::flock(alive_.get(), LOCK_EX | LOCK_NB) == 0) {
            for (const std::string& path : unnamed_) {
                (void)ops_.remove(path);
            }
        }
    }
    LayoutSink(const LayoutSink&) = delete;
    LayoutSink& operator=(const LayoutSink&) = delete;

    std::string name() const override {
        return "oci:" + reference_.path + (reference_.tag.empty() ? "" : ":" + reference_.tag);
    }

    bool has(const image::Descriptor& blob) override {
        const std::string path = path_of(blob.digest);
        (void)ops_.hold(sys::parent_of(path));
        const sys::Fd fd(::openat(ops_.of(path), blob.digest.hex.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!fd) {
            return false;
        }
        Hasher hasher(blob.digest.algorithm);
        FileSource source(fd.get());
        for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
            hasher.update(piece);
        }
        return hasher.finish() == blob.digest;  // a damaged one is written anew
    }

    void put_blob(const image::Descriptor& blob, int fd) override {
        const std::string path = path_of(blob.digest);
        (void)ops_.hold(sys::parent_of(path));
        FileSource source(fd);
        note(path);
        sys::write_file_atomically(ops_, path, [&](const sys::PutBytes& put) {
            for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
                put(piece);
            }
        }, k_file_mode);
    }

    void put_manifest(const std::string& /*media_type*/, const std::string& text,
                      const image::Digest& digest) override {
        (void)ops_.hold(sys::parent_of(path_of(digest)));
        note(path_of(digest));
        sys::write_file_atomically(ops_, path_of(digest), text, k_file_mode);
    }

    void publish(const std::string& media_type, const std::string& text, const image::Digest& digest) override {
        put_manifest(media_type, text, digest);
        const sys::Fd lock = lock_directory();
        value::Node index = read_index();  // others may have added images since
        auto& manifests = index.find("manifests")->items();
        std::erase_if(manifests, [&](const value::Node& item) {
            const std::string name = item.get_string({"annotations", k_ref_name_key});
            return name == reference_.tag || (!reference_.tag.empty() && name.ends_with(":" + reference_.tag));
        });
        manifests.push_back(layout_entry(media_type, text.size(), digest, reference_.tag));
        sys::write_file_atomically(ops_, reference_.path + "/index.json", [&](const sys::PutBytes& put) {
            put(value::to_json(index));
            unnamed_.clear();  // whatever fails from here on, the name may be there
        }, k_file_mode);
    }

private:
    /// Before a blob is written.
    void note(const std::string& path) {
        if (!ops_.exists(path)) {
            unnamed_.push_back(path);
        }
    }

    /// The layout's index; an empty one for a directory that is absent, empty, or where a first image never came to its
    /// end.
    value::Node read_index() const {
        const auto files =
            ::access(reference_.path.c_str(), F_OK) == 0 ? open_directory_files(reference_.path) : nullptr;
        if (const auto text = files ? read_named(*files, "index.json", limits_.manifest_bytes) : std::nullopt) {
            begin_other_bytes(parser_);
            value::Node index = read_image_document(parser_, *text, "file index.json", "bad-layout");
            begin_other_bytes(parser_);
            if (index.find("manifests") == nullptr || !index.find("manifests")->is_sequence()) {
                throw Error(Exit::data, "bad-layout", "index.json: expected the member manifests, found none");
            }
            return index;
        }
        const auto entries = files ? sys::list_directory(reference_.path) : std::vector<sys::DirectoryEntry>();
        const bool is_ours = std::all_of(entries.begin(), entries.end(), [](const sys::DirectoryEntry& entry) {
            return entry.name == "blobs" || entry.name == "oci-layout" || entry.name.ends_with(".kmm-tmp");
        });
        if (!is_ours) {
            throw Error(Exit::data, "bad-layout",
                        fmt::format("expected an OCI image layout or an empty directory, found others' files in {}",
                                    base::escape(reference_.path)))
                .hint("name another directory: oci:DIR:TAG");
        }
        return value::Node::mapping(
            {{"schemaVersion", 2}, {"mediaType", image::k_oci_index}, {"manifests", value::Node::sequence()}});
    }

    /// Whoever writes here shares the lock of DIR/blobs until it ends: one that gets it alone knows that all temporary
    /// files are of processes that were killed. File systems without locks keep these files.
    void remove_what_kills_left() {
        alive_.reset(open_again(reference_.path + "/blobs"));
        if (alive_ && ::flock(alive_.get(), LOCK_EX | LOCK_NB) == 0) {
            for (const char* below : {"", "/blobs/sha256", "/blobs/sha512"}) {
                const std::string directory = reference_.path + below;
                if (directory.ends_with("512") && !ops_.exists(directory)) continue;
                sys::each_entry(ops_.hold(directory), [&](const sys::DirectoryEntry& entry) {
                    if (entry.type == sys::EntryType::file && entry.name.starts_with('.') &&
                        entry.name.ends_with(".kmm-tmp")) {
                        (void)ops_.remove(directory + "/" + entry.name);
                    }
                });
            }
        }
        if (alive_) static_cast<void>(sys::wait_for_lock(alive_.get(), LOCK_SH, reference_.path + "/blobs"));
    }

    /// Holds back others that add an image to this layout. File systems without locks do without.
    sys::Fd lock_directory() const {
        sys::Fd directory(open_again(reference_.path));
        if (directory) static_cast<void>(sys::wait_for_lock(directory.get(), LOCK_EX, reference_.path));
        return directory;
    }

    /// A descriptor with locks of its own.
    int open_again(const std::string& held) const {
        return ::openat(ops_.of(held + "/."), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }

    std::string path_of(const image::Digest& digest) const {
        return fmt::format("{}/blobs/{}/{}", reference_.path, image::to_string(digest.algorithm), digest.hex);
    }

    LocalReference reference_;
    Limits limits_;
    sandbox::Confined* parser_;
    HeldDirectories ops_;
    sys::Fd alive_;
    std::vector<std::string> unnamed_;  ///< paths of blobs that nothing may need if this ends without a name
};

}  // namespace

value::Node layout_entry(const std::string& media_type, std::size_t size, const image::Digest& digest,
                         const std::string& tag) {
    value::Node entry = value::Node::mapping(
        {{"mediaType", media_type}, {"digest", digest.to_string()}, {"size", static_cast<std::int64_t>(size)}});
    if (!tag.empty()) {
        entry.set("annotations", value::Node::mapping({{std::string(k_ref_name_key), tag}}));
    }
    return entry;
}

std::unique_ptr<ImageSink> open_layout_sink(const LocalReference& reference, const Limits& limits,
                                            sandbox::Confined* parser) {
    return std::make_unique<LayoutSink>(reference, limits, parser);
}

}  // namespace kmm::registry
