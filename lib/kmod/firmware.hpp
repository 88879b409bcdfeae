// SPDX-License-Identifier: Apache-2.0
// Firmware files of an image on the host, and the kernel's firmware search path.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kmod/host.hpp"

namespace kmm::kmod {

/// A file that was put below the host's firmware directory.
struct FirmwareFile {
    std::string path;    ///< on the host
    std::string sha256;
};

/// Current value of firmware_class' path parameter, "" if unset or unknown.
[[nodiscard]] std::string firmware_search_path(const HostPaths& host);
/// Refuses what the kernel cannot hold. Errors: data (65) "bad-firmware-path": more than 255 bytes, control bytes,
/// relative.
void check_firmware_path(const std::string& path);
/// Writes the parameter without a newline unless it has that value already; "" unsets it. True if it was changed.
/// Errors: data as above; from_errno.
bool set_firmware_search_path(const HostPaths& host, const std::string& path);

/// Copies every regular file below `from` to the same relative path below `to`; a file that has these bytes already is
/// left alone, another one is replaced atomically. Directories are created 0755. On an error, files that were new are
/// removed again. Returned in path order. Errors: from_errno.
[[nodiscard]] std::vector<FirmwareFile> copy_firmware(const std::string& from, const std::string& to);
/// Removes those files that still have the recorded bytes; returns the paths that were left because they changed.
std::vector<std::string> remove_firmware(const std::vector<FirmwareFile>& files);

}  // namespace kmm::kmod
