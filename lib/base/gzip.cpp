// SPDX-License-Identifier: Apache-2.0
// Adapter of zlib.
#include "base/gzip.hpp"

#include <zlib.h>

#include <memory>

#include "base/error.hpp"

namespace kmm::base {
namespace {

constexpr int k_window_and_gzip = 15 + 16, k_memory = 9;
constexpr std::size_t k_piece = 64U << 10U;

/// Of `text`, which zlib only reads.
Bytef* bytes_of(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

}  // namespace

bool is_gzip(std::string_view data) noexcept { return data.starts_with("\x1f\x8b\x08"); }

std::string to_gzip(std::string_view plain) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, k_window_and_gzip, k_memory, Z_DEFAULT_STRATEGY) != Z_OK)
        throw bug("zlib could not be set up");
    std::string packed(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
    stream.next_in = bytes_of(plain);
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = bytes_of(packed);
    stream.avail_out = static_cast<uInt>(packed.size());
    const int answer = deflate(&stream, Z_FINISH);
    packed.resize(packed.size() - stream.avail_out);
    deflateEnd(&stream);
    if (answer != Z_STREAM_END) throw bug("zlib failed");
    return packed;
}

std::optional<std::string> from_gzip(std::string_view packed, std::size_t most) {
    z_stream stream{};
    if (inflateInit2(&stream, k_window_and_gzip) != Z_OK) throw bug("zlib could not be set up");
    stream.next_in = bytes_of(packed);
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string plain;
    const auto piece = std::make_unique_for_overwrite<char[]>(k_piece);  // a stack may be smaller than that
    int answer = Z_OK;
    while (answer == Z_OK && plain.size() <= most) {
        stream.next_out = reinterpret_cast<Bytef*>(piece.get());
        stream.avail_out = k_piece;
        answer = inflate(&stream, Z_NO_FLUSH);
        plain.append(piece.get(), k_piece - stream.avail_out);
    }
    inflateEnd(&stream);
    const bool is_whole = answer == Z_STREAM_END && stream.avail_in == 0 && plain.size() <= most;
    return is_whole ? std::optional(std::move(plain)) : std::nullopt;
}

}  // namespace kmm::base
