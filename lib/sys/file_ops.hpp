// SPDX-License-Identifier: Apache-2.0
// The seam of durable writes: every operation on state files goes through it, so that tests can fail or "crash" at
// operation k. Ordinary reading does not.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <cstdint>
#include <string>
#include <string_view>

namespace kmm::sys {

/// Six primitive operations. All throw kmm::Error (from_errno) on failure. Paths are absolute or relative to the cwd.
class FileOps {
public:
    virtual ~FileOps() = default;
    /// Creates `path` exclusively, mode 0600 (or `mode`), O_CLOEXEC|O_NOFOLLOW; returns the descriptor.
    virtual int create(const std::string& path, unsigned mode) = 0;
    /// Opens an existing file for appending, O_CLOEXEC|O_NOFOLLOW; returns the descriptor.
    virtual int open_append(const std::string& path) = 0;
    /// Writes all bytes (loops over short writes and EINTR).
    virtual void write(int fd, std::string_view bytes) = 0;
    /// fsync; a failure is final for that descriptor (never retried).
    virtual void sync(int fd) = 0;
    virtual void rename(const std::string& from, const std::string& to) = 0;
    /// fsync of a directory.
    virtual void sync_dir(const std::string& directory) = 0;
};

/// The real thing.
class LinuxFileOps final : public FileOps {
public:
    int create(const std::string& path, unsigned mode) override;
    int open_append(const std::string& path) override;
    void write(int fd, std::string_view bytes) override;
    void sync(int fd) override;
    void rename(const std::string& from, const std::string& to) override;
    void sync_dir(const std::string& directory) override;
};

/// Temporary file in the same directory, write, fsync, close, rename, fsync of the directory: after any crash `path`
/// holds the complete old or the complete new bytes. The mode of a file that is there is kept, without set-user-ID and
/// the like, if it belongs to the user of this process; else `mode`. A link is replaced. Temp files are removed on
/// failure; those of a killed process are named .NAME.PID-N.kmm-tmp. Errors: io with the path in the message.
void write_file_atomically(FileOps& ops, const std::string& path, std::string_view bytes, unsigned mode = 0600);

using PutBytes = std::function<void(std::string_view)>;
/// The same for bytes that are too many to be held at once: `write` gives them to its argument, piece by piece. What it
/// throws leaves `path` as it was.
void write_file_atomically(FileOps& ops, const std::string& path, const std::function<void(const PutBytes&)>& write,
                           unsigned mode = 0600);

/// Waits as long as it takes.
inline constexpr auto k_patient = std::chrono::milliseconds::max();

/// The whole file. Errors: from_errno (66 when absent); exit data, code "file-too-large" above `bytes_max`; interrupted
/// if a signal came while a pipe or terminal was waited for; timeout if nothing came from it for `patience`.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t bytes_max = 256U << 20U,
                                    std::chrono::milliseconds patience = k_patient);

/// Everything from the descriptor's position to its end; `path` is for messages. Errors as read_file.
[[nodiscard]] std::string read_fd(int fd, const std::string& path, std::size_t bytes_max = 256U << 20U,
                                  std::chrono::milliseconds patience = k_patient);

/// Allocates disk blocks for the first `bytes` bytes without changing the file's size (fallocate KEEP_SIZE), so that a
/// full disk shows now and not in the middle of a run. A file system that cannot do that is left alone. Errors: io.
void reserve_space(int fd, std::uint64_t bytes);

/// A name beside `path` that no other process has, for a file that is to take its place: DIR/.NAME.PID-N.kmm-tmp.
[[nodiscard]] std::string temp_name(const std::string& path);

/// True if `name`, of an entry in the directory of `path`, is one that temp_name makes for `path`.
[[nodiscard]] bool is_temp_name(std::string_view name, const std::string& path);

/// What helps after this errno: "free blocks or inodes on its file system, see df and df -i" and the like; "" if it is
/// not about space.
[[nodiscard]] std::string_view space_remedy(int number) noexcept;

/// Removes the temporary files that write_file_atomically left in `directory` when its process was killed; returns how
/// many. The caller must be the only writer of that directory.
std::size_t remove_temp_files(const std::string& directory);

}  // namespace kmm::sys
