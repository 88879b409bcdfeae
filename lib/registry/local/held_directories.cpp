// SPDX-License-Identifier: Apache-2.0
#include "registry/local/held_directories.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/trust.hpp"

namespace kmm::registry {

namespace {

std::string without_last_slashes(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

sys::Fd make_and_open(const std::string& directory) {
    try {
        return sys::open_directory(directory);
    } catch (const Error& error) {
        if (error.errno_cause() != ENOENT || directory == "/" || directory == ".") throw;
    }
    const sys::Fd above = make_and_open(without_last_slashes(sys::parent_of(directory)));
    const std::string name = sys::name_of(directory);
    const bool made = ::mkdirat(above.get(), name.c_str(), 0755) == 0;
    const LastErrno cause;
    sys::Fd opened(made || errno == EEXIST
                       ? ::openat(above.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                       : -1);
    if (!opened) throw cause.error("cannot create directory " + base::escape(directory));
    if (made && ::fchmod(opened.get(), 0755) != 0)  // whatever the umask
        throw LastErrno().error("cannot set the mode of directory " + base::escape(directory));
    return opened;
}

}  // namespace

int HeldDirectories::hold(const std::string& directory, Missing missing) {
    sys::Fd& held = held_[directory];
    if (!held) held = missing == Missing::make ? make_and_open(without_last_slashes(directory))
                                               : sys::open_directory(directory);
    return held.get();
}

int HeldDirectories::of(const std::string& path) const {
    const auto found = held_.find(sys::parent_of(path));
    if (found == held_.end() || !found->second) throw bug("not a directory that is held: " + path);
    return found->second.get();
}

bool HeldDirectories::remove(const std::string& path) const {
    return ::unlinkat(of(path), sys::name_of(path).c_str(), 0) == 0;
}

bool HeldDirectories::exists(const std::string& path) const {
    return ::faccessat(of(path), sys::name_of(path).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int HeldDirectories::create(const std::string& path, unsigned mode) {
    sys::Fd fd(::openat(of(path), sys::name_of(path).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                        static_cast<mode_t>(mode)));
    if (!fd) throw LastErrno().error("cannot create " + path);
    if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) {  // whatever the umask
        const LastErrno cause;
        (void)remove(path);
        throw cause.error("cannot set the mode of " + path);
    }
    return fd.release();
}

int HeldDirectories::open_append(const std::string& path) {
    const int fd = ::openat(of(path), sys::name_of(path).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) throw LastErrno().error("cannot open " + path);
    return fd;
}

void HeldDirectories::rename(const std::string& from, const std::string& to) {
    if (::renameat(of(from), sys::name_of(from).c_str(), of(to), sys::name_of(to).c_str()) != 0)
        throw LastErrno().error("cannot rename " + from + " to " + to);
}

void HeldDirectories::sync_dir(const std::string& directory) {
    if (::fsync(hold(directory)) != 0)
        throw LastErrno().error("cannot make directory " + directory + " durable (fsync)");
}

}  // namespace kmm::registry
