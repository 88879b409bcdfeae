// SPDX-License-Identifier: Apache-2.0
#include "sys/trust.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/access_list.hpp"
#include "sys/directory.hpp"
#include "sys/missing_file.hpp"

namespace kmm::sys {
namespace {

constexpr int k_links_max = 40;  ///< as the kernel follows at most
constexpr mode_t k_others = S_IWGRP | S_IWOTH;

std::string octal(mode_t mode) {
    std::string text;
    for (unsigned shift = 12; shift > 0; shift -= 3) {
        text.push_back(static_cast<char>('0' + ((mode >> (shift - 3)) & 7U)));
    }
    return text;
}

bool is_read_only(int fd) {
    struct statvfs facts {};
    return ::fstatvfs(fd, &facts) == 0 && (facts.f_flag & ST_RDONLY) != 0;
}

/// What speaks against one file or directory, which `fd` names or has open; `named` is its path.
std::optional<std::string> fault_of(int fd, const struct stat& facts, const std::string& named) {
    if (facts.st_uid != 0) {
        return named + " belongs to user " + std::to_string(facts.st_uid);
    }
    const bool kept_apart = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0;
    if (S_ISLNK(facts.st_mode) || (facts.st_mode & k_others) == 0 || kept_apart || is_read_only(fd)) {
        return std::nullopt;
    }
    if (facts.st_gid != 0 || (facts.st_mode & S_IWOTH) != 0) {
        return "others may write " + named + ", mode " + octal(facts.st_mode & 07777U);
    }
    // The group root has no members but root. With an access control list, its bits are for those that the list names.
    if (const auto writer = writer_by_list(fd)) {
        return *writer + " may write " + named + " by its access control list, mode " +
               octal(facts.st_mode & 07777U);
    }
    return std::nullopt;
}

/// /proc/self/fd/N, which /dev/fd leads to, is a descriptor that root has already.
bool is_proc(int fd) {
    struct statfs facts {};
    return ::fstatfs(fd, &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC;
}

void push_front(std::deque<std::string>& pieces, std::string_view path) {
    const auto parts = base::split(path, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (!part->empty() && *part != ".") {
            pieces.emplace_front(*part);
        }
    }
}

enum class Judge { everything, links };

/// Walks to `path` by descriptors. `found` is its last directory or file (O_PATH), empty with errno if that does not
/// exist.
std::optional<std::string> walk(const std::string& path, Judge judge, Fd& found) {
    std::deque<std::string> pieces;
    push_front(pieces, path);
    std::vector<Fd> way;  // ".." goes back on it
    std::vector<std::string> names{path.starts_with('/') ? "" : "."};
    way.emplace_back(::open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (int links = 0; !pieces.empty();) {
        const std::string piece = pieces.front();
        pieces.pop_front();
        if (piece == ".." && way.size() > 1) {
            way.pop_back();
            names.pop_back();
            continue;
        }
        Fd next(::openat(way.back().get(), piece.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        struct stat facts {};
        if (!next || ::fstat(next.get(), &facts) != 0) {
            found.reset();
            return std::nullopt;
        }
        const std::string named = names.back() + "/" + piece;
        if (is_proc(next.get())) {
            found.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
            return std::nullopt;
        }
        const bool is_link = S_ISLNK(facts.st_mode);
        if (judge == Judge::everything || is_link) {
            if (auto fault = fault_of(next.get(), facts, named)) {
                return fault;
            }
        }
        if (!is_link) {
            way.push_back(std::move(next));
            names.push_back(named);
            continue;
        }
        std::array<char, PATH_MAX> target{};
        const ssize_t length = ::readlinkat(way.back().get(), piece.c_str(), target.data(), target.size());
        if (length < 0 || ++links > k_links_max) {
            found.reset();
            errno = ELOOP;
            return std::nullopt;
        }
        const std::string_view to(target.data(), static_cast<std::size_t>(length));
        push_front(pieces, to);
        if (to.starts_with('/')) {
            way.clear();
            names.assign(1, "");
            way.emplace_back(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
        }
    }
    found = std::move(way.back());
    return std::nullopt;
}

Error untrusted(const std::string& path, std::string_view what, const std::string& fault) {
    return Error(Exit::no_permission, "untrusted-file",
                 std::string(what) + " " + base::escape(path) +
                     ": expected one that only root may change, found that " + base::escape(fault))
        .hint("chown root it and take away the right of others to write (chmod go-w, setfacl -b), or run the command "
              "as its owner");
}

std::string absolute(const std::string& path) {
    if (path.starts_with('/')) {
        return path;
    }
    std::array<char, PATH_MAX> here{};
    return ::getcwd(here.data(), here.size()) == nullptr ? path : std::string(here.data()) + "/" + path;
}

}  // namespace

std::optional<std::string> trust_fault(const std::string& path) {
    if (::geteuid() != 0) {
        return std::nullopt;
    }
    Fd found;
    return walk(absolute(path), Judge::everything, found);
}

void require_trusted(const std::string& path, std::string_view what) {
    if (const auto fault = trust_fault(path)) {
        throw untrusted(path, what, *fault);
    }
}

std::string read_trusted_file(const std::string& path, std::string_view what, std::size_t bytes_max,
                              std::chrono::milliseconds patience) {
    if (::geteuid() != 0) {
        return read_file(path, bytes_max, patience);
    }
    require_trusted(path, what);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat facts {};
    if (!fd || ::fstat(fd.get(), &facts) != 0) {
        const int saved = errno;
        throw open_error(saved, path);
    }
    // What was opened may be another file than what was judged.
    if (S_ISREG(facts.st_mode)) {
        if (const auto fault = fault_of(fd.get(), facts, path)) {
            throw untrusted(path, what, *fault);
        }
    }
    static_cast<void>(::fcntl(fd.get(), F_SETFL, 0));
    return read_fd(fd.get(), path, bytes_max, patience);
}

void require_own_link(const std::string& path) {
    struct stat facts {};
    if (::geteuid() == 0 && ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode) && facts.st_uid != 0) {
        throw untrusted(path, "link", path + " belongs to user " + std::to_string(facts.st_uid));
    }
}

Fd open_directory(const std::string& path) {
    Fd opened;
    if (::geteuid() == 0) {
        Fd found;
        if (const auto fault = walk(absolute(path), Judge::links, found)) {
            throw untrusted(path, "directory", *fault);
        }
        opened.reset(found ? ::openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    } else {
        opened.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    if (!opened) {
        const int saved = errno;
        throw from_errno(saved, "cannot open directory " + path);
    }
    return opened;
}

void remove_entry(int directory, const std::string& name) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) {
        return;
    }
    int saved = errno;
    if (saved == EISDIR || saved == EPERM) {  // Linux says EISDIR, POSIX EPERM
        const Fd inside(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (inside) {
            remove_entries(inside.get());
        }
        if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
            return;
        }
        saved = errno;
    }
    throw from_errno(saved, "cannot remove " + base::escape(name));
}

void remove_entries(int directory) {
    each_entry(directory, [&](const DirectoryEntry& entry) { remove_entry(directory, entry.name); });
}

}  // namespace kmm::sys
