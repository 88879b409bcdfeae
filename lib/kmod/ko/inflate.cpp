// SPDX-License-Identifier: Apache-2.0
// Adapter of ISA-L (gzip), liblzma (xz) and libzstd (zstd).
#include "kmod/ko/inflate.hpp"

#include <isa-l/igzip_lib.h>
#include <lzma.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/text.hpp"

namespace kmm::kmod {

namespace {

constexpr std::size_t k_plain_max = 512U << 20U;
constexpr std::size_t k_ratio_max = 200;             // plain : packed, as for layers; real modules stay below 20
constexpr std::size_t k_ratio_from = 16U << 20U;
constexpr std::size_t k_step = 1U << 20U;
constexpr std::uint64_t k_window_memory = 128U << 20U;
constexpr int k_zstd_window_log = 27;  // 128 MiB

[[noreturn]] void damaged_module(const std::string& file, const std::string& how, const std::string& what) {
    throw Error(Exit::data, "module-format",
                fmt::format("{}: the {} data of the module is damaged: {}", base::escape(file), how, what))
        .hint("build the image again");
}

[[noreturn]] void too_large_module(const std::string& file, const std::string& what) {
    throw Error(Exit::unsafe, "image-limit", fmt::format("{}: {}", base::escape(file), what))
        .hint("no kernel module is like that: do not trust this image");
}

/// Room for another piece of output at the end of `out`, which `packed` bytes become; refuses to grow over the caps.
std::size_t grow_plain(std::string& out, std::size_t packed, const std::string& file) {
    const std::size_t have = out.size();
    if (have >= k_plain_max) too_large_module(file, "the module is more than 512 MiB when decompressed");
    const std::size_t most = std::min(std::max(k_ratio_from, packed * k_ratio_max) + 1, k_plain_max);
    if (have >= most) {
        too_large_module(
            file,
            fmt::format(
                "the module is more than {} times its {} when decompressed, which is the limit after the first {} MiB",
                k_ratio_max, base::format_bytes(packed), k_ratio_from >> 20U));
    }
    out.resize(std::min(have + std::max(k_step, have / 2), most));
    return have;
}

/// How the data begins, "" for none of the three. A frame that zstd passes over (pzstd begins with one) is zstd's.
std::string_view packing_of(std::string_view head) {
    if (head.starts_with("\x1f\x8b")) return "gzip";
    if (head.starts_with(std::string_view("\xfd" "7zXZ\0", 6))) return "xz";
    const bool passed_over = !head.empty() && (static_cast<unsigned char>(head.front()) & 0xf0U) == 0x50U &&
                             head.substr(1).starts_with("\x2a\x4d\x18");
    if (head.starts_with("\x28\xb5\x2f\xfd") || passed_over) return "zstd";
    return {};
}

/// Whether another member, stream or frame follows one that has ended: all of them are the module, as for libkmod.
/// Refuses other bytes.
bool another_follows(std::string_view rest, std::string_view how, const std::string& file) {
    if (rest.empty()) return false;
    if (packing_of(rest) != how)
        damaged_module(file, std::string(how), fmt::format("{} bytes follow its end", rest.size()));
    return true;
}

std::string plain_of_gzip(const std::string& bytes, const std::string& file) {
    const auto state = std::make_unique<inflate_state>();
    isal_inflate_init(state.get());
    state->crc_flag = ISAL_GZIP;
    std::vector<std::uint8_t> input(bytes.begin(), bytes.end());  // the library takes no const pointer
    state->next_in = input.data();
    state->avail_in = static_cast<std::uint32_t>(input.size());
    std::string out;
    const auto check_flags = [&] {  // RFC 1952, 2.3.1.2: the three highest bits are reserved, and must be zero
        if (state->avail_in > 3 && (state->next_in[3] & 0xE0U) != 0)
            damaged_module(file, "gzip", "its header has reserved flags set");
    };
    check_flags();
    for (;;) {
        if (state->block_state == ISAL_BLOCK_FINISH) {
            const std::string_view rest(reinterpret_cast<const char*>(state->next_in), state->avail_in);
            // Zeros fill up what is written in blocks: zlib in libkmod, the kernel and gzip pass over them.
            if (rest.find_first_not_of('\0') == std::string_view::npos || !another_follows(rest, "gzip", file)) break;
            isal_inflate_reset(state.get());
            check_flags();
        }
        const std::size_t have = grow_plain(out, bytes.size(), file);
        state->next_out = reinterpret_cast<std::uint8_t*>(out.data() + have);
        state->avail_out = static_cast<std::uint32_t>(out.size() - have);
        const int answer = isal_inflate(state.get());
        out.erase(out.size() - state->avail_out);
        if (answer == ISAL_INCORRECT_CHECKSUM) damaged_module(file, "gzip", "its checksum is wrong");
        if (answer != ISAL_DECOMP_OK)
            damaged_module(file, "gzip", fmt::format("its bytes are not gzip's (code {})", answer));
        if (state->block_state != ISAL_BLOCK_FINISH && state->avail_in == 0 && state->avail_out != 0)
            damaged_module(file, "gzip", "it ends early");
    }
    return out;
}

std::string plain_of_xz(const std::string& bytes, const std::string& file) {
    struct Stream {
        lzma_stream raw{};
        ~Stream() { lzma_end(&raw); }
    } stream;
    const auto begin = [&] {
        if (lzma_stream_decoder(&stream.raw, k_window_memory, 0) != LZMA_OK) throw bug("liblzma could not be set up");
    };
    begin();
    stream.raw.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    stream.raw.avail_in = bytes.size();
    std::string out;
    for (;;) {
        const std::size_t have = grow_plain(out, bytes.size(), file);
        stream.raw.next_out = reinterpret_cast<std::uint8_t*>(out.data() + have);
        stream.raw.avail_out = out.size() - have;
        const lzma_ret answer = lzma_code(&stream.raw, LZMA_FINISH);
        out.resize(out.size() - stream.raw.avail_out);
        if (answer == LZMA_STREAM_END) {
            constexpr std::size_t padding = 4;
            while (stream.raw.avail_in >= padding && std::all_of(stream.raw.next_in, stream.raw.next_in + padding,
                                                                 [](std::uint8_t byte) { return byte == 0; })) {
                stream.raw.next_in += padding;
                stream.raw.avail_in -= padding;
            }
            if (!another_follows({reinterpret_cast<const char*>(stream.raw.next_in), stream.raw.avail_in}, "xz", file))
                break;
            begin();
            continue;
        }
        if (answer == LZMA_MEMLIMIT_ERROR)
            too_large_module(file, "decompressing the module takes more than 128 MiB of memory");
        if (answer == LZMA_BUF_ERROR) damaged_module(file, "xz", "it ends early");
        if (answer != LZMA_OK)
            damaged_module(file, "xz", fmt::format("its bytes are not xz's (code {})", static_cast<int>(answer)));
    }
    return out;
}

std::string plain_of_zstd(const std::string& bytes, const std::string& file) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
    if (!stream || ZSTD_isError(ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, k_zstd_window_log)) != 0)
        throw bug("libzstd could not be set up");
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    std::string out;
    std::size_t answer = 1;
    while (answer != 0 || another_follows(std::string_view(bytes).substr(input.pos), "zstd", file)) {
        const std::size_t have = grow_plain(out, bytes.size(), file);
        ZSTD_outBuffer output{out.data() + have, out.size() - have, 0};
        answer = ZSTD_decompressStream(stream.get(), &output, &input);
        if (ZSTD_getErrorCode(answer) == ZSTD_error_frameParameter_windowTooLarge)
            too_large_module(file, "decompressing the module takes a window of more than 128 MiB");
        if (ZSTD_isError(answer) != 0) damaged_module(file, "zstd", base::to_lower(ZSTD_getErrorName(answer)));
        const bool starved = answer != 0 && input.pos == input.size && output.pos < output.size;
        out.resize(have + output.pos);
        if (starved) damaged_module(file, "zstd", "it ends early");
    }
    return out;
}

