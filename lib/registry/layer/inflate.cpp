// SPDX-License-Identifier: Apache-2.0
// The place that knows ISA-L (gzip) and libzstd.
#include <fmt/format.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_output = 128U << 10U;
constexpr int k_window_log_max = 27;

Error bad_layer(std::string what) { return Error(Exit::data, "bad-layer", std::move(what)); }

/// What the first bytes of a stream look like.
std::string_view guess(std::string_view head) {
    const auto compression = compression_of(head);
    if (compression == image::Compression::gzip) return "gzip";
    if (compression == image::Compression::zstd) return "zstd";
    if (head.starts_with("BZh")) return "bzip2";
    if (head.starts_with("\xfd" "7zXZ")) return "xz";
    if (head.size() > 262 && head.substr(257, 5) == "ustar") return "a plain tar";
    return "something else";
}

class Plain final : public ByteSource {
public:
    explicit Plain(ByteSource& input) : input_(input) {}
    std::string_view next() override {
        const std::string_view piece = input_.next();
        if (first_ && (guess(piece) == "gzip" || guess(piece) == "zstd")) {
            throw bad_layer(fmt::format("expected a plain tar as the media type says, found {}", guess(piece)));
        }
        first_ = false;
        return piece;
    }

private:
    ByteSource& input_;
    bool first_ = true;
};

class Gzip final : public ByteSource {
public:
    explicit Gzip(ByteSource& input) : input_(input), output_(k_output) { start_member(); }

    std::string_view next() override {
        while (true) {
            if (pending_.empty() && !ended_ && !output_full_) {
                pending_ = input_.next();
                ended_ = pending_.empty();
            }
            if (first_) {
                if (!ended_ && guess(pending_) != "gzip") {
                    throw bad_layer(fmt::format("expected gzip as the media type says, found {}", guess(pending_)));
                }
                first_ = false;
            }
            if (pending_.empty() && between_members_) {
                return {};
            }
            if (pending_.empty() && !output_full_) {
                throw bad_layer("expected more gzip data, found the end of the layer: it is truncated");
            }
            const std::string_view piece = step();
            if (!piece.empty()) {
                return piece;
            }
        }
    }

    bool swap_buffer(std::vector<char>& buffer) override {
        buffer.resize(output_.size());
        output_.swap(buffer);
        return true;
    }

private:
    void start_member() {
        isal_inflate_init(&state_);
        state_.crc_flag = ISAL_GZIP;
        between_members_ = true;
    }

    /// The fourth byte of a member's header: the three highest bits are reserved, and must be zero (RFC 1952, 2.3.1.2).
    /// ISA-L passes over them.
    void check_flags(bool at_start) {
        constexpr std::size_t place = 3;
        if (at_start) header_seen_ = 0;
        if (header_seen_ <= place && place - header_seen_ < pending_.size() &&
            (static_cast<unsigned char>(pending_[place - header_seen_]) & 0xE0U) != 0) {
            throw bad_layer("the gzip header has reserved flags set");
        }
        header_seen_ += std::min(pending_.size(), place + 1);
    }

    std::string_view step() {
        const bool at_start = between_members_;
        if (at_start && members_ > 0 && static_cast<unsigned char>(pending_.front()) != 0x1FU) {
            throw bad_layer("expected another gzip member or the end, found trailing garbage");
        }
        between_members_ = false;
        check_flags(at_start);
        // ISA-L only reads through next_in, whose type lacks the const.
        state_.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(pending_.data()));
        state_.avail_in = static_cast<std::uint32_t>(pending_.size());
        state_.next_out = reinterpret_cast<std::uint8_t*>(output_.data());
        state_.avail_out = static_cast<std::uint32_t>(output_.size());
        const int code = isal_inflate(&state_);
        pending_.remove_prefix(pending_.size() - state_.avail_in);
        const std::string_view piece(output_.data(), output_.size() - state_.avail_out);
        output_full_ = state_.avail_out == 0;
        if (code == ISAL_INCORRECT_CHECKSUM) {
            throw bad_layer("the checksum of the gzip data is wrong");
        }
        if (code == ISAL_INVALID_WRAPPER || code == ISAL_UNSUPPORTED_METHOD) {
            throw bad_layer(members_ > 0 ? "expected another gzip member or the end, found trailing garbage"
                                         : "the gzip header is damaged");
        }
        if (code < 0) {
            throw bad_layer(fmt::format("the gzip data is damaged (ISA-L code {})", code));
        }
        if (state_.block_state == ISAL_BLOCK_FINISH) {
            ++members_;
            output_full_ = false;
            start_member();
        }
        return piece;
    }

    ByteSource& input_;
    std::vector<char> output_;
    inflate_state state_{};
    std::size_t header_seen_ = 0;  ///< bytes of the member that were looked at, as far as they matter
    std::string_view pending_;
    bool ended_ = false;
    bool first_ = true;
    bool between_members_ = true;
    bool output_full_ = false;  ///< ISA-L may hold more output although the input is used up
    std::uint64_t members_ = 0;
};

