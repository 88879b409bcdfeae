// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/source.hpp"
#include "registry/tar_reader.hpp"
#include "registry/upload.hpp"
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
        : reference_(reference), temporary_(fmt::format("{}.{}.kmm-tmp", reference.path, ::getpid())),
          tar_([this](std::string_view piece) { ops_.write(file_.get(), piece); }) {
        struct stat facts {};
        if (::stat(reference_.path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
            throw Error(Exit::data, "bad-layout", fmt::format("expected an archive or nothing at {}, found {}", base::escape(reference_.path), S_ISDIR(facts.st_mode) ? "a directory" : "no regular file"))
                .hint("name a file: oci-archive:FILE:TAG");
        }
        (void)::unlink(temporary_.c_str());
        file_ = sys::Fd(ops_.create(temporary_, k_archive_mode));
        put_text("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    }
    ~ArchiveSink() override {
        if (!done_) {
            (void)::unlink(temporary_.c_str());
        }
    }
    ArchiveSink(const ArchiveSink&) = delete;
    ArchiveSink& operator=(const ArchiveSink&) = delete;

    std::string name() const override { return "oci-archive:" + reference_.path + (reference_.tag.empty() ? "" : ":" + reference_.tag); }

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

    void put_manifest(const std::string& /*media_type*/, const std::string& text, const image::Digest& digest) override {
        if (put_.insert(digest.to_string()).second) {
            put_text(path_of(digest), text);
        }
    }

    void publish(const std::string& media_type, const std::string& text, const image::Digest& digest) override {
        put_manifest(media_type, text, digest);
        value::Node manifests = value::Node::sequence();
        manifests.push_back(layout_entry(media_type, text.size(), digest, reference_.tag));
        put_text("index.json", value::to_json(value::Node::mapping({{"schemaVersion", 2}, {"mediaType", image::k_oci_index}, {"manifests", std::move(manifests)}})));
        tar_.finish();
        ops_.sync(file_.get());
        ops_.rename(temporary_, reference_.path);
        done_ = true;
        const std::string parent = std::filesystem::path(reference_.path).parent_path().native();
        ops_.sync_dir(parent.empty() ? "." : parent);
    }

private:
    void put_text(const std::string& path, std::string_view text) {
        tar_.begin(path, text.size(), false);
        tar_.append(text);
    }
    static std::string path_of(const image::Digest& digest) { return fmt::format("blobs/{}/{}", image::to_string(digest.algorithm), digest.hex); }

    LocalReference reference_;
    std::string temporary_;
    sys::LinuxFileOps ops_;
    sys::Fd file_;
    TarWriter tar_;
    std::set<std::string> put_;
    bool done_ = false;
};

}  // namespace

std::unique_ptr<ImageSink> open_archive_sink(const LocalReference& reference) { return std::make_unique<ArchiveSink>(reference); }

}  // namespace kmm::registry
