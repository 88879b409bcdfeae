// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"
#include "registry/local/held_directories.hpp"
#include "registry/local/image_sink.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "sys/directory.hpp"
#include "sys/durable_names.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

constexpr unsigned k_archive_mode = 0644;

/// A layout in a tar. It grows beside its place and is moved there when it is whole.
class ArchiveSink final : public ImageSink {
public:
    explicit ArchiveSink(const LocalReference& reference)
        : reference_(reference),
          tar_([this](std::string_view piece) { ops_.write(file_.get(), piece); }) {
        struct stat facts {};
        if (::stat(reference_.path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
            throw Error(Exit::data, "bad-layout",
                        fmt::format("expected an archive or nothing at {}, found {}", base::escape(reference_.path),
                                    S_ISDIR(facts.st_mode) ? "a directory" : "no regular file"))
                .hint("name a file: oci-archive:FILE:TAG");
        }
        const int parent = ops_.hold(sys::parent_of(reference_.path), HeldDirectories::Missing::refuse);
        remove_what_kills_left(parent);
        create();
    }
    ~ArchiveSink() override {
        if (!done_) {
            (void)ops_.remove(temporary_);
        }
    }
    ArchiveSink(const ArchiveSink&) = delete;
    ArchiveSink& operator=(const ArchiveSink&) = delete;

    std::string name() const override {
        return "oci-archive:" + reference_.path + (reference_.tag.empty() ? "" : ":" + reference_.tag);
    }

    bool has(const image::Descriptor& blob) override { return put_.contains(blob.digest.to_string()); }

    void put_blob(const image::Descriptor& blob, int fd) override {
        if (!put_.insert(blob.digest.to_string()).second) {
            return;
        }
        FileSource source(fd);
        tar_.begin(path_of(blob.digest), blob.size, false);
        for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
            tar_.append(piece);
        }
    }

    void put_manifest(const std::string& /*media_type*/, const std::string& text,
                      const image::Digest& digest) override {
        if (put_.insert(digest.to_string()).second) {
            put_text(path_of(digest), text);
        }
    }

    void publish(const std::string& media_type, const std::string& text, const image::Digest& digest) override {
        put_manifest(media_type, text, digest);
        value::Node manifests = value::Node::sequence();
        manifests.push_back(layout_entry(media_type, text.size(), digest, reference_.tag));
        put_text("index.json",
                 value::to_json(value::Node::mapping(
                     {{"schemaVersion", 2}, {"mediaType", image::k_oci_index}, {"manifests", std::move(manifests)}})));
        tar_.finish();
        sys::DurableNames names(ops_);
        names.place(file_.get(), temporary_, reference_.path);
        done_ = true;
        names.finish();
    }

private:
    /// Begins a locked file beside the archive: the lock says that its writer lives. Where a cleaner was faster than
    /// the lock, another one.
    void create() {
        struct stat facts {};
        do {
            temporary_ = sys::temp_name(reference_.path);
            file_ = sys::Fd(ops_.create(temporary_, k_archive_mode));
        } while ((::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                 ::fstat(file_.get(), &facts) != 0 || facts.st_nlink == 0);
        try {
            put_text("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
        } catch (...) {
            (void)ops_.remove(temporary_);  // there will be no destructor
            throw;
        }
    }

    /// Removes temporary files of this archive that nobody has locked. What cannot be looked at stays.
    void remove_what_kills_left(int parent) const {
        if (::faccessat(parent, ".", R_OK | X_OK, 0) != 0) {
            return;
        }
        sys::each_entry(parent, [&](const sys::DirectoryEntry& entry) {
            if (entry.type != sys::EntryType::file || !sys::is_temp_name(entry.name, reference_.path)) {
                return;
            }
            const sys::Fd left(::openat(parent, entry.name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
            if (left && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) {
                (void)::unlinkat(parent, entry.name.c_str(), 0);
            }
        });
    }

    void put_text(const std::string& path, std::string_view text) {
        tar_.begin(path, text.size(), false);
        tar_.append(text);
    }
    static std::string path_of(const image::Digest& digest) {
        return fmt::format("blobs/{}/{}", image::to_string(digest.algorithm), digest.hex);
    }

    LocalReference reference_;
    std::string temporary_;
    HeldDirectories ops_;
    sys::Fd file_;
    TarWriter tar_;
    std::set<std::string> put_;
    bool done_ = false;
};

}  // namespace

std::unique_ptr<ImageSink> open_archive_sink(const LocalReference& reference) {
    return std::make_unique<ArchiveSink>(reference);
}

}  // namespace kmm::registry
