// SPDX-License-Identifier: Apache-2.0
// The entries of an image's archive (docker save, skopeo copy oci-archive:), here or in a confined process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "image/manifest.hpp"
#include "registry/layer/entry_reader.hpp"
#include "registry/layer/source.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "sandbox/confined.hpp"

namespace kmm::registry {

/// A tar out of its packed bytes, in the process that calls. `packed` must outlive it; `on_piece`, if it is set, is
/// called often and may throw. Errors: data "bad-layer" for what is not a tar or not packed so; unsafe "image-limit"
/// where it unpacks to more than `bytes_max`; those of both.
class PackedTar final : public EntryReader {
public:
    PackedTar(ByteSource& packed, image::Compression compression, std::uint64_t bytes_max,
              std::function<void()> on_piece);
    [[nodiscard]] bool next(LayerEntry& entry) override { return tar_.next(entry); }
    [[nodiscard]] std::string_view content() override { return tar_.content(); }

private:
    class Capped final : public ByteSource {
    public:
        Capped(ByteSource& input, std::uint64_t most, std::function<void()> on_piece)
            : input_(input), most_(most), on_piece_(std::move(on_piece)) {}
        [[nodiscard]] std::string_view next() override;

    private:
        ByteSource& input_;
        std::uint64_t most_;
        std::function<void()> on_piece_;
        std::uint64_t bytes_ = 0;
    };

    std::unique_ptr<ByteSource> plain_;
    Capped capped_;
    TarReader tar_;
};

/// The entries of the archive in the open file `fd`, from its start. With `parser` its bytes are unpacked and taken
/// apart there, and it is asked for nothing else as long as the reader lives; it may be used by another thread than the
/// one that made it, one at a time. `fd`, `on_piece` and `parser` must outlive it. Errors: as PackedTar;
/// sandbox::Confined::lost().
[[nodiscard]] std::unique_ptr<EntryReader> read_archive(int fd, image::Compression compression,
                                                        std::uint64_t bytes_max,
                                                        const std::function<void()>& on_piece,
                                                        sandbox::Confined* parser);

}  // namespace kmm::registry
