// SPDX-License-Identifier: Apache-2.0
// Where the kernel looks for firmware, and where that of images goes.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/ko/files.hpp"
#include "sys/file_ops.hpp"

namespace kmm::kmod {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_path_max = 255;

std::string parameter_file(const HostPaths& host) { return host.sys + "/module/firmware_class/parameters/path"; }

/// Without slashes that say nothing. What is before ".." may be a link, and stays.
std::string without_idle_slashes(const std::string& path) {
    std::string result;
    for (const char c : path) {
        if (c != '/' || !result.ends_with('/')) result += c;
    }
    if (result.size() > 1 && result.ends_with('/')) result.pop_back();
    return result;
}

}  // namespace

std::string firmware_search_path(const HostPaths& host) {
    std::string path = read_text(parameter_file(host)).value_or("");
    path.resize(std::min(path.find('\0'), path.size()));  // our own, where the parameter is a plain file
    return path;
}

std::string firmware_directory(const HostPaths& host, const std::string& wanted) {
    const std::string path = wanted.empty() ? firmware_search_path(host) : wanted;
    return path.empty() ? "/lib/firmware" : without_idle_slashes(path);
}

bool is_same_firmware_directory(const HostPaths& host, const std::string& one, const std::string& other) {
    std::error_code error;
    return without_idle_slashes(one) == without_idle_slashes(other) ||
           fs::equivalent(here_of(host, one), here_of(host, other), error);
}

void check_firmware_path(const std::string& path) {
    const auto refuse = [](const std::string& what) {
        throw Error(Exit::data, "bad-firmware-path", "the firmware path " + what)
            .hint("name a directory of the host, as /var/lib/firmware");
    };
    if (path.empty()) return;
    if (path.size() > k_path_max)
        refuse(fmt::format("has {} bytes, the kernel takes at most {}", path.size(), k_path_max));
    if (std::any_of(path.begin(), path.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
        refuse(fmt::format("'{}' has control characters", base::escape(path)));
    }
    if (path.front() != '/') refuse(fmt::format("'{}' is relative, expected an absolute one", base::escape(path)));
    if (fs::path(path).lexically_normal() == "/")
        refuse(fmt::format("'{}' is the root of the file system, where firmware of an image could replace any file",
                           base::escape(path)));
}

bool set_firmware_search_path(const HostPaths& host, const std::string& path) {
    check_firmware_path(path);
    if (firmware_search_path(host) == path) return false;
    const std::string file = parameter_file(host);
    const sys::Fd fd(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!fd) throw LastErrno().error(fmt::format("cannot set the firmware search path in {}", file));
    // a single NUL is how an empty text gets through sysfs: a write of no bytes never reaches the kernel
    sys::LinuxFileOps().write(fd.get(), path.empty() ? std::string_view("\0", 1) : std::string_view(path));
    return true;
}

}  // namespace kmm::kmod
