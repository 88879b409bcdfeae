// SPDX-License-Identifier: Apache-2.0
#include "record/safe_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"

namespace kmm::record {
namespace {

constexpr mode_t k_others_write = S_IWGRP | S_IWOTH;

/// Of the state directory, whose path whoever asks has told.
Error unsafe(const std::string& why, const std::string& hint) {
    return Error(Exit::no_permission, "unsafe-state-dir", "not safe to keep the upgrade record in: " + why).hint(hint);
}

Error unsafe_file(const std::string& path, const std::string& why) {
    return Error(Exit::no_permission, "unsafe-state-file", path + " is not safe to keep the upgrade record in: " + why)
        .hint("expected a regular file of mode 0600 that belongs to you; look who made it");
}

std::string owner_text(uid_t found) {
    return "expected owner uid " + std::to_string(::geteuid()) + ", found uid " + std::to_string(found);
}

}  // namespace

sys::Fd open_own_file(const std::string& path, int flags) {
    int opened = -1;
    do {
        opened = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    } while (opened < 0 && errno == EINTR);
    const int saved = errno;
    if (opened < 0) {
        if (saved == ENOENT) {
            return {};
        }
        if (saved == ELOOP) {
            throw unsafe_file(path, "it is a symbolic link");
        }
        throw from_errno(saved, "cannot open " + path);
    }
    sys::Fd fd(opened);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) {
        const int stat_errno = errno;
        throw from_errno(stat_errno, "cannot look at " + path);
    }
    if (!S_ISREG(info.st_mode)) {
        throw unsafe_file(path, "it is not a regular file");
    }
    if (info.st_uid != ::geteuid()) {
        throw unsafe_file(path, owner_text(info.st_uid));
    }
    if ((info.st_mode & k_others_write) != 0) {
        throw unsafe_file(path, "group or others may write it");
    }
    return fd;
}

std::optional<std::string> read_own_file(const std::string& path) {
    const sys::Fd fd = open_own_file(path, O_RDONLY);
    if (!fd) {
        return std::nullopt;
    }
    return sys::read_fd(fd.get(), path);
}

void check_own_directory(const std::string& path) {
    const std::string hint = "choose another --state-dir, or: chmod 0700 " + path;
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot look at " + path);
    }
    if (S_ISLNK(info.st_mode)) {
        throw unsafe("it is a symbolic link", "name the directory itself with --state-dir");
    }
    if (!S_ISDIR(info.st_mode)) {
        throw unsafe("it is not a directory", "name a directory with --state-dir");
    }
    if (info.st_uid != ::geteuid()) {
        throw unsafe(owner_text(info.st_uid), "run as that user, or choose another --state-dir");
    }
    if ((info.st_mode & k_others_write) != 0) {
        throw unsafe("group or others may write it", hint);
    }
    const std::string parent = sys::parent_of(path);
    if (::stat(parent.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
        throw unsafe("others may replace it, because its parent " + parent + " is world-writable",
                     "choose another --state-dir");
    }
    require_rights(path, R_OK | X_OK, "read");
}

void require_rights(const std::string& path, int rights, const std::string& verb) {
    if (::faccessat(AT_FDCWD, path.c_str(), rights, AT_EACCESS) == 0 || errno != EACCES) return;
    throw from_errno(EACCES, fmt::format("cannot {} in {}", verb, path)).hint("chmod 0700 " + base::shell_word(path));
}

}  // namespace kmm::record
