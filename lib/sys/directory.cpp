// SPDX-License-Identifier: Apache-2.0
#include "sys/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/error.hpp"
#include "sys/fd.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {
namespace {

struct CloseDir {
    void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

EntryType type_of(int directory_fd, const dirent& entry) {
    switch (entry.d_type) {
        case DT_REG: return EntryType::file;
        case DT_DIR: return EntryType::directory;
        case DT_LNK: return EntryType::link;
        case DT_UNKNOWN: break;  // some file systems do not say
        default: return EntryType::other;
    }
    struct stat info {};
    if (::fstatat(directory_fd, static_cast<const char*>(entry.d_name), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return EntryType::other;
    }
    if (S_ISREG(info.st_mode)) {
        return EntryType::file;
    }
    if (S_ISDIR(info.st_mode)) {
        return EntryType::directory;
    }
    return S_ISLNK(info.st_mode) ? EntryType::link : EntryType::other;
}

void take_entries(DIR* opened, const std::string& path, const std::function<void(const DirectoryEntry&)>& take) {
    const std::unique_ptr<DIR, CloseDir> dir(opened);
    if (!dir) {
        const int saved = errno;
        throw from_errno(saved, "cannot read directory " + path);
    }
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(dir.get());
        if (entry == nullptr) {
            const int saved = errno;
            if (saved != 0) {
                throw from_errno(saved, "cannot read directory " + path);
            }
            break;
        }
        std::string name = static_cast<const char*>(entry->d_name);
        if (name != "." && name != "..") {
            take({std::move(name), type_of(::dirfd(dir.get()), *entry)});
        }
    }
}

}  // namespace

void each_entry(const std::string& path, const std::function<void(const DirectoryEntry&)>& take) {
    take_entries(::opendir(path.c_str()), path, take);
}

void each_entry(int directory, const std::function<void(const DirectoryEntry&)>& take) {
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* opened = copy < 0 ? nullptr : ::fdopendir(copy);
    if (opened == nullptr && copy >= 0) {
        const int saved = errno;
        ::close(copy);
        errno = saved;
    }
    take_entries(opened, ".", take);
}

std::vector<DirectoryEntry> list_directory(const std::string& path) {
    std::vector<DirectoryEntry> entries;
    each_entry(path, [&](const DirectoryEntry& entry) { entries.push_back(entry); });
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return entries;
}

void make_directories(const std::string& path, unsigned mode) {
    if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) {
        // The umask may have taken bits away.
        if (::chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot set the mode of directory " + path);
        }
        return;
    }
    const int saved = errno;
    const std::string parent = parent_of(path);
    struct stat info {};
    // Some file systems (proc) say ENOENT where nothing can be made at all: only what is really missing is made first.
    if (saved == ENOENT && parent != path && ::stat(parent.c_str(), &info) != 0) {
        make_directories(parent, mode);
        make_directories(path, mode);
        return;
    }
    if (saved == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        return;
    }
    throw from_errno(saved, "cannot create directory " + path);
}

void remove_tree(const std::string& path) {
    const std::string name = name_of(path);
    Fd parent(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent) {
        const int saved = errno;
        if (saved == ENOENT || saved == ENOTDIR) {
            return;
        }
        throw from_errno(saved, "cannot remove " + path);
    }
    with_context([&] { return "removing " + path; }, [&] { remove_entry(parent.get(), name); });
}

std::optional<std::uint64_t> free_bytes(int fd) {
    struct statvfs facts {};
    if (::fstatvfs(fd, &facts) != 0) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

std::string parent_of(const std::string& path) {
    std::size_t end = path.size();
    while (end > 1 && path[end - 1] == '/') {
        --end;
    }
    const std::size_t slash = path.rfind('/', end == 0 ? 0 : end - 1);
    if (slash == std::string::npos) {
        return ".";
    }
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
    std::size_t end = path.size();
    while (end > 1 && path[end - 1] == '/') {
        --end;
    }
    const std::size_t slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
    const std::string name =
        path.substr(slash == std::string::npos ? 0 : slash + 1, end - (slash == std::string::npos ? 0 : slash + 1));
    return name.empty() ? "." : name;
}

}  // namespace kmm::sys
