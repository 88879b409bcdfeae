// SPDX-License-Identifier: Apache-2.0
#include "kmod/firmware.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/files.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_path_max = 255;

std::string parameter_file(const HostPaths& host) { return host.sys + "/module/firmware_class/parameters/path"; }

void write_all(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0) {
            if (errno == EINTR) continue;
            throw from_errno(errno, fmt::format("cannot write {}", base::escape(path)));
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

void place(const std::string& bytes, const std::string& path) {
    const std::string temporary = path + ".kmm-new";
    (void)::unlink(temporary.c_str());
    const sys::Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!fd) throw from_errno(errno, fmt::format("cannot create {}", base::escape(temporary)));
    try {
        write_all(fd.get(), bytes, temporary);
        if (::rename(temporary.c_str(), path.c_str()) != 0) throw from_errno(errno, fmt::format("cannot replace {}", base::escape(path)));
    } catch (...) {
        (void)::unlink(temporary.c_str());
        throw;
    }
}

}  // namespace

std::string firmware_search_path(const HostPaths& host) { return read_text(parameter_file(host)).value_or(""); }

void check_firmware_path(const std::string& path) {
    const auto refuse = [](const std::string& what) { throw Error(Exit::data, "bad-firmware-path", "the firmware path " + what); };
    if (path.empty()) return;
    if (path.size() > k_path_max) refuse(fmt::format("has {} bytes, the kernel takes at most {}", path.size(), k_path_max));
    if (std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
        refuse(fmt::format("'{}' has control characters", base::escape(path)));
    }
    if (path.front() != '/') refuse(fmt::format("'{}' is relative, expected an absolute one", base::escape(path)));
}

bool set_firmware_search_path(const HostPaths& host, const std::string& path) {
    check_firmware_path(path);
    if (firmware_search_path(host) == path) return false;
    const std::string file = parameter_file(host);
    const sys::Fd fd(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!fd) throw from_errno(errno, fmt::format("cannot set the firmware search path in {}", file));
    // a single NUL is how an empty text gets through sysfs: a write of no bytes never reaches the kernel
    write_all(fd.get(), path.empty() ? std::string_view("\0", 1) : std::string_view(path), file);
    return true;
}

std::vector<FirmwareFile> copy_firmware(const std::string& from, const std::string& to) {
    std::vector<FirmwareFile> files;
    std::vector<std::string> created;
    std::error_code error;
    try {
        std::vector<fs::path> sources;
        fs::recursive_directory_iterator it(from, fs::directory_options::none, error);
        for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
            if (it->symlink_status().type() == fs::file_type::regular) sources.push_back(it->path());
        }
        if (error) throw from_errno(error.value(), fmt::format("cannot list firmware in {}", base::escape(from)));
        std::sort(sources.begin(), sources.end());
        for (const auto& source : sources) {
            const fs::path target = fs::path(to) / source.lexically_relative(from);
            const std::string bytes = read_module_bytes(source.native());
            std::string sum = sha256_hex(bytes);
            fs::create_directories(target.parent_path(), error);
            if (error) throw from_errno(error.value(), fmt::format("cannot create {}", base::escape(target.parent_path().native())));
            const bool existed = fs::exists(fs::symlink_status(target, error));
            const bool same = existed && fs::is_regular_file(fs::symlink_status(target, error)) &&
                              sha256_hex(read_module_bytes(target.native())) == sum;
            if (!same) {
                place(bytes, target.native());
                if (!existed) created.push_back(target.native());
            }
            files.push_back({target.native(), std::move(sum)});
        }
    } catch (...) {
        for (const auto& path : created) (void)::unlink(path.c_str());
        throw;
    }
    return files;
}

std::vector<std::string> remove_firmware(const std::vector<FirmwareFile>& files) {
    std::vector<std::string> left;
    for (const auto& file : files) {
        const auto bytes = read_raw(file.path, 512U << 20U);
        if (!bytes) continue;
        if (sha256_hex(*bytes) != file.sha256 || ::unlink(file.path.c_str()) != 0) left.push_back(file.path);
    }
    return left;
}

}  // namespace kmm::kmod
