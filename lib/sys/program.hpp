// SPDX-License-Identifier: Apache-2.0
// Which file a program's name means.
#pragma once

#include <string>

namespace kmm::sys {

/// The file that run_process starts for `program`: itself if it has a slash, else the first of that name in PATH that
/// may be run. Errors: not_found "command-not-found".
[[nodiscard]] std::string find_in_path(const std::string& program);

/// As root, a program that the user names is run only if nobody else may change it, wherever in PATH it is. A relative
/// path is of `directory`, "" for the current one. What the arguments name is not judged. Errors: those of
/// find_in_path; no_permission "untrusted-file".
void require_trusted_program(const std::string& program, const std::string& directory = {});

/// Whether run_process would find this program and require_trusted_program take it, to say so early. Errors: not_found
/// "command-not-found"; no_permission "untrusted-file".
void require_program(const std::string& program);

}  // namespace kmm::sys
