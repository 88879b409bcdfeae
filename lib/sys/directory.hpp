// SPDX-License-Identifier: Apache-2.0
// Looking into directories without following links.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kmm::sys {

enum class EntryType { file, directory, link, other };

struct DirectoryEntry {
    std::string name;  ///< without the directory
    EntryType type = EntryType::other;
};

/// The entries of one directory without "." and "..", sorted by bytes. Links are reported as links.
/// Errors: from_errno (66 when absent or not a directory).
[[nodiscard]] std::vector<DirectoryEntry> list_directory(const std::string& path);

/// The same entries, in no order, given to `take` while the directory is read: it may have more than anybody wants to
/// hold. `take` may remove the entry that it is given.
void each_entry(const std::string& path, const std::function<void(const DirectoryEntry&)>& take);
/// Of a directory that is open.
void each_entry(int directory, const std::function<void(const DirectoryEntry&)>& take);

/// Creates `path` and its missing parents with exactly `mode`, whatever the umask. An existing directory is left as it
/// is.
void make_directories(const std::string& path, unsigned mode);

/// Removes `path` with everything below it; links are removed, not followed; an absent path is fine. Errors:
/// from_errno.
void remove_tree(const std::string& path);

/// Bytes that this user may still write to the file system of `fd`; nullopt if it does not tell.
[[nodiscard]] std::optional<std::uint64_t> free_bytes(int fd);

/// The part before the last slash, "." if there is none, "/" for the root's children.
[[nodiscard]] std::string parent_of(const std::string& path);
/// The part after it, without slashes at the end; "." if there is none.
[[nodiscard]] std::string name_of(const std::string& path);

}  // namespace kmm::sys
