// SPDX-License-Identifier: Apache-2.0
// Reading of files and directories that must be ours: no links, no foreign owner, nothing that others may write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace kmm::record {

/// Opens a regular file with `flags` (O_CLOEXEC and O_NOFOLLOW are added; mode 0600 if it is created). No descriptor
/// when it is absent. Errors: no_permission (77) "unsafe-state-file" for a link, another type, another owner than the
/// effective user, or one that group or others may write; from_errno.
[[nodiscard]] sys::Fd open_own_file(const std::string& path, int flags);

/// The whole file, nullopt when it is absent. Errors as open_own_file.
[[nodiscard]] std::optional<std::string> read_own_file(const std::string& path);

/// Errors: no_permission (77) "unsafe-state-dir" for a link, another owner, a directory that group or others may write,
/// or a parent in which others may replace it; not_found when absent; that of require_rights.
void check_own_directory(const std::string& path);

/// Errors: no_permission where the mode of the user's own directory `path` does not let it `verb` ("read", "write")
/// there, which is `rights` (R_OK, W_OK, X_OK). Whatever else keeps it out is left to what opens a file there.
void require_rights(const std::string& path, int rights, const std::string& verb);

}  // namespace kmm::record
