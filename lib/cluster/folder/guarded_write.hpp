// SPDX-License-Identifier: Apache-2.0
// Replacing a file that somebody else may be editing: the new text only goes in if the old one is still what was read.
#pragma once

#include <cstdint>
#include <string>

#include "sys/file_ops.hpp"

namespace kmm::cluster {

/// One reading of a file: its bytes and the identity they were read under.
struct FileImage {
    bool exists = false;
    std::string path;    ///< links resolved: where a replacement has to go
    std::string bytes;
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t mtime_ns = 0;
    std::uint32_t owner = 0, group = 0;
};

/// Reads `path`. An absent file gives exists = false. Errors: from_errno for anything else.
[[nodiscard]] FileImage read_image(const std::string& path);

/// Replaces the file of `image` (or creates it, `mode` then counts) by `bytes`, atomically and durably. Mode is kept,
/// and owner and group where the process may. Right before the rename the file is looked at again: if it is no longer
/// the one of `image` (device, inode, time, size, bytes), nothing is changed. Errors: exit 75 "conflict" (retryable);
/// io; from_errno, with a hint for a read-only file system.
void replace_file(sys::FileOps& ops, const FileImage& image, const std::string& bytes, unsigned mode = 0644);

}  // namespace kmm::cluster
