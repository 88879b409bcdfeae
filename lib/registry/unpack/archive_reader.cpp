// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/archive_reader.hpp"

#include <utility>

#include "base/error.hpp"
#include "registry/unpack/entry_channel.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sys/shared_ring.hpp"

namespace kmm::registry {

namespace {

class OpenArchive final : public EntryReader {
public:
    OpenArchive(int fd, image::Compression compression, std::uint64_t bytes_max, const std::function<void()>& on_piece)
        : file_(fd), tar_(file_, compression, bytes_max, on_piece) {}
    bool next(LayerEntry& entry) override { return tar_.next(entry); }
    std::string_view content() override { return tar_.content(); }

private:
    FileSource file_;
    PackedTar tar_;
};

/// The process is this reader's alone, so its lock is not taken: a lock belongs to a thread.
class ConfinedArchive final : public EntryReader {
public:
    ConfinedArchive(int fd, image::Compression compression, std::uint64_t bytes_max,
                    const std::function<void()>& on_piece, sandbox::Confined& parser)
        : parser_(parser), ring_(sys::RingReader::make_file()), reader_(parser, ring_, true, on_piece) {
        send_archive_request(parser, compression, bytes_max, ring_, fd);
    }
    /// A process that is not through with the file is ended: it would wait for its content to be taken.
    ~ConfinedArchive() override {
        if (reader_.ended()) return;
        try {
            parser_.renew();
        } catch (const Error&) {
            // The starter is gone, and its process with it.
        }
    }
    ConfinedArchive(const ConfinedArchive&) = delete;
    ConfinedArchive& operator=(const ConfinedArchive&) = delete;

    bool next(LayerEntry& entry) override { return reader_.next(entry); }
    std::string_view content() override { return reader_.content(); }

private:
    sandbox::Confined& parser_;
    sys::Fd ring_;
    ConfinedReader reader_;
};

}  // namespace

PackedTar::PackedTar(ByteSource& packed, image::Compression compression, std::uint64_t bytes_max,
                     std::function<void()> on_piece)
    : plain_(make_inflater(compression, packed)), capped_(*plain_, bytes_max, std::move(on_piece)), tar_(capped_) {}

std::string_view PackedTar::Capped::next() {
    const std::string_view piece = input_.next();
    bytes_ += piece.size();
    if (bytes_ > most_) throw limit_error("the size of the archive", "image_bytes", most_);
    if (on_piece_) on_piece_();
    return piece;
}

std::unique_ptr<EntryReader> read_archive(int fd, image::Compression compression, std::uint64_t bytes_max,
                                          const std::function<void()>& on_piece, sandbox::Confined* parser) {
    if (parser == nullptr) return std::make_unique<OpenArchive>(fd, compression, bytes_max, on_piece);
    return std::make_unique<ConfinedArchive>(fd, compression, bytes_max, on_piece, *parser);
}

}  // namespace kmm::registry
