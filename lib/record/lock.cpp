// SPDX-License-Identifier: Apache-2.0
// The right to write: an open-file-description lock on a file that is never renamed nor deleted. A record lock of POSIX
// would vanish when this process opens and closes the file once more, a lock on the state itself when that is renamed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "record/owner_text.hpp"
#include "record/safe_file.hpp"
#include "record/space.hpp"
#include "record/state_dir.hpp"

namespace kmm::record {
namespace {

constexpr std::size_t k_owner_size = 2048;
// The kernel lets go of a killed owner's lock only when its last thread has closed its files, and whoever killed it may
// be here before.
constexpr std::chrono::milliseconds k_last_breath{250};
constexpr std::chrono::milliseconds k_pause{5};

struct flock whole_file() {
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    return range;  // length 0: to the end, however far; pid 0, as these locks demand
}

std::optional<Owner> read_owner(int fd) {
    std::string text(k_owner_size, '\0');
    const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return parse_owner(text);
}

/// The living owner in a lock file known to be held. Between taking the lock and writing its record a new owner leaves
/// the text of the one before, which is dead: wait for that moment to pass. All fields empty when nothing can be read.
Owner read_living_owner(int fd) {
    constexpr int k_attempts = 20;
    std::optional<Owner> owner;
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
        owner = read_owner(fd);
        if (owner && owner_may_live(*owner)) {
            return std::move(*owner);
        }
        std::this_thread::sleep_for(k_pause);
    }
    // It is held, and not by its owner: a process that has inherited the descriptor lives.
    if (owner && !owner->operation.empty()) {
        owner->is_gone = true;
        return std::move(*owner);
    }
    return {};
}

sys::Fd open_cluster_lock(const std::string& directory, const std::string& path) {
    constexpr mode_t k_read_write = 0666;
    sys::Fd opened(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    const int open_errno = errno;
    if (!opened) {
        throw from_errno(open_errno, "cannot open " + path)
            .hint("the cluster directory must be writable for this user");
    }
    struct stat info {};
    struct stat parent {};
    if (::fstat(opened.get(), &info) != 0 || ::stat(directory.c_str(), &parent) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot look at " + path);
    }
    if (!S_ISREG(info.st_mode)) {
        throw Error(Exit::config, "bad-cluster-lock", "expected a regular file, found something else: " + path)
            .hint("remove it");
    }
    // A new file is for everybody who may write to the directory.
    if (info.st_size == 0 && info.st_uid == ::geteuid() && ::fchmod(opened.get(), parent.st_mode & k_read_write) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot set the mode of " + path);
    }
    return opened;
}

/// False if the file was removed, or replaced, after it was opened.
bool is_named(int fd, const std::string& path) {
    struct stat opened {};
    struct stat named {};
    return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

}  // namespace

Lock::Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), remove_(std::exchange(other.remove_, {})) {}

Lock& Lock::operator=(Lock&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(remove_, other.remove_);
    return *this;
}

Lock::~Lock() {
    if (fd_ >= 0) {
        if (!remove_.empty()) {
            ::unlink(remove_.c_str());  // while it is locked: whoever has opened it looks whether it is still there
        }
        // Processes that have inherited the descriptor may live on.
        struct flock range = whole_file();
        range.l_type = F_UNLCK;
        ::fcntl(fd_, F_OFD_SETLK, &range);
        ::close(fd_);
    }
}

Lock Lock::take(int opened, const std::string& path, const std::string& place, const Owner& owner) {
    const int duplicate = ::fcntl(opened, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot open " + path);
    }
    Lock lock(duplicate);
    struct flock range = whole_file();
    const auto end = std::chrono::steady_clock::now() + k_last_breath;
    while (::fcntl(lock.fd_, F_OFD_SETLK, &range) != 0) {
        const int saved = errno;
        if (saved != EAGAIN && saved != EACCES && saved != EINTR) {
            throw from_errno(saved, "cannot lock " + path, "unsafe-state-fs");
        }
        if (std::chrono::steady_clock::now() >= end) {
            throw locked_by(read_living_owner(lock.fd_), place, path);
        }
        std::this_thread::sleep_for(k_pause);
    }
    std::string text = encode_owner(owner);
    text.resize(std::max(k_owner_size, text.size() + 1) - 1, ' ');
    text += '\n';
    // One write of one length, so that a reader never sees half a record. It is information; the lock is the kernel's.
    // Only what a full disk or a limit has cut short is tried again, to learn which of them it is.
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written =
            ::pwrite(lock.fd_, text.data() + done, text.size() - done, static_cast<::off_t>(done));
        if (written <= 0) {
            const int saved = written < 0 ? errno : EIO;
            throw from_errno(saved, "cannot write the owner into " + path);
        }
        done += static_cast<std::size_t>(written);
    }
    return lock;
}

Lock StateDir::lock(const Owner& owner) {
    const std::string path = path_ + "/lock";
    require_rights(path_, W_OK | X_OK, "write");
    const sys::Fd opened = with_place_explained("the state directory must be writable for this user",
                                                [&] { return open_own_file(path, O_RDWR | O_CREAT); });
    // Whatever the umask was when it was made: its owner must be able to open it again.
    if (::fchmod(opened.get(), 0600) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot set the mode of " + path);
    }
    Lock lock = [&] {
        try {
            return Lock::take(opened.get(), path, path_, owner);
        } catch (Error& error) {
            if (error.code() == "unsafe-state-fs")
                error.hint("the file system does not support locks; choose a --state-dir on a local one");
            throw;
        }
    }();
    sys::remove_temp_files(path_);
    return lock;
}

Lock lock_cluster_directory(const std::string& directory, const Owner& owner) {
    const std::string path = directory + "/.kmm-lock";
    try {
        for (;;) {
            const sys::Fd opened = open_cluster_lock(directory, path);
            Lock lock = Lock::take(opened.get(), path, directory, owner);
            if (is_named(opened.get(), path)) {
                lock.remove_ = path;
                return lock;
            }
        }
    } catch (const Error& error) {
        if (error.code() == "unsafe-state-fs") {
            throw Error(error).hint(
                "the file system does not support locks; keep the cluster directory on one that does");
        }
        if (error.code() != "locked") throw;
        Error held(Exit::locked, "cluster-locked", error.message());
        bool has_ended = !error.details().empty();
        for (const auto& [key, text] : error.details()) {
            held.detail(key, text);
            has_ended = has_ended && key != "where";
        }
        if (has_ended) throw held.hint(error.hint());
        throw held.hint(
            "its record is in another state directory: kmm-upgrade show --state-dir DIR; the lock ends with the "
            "processes that hold it");
    }
}

std::optional<Owner> StateDir::holder() const {
    const sys::Fd fd = open_own_file(path_ + "/lock", O_RDONLY);
    if (!fd) {
        return std::nullopt;
    }
    struct flock range = whole_file();
    if (::fcntl(fd.get(), F_OFD_GETLK, &range) != 0 || range.l_type == F_UNLCK) {
        return std::nullopt;
    }
    return read_living_owner(fd.get());
}

}  // namespace kmm::record
