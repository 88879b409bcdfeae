// SPDX-License-Identifier: Apache-2.0
// Where links lead, for files whose author is somebody else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace kmm::sys {

/// `path` without links on the way; nullopt where there is nothing.
[[nodiscard]] std::optional<std::filesystem::path> real_path(const std::string& path);

/// Whether `path` is `above` or below it, by their text: both are results of real_path.
[[nodiscard]] bool is_below(const std::filesystem::path& above, const std::filesystem::path& path);

/// Whether `path`, a result of real_path, is in /dev, /proc or /sys: what is there says something of processes and the
/// machine, and some of it has no end.
[[nodiscard]] bool is_of_machine(const std::filesystem::path& path);

}  // namespace kmm::sys
