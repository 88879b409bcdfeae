// SPDX-License-Identifier: Apache-2.0
#include "registry/archive_reader.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "registry/blob_pump.hpp"
#include "registry/entry_channel.hpp"
#include "registry/layer_service.hpp"
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
                    const std::function<void()>& on_piece, sys::Confined& parser)
        : parser_(parser), file_(fd), ring_(sys::RingReader::make_file()), reader_(parser, ring_, true, on_piece) {
        send_archive_request(parser, compression, bytes_max, ring_);
        pump_.emplace(parser, file_);
    }
    ~ConfinedArchive() override { end(); }
    ConfinedArchive(const ConfinedArchive&) = delete;
    ConfinedArchive& operator=(const ConfinedArchive&) = delete;

    bool next(LayerEntry& entry) override {
        return read([&] { return reader_.next(entry); });
    }
    std::string_view content() override {
        return read([&] { return reader_.content(); });
    }

private:
    template <typename Read>
    auto read(const Read& take) -> decltype(take()) {
        try {
            return take();
        } catch (...) {
            const auto fault = std::current_exception();
            end();
            pump_->finish();  // what is wrong with the file comes first
            std::rethrow_exception(fault);
        }
    }

    /// The file is read no further. A process that is not through with it is ended: it would wait for what is not taken.
    void end() noexcept {
        pump_->stop();
        if (reader_.ended()) return;
        try {
            parser_.renew();
        } catch (const Error&) {
            // The starter is gone, and its process with it: nothing waits for anything.
        }
    }

    sys::Confined& parser_;
    FileSource file_;
    sys::Fd ring_;
    ConfinedReader reader_;
    std::optional<BlobPump> pump_;  ///< last: it uses the rest
};

}  // namespace

PackedTar::PackedTar(ByteSource& packed, image::Compression compression, std::uint64_t bytes_max,
                     const std::function<void()>& on_piece)
    : plain_(make_inflater(compression, packed)), capped_(*plain_, bytes_max, on_piece), tar_(capped_) {}

std::string_view PackedTar::Capped::next() {
    const std::string_view piece = input_.next();
    bytes_ += piece.size();
    if (bytes_ > most_) throw limit_error("the size of the archive", "image_bytes", most_);
    if (on_piece_) on_piece_();
    return piece;
}

std::unique_ptr<EntryReader> read_archive(int fd, image::Compression compression, std::uint64_t bytes_max,
                                          const std::function<void()>& on_piece, sys::Confined* parser) {
    if (parser == nullptr) return std::make_unique<OpenArchive>(fd, compression, bytes_max, on_piece);
    return std::make_unique<ConfinedArchive>(fd, compression, bytes_max, on_piece, *parser);
}

}  // namespace kmm::registry