class Zstd final : public ByteSource {
public:
    explicit Zstd(ByteSource& input) : input_(input), output_(k_output), stream_(ZSTD_createDStream()) {
        if (stream_ == nullptr ||
            ZSTD_isError(ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, k_window_log_max)) != 0) {
            throw bug("libzstd gave no stream");
        }
    }
    ~Zstd() override { ZSTD_freeDStream(stream_); }
    Zstd(const Zstd&) = delete;
    Zstd& operator=(const Zstd&) = delete;

    std::string_view next() override {
        while (true) {
            if (pending_.empty() && !ended_ && !output_full_) {
                pending_ = input_.next();
                ended_ = pending_.empty();
            }
            if (first_) {
                if (!ended_ && guess(pending_) != "zstd") {
                    throw bad_layer(fmt::format("expected zstd as the media type says, found {}", guess(pending_)));
                }
                first_ = false;
            }
            if (pending_.empty() && !output_full_) {
                if (in_frame_) {
                    throw bad_layer("expected more zstd data, found the end of the layer: it is truncated");
                }
                return {};
            }
            ZSTD_inBuffer in{pending_.data(), pending_.size(), 0};
            ZSTD_outBuffer out{output_.data(), output_.size(), 0};
            const std::size_t code = ZSTD_decompressStream(stream_, &out, &in);
            pending_.remove_prefix(in.pos);
            if (ZSTD_isError(code) != 0) {
                if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge) {
                    throw Error(Exit::unsafe, "image-limit", "the zstd window exceeds the limit of 128 MiB")
                        .hint("compress the layer again without --long or --ultra");
                }
                throw bad_layer(fmt::format("the zstd data is damaged: {}", ZSTD_getErrorName(code)));
            }
            in_frame_ = code != 0;
            output_full_ = out.pos == out.size && code != 0;
            if (out.pos != 0) {
                return {output_.data(), out.pos};
            }
        }
    }

    bool swap_buffer(std::vector<char>& buffer) override {
        buffer.resize(output_.size());
        output_.swap(buffer);
        return true;
    }

private:
    ByteSource& input_;
    std::vector<char> output_;
    ZSTD_DStream* stream_;
    std::string_view pending_;
    bool ended_ = false;
    bool first_ = true;
    bool in_frame_ = false;
    bool output_full_ = false;  ///< libzstd may hold more output although the input is used up
};

}  // namespace

image::Compression compression_of(std::string_view head) {
    if (head.starts_with("\x1f\x8b")) return image::Compression::gzip;
    if (head.starts_with("\x28\xb5\x2f\xfd")) return image::Compression::zstd;
    // A frame to be skipped, as pzstd begins with: 0x184D2A50 to 0x184D2A5F, little-endian.
    const bool skipped = head.size() >= k_magic_bytes && (static_cast<unsigned char>(head[0]) & 0xf0U) == 0x50U &&
                         head.substr(1, 3) == "\x2a\x4d\x18";
    return skipped ? image::Compression::zstd : image::Compression::none;
}

std::unique_ptr<ByteSource> make_inflater(image::Compression compression, ByteSource& input) {
    switch (compression) {
        case image::Compression::gzip: return std::make_unique<Gzip>(input);
        case image::Compression::zstd: return std::make_unique<Zstd>(input);
        case image::Compression::none: break;
    }
    return std::make_unique<Plain>(input);
}

}  // namespace kmm::registry
