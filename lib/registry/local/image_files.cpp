// SPDX-License-Identifier: Apache-2.0
// The files of an image in a directory or in a tar.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/source.hpp"
#include "registry/local/local.hpp"
#include "registry/unpack/archive_reader.hpp"
#include "registry/unpack/beneath.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

namespace {

Error bad_archive(std::string message) { return Error(Exit::data, "bad-layout", std::move(message)); }

/// A file that is closed with its source.
class OwnedFile final : public ByteSource {
public:
    explicit OwnedFile(sys::Fd fd) : fd_(std::move(fd)), source_(fd_.get()) {}
    std::string_view next() override { return source_.next(); }

private:
    sys::Fd fd_;
    FileSource source_;
};

sys::Fd open_image_path(const std::string& path, int flags) {
    sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    if (!fd) {
        const int saved = errno;
        throw from_errno(saved, "opening " + base::escape(path),
                         saved == ENOENT || saved == ENOTDIR ? "image-not-found" : "io");
    }
    return fd;
}

class DirectoryFiles final : public FileSet {
public:
    explicit DirectoryFiles(const std::string& directory) : root_(open_image_path(directory, O_DIRECTORY)) {}

    std::unique_ptr<ByteSource> open(const std::string& name) override {
        sys::Fd fd = open_beneath(root_.get(), name, O_RDONLY | O_NONBLOCK);
        if (!fd) {
            const int saved = errno;
            if (saved == ENOENT || saved == ENOTDIR) {
                return nullptr;
            }
            if (saved == ELOOP) {
                throw bad_archive("expected no links in the layout, found one on the way to " + base::escape(name))
                    .hint("copy it with what the links lead to (cp -RL), or with skopeo");
            }
            throw from_errno(saved, base::escape(name) + " of the image");
        }
        struct stat facts {};
        if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
            throw bad_archive("expected a regular file in the image, found another kind: " + base::escape(name));
        }
        return std::make_unique<OwnedFile>(std::move(fd));
    }

private:
    sys::Fd root_;
};

class ArchiveFiles final : public FileSet {
public:
    ArchiveFiles(const std::string& file, const Limits& limits, std::function<void()> on_piece,
                 sandbox::Confined* parser)
        : fd_(open_image_path(file, 0)), limits_(limits), on_piece_(std::move(on_piece)) {
        struct stat facts {};
        if (::fstat(fd_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
            throw bad_archive("expected a regular file as the image's archive, found another kind: " +
                              base::escape(file));
        }
        char head[k_magic_bytes] = {};
        const ssize_t got = ::pread(fd_.get(), head, sizeof head, 0);
        compression_ = compression_of({head, static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
        if (parser != nullptr) parser_ = parser->twin();  // the other one reads what the files say
        read_names();
    }

    std::unique_ptr<ByteSource> open(const std::string& name) override;

    /// The entry that `name` means, over at most one link.
    [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const {
        const auto direct = files_.find(name);
        if (direct != files_.end()) {
            return direct->second;
        }
        const auto link = links_.find(name);
        const auto target = link == links_.end() ? files_.end() : files_.find(link->second);
        return target == files_.end() ? std::nullopt : std::optional(target->second);
    }

    /// Content of the entry opened last.
    [[nodiscard]] std::string_view content() { return walk_->content(); }

private:
    /// From the first entry again.
    void start() {
        walk_.reset();  // before the process is asked again
        walk_ = read_archive(fd_.get(), compression_, limits_.image_bytes, on_piece_, parser_.get());
        next_entry_ = 0;
    }

    /// Moves to the next entry; false at the end.
    bool step(LayerEntry& entry) {
        if (!walk_->next(entry)) {
            return false;
        }
        ++next_entry_;
        return true;
    }

    /// The words are those for a layer, which an archive is not.
    void read_names() {
        try {
            note_entries();
        } catch (const Error& error) {
            if (error.code() != "bad-layer") {
                throw;
            }
            throw bad_archive("the image's archive cannot be read: " + error.message())
                .hint("make it or copy it again; it may be packed with gzip or zstd only");
        }
    }

    void note_entries() {
        start();
        LayerEntry entry;
        while (step(entry)) {
            if (next_entry_ > limits_.entries) {
                throw limit_error("the number of entries of the archive", "entries", limits_.entries);
            }
            const std::string path = normalise_entry(entry.name, limits_);
            const bool link = entry.kind == EntryKind::symlink || entry.kind == EntryKind::hardlink;
            if (link) {
                const std::filesystem::path from =
                    entry.kind == EntryKind::symlink ? std::string(parent_of(path)) : std::string();
                links_[path] = (from / entry.target).lexically_normal().native();
            } else if (entry.kind == EntryKind::file && !files_.emplace(path, next_entry_ - 1).second) {
                throw bad_archive("expected one entry for each path of the archive, found two for " +
                                  base::escape(path));
            }
        }
    }

    sys::Fd fd_;
    const Limits& limits_;
    std::function<void()> on_piece_;
    image::Compression compression_ = image::Compression::none;
    std::map<std::string, std::size_t> files_;
    std::map<std::string, std::string> links_;
    std::unique_ptr<sandbox::Confined> parser_;  ///< nullptr: this process reads the archive
    std::unique_ptr<EntryReader> walk_;
    std::size_t next_entry_ = 0;  ///< number of the entry that comes next in `walk_`
};

class ArchiveMember final : public ByteSource {
public:
    explicit ArchiveMember(ArchiveFiles& files) : files_(files) {}
    std::string_view next() override { return files_.content(); }

private:
    ArchiveFiles& files_;
};

std::unique_ptr<ByteSource> ArchiveFiles::open(const std::string& name) {
    const auto wanted = find(name);
    if (!wanted) {
        return nullptr;
    }
    if (next_entry_ > *wanted) {
        start();
    }
    LayerEntry entry;
    while (next_entry_ <= *wanted) {
        if (!step(entry)) {
            throw bad_archive("the archive became shorter while it was read");
        }
    }
    return std::make_unique<ArchiveMember>(*this);
}

}  // namespace

std::unique_ptr<FileSet> open_directory_files(const std::string& directory) {
    return std::make_unique<DirectoryFiles>(directory);
}

std::unique_ptr<FileSet> open_archive_files(const std::string& file, const Limits& limits,
                                            std::function<void()> on_piece, sandbox::Confined* parser) {
    return std::make_unique<ArchiveFiles>(file, limits, std::move(on_piece), parser);
}

std::optional<std::string> read_named(FileSet& files, const std::string& name, std::uint64_t cap) {
    const auto source = files.open(name);
    if (!source) {
        return std::nullopt;
    }
    std::string text;
    for (std::string_view piece = source->next(); !piece.empty(); piece = source->next()) {
        text += piece.substr(0, cap + 1 - text.size());
        if (text.size() > cap) {
            throw limit_error("the size of " + base::escape(name), "manifest_bytes", cap);
        }
    }
    return text;
}

}  // namespace kmm::registry
