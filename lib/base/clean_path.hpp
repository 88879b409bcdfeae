// SPDX-License-Identifier: Apache-2.0
// Paths as texts, as Go's path/filepath treats them. KMM joins dirName and firmwarePath this way. No file system is
// asked.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::base {

/// Go's filepath.Clean: without doubled and trailing slashes, "." and "..", as far as the text alone allows. "" is ".".
/// What leads above the root is the root; a relative path may keep leading "..".
[[nodiscard]] std::string clean_path(std::string_view path);

/// Go's filepath.Join: the non-empty parts with '/' between them, cleaned. "" if all parts are empty.
[[nodiscard]] std::string join_paths(std::initializer_list<std::string_view> parts);

/// What `path` is below a root, "opt/x" for "/opt//x/" and "opt/y/../x", "" for the root itself; nullopt if it leads
/// out of it.
[[nodiscard]] std::optional<std::string> path_below(std::string_view path);

/// What stands before the last slash of `file`, "" without one.
[[nodiscard]] std::string directory_of(std::string_view file);

}  // namespace kmm::base
