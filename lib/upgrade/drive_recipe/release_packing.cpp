// SPDX-License-Identifier: Apache-2.0
// Adapter of zlib.
#include "upgrade/drive_recipe/release_packing.hpp"

#include <zlib.h>

#include "base/error.hpp"

namespace kmm::drive {
namespace {

constexpr std::size_t k_plain_max = 256U << 10U, k_text_max = 64U << 20U, k_piece = 1U << 20U;
constexpr int k_window_and_gzip = 15 + 16, k_memory = 9;

Bytef* bytes_of(std::string& text) { return reinterpret_cast<Bytef*>(text.data()); }

struct Inflater {
    z_stream stream{};
    Inflater() {
        if (inflateInit2(&stream, k_window_and_gzip) != Z_OK) throw bug("zlib could not be set up");
    }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

std::string pack_release(std::string text) {
    if (text.size() <= k_plain_max) return text;
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, k_window_and_gzip, k_memory, Z_DEFAULT_STRATEGY) != Z_OK)
        throw bug("zlib could not be set up");
    std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
    stream.next_in = bytes_of(text);
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = bytes_of(packed);
    stream.avail_out = static_cast<uInt>(packed.size());
    const int answer = deflate(&stream, Z_FINISH);
    packed.erase(packed.size() - stream.avail_out);
    deflateEnd(&stream);
    if (answer != Z_STREAM_END) throw bug("zlib failed");
    return packed;
}

std::optional<std::string> unpack_release(std::string data) {
    if (!data.starts_with("\x1f\x8b")) return data;
    Inflater inflater;
    auto& stream = inflater.stream;
    stream.next_in = bytes_of(data);
    stream.avail_in = static_cast<uInt>(data.size());
    std::string text;
    for (;;) {
        const auto have = text.size();
        if (have > k_text_max) return std::nullopt;
        text.resize(have + k_piece);
        stream.next_out = bytes_of(text) + have;
        stream.avail_out = static_cast<uInt>(k_piece);
        const int answer = inflate(&stream, Z_NO_FLUSH);
        text.erase(text.size() - stream.avail_out);
        if (answer == Z_STREAM_END) break;
        // Without progress, the data ends early.
        if (answer != Z_OK || text.size() == have) return std::nullopt;
    }
    if (stream.avail_in != 0) return std::nullopt;
    return text;
}

}  // namespace kmm::drive
