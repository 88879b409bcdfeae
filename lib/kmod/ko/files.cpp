// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"

namespace kmm::kmod {

namespace {

constexpr std::uint64_t k_module_bytes_max = 512ULL << 20U;
constexpr std::size_t k_device_bytes_max = 4096;     // /dev/null stands for an empty file; others may never end
constexpr std::size_t k_piece = 64U << 10U;
constexpr std::size_t k_line_bytes_max = 1U << 20U;  // no file of the kernel has such a line

/// Appends up to `bytes_max` bytes of `fd` to `text`; returns 0 or an errno.
int read_all(int fd, std::string& text, std::size_t bytes_max) {
    const auto buffer = std::make_unique_for_overwrite<char[]>(k_piece);  // a stack may be smaller than that
    while (text.size() < bytes_max) {
        const ssize_t got = ::read(fd, buffer.get(), std::min(k_piece, bytes_max - text.size()));
        if (got == 0) return 0;
        if (got < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        text.append(buffer.get(), static_cast<std::size_t>(got));
    }
    return 0;
}

}  // namespace

std::optional<std::string> read_raw(const std::string& path, std::size_t bytes_max) {
    const sys::Fd fd(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe in its place must not hold anybody
    if (!fd) return std::nullopt;
    struct stat status {};
    if (::fstat(fd.get(), &status) == 0 && S_ISCHR(status.st_mode)) bytes_max = std::min(bytes_max, k_device_bytes_max);
    std::string text;
    if (read_all(fd.get(), text, bytes_max) != 0) return std::nullopt;
    return text;
}

std::optional<std::string> read_text(const std::string& path, std::size_t bytes_max) {
    std::optional<std::string> raw = read_raw(path, bytes_max);
    if (!raw) return raw;
    std::string& text = *raw;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\t')) text.pop_back();
    return raw;
}

Reading for_each_line(const std::string& path, const std::function<Lines(std::string_view)>& body) {
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return Reading::failed;
    std::string text;
    for (bool ended = false; !ended;) {
        const std::size_t before = text.size();
        if (read_all(fd.get(), text, before + 65536) != 0) return Reading::failed;
        ended = text.size() == before;
        std::string_view rest = text;
        for (auto newline = rest.find('\n'); newline != std::string_view::npos; newline = rest.find('\n')) {
            if (body(rest.substr(0, newline)) == Lines::enough) return Reading::done;
            rest.remove_prefix(newline + 1);
        }
        if (ended && !rest.empty()) static_cast<void>(body(rest));
        text.erase(0, text.size() - rest.size());
        if (text.size() > k_line_bytes_max) return Reading::failed;
    }
    return Reading::done;
}

sys::Fd open_module_file(const std::string& path) {
    sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) throw LastErrno().error(fmt::format("cannot open module file {}", base::escape(path)));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0)
        throw LastErrno().error(fmt::format("cannot read module file {}", base::escape(path)));
    if (!S_ISREG(status.st_mode))
        throw Error(Exit::data, "module-format", fmt::format("{}: not a regular file", base::escape(path)));
    if (static_cast<std::uint64_t>(status.st_size) > k_module_bytes_max) {
        throw Error(Exit::data, "module-format",
                    fmt::format("{}: {} is more than 512 MiB", base::escape(path),
                                base::format_bytes(static_cast<std::uint64_t>(status.st_size))));
    }
    return fd;
}

std::string read_module_bytes(const sys::Fd& file, const std::string& shown) {
    std::string bytes;
    struct stat status {};
    if (::fstat(file.get(), &status) == 0)
        bytes.reserve(std::min(static_cast<std::uint64_t>(status.st_size), k_module_bytes_max));
    if (const int error = read_all(file.get(), bytes, k_module_bytes_max); error != 0) {
        throw from_errno(error, fmt::format("cannot read module file {}", base::escape(shown)));
    }
    return bytes;
}

std::string read_module_bytes(const std::string& path) { return read_module_bytes(open_module_file(path), path); }

sys::Fd sealed_file(std::string_view bytes, const std::string& name) {
    const sys::Fd writable(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!writable) throw LastErrno().error(fmt::format("cannot create a memory file for module {}", name));
    std::string_view rest = bytes;
    while (!rest.empty()) {
        const ssize_t wrote = ::write(writable.get(), rest.data(), rest.size());
        if (wrote < 0) {
            if (errno == EINTR) continue;
            throw LastErrno().error(fmt::format("cannot fill the memory file for module {}", name));
        }
        rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (::fcntl(writable.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        throw LastErrno().error(fmt::format("cannot seal the memory file for module {}", name));
    }
    sys::Fd read_only(::open(fmt::format("/proc/self/fd/{}", writable.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!read_only) {
        const int saved = errno;
        throw from_errno(saved, fmt::format("cannot reopen the memory file for module {}", name))
            .hint(saved == ENOENT ? "mount /proc here" : "");
    }
    return read_only;
}

}  // namespace kmm::kmod
