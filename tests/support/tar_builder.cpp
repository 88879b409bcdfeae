// SPDX-License-Identifier: Apache-2.0
#include "support/tar_builder.hpp"

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace kmm::test {

namespace {

constexpr std::size_t k_block = 512;

std::string octal(std::uint64_t value, std::size_t width) {
    std::string text(width, '0');
    for (std::size_t i = width - 1; i-- > 0;) {
        text[i] = static_cast<char>('0' + (value & 7U));
        value >>= 3U;
    }
    text[width - 1] = '\0';
    return text;
}

std::string base256(std::uint64_t value, std::size_t width) {
    std::string text(width, '\0');
    for (std::size_t i = width; i-- > 1 && value != 0;) {
        text[i] = static_cast<char>(value & 0xFFU);
        value >>= 8U;
    }
    text[0] = static_cast<char>(0x80);
    return text;
}

void put(std::string& block, std::size_t at, std::string_view text, std::size_t width) {
    std::copy_n(text.begin(), std::min(text.size(), width), block.begin() + static_cast<std::ptrdiff_t>(at));
}

void seal(std::string& block) {
    put(block, 148, "        ", 8);
    unsigned sum = 0;
    for (const char c : block) {
        sum += static_cast<unsigned char>(c);
    }
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%06o", sum);
    put(block, 148, std::string_view(text.data(), 7), 7);
    block[155] = ' ';
}

void pad(std::string& bytes) { bytes.resize((bytes.size() + k_block - 1) / k_block * k_block, '\0'); }

}  // namespace

TarBuilder& TarBuilder::raw(const TarHeader& header, std::string_view data) {
    if (header.name.size() > 100) {
        pax("path", header.name);
    }
    std::string block(k_block, '\0');
    put(block, 0, header.name, 100);
    put(block, 100, header.raw_mode.empty() ? octal(header.mode, 8) : header.raw_mode, 8);
    put(block, 108, header.raw_uid.empty() ? octal(0, 8) : header.raw_uid, 8);
    put(block, 116, octal(0, 8), 8);
    put(block, 124, header.raw_size.empty() ? octal(header.size, 12) : header.raw_size, 12);
    put(block, 136, header.raw_mtime.empty() ? octal(0, 12) : header.raw_mtime, 12);
    block[156] = header.type;
    put(block, 157, header.link, 100);
    put(block, 257, std::string_view("ustar\0" "00", 8), 8);
    seal(block);
    bytes_ += block;
    bytes_ += data;
    pad(bytes_);
    return *this;
}

TarBuilder& TarBuilder::file(const std::string& name, std::string_view data, unsigned mode) {
    TarHeader header;
    header.name = name;
    header.size = data.size();
    header.mode = mode;
    return raw(header, data);
}

TarBuilder& TarBuilder::dir(const std::string& name) {
    TarHeader header;
    header.name = name;
    header.type = '5';
    header.mode = 0755;
    return raw(header);
}

TarBuilder& TarBuilder::symlink(const std::string& name, const std::string& target) {
    TarHeader header;
    header.name = name;
    header.type = '2';
    header.link = target;
    return raw(header);
}

TarBuilder& TarBuilder::hardlink(const std::string& name, const std::string& target) {
    TarHeader header;
    header.name = name;
    header.type = '1';
    header.link = target;
    return raw(header);
}

TarBuilder& TarBuilder::device(const std::string& name) {
    TarHeader header;
    header.name = name;
    header.type = '3';
    return raw(header);
}

TarBuilder& TarBuilder::pax(const std::string& key, const std::string& value) { return pax({{key, value}}); }

TarBuilder& TarBuilder::pax(const std::vector<std::pair<std::string, std::string>>& records) {
    std::string bytes;
    for (const auto& [key, value] : records) {
        const std::string rest = " " + key + "=" + value + "\n";
        std::size_t length = rest.size();
        while (length != rest.size() + std::to_string(length).size()) {
            length = rest.size() + std::to_string(length).size();
        }
        bytes += std::to_string(length) + rest;
    }
    TarHeader header;
    header.name = "pax";
    header.type = 'x';
    header.size = bytes.size();
    return raw(header, bytes);
}

std::string TarBuilder::finish() const { return bytes_ + std::string(2 * k_block, '\0'); }

std::string sparse_entry(const std::string& name, std::uint64_t real_size) { return sparse_entry(name, real_size, {}); }

std::string sparse_entry(const std::string& name, std::uint64_t real_size,
                         const std::vector<std::pair<std::uint64_t, std::string>>& texts) {
    std::string block(k_block, '\0');
    std::string content;
    std::size_t field = 386;
    for (const auto& [offset, text] : texts) {
        put(block, field, base256(offset, 12), 12);
        put(block, field + 12, base256(text.size(), 12), 12);
        field += 24;
        content += text;
    }
    put(block, 0, name, 100);
    put(block, 100, octal(0644, 8), 8);
    put(block, 108, octal(0, 8), 8);
    put(block, 116, octal(0, 8), 8);
    put(block, 124, octal(content.size(), 12), 12);
    put(block, 136, octal(0, 12), 12);
    block[156] = 'S';
    put(block, 257, std::string_view("ustar  \0", 8), 8);
    put(block, field, base256(real_size, 12), 12);  // a hole up to the end: offset, length 0
    put(block, field + 12, octal(0, 12), 12);
    put(block, 483, base256(real_size, 12), 12);
    seal(block);
    content.resize((content.size() + k_block - 1) / k_block * k_block);
    return block + content;
}

std::string gzip(std::string_view bytes) {
    std::string source(bytes);
    std::string result(source.size() + source.size() / 8 + 4096, '\0');
    std::vector<std::uint8_t> level(ISAL_DEF_LVL1_DEFAULT);
    isal_zstream stream{};
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.level = 1;
    stream.level_buf = level.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level.size());
    stream.end_of_stream = 1;
    stream.next_in = reinterpret_cast<std::uint8_t*>(source.data());
    stream.avail_in = static_cast<std::uint32_t>(source.size());
    stream.next_out = reinterpret_cast<std::uint8_t*>(result.data());
    stream.avail_out = static_cast<std::uint32_t>(result.size());
    if (isal_deflate(&stream) != COMP_OK || stream.internal_state.state != ZSTATE_END) {
        throw std::runtime_error("gzip failed");
    }
    result.resize(stream.total_out);
    return result;
}

