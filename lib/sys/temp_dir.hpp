// SPDX-License-Identifier: Apache-2.0
// A private scratch directory that nobody inherits.
#pragma once

#include <cstddef>
#include <string>

#include "sys/fd.hpp"

namespace kmm::sys {

/// A directory of mode 0700 with an unguessable name, removed with its content on destruction. It is flock-ed for as
/// long as its owner lives, so that remove_stale_temp_dirs can tell what a killed process left behind.
class TempDir {
public:
    /// Creates BASE/PREFIXxxxxxx. `base` "" means $TMPDIR, else /tmp. Errors: io if there is no BASE; from_errno.
    explicit TempDir(const std::string& prefix, const std::string& base = "");
    TempDir(TempDir&& other) noexcept;
    TempDir& operator=(TempDir&& other) noexcept;
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir();

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// Removes it now. Errors: from_errno, which the destructor could not report.
    void remove();

private:
    std::string path_;
    Fd lock_;
};

/// $TMPDIR if it is set and not empty, else "/tmp".
[[nodiscard]] std::string temp_base();

/// Removes directories BASE/PREFIX* of this user whose owner is dead; returns how many. Directories that are locked,
/// belong to others or cannot be removed are left alone. `base` as for TempDir.
std::size_t remove_stale_temp_dirs(const std::string& prefix, const std::string& base = "");

}  // namespace kmm::sys
