// SPDX-License-Identifier: Apache-2.0
// Errors of files that a user names.
#pragma once

#include <string>

#include "base/error.hpp"

namespace kmm::sys {

/// What to correct if there is no file or directory of the name `path`: the nearest name in its directory, the part of
/// the path that does not exist, or where a symbolic link leads.
[[nodiscard]] std::string missing_file_hint(const std::string& path);

/// The error of an open() of `path` that left `number` in errno: "cannot open PATH", from_errno. If nothing of that
/// name exists: not_found "file-not-found", with missing_file_hint.
[[nodiscard]] Error open_error(int number, const std::string& path);

/// Errors: not_found "file-not-found" if the directory that the file `path` is to be written to does not exist.
void require_directory_of(const std::string& path);

}  // namespace kmm::sys
