// SPDX-License-Identifier: Apache-2.0
// Firmware files of an image on the host, and the kernel's firmware search path.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kmod/host/host.hpp"
#include "sys/file_ops.hpp"

namespace kmm::kmod {

/// SHA-256 of files, lower-case hex, by absolute path without links. A file that is not in it may have any bytes.
using FileDigests = std::map<std::string, std::string>;

/// A file that is below the host's firmware directory on behalf of a module.
struct FirmwareFile {
    std::string path;    ///< on the host
    std::string sha256;
    std::vector<std::string> others;  ///< modules that had brought other bytes, which are replaced, sorted
    std::string name;    ///< below the firmware directory, as the kernel asks for it
};

/// A directory of firmware of the host, where it is to be found here.
struct FirmwareDirectory {
    std::string path;
    std::string root;  ///< where the host's root is mounted, "" for here

    FirmwareDirectory(std::string path_here, std::string host_root = {})  // NOLINT: a path is one of this host
        : path(std::move(path_here)), root(std::move(host_root)) {}
    FirmwareDirectory(const char* path_here) : path(path_here) {}  // NOLINT: the same
    /// Where the file `file` below it is: directories that are links lead where they lead on the host.
    [[nodiscard]] std::string at(const std::string& file) const;
};
/// The directory that the host calls `path`.
[[nodiscard]] inline FirmwareDirectory firmware_of_host(const HostPaths& host, const std::string& path) {
    return {here_of(host, path), host.root};
}

/// Current value of firmware_class' path parameter, "" if unset or unknown.
[[nodiscard]] std::string firmware_search_path(const HostPaths& host);
/// Where firmware of images goes: `wanted`, else the search path, else /lib/firmware.
[[nodiscard]] std::string firmware_directory(const HostPaths& host, const std::string& wanted);
/// Whether two names, as the host has them, are of one directory: written in two ways, or by a link.
[[nodiscard]] bool is_same_firmware_directory(const HostPaths& host, const std::string& one, const std::string& other);
/// Refuses what the kernel cannot hold. Errors: data (65) "bad-firmware-path": more than 255 bytes, control bytes,
/// relative.
void check_firmware_path(const std::string& path);
/// Writes the parameter without a newline unless it has that value already; "" unsets it. True if it was changed.
/// Errors: data as above; from_errno.
bool set_firmware_search_path(const HostPaths& host, const std::string& path);

/// Copies every regular file below `from`, and what a link in it to another of them means, to the same relative path
/// below `to`, on behalf of `owner` (a module). Directories are created 0755, and noted. Which module put which file
/// there is kept in `to`/.kmm-worker-firmware, written before any file, so that a kill or a reboot leaves no file
/// without an owner. A file that has these bytes already is left alone; a file of somebody else with other bytes is
/// kept beside as NAME.kmm-saved; where an earlier load's stands under that name, which no list mentions, that becomes
/// NAME.kmm-saved.1 (or the next free number). Returned in path order. On an error the owner's files are removed again.
/// Errors: from_errno; io "firmware-manifest" for a damaged list; unsafe "image-unsafe" for a link that leaves `from`
/// and for names of the files that are kept here, "image-limit" for too many files or levels; integrity
/// "firmware-changed" for a file whose bytes are not those of `digests`, or change while it is copied; no_permission
/// "untrusted-file" if, as root, others may write a directory that files go to, or a link on the way is theirs. When it
/// returns, files and names are durable. Cost: one fsync per file and per directory.
std::vector<FirmwareFile> install_firmware(const std::string& from, const FirmwareDirectory& to,
                                           const std::string& owner, const FileDigests& digests = {});
std::vector<FirmwareFile> install_firmware(sys::FileOps& ops, const std::string& from, const FirmwareDirectory& to,
                                           const std::string& owner, const FileDigests& digests = {});
/// Gives up the owner's files below `to`: one that no other module owns is removed, or what was there before is put
/// back, unless its bytes have changed: then somebody has put a newer one there, which stays. Files that were there
/// anyway stay. Returns the paths that were left because they changed. Directories that install_firmware made, also
/// `to` and those above it, go when they are empty. No list means nothing to do. Errors as above; a file that cannot be
/// removed stays the owner's, and the others go first.
std::vector<std::string> remove_firmware(const FirmwareDirectory& to, const std::string& owner);
std::vector<std::string> remove_firmware(sys::FileOps& ops, const FirmwareDirectory& to, const std::string& owner);

}  // namespace kmm::kmod