std::string zstd(std::string_view bytes) {
    std::string result(ZSTD_compressBound(bytes.size()), '\0');
    const std::size_t length = ZSTD_compress(result.data(), result.size(), bytes.data(), bytes.size(), 3);
    if (ZSTD_isError(length) != 0) {
        throw std::runtime_error("zstd failed");
    }
    result.resize(length);
    return result;
}

std::string zstd_zeros(std::uint64_t count, int window_log) {
    ZSTD_CCtx* context = ZSTD_createCCtx();
    if (window_log != 0) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, 0);
        ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
    }
    const std::vector<char> zeros(1U << 20U);
    std::vector<char> piece(1U << 20U);
    std::string result;
    while (true) {
        const std::size_t now = static_cast<std::size_t>(std::min<std::uint64_t>(count, zeros.size()));
        count -= now;
        ZSTD_inBuffer in{zeros.data(), now, 0};
        const ZSTD_EndDirective directive = count == 0 ? ZSTD_e_end : ZSTD_e_continue;
        std::size_t left = 0;
        do {
            ZSTD_outBuffer out{piece.data(), piece.size(), 0};
            left = ZSTD_compressStream2(context, &out, &in, directive);
            if (ZSTD_isError(left) != 0) {
                throw std::runtime_error("zstd failed");
            }
            result.append(piece.data(), out.pos);
        } while (in.pos < in.size || (directive == ZSTD_e_end && left != 0));
        if (count == 0) {
            break;
        }
    }
    ZSTD_freeCCtx(context);
    return result;
}

}  // namespace kmm::test
