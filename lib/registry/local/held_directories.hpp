// SPDX-License-Identifier: Apache-2.0
// Writing to directories that are kept open: whoever puts a link in the place of one changes nothing.
#pragma once

#include <map>
#include <string>

#include "sys/fd.hpp"
#include "sys/file_ops.hpp"

namespace kmm::registry {

/// File operations whose paths are in directories that hold() was called for.
class HeldDirectories final : public sys::FileOps {
public:
    enum class Missing { make, refuse };
    /// Opens `directory`, by the name that the paths of files in it begin with; can make it and what is missing above
    /// it, mode 0755. Returns the descriptor, which stays open as long as this. As root, a link on the way counts only
    /// if root made it. Errors: from_errno; no_permission "untrusted-file".
    int hold(const std::string& directory, Missing missing = Missing::make);
    /// The descriptor of the directory of `path`.
    [[nodiscard]] int of(const std::string& path) const;
    /// Removes a file. False with errno if that fails.
    bool remove(const std::string& path) const;  // NOLINT(modernize-use-nodiscard): often of no matter
    /// True if there is anything at `path`, also a link to nothing.
    [[nodiscard]] bool exists(const std::string& path) const;

    int create(const std::string& path, unsigned mode) override;
    int open_append(const std::string& path) override;
    void write(int fd, std::string_view bytes) override { files_.write(fd, bytes); }
    void sync(int fd) override { files_.sync(fd); }
    void rename(const std::string& from, const std::string& to) override;
    void sync_dir(const std::string& directory) override;

private:
    sys::LinuxFileOps files_;
    std::map<std::string, sys::Fd> held_;
};

}  // namespace kmm::registry
