// SPDX-License-Identifier: Apache-2.0
// Reading small kernel files and module files, and handing module bytes to the kernel by descriptor.
#pragma once

#include <cstdint>
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

/// The bytes of a regular module file, not following a final symbolic link. Errors: from_errno; data "module-format"
/// when it is no regular file or larger than 512 MiB.
[[nodiscard]] std::string read_module_bytes(const std::string& path);

/// Lower-case hex SHA-256 of `bytes`.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// An anonymous in-memory file that holds `bytes`, sealed against any change and reopened read-only, so that what was
/// hashed is what the kernel reads (the kernel denies files that are open for writing). Errors: io.
[[nodiscard]] sys::Fd sealed_file(std::string_view bytes, const std::string& name);

}  // namespace kmm::kmod
