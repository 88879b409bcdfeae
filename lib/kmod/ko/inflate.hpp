// SPDX-License-Identifier: Apache-2.0
// Compressed module files: .ko.gz, .ko.xz and .ko.zst become the plain object in memory, with caps. The kernel's own
// decompression is never used: what was checked has to be what the kernel gets.
#pragma once

#include <string>

namespace kmm::kmod {

/// `bytes` of a module file as a plain object: decompressed if the magic bytes say gzip, xz or zstd, else returned as
/// they are. `file` is for messages. At most 512 MiB come out, and after the first 16 MiB at most 200 times of what
/// went in; xz and zstd get at most 128 MiB for their window. Errors: data (65) "module-format" for damaged, cut off or
/// trailing bytes; unsafe (16) "image-limit" over a cap.
[[nodiscard]] std::string plain_module(std::string bytes, const std::string& file);

/// "gzip", "xz" or "zstd" by the magic bytes, "" for anything else.
[[nodiscard]] std::string compression_name(const std::string& bytes);

/// The reverse, as the kernel's own build packs modules: `how` as compression_name says it ("" leaves the bytes alone).
/// xz gets a CRC-32 and a dictionary of 2 MiB, which is what the kernel's decompressor takes. The same bytes give the
/// same bytes.
[[nodiscard]] std::string packed_module(std::string plain, const std::string& how);

}  // namespace kmm::kmod
