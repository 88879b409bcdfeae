// SPDX-License-Identifier: Apache-2.0
#include "sys/file_ops.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/durable_names.hpp"
#include "sys/fd.hpp"
#include "sys/input_deadline.hpp"
#include "sys/missing_file.hpp"
#include "sys/signals.hpp"

namespace kmm::sys {
namespace {

constexpr std::string_view k_temp_suffix = ".kmm-tmp";

/// A descriptor above 2 for the same file: state must never be reachable as a standard stream.
int above_standard(int fd, const std::string& path) {
    if (fd > 2) {
        return fd;
    }
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const int saved = errno;
    ::close(fd);
    if (moved < 0) {
        throw from_errno(saved, "cannot open " + path);
    }
    return moved;
}

int open_retrying(const std::string& path, int flags, mode_t mode) {
    for (;;) {
        const int fd = ::open(path.c_str(), flags, mode);
        if (fd >= 0 || errno != EINTR) {
            return fd;
        }
    }
}

Error interrupted_reading(const std::string& path) {
    return Error(Exit::interrupted, "interrupted", "interrupted while " + path + " was read");
}

/// To be read from start to end. A pipe with a name is opened without a writer: that is waited for where a signal ends
/// it.
int open_to_read(const std::string& path) {
    const int fd = open_retrying(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 && (errno == EAGAIN || errno == ENXIO)) {
        return open_retrying(path, O_RDONLY | O_CLOEXEC, 0);
    }
    if (fd >= 0) {
        ::fcntl(fd, F_SETFL, 0);
    }
    return fd;
}

/// That of limit_input_waits, and when it ends.
struct InputLimit {
    std::chrono::milliseconds patience = k_patient;
    std::chrono::steady_clock::time_point until{};
};

InputLimit& input_limit() {
    static InputLimit limit;
    return limit;
}

/// Waits until there is something to read, or the end. The first signal ends that, and `patience`: whoever writes may
/// never come.
void await_input(int fd, const std::string& path, std::chrono::milliseconds own_patience) {
    std::array<pollfd, 2> ends{pollfd{fd, POLLIN, 0}, pollfd{interrupt_fd(), POLLIN, 0}};
    const bool own_ends = own_patience != k_patient;
    const auto own_until = std::chrono::steady_clock::now() + (own_ends ? own_patience : std::chrono::milliseconds(0));
    const InputLimit& limit = input_limit();
    const bool limited = limit.patience != k_patient && (!own_ends || limit.until < own_until);
    const bool ever = !own_ends && !limited;
    const auto until = limited ? limit.until : own_until;
    const auto patience = limited ? limit.patience : own_patience;
    const auto left = [&] {
        if (ever) return -1;
        constexpr std::int64_t k_poll_max = std::numeric_limits<int>::max();
        const auto more = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        return static_cast<int>(std::clamp<std::int64_t>(more.count(), 0, k_poll_max));
    };
    int ready = 0;
    while ((ready = ::poll(ends.data(), ends.size(), left())) < 0 && errno == EINTR) {
    }
    if (ready == 0) {
        throw Error(Exit::timeout, "timeout",
                    "nothing came from " + path + " within " + base::format_duration(patience))
            .hint("is anybody writing to that pipe?");
    }
    if (ends[0].revents == 0 && interrupt_requested()) {
        throw interrupted_reading(path);
    }
}

std::string base_name(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::string temp_name(const std::string& path) {
    // The clock keeps names of processes apart that have the same pid in different containers, or one after another.
    static std::atomic<std::int64_t> counter{std::chrono::system_clock::now().time_since_epoch().count()};
    return parent_of(path) + "/." + base_name(path) + "." + std::to_string(::getpid()) + "-" +
           std::to_string(counter.fetch_add(1)) + std::string(k_temp_suffix);
}

bool is_temp_name(std::string_view name, const std::string& path) {
    const std::string prefix = "." + base_name(path) + ".";
    return name.starts_with(prefix) && name.ends_with(k_temp_suffix) &&
           name.find_first_not_of("0123456789-", prefix.size()) == name.size() - k_temp_suffix.size();
}

std::string_view space_remedy(int number) noexcept {
    if (number == EDQUOT) {
        return "delete files of yours on its file system, or have your quota raised";
    }
    return number == ENOSPC ? "free blocks or inodes on its file system, see df and df -i" : "";
}

int LinuxFileOps::create(const std::string& path, unsigned mode) {
    const int opened =
        open_retrying(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, static_cast<mode_t>(mode));
    if (opened < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot create " + path);
    }
    Fd fd(above_standard(opened, path));
    if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0) {  // whatever the umask
        const int saved = errno;
        (void)::unlink(path.c_str());
        throw from_errno(saved, "cannot set the mode of " + path);
    }
    return fd.release();
}

int LinuxFileOps::open_append(const std::string& path) {
    const int opened = open_retrying(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
    if (opened < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot open " + path);
    }
    return above_standard(opened, path);
}

void LinuxFileOps::write(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                continue;
            }
            throw from_errno(saved, "cannot write");
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void LinuxFileOps::sync(int fd) {
    if (::fsync(fd) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot make the data durable (fsync)");
    }
}

void LinuxFileOps::rename(const std::string& from, const std::string& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot rename " + from + " to " + to);
    }
}

void LinuxFileOps::sync_dir(const std::string& directory) {
    const Fd fd(open_retrying(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    if (!fd || ::fsync(fd.get()) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot make directory " + directory + " durable (fsync)");
    }
}

namespace {

/// `act`; a system call that fails in it is told as `what`, without the name of a file that nobody asked for.
template <typename Act>
auto saying(const std::string& what, const Act& act) {
    try {
        return act();
    } catch (const Error& error) {
        if (!error.errno_cause()) {
            throw;
        }
        throw from_errno(*error.errno_cause(), what).hint(error.hint());
    }
}

/// The mode of the file at `path` that is our own: who else may put files there must not decide who may write, or run
/// as us, what we write. Nullopt if there is none.
std::optional<unsigned> kept_mode(const std::string& path) {
    struct stat own {};
    if (::lstat(path.c_str(), &own) != 0 || !S_ISREG(own.st_mode) || own.st_uid != ::geteuid()) return std::nullopt;
    return static_cast<unsigned>(own.st_mode) & 0777U;
}

}  // namespace

void write_file_atomically(FileOps& ops, const std::string& path, std::string_view bytes, unsigned mode) {
    write_file_atomically(ops, path, [&](const PutBytes& put) { put(bytes); }, mode);
}

void write_file_atomically(FileOps& ops, const std::string& path, const std::function<void(const PutBytes&)>& write,
                           unsigned mode) {
    struct stat existing {};
    if (::stat(path.c_str(), &existing) == 0 && (S_ISCHR(existing.st_mode) || S_ISBLK(existing.st_mode))) {
        // As root, the file would take its place.
        throw Error(Exit::io, "io", fmt::format("writing {}: expected a regular file, found a device", path));
    }
    mode = kept_mode(path).value_or(mode);
    const std::string temp = temp_name(path);
    DurableNames names(ops);
    with_context([&] { return "writing " + path; }, [&] {
        Fd fd(saying("cannot create a file in " + parent_of(path), [&] { return ops.create(temp, mode); }));
        try {
            write([&](std::string_view bytes) { ops.write(fd.get(), bytes); });
            ops.sync(fd.get());
            if (::close(fd.release()) != 0) {
                const int saved = errno;
                throw from_errno(saved, "cannot close it");
            }
            saying("cannot replace it", [&] { names.move(temp, path); });
        } catch (...) {
            ::unlink(temp.c_str());
            throw;
        }
        names.finish();
    });
}

std::size_t remove_temp_files(const std::string& directory) {
    std::size_t removed = 0;
    for (const DirectoryEntry& entry : list_directory(directory)) {
        const std::string_view name = entry.name;
        if (entry.type == EntryType::file && name.size() > k_temp_suffix.size() && name.front() == '.' &&
            name.substr(name.size() - k_temp_suffix.size()) == k_temp_suffix &&
            ::unlink((directory + "/" + entry.name).c_str()) == 0) {
            ++removed;
        }
    }
    return removed;
}

void reserve_space(int fd, std::uint64_t bytes) {
    while (::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0) {
        const int saved = errno;
        if (saved == EINTR) {
            continue;
        }
        if (saved == EOPNOTSUPP || saved == ENOSYS) {
            return;
        }
        throw from_errno(saved, "cannot reserve " + std::to_string(bytes) + " bytes of disk space");
    }
}

std::string read_fd(int fd, const std::string& path, std::size_t bytes_max, std::chrono::milliseconds patience) {
    constexpr std::size_t k_chunk = 64U << 10U;
    std::string bytes;
    struct stat info {};
    const bool regular = ::fstat(fd, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
    // One byte more than a file has shows its end.
    std::size_t room = k_chunk;
    if (regular && info.st_size > 0) {
        room = std::min(static_cast<std::size_t>(info.st_size), bytes_max) + 1;
    }
    for (;;) {
        if (!regular) {
            await_input(fd, path, patience);
        }
        const std::size_t have = bytes.size();
        bytes.resize(have + room);
        const ssize_t got = ::read(fd, bytes.data() + have, room);
        const int saved = errno;
        bytes.resize(have + (got > 0 ? static_cast<std::size_t>(got) : 0));
        room = got > 0 && static_cast<std::size_t>(got) < room ? room - static_cast<std::size_t>(got) : k_chunk;
        if (got < 0 && saved != EINTR) {
            throw from_errno(saved, "cannot read " + path);
        }
        if (got == 0) {
            return bytes;
        }
        if (bytes.size() > bytes_max) {
            throw Error(Exit::data, "file-too-large",
                        path + " is too large: expected at most " + std::to_string(bytes_max) + " bytes");
        }
    }
}

std::string read_file(const std::string& path, std::size_t bytes_max, std::chrono::milliseconds patience) {
    const Fd fd(open_to_read(path));
    if (!fd) {
        const int saved = errno;
        throw open_error(saved, path);
    }
    return read_fd(fd.get(), path, bytes_max, patience);
}

void limit_input_waits(std::chrono::milliseconds patience) {
    InputLimit& limit = input_limit();
    limit.patience = patience;
    if (patience != k_patient) {
        limit.until = std::chrono::steady_clock::now() + patience;
    }
}

void require_input_time(const std::string& path) {
    if (interrupt_requested()) {
        throw interrupted_reading(path);
    }
    const InputLimit& limit = input_limit();
    if (limit.patience != k_patient && std::chrono::steady_clock::now() >= limit.until) {
        throw Error(Exit::timeout, "timeout",
                    path + " was not reached within " + base::format_duration(limit.patience))
            .hint("name the directory with the manifests, or give --timeout more");
    }
}

}  // namespace kmm::sys
