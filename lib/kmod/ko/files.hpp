// SPDX-License-Identifier: Apache-2.0
// Reading small kernel files and module files, and handing module bytes to the kernel by descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sys/fd.hpp"

namespace kmm::kmod {

/// The whole text of a /proc or /sys file (at most `bytes_max`), without trailing white space; nullopt if it cannot be
/// read for whatever reason (absent, no permission): such files are facts that may be missing.
[[nodiscard]] std::optional<std::string> read_text(const std::string& path, std::size_t bytes_max = 64U << 20U);

/// The same without trimming, for binary files.
[[nodiscard]] std::optional<std::string> read_raw(const std::string& path, std::size_t bytes_max = 64U << 20U);

/// Whether a reader of lines wants the next one.
enum class Lines { more, enough };

/// How reading ended: at the end or when there was enough, or before that because of an error.
enum class Reading { done, failed };

/// Calls `body` with each line of a file, without its newline, a piece of the file in memory at a time; for files of
/// the kernel that are long. A line of more than 1 MiB is an error.
Reading for_each_line(const std::string& path, const std::function<Lines(std::string_view)>& body);

/// A regular module file, not following a final symbolic link. Errors: from_errno; data "module-format" when it is not
/// a regular file or larger than 512 MiB.
[[nodiscard]] sys::Fd open_module_file(const std::string& path);

/// The bytes of such a file, which was just opened; `shown` is for messages. Errors: from_errno.
[[nodiscard]] std::string read_module_bytes(const sys::Fd& file, const std::string& shown);
/// Both.
[[nodiscard]] std::string read_module_bytes(const std::string& path);


/// An anonymous in-memory file that holds `bytes`, sealed against any change and reopened read-only, so that what was
/// hashed is what the kernel reads (the kernel denies files that are open for writing). Errors: io.
[[nodiscard]] sys::Fd sealed_file(std::string_view bytes, const std::string& name);

}  // namespace kmm::kmod
