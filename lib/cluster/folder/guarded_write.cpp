// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/guarded_write.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace kmm::cluster {
namespace {

std::string resolve_links(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? std::string(resolved.get()) : path;
}

void take_identity(FileImage& image, const struct stat& info) {
    image.exists = true;
    image.device = info.st_dev;
    image.inode = info.st_ino;
    image.size = static_cast<std::uint64_t>(info.st_size);
    image.mtime_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    image.owner = info.st_uid;
    image.group = info.st_gid;
}

bool same_file(const FileImage& a, const FileImage& b) {
    return a.exists == b.exists && a.device == b.device && a.inode == b.inode && a.size == b.size &&
           a.mtime_ns == b.mtime_ns && a.bytes == b.bytes;
}

/// Forwards every operation, and looks at the file once more before its name changes hands.
class GuardedOps final : public sys::FileOps {
public:
    GuardedOps(sys::FileOps& inner, const FileImage& image) : inner_(inner), image_(image) {}

    int create(const std::string& path, unsigned mode) override {
        sys::Fd fd(inner_.create(path, mode));
        if (image_.exists && (image_.owner != ::geteuid() || image_.group != ::getegid())) {
            // only root may give files away; for others the file becomes theirs, as with any editor
            [[maybe_unused]] const int ignored = ::fchown(fd.get(), image_.owner, image_.group);
        }
        return fd.release();
    }
    int open_append(const std::string& path) override { return inner_.open_append(path); }
    void write(int fd, std::string_view bytes) override { inner_.write(fd, bytes); }
    void sync(int fd) override { inner_.sync(fd); }
    void rename(const std::string& from, const std::string& to) override {
        if (!same_file(image_, read_image(image_.path))) {
            throw Error(Exit::locked, "conflict", fmt::format("{} was changed by somebody else", image_.path))
                .hint("nothing was written; run the command again")
                .retryable();
        }
        inner_.rename(from, to);
    }
    void sync_dir(const std::string& directory) override { inner_.sync_dir(directory); }

private:
    sys::FileOps& inner_;
    const FileImage& image_;
};

}  // namespace

FileImage read_image(const std::string& path) {
    FileImage image;
    image.path = resolve_links(path);
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const int saved = errno;
    if (!fd) {
        if (saved == ENOENT) return image;
        throw from_errno(saved, fmt::format("cannot open {}", path));
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) {
        const int stat_errno = errno;
        throw from_errno(stat_errno, fmt::format("cannot look at {}", path));
    }
    if (!S_ISREG(info.st_mode)) {
        throw Error(Exit::data, "unreadable-file",
                    fmt::format("expected a regular file, found something else: {}", path));
    }
    take_identity(image, info);
    image.bytes = sys::read_fd(fd.get(), path);
    return image;
}

void replace_file(sys::FileOps& ops, const FileImage& image, const std::string& bytes, unsigned mode) {
    GuardedOps guarded(ops, image);
    try {
        sys::write_file_atomically(guarded, image.path, bytes, mode);
    } catch (Error& error) {
        const auto cause = error.errno_cause();
        if (cause && error.hint().empty() && (*cause == EROFS || *cause == EACCES || *cause == EPERM)) {
            error.hint("the cluster directory must be writable for this user");
        }
        throw;
    }
}

}  // namespace kmm::cluster
