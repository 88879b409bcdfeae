// SPDX-License-Identifier: Apache-2.0
// Whose files these are. What root reads decides what root does: as root, files with instructions count only if root
// owns them and nobody else may change or replace them, and files are written only through directories that nobody else
// redirects.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sys/fd.hpp"
#include "sys/file_ops.hpp"

namespace kmm::sys {

/// Why root must not trust what stands at `path`: somebody else owns, may write or may replace it, a directory or a
/// link on the way to it. Directories with the sticky bit and file systems mounted read-only are taken as nobody's.
/// What does not exist is judged by the nearest directory that does. nullopt if nothing speaks against it, and for
/// other users than root, who may use what they like.
[[nodiscard]] std::optional<std::string> trust_fault(const std::string& path);

/// Errors: no_permission "untrusted-file" if trust_fault finds something; `what` is the kind of file for the message,
/// "configuration file".
void require_trusted(const std::string& path, std::string_view what);

/// As read_file; judges the path and the very file that was opened. Errors: as read_file and require_trusted.
[[nodiscard]] std::string read_trusted_file(const std::string& path, std::string_view what,
                                            std::size_t bytes_max = 256U << 20U,
                                            std::chrono::milliseconds patience = k_patient);

/// As root, a link that somebody else has made is not followed. Errors: no_permission "untrusted-file".
void require_own_link(const std::string& path);

/// Opens a directory to work in beneath it. As root, links on the way count only if root made them: nobody else chooses
/// where it leads. O_RDONLY. Errors: from_errno; no_permission "untrusted-file".
[[nodiscard]] Fd open_directory(const std::string& path);

/// Removes everything in `directory`, or the entry `name` of it with everything below, by descriptors: links are
/// removed, not followed, and a directory that is swapped meanwhile for a link leads nowhere. An absent entry is fine.
/// Errors: from_errno.
void remove_entries(int directory);
void remove_entry(int directory, const std::string& name);

}  // namespace kmm::sys
