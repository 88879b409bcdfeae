// SPDX-License-Identifier: Apache-2.0
// Bytes that are read piece by piece, and the steps that a layer's bytes go through: file, inflate, count and hash.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "image/manifest.hpp"
#include "registry/layer/limits.hpp"

namespace kmm::registry {

/// A stream of bytes. Pieces stay valid until the next call.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    /// The next piece; empty at the end, and for ever after.
    [[nodiscard]] virtual std::string_view next() = 0;
    /// After a piece: takes `buffer` and leaves in it the memory that the piece lies at the beginning of, so that it
    /// need not be copied to live longer. False if the piece lies elsewhere; then nothing was changed.
    [[nodiscard]] virtual bool swap_buffer(std::vector<char>& /*buffer*/) { return false; }
};

/// Reads a descriptor from its start with pread; the descriptor stays the caller's. Errors: io.
class FileSource final : public ByteSource {
public:
    /// `size_hint`, if it is small, spares a small file a large buffer.
    explicit FileSource(int fd, std::uint64_t size_hint = ~std::uint64_t{0});
    [[nodiscard]] std::string_view next() override;

private:
    int fd_;
    std::uint64_t offset_ = 0;
    std::size_t capacity_;
    std::unique_ptr<char[]> buffer_;
};

/// So many bytes at the beginning tell how a stream is compressed.
inline constexpr std::size_t k_magic_bytes = 4;

/// How a stream that begins with `head` is compressed; none if with something else, also fewer than k_magic_bytes.
[[nodiscard]] image::Compression compression_of(std::string_view head);

/// The plain bytes of a stream compressed as said: gzip with any number of members, each with its checksum verified;
/// zstd with any number of frames, also such that are to be skipped, and windows up to 128 MiB; or as it is. `input`
/// must outlive the result. Errors on next(): data "bad-layer" for bytes of another format (named), damage, truncation
/// and trailing garbage; unsafe "image-limit" for a zstd window above the cap.
[[nodiscard]] std::unique_ptr<ByteSource> make_inflater(image::Compression compression, ByteSource& input);

/// What has been inflated of an image so far, shared by its layers.
struct InflateBudget {
    std::uint64_t image_bytes = 0;
};

/// Passes bytes on while holding them to the limits. Errors on next(): unsafe "image-limit".
class CheckedSource final : public ByteSource {
public:
    CheckedSource(ByteSource& input, std::uint64_t compressed_bytes, const Limits& limits, InflateBudget& budget,
                  std::function<void()> on_piece);
    [[nodiscard]] std::string_view next() override;
    /// Reads to the end.
    void drain();

private:
    ByteSource& input_;
    std::uint64_t compressed_bytes_;
    const Limits& limits_;
    InflateBudget& budget_;
    std::function<void()> on_piece_;
    std::uint64_t bytes_ = 0;
};

/// unsafe "image-limit": "WHAT exceeds the limit of MAX", and how to raise it (`name` as in --limit NAME=VALUE).
[[nodiscard]] Error limit_error(const std::string& what, const std::string& name, std::uint64_t maximum);

}  // namespace kmm::registry
