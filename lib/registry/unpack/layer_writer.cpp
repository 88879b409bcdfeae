// SPDX-License-Identifier: Apache-2.0
// Adapter of zlib and libzstd, for writing.
#include "registry/unpack/layer_writer.hpp"

#include <zlib.h>
#include <zstd.h>

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/target.hpp"
#include "registry/unpack/tar_reader.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_packed_piece = 256U << 10U;
constexpr int k_zstd_level = 9;

/// Where packed bytes go: a file, counted and hashed.
class LayerOutput {
public:
    explicit LayerOutput(int fd) : file_(fd) {}
    void put(std::string_view bytes) {
        hasher_.update(bytes);
        file_.put(bytes);
        size_ += bytes.size();
    }
    [[nodiscard]] image::Digest digest() { return hasher_.finish(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

private:
    FileTarget file_;
    Hasher hasher_;
    std::uint64_t size_ = 0;
};

class LayerPacker {
public:
    explicit LayerPacker(LayerOutput& output) : output_(output) {}
    virtual ~LayerPacker() = default;
    LayerPacker(const LayerPacker&) = delete;
    LayerPacker& operator=(const LayerPacker&) = delete;
    virtual void put(std::string_view bytes) { output_.put(bytes); }
    virtual void finish() {}

protected:
    LayerOutput& output_;
};

/// RFC 1952 without name and time.
class GzipPacker final : public LayerPacker {
public:
    explicit GzipPacker(LayerOutput& output) : LayerPacker(output), buffer_(k_packed_piece) {
        constexpr int window_and_gzip = 15 + 16;
        constexpr int memory = 9;
        if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_and_gzip, memory, Z_DEFAULT_STRATEGY) !=
            Z_OK) {
            throw bug("zlib could not be set up");
        }
    }
    ~GzipPacker() override { deflateEnd(&stream_); }
    GzipPacker(const GzipPacker&) = delete;
    GzipPacker& operator=(const GzipPacker&) = delete;

    void put(std::string_view bytes) override {
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // zlib only reads
        stream_.avail_in = static_cast<uInt>(bytes.size());
        step(Z_NO_FLUSH);
    }
    void finish() override { step(Z_FINISH); }

private:
    void step(int flush) {
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
            stream_.avail_out = static_cast<uInt>(buffer_.size());
            if (deflate(&stream_, flush) == Z_STREAM_ERROR) {
                throw bug("zlib failed");
            }
            output_.put({buffer_.data(), buffer_.size() - stream_.avail_out});
        } while (stream_.avail_out == 0);
    }

    z_stream stream_{};
    std::vector<char> buffer_;
};

class ZstdPacker final : public LayerPacker {
public:
    explicit ZstdPacker(LayerOutput& output)
        : LayerPacker(output), stream_(ZSTD_createCStream(), ZSTD_freeCStream), buffer_(k_packed_piece) {
        if (!stream_ ||
            ZSTD_isError(ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, k_zstd_level)) != 0 ||
            ZSTD_isError(ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1)) != 0) {
            throw bug("libzstd could not be set up");
        }
    }
    void put(std::string_view bytes) override { step(bytes, ZSTD_e_continue); }
    void finish() override { step({}, ZSTD_e_end); }

private:
    void step(std::string_view bytes, ZSTD_EndDirective how) {
        ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
        for (;;) {
            ZSTD_outBuffer output{buffer_.data(), buffer_.size(), 0};
            const std::size_t left = ZSTD_compressStream2(stream_.get(), &output, &input, how);
            if (ZSTD_isError(left) != 0) {
                throw bug("libzstd failed");
            }
            output_.put({buffer_.data(), output.pos});
            if (how == ZSTD_e_end ? left == 0 : input.pos == input.size) {
                return;
            }
        }
    }

    std::unique_ptr<ZSTD_CStream, decltype(&ZSTD_freeCStream)> stream_;
    std::vector<char> buffer_;
};

std::unique_ptr<LayerPacker> make_packer(image::Compression compression, LayerOutput& output) {
    switch (compression) {
        case image::Compression::gzip: return std::make_unique<GzipPacker>(output);
        case image::Compression::zstd: return std::make_unique<ZstdPacker>(output);
        case image::Compression::none: break;
    }
    return std::make_unique<LayerPacker>(output);
}

}  // namespace

WrittenLayer write_layer(const std::vector<LayerFile>& files, image::Compression compression, int fd) {
    LayerOutput output(fd);
    const auto packer = make_packer(compression, output);
    Hasher hasher;
    write_tar(files, [&](std::string_view piece) {
        hasher.update(piece);
        packer->put(piece);
    });
    packer->finish();
    WrittenLayer layer;
    layer.diff_id = hasher.finish();
    layer.size = output.size();
    layer.digest = output.digest();
    return layer;
}

}  // namespace kmm::registry
