// SPDX-License-Identifier: Apache-2.0
// Names of files that are the same after a crash: the one place where a rename is made durable.
#pragma once

#include <string>
#include <vector>

#include "sys/file_ops.hpp"

namespace kmm::sys {

/// Gives names to files, takes names away, and makes all of it durable with one fsync per directory. After a crash a
/// name that was placed has its complete old or its complete new bytes; after finish() it has the new ones.
class DurableNames {
public:
    explicit DurableNames(FileOps& ops) noexcept : ops_(ops) {}
    /// fsync of `fd`, which is open on `from`, then rename of `from` to `to`. Errors: from_errno.
    void place(int fd, const std::string& from, const std::string& to);
    /// Renames a file whose bytes are durable already. Errors: from_errno.
    void move(const std::string& from, const std::string& to);
    /// A name in `directory` was made or removed.
    void note(const std::string& directory);
    /// fsync of each directory in which a name was given or taken away since the last finish(); those that got names
    /// come first. One that is gone is passed over. Errors: from_errno.
    void finish();

private:
    FileOps& ops_;
    std::vector<std::string> given_, taken_;  ///< directories, each once, in the order of the calls
};

}  // namespace kmm::sys
