// SPDX-License-Identifier: Apache-2.0
#include "sys/temp_dir.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "sys/directory.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {
namespace {

std::string base_or_default(const std::string& base) {
    return base.empty() ? temp_base() : base;
}

/// Kubernetes makes the volume emptyDir, which is the /tmp of a Pod, writable for all without the sticky bit. Root's
/// mount point is given that bit, so that nobody else may rename what is in it.
void keep_apart(const std::string& base) {
    const Fd fd(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat facts {};
    struct stat above {};
    if (!fd || ::geteuid() != 0 || ::fstat(fd.get(), &facts) != 0 || ::fstatat(fd.get(), "..", &above, 0) != 0) {
        return;
    }
    const bool is_open = facts.st_uid == 0 && (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0;
    if (is_open && facts.st_dev != above.st_dev) {
        static_cast<void>(::fchmod(fd.get(), (facts.st_mode | S_ISVTX) & 07777U));
    }
}

/// The directory opened and flock-ed, or nothing when it is not ours, gone, or held by a living owner.
Fd claim(const std::string& path) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat opened {};
    struct stat named {};
    if (!fd || ::fstat(fd.get(), &opened) != 0 || opened.st_uid != ::geteuid() ||
        ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ::lstat(path.c_str(), &named) != 0 ||
        named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
        return {};
    }
    return fd;
}

}  // namespace

std::string temp_base() {
    const char* base = std::getenv("TMPDIR");
    return base != nullptr && *base != '\0' ? base : "/tmp";
}

TempDir::TempDir(const std::string& prefix, const std::string& base) {
    keep_apart(base_or_default(base));
    require_trusted(base_or_default(base), "temporary directory");
    // A cleaner may remove the new directory between its creation and its lock; then we try again.
    constexpr int k_attempts = 16;
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
        std::string path = base_or_default(base) + "/" + prefix + "XXXXXX";
        if (::mkdtemp(path.data()) == nullptr) {
            const int saved = errno;
            const std::string what = "cannot create a temporary directory in " + base_or_default(base);
            if (saved == ENOENT ||
                saved == ENOTDIR) {  // nothing that the user asked for is missing: it is the machine that lacks a place
                throw Error(Exit::io, "io", what)
                    .cause_errno(saved)
                    .hint("set TMPDIR to a directory that exists, or make this one");
            }
            const bool may_not = saved == EROFS || saved == EACCES || saved == EPERM;
            throw from_errno(saved, what).hint(may_not ? "set TMPDIR to a directory that this user can write" : "");
        }
        lock_ = claim(path);
        if (lock_) {
            path_ = std::move(path);
            return;
        }
    }
    throw Error(Exit::io, "io",
                "cannot keep a temporary directory in " + base_or_default(base) + ": it is removed at once");
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
    if (this != &other) {
        std::swap(path_, other.path_);
        std::swap(lock_, other.lock_);
    }
    return *this;
}

TempDir::~TempDir() {
    try {
        remove();
    } catch (...) {
        // Whoever needs to know calls remove(); the next cleaner finds the rest.
        lock_.reset();
    }
}

void TempDir::remove() {
    if (!path_.empty()) {
        remove_tree(path_);
        path_.clear();
    }
    lock_.reset();
}

std::size_t remove_stale_temp_dirs(const std::string& prefix, const std::string& base) {
    std::size_t removed = 0;
    const std::string where = base_or_default(base);
    struct stat status {};
    if (::stat(where.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        return 0;  // nobody left anything there
    }
    for (const DirectoryEntry& entry : list_directory(where)) {
        if (entry.type != EntryType::directory || entry.name.size() <= prefix.size() ||
            entry.name.compare(0, prefix.size(), prefix) != 0) {
            continue;
        }
        const std::string path = where + "/" + entry.name;
        const Fd lock = claim(path);
        if (!lock) {
            continue;
        }
        try {
            remove_tree(path);
            ++removed;
        } catch (const Error&) {
            continue;  // e.g. a mount point inside; the next run tries again
        }
    }
    return removed;
}

}  // namespace kmm::sys