constexpr std::uint32_t k_xz_dictionary = 2U << 20U;
constexpr int k_module_zstd_level = 9;

std::string xz_module(const std::string& plain) {
    lzma_options_lzma options{};
    if (lzma_lzma_preset(&options, LZMA_PRESET_DEFAULT) != 0) throw bug("liblzma could not be set up");
    options.dict_size = k_xz_dictionary;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
    std::string out(lzma_stream_buffer_bound(plain.size()), '\0');
    std::size_t size = 0;
    const lzma_ret answer = lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, nullptr,
                                                      reinterpret_cast<const std::uint8_t*>(plain.data()), plain.size(),
                                                      reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size());
    if (answer != LZMA_OK) throw bug("liblzma failed");
    out.resize(size);
    return out;
}

std::string zstd_module(const std::string& plain) {
    const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    if (!context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, k_module_zstd_level)) != 0 ||
        ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1)) != 0) {
        throw bug("libzstd could not be set up");
    }
    std::string out(ZSTD_compressBound(plain.size()), '\0');
    const std::size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), plain.data(), plain.size());
    if (ZSTD_isError(size) != 0) throw bug("libzstd failed");
    out.resize(size);
    return out;
}

}  // namespace

std::string compression_name(const std::string& bytes) {
    return std::string(packing_of(bytes));
}

std::string plain_module(std::string bytes, const std::string& file) {
    const std::string how = compression_name(bytes);
    if (how == "gzip") return plain_of_gzip(bytes, file);
    if (how == "xz") return plain_of_xz(bytes, file);
    if (how == "zstd") return plain_of_zstd(bytes, file);
    return bytes;
}

std::string packed_module(std::string plain, const std::string& how) {
    if (how == "gzip") return base::to_gzip(plain);
    if (how == "xz") return xz_module(plain);
    if (how == "zstd") return zstd_module(plain);
    return plain;
}

}  // namespace kmm::kmod
