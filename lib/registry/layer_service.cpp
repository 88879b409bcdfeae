// SPDX-License-Identifier: Apache-2.0
#include "registry/layer_service.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "registry/blob_pump.hpp"
#include "registry/entry_reader.hpp"
#include "registry/hash.hpp"
#include "registry/tar_reader.hpp"
#include "registry/tar_scan.hpp"
#include "registry/threaded_source.hpp"
#include "sys/message.hpp"
#include "sys/shared_ring.hpp"

namespace kmm::registry {

namespace {

constexpr std::uint64_t k_layer_service = 1;

// Answers to a question for content.
constexpr std::string_view k_wanted = "y", k_not_wanted = "n";
/// What the process says, record after record in messages of any number of them.
enum class Record : std::uint64_t { entry, content, shared_content, content_end, done, failed };
/// Whether the content of an entry follows.
enum class Content : std::uint64_t { none, follows, on_demand };

constexpr std::size_t k_small_file = 16U << 10U;       ///< what is not larger comes unasked: asking takes longer
constexpr std::uint64_t k_large_layer = 256U << 10U;  ///< packed bytes: content goes through shared memory from here on
constexpr std::size_t k_shared_piece = 4U << 10U;       ///< what is shorter goes with the records
constexpr std::size_t k_shared_message = 256U << 10U;   ///< records are sent when there is so much in shared memory
constexpr std::size_t k_taken_piece = 128U << 10U;      ///< what is taken out of shared memory at a time
constexpr std::size_t k_record_message = 128U << 10U;         ///< records are sent when there is so much of them
constexpr std::size_t k_record_message_max = 16U << 20U;      ///< of one record and the rest before it
constexpr std::size_t k_name_max = 4U << 20U;          ///< names are held to the limits later

/// The limits, as they are sent.
template <typename Hear>
void each_limit(Limits& limits, const Hear& hear) {
    for (std::uint64_t* limit : {&limits.inflated_layer_bytes, &limits.inflated_bytes, &limits.ratio}) {
        hear(*limit);
    }
}

/// What the parent has given up is read no further.
struct GivenUp {};

/// The blob's bytes as they come through the channel.
class ChannelSource final : public ByteSource {
public:
    explicit ChannelSource(sys::Channel& channel) : channel_(channel) {}

    std::string_view next() override {
        if (ended_) {
            return {};
        }
        if (!channel_.receive(message_, k_record_message_max) || message_.empty() ||
            message_.front() == k_blob_given_up) {
            ended_ = true;
            throw GivenUp();
        }
        ended_ = message_.front() == k_blob_end;
        return std::string_view(message_).substr(1);
    }

    /// Reads on until nothing more comes for this request.
    void drain() {
        try {
            while (!ended_) {
                static_cast<void>(next());
            }
        } catch (const GivenUp&) {
        }
    }

private:
    sys::Channel& channel_;
    std::string message_;
    bool ended_ = false;
};

/// Sends records together.
class Records {
public:
    Records(sys::Channel& channel, sys::Channel& answers) : channel_(channel), answers_(answers) {}

    /// From now on content goes through the ring in `file`.
    void share(const sys::Fd& file) { ring_.emplace(file); }

    sys::MessageWriter& begin(Record record) {
        if (out_.bytes().size() >= k_record_message) {
            flush();
        }
        out_.number(static_cast<std::uint64_t>(record));
        return out_;
    }
    void flush() {
        if (!out_.bytes().empty() && !channel_.send(out_.bytes())) {
            throw GivenUp();
        }
        out_.clear();
        shared_ = 0;
    }
    void content(std::string_view piece) {
        if (!ring_ || piece.size() < k_shared_piece) {
            begin(Record::content).text(piece);
            return;
        }
        while (!piece.empty()) {
            const std::size_t size = ring_->write(piece);
            if (size == 0) {
                flush();
                ring_->wait_for_room();
                continue;
            }
            begin(Record::shared_content).number(size);
            piece.remove_prefix(size);
            shared_ += size;
            if (shared_ >= k_shared_message) {
                flush();
            }
        }
    }
    /// Whether the content of the entry that was sent last is wanted.
    [[nodiscard]] bool ask() {
        flush();
        std::string answer;
        if (!answers_.receive(answer, 1)) {
            throw GivenUp();
        }
        return answer == k_wanted;
    }

private:
    sys::Channel& channel_;
    sys::Channel& answers_;
    sys::MessageWriter out_;
    std::optional<sys::RingWriter> ring_;
    std::size_t shared_ = 0;  ///< bytes in the ring that records in `out_` are of
};

void send_entries(EntryReader& tar, Records& records) {
    LayerEntry entry;
    while (tar.next(entry)) {
        const Content content = entry.kind != EntryKind::file ? Content::none
                                : entry.size <= k_small_file  ? Content::follows
                                                              : Content::on_demand;
        auto& out = records.begin(Record::entry);
        out.text(entry.name);
        out.number(static_cast<std::uint64_t>(entry.kind));
        out.text(entry.target);
        out.number(entry.size);
        out.flag(entry.executable);
        out.flag(entry.sparse);
        out.number(static_cast<std::uint64_t>(content));
        if (content == Content::none || (content == Content::on_demand && !records.ask())) {
            continue;
        }
        for (std::string_view piece = tar.content(); !piece.empty(); piece = tar.content()) {
            records.content(piece);
        }
        static_cast<void>(records.begin(Record::content_end));
    }
}

/// One layer, in the confined process.
void read_layer(sys::MessageReader& request, const sys::Fd& ring, ChannelSource& blob, Records& records) {
    const auto compression = static_cast<image::Compression>(request.number());
    const auto algorithm = static_cast<image::DigestAlgorithm>(request.number());
    const std::uint64_t compressed_bytes = request.number();
    Limits limits;
    each_limit(limits, [&](std::uint64_t& limit) { limit = request.number(); });
    InflateBudget budget{request.number()};
    if (request.flag()) {
        records.share(ring);
    }
    const auto inflater = make_inflater(compression, blob);
    Hasher hasher(algorithm);
    bool lacks_end = false;
    {
        ThreadedSource ahead(*inflater, [&hasher](std::string_view piece) { hasher.update(piece); });
        CheckedSource checked(ahead, compressed_bytes, limits, budget, {});
        {
            TarScan scan(checked);
            TarReader tar(scan);
            send_entries(tar, records);
            scan.look_to_end();
            lacks_end = scan.lacks_end();
        }
        checked.drain();
    }
    auto& out = records.begin(Record::done);
    out.flag(lacks_end);
    out.text(hasher.finish().hex);
    out.number(budget.image_bytes);
    records.flush();
}

void serve_layer(const std::string& message, sys::Channel& channel, sys::Channel& answers) {
    sys::MessageReader request(message);
    static_cast<void>(request.number());  // the service
    ChannelSource blob(channel);
    Records records(channel, answers);
    std::optional<Error> fault;
    try {
        read_layer(request, channel.take_descriptor(), blob, records);
    } catch (const Error& error) {
        fault = error;
    } catch (const GivenUp&) {
        fault = Error(Exit::interrupted, "interrupted", "the layer was given up");
    } catch (const std::bad_alloc&) {
        fault = Error(Exit::unsafe, "image-limit", "the layer takes more memory than it may");
    } catch (const std::system_error&) {
        fault = Error(Exit::io, "io", "no thread can be started to inflate the layer");
    }
    try {
        if (fault) {
            records.begin(Record::failed).error(*fault);
            records.flush();
        }
    } catch (const GivenUp&) {
        // The parent is gone; the next message that does not come ends the process.
    }
    blob.drain();
}

/// The entries as the process says them.
class ConfinedReader final : public EntryReader {
public:
    /// `ring` is the file through which content comes, or empty. With `copies` content may be looked at twice.
    ConfinedReader(sys::Confined& parser, const sys::Fd& ring, bool copies, const std::function<void()>& on_piece)
        : parser_(parser), on_piece_(on_piece) {
        if (ring) {
            ring_.emplace(ring);
        }
        if (ring && copies) {
            copy_ = std::make_unique_for_overwrite<char[]>(k_taken_piece);
        }
    }

    bool next(LayerEntry& entry) override {
        while (content_ != Content::none) {
            if (content_ == Content::on_demand) {
                answer(k_not_wanted);
            } else {
                static_cast<void>(content());
            }
        }
        const Record record = take();
        if (record == Record::done) {
            lacks_end_ = records().flag();
            diff_id_ = records().text(256);
            inflated_ = records().number();
            ended_ = true;
            return false;
        }
        if (record != Record::entry) {
            throw sys::bad_message();
        }
        entry = LayerEntry{};
        entry.name = records().text(k_name_max);
        entry.kind = static_cast<EntryKind>(records().number(static_cast<std::uint64_t>(EntryKind::special)));
        entry.target = records().text(k_name_max);
        entry.size = records().number();
        entry.executable = records().flag();
        entry.sparse = records().flag();
        content_ = static_cast<Content>(records().number(static_cast<std::uint64_t>(Content::on_demand)));
        if ((content_ == Content::none) != (entry.kind != EntryKind::file)) {
            throw sys::bad_message();
        }
        return true;
    }

    std::string_view content() override {
        if (content_ == Content::none) {
            return {};
        }
        if (content_ == Content::on_demand) {
            content_ = Content::follows;
            answer(k_wanted);
        }
        if (lent_ > 0) {
            ring_->release(std::exchange(lent_, 0));
        }
        if (in_ring_ > 0) {
            return take_shared();
        }
        const Record record = take();
        if (record == Record::shared_content && ring_) {
            in_ring_ = records().number(sys::k_ring_bytes);
            if (in_ring_ == 0) {
                throw sys::bad_message();
            }
            return take_shared();
        }
        if (record == Record::content) {
            const std::string_view piece = records().view();
            if (piece.empty()) {
                throw sys::bad_message();
            }
            return piece;
        }
        if (record != Record::content_end) {
            throw sys::bad_message();
        }
        content_ = Content::none;
        return {};
    }

    [[nodiscard]] bool lacks_end() const noexcept { return lacks_end_; }
    [[nodiscard]] const std::string& diff_id() const noexcept { return diff_id_; }
    [[nodiscard]] std::uint64_t inflated() const noexcept { return inflated_; }

private:
    void answer(std::string_view word) {
        parser_.answer(word);
        if (word == k_not_wanted) {
            content_ = Content::none;
        }
    }

    /// The next bytes of what a record says is in the ring, where the process can change them at any time.
    std::string_view take_shared() {
        const std::string_view piece = ring_->view(std::min<std::uint64_t>(in_ring_, k_taken_piece));
        in_ring_ -= piece.size();
        if (!copy_) {
            lent_ = piece.size();
            return piece;
        }
        piece.copy(copy_.get(), piece.size());
        ring_->release(piece.size());
        return {copy_.get(), piece.size()};
    }

    /// The kind of the next record. Throws the error that the process has met.
    Record take() {
        if (ended_) {
            throw sys::bad_message();
        }
        if (!reader_ || reader_->at_end()) {
            parser_.receive(message_, k_record_message_max, on_piece_);
            reader_.emplace(message_);
            if (on_piece_) {
                on_piece_();
            }
        }
        const auto record = static_cast<Record>(records().number(static_cast<std::uint64_t>(Record::failed)));
        if (record == Record::failed) {
            ended_ = true;
            throw records().error();
        }
        return record;
    }

    sys::MessageReader& records() { return *reader_; }

    sys::Confined& parser_;
    const std::function<void()>& on_piece_;
    std::optional<sys::RingReader> ring_;
    std::unique_ptr<char[]> copy_;
    std::size_t lent_ = 0;       ///< bytes of the ring that the last piece lies in
    std::uint64_t in_ring_ = 0;  ///< bytes of the last record that are still to be taken
    std::string message_;
    std::optional<sys::MessageReader> reader_;  ///< of `message_`
    Content content_ = Content::none;           ///< of the current entry, what is still to come
    bool ended_ = false;
    bool lacks_end_ = false;
    std::string diff_id_;
    std::uint64_t inflated_ = 0;
};

std::string request_for(const image::Descriptor& layer, const image::Digest& diff_id, bool has_ring,
                        const Extraction& into) {
    sys::MessageWriter request;
    request.number(k_layer_service);
    request.number(static_cast<std::uint64_t>(image::layer_compression(layer)));
    request.number(static_cast<std::uint64_t>(diff_id.algorithm));
    request.number(layer.size);
    Limits limits = into.limits;
    each_limit(limits, [&](const std::uint64_t& limit) { request.number(limit); });
    request.number(into.budget.image_bytes);
    request.flag(has_ring);
    return request.bytes();
}

/// Loads what reading a layer loads: libarchive, and the C library's tables for names that are not ASCII.
void prepare_layers() {
    std::string tar;
    TarWriter writer([&](std::string_view bytes) { tar += bytes; });
    const std::string name = std::string(120, 'n') + "\xc3\xa4";
    writer.begin(name, 1, false);
    writer.append("x");
    writer.finish();
    struct Text final : ByteSource {
        explicit Text(std::string_view bytes) : rest(bytes) {}
        std::string_view next() override { return std::exchange(rest, {}); }
        std::string_view rest;
    } text(tar);
    TarReader reader(text);
    LayerEntry entry;
    while (reader.next(entry)) {
    }
}

/// What both processes use.
void prepare_hashing() {
    for (const auto algorithm : {image::DigestAlgorithm::sha256, image::DigestAlgorithm::sha512}) {
        static_cast<void>(Hasher(algorithm).finish());
    }
}

}  // namespace

sys::Service layer_service() { return {k_layer_service, prepare_hashing, prepare_layers, serve_layer}; }

void extract_confined(sys::Confined& parser, ByteSource& blob, const image::Descriptor& layer,
                      const image::Digest& diff_id, Extraction& into) {
    const auto lock = parser.lock();
    const sys::Fd ring = layer.size < k_large_layer ? sys::Fd() : sys::RingReader::make_file();
    ConfinedReader reader(parser, ring, into.file_digests, into.on_piece);
    const int descriptor = ring.get();
    parser.send(request_for(layer, diff_id, static_cast<bool>(ring), into),
                std::span<const int>(&descriptor, ring ? 1 : 0));
    BlobPump pump(parser, blob);
    into.view.begin_layer();
    try {
        add_entries(reader, into);
        pump.finish();
    } catch (...) {
        // What comes next must not be parsed by a process that has seen bytes that were not the image's.
        const auto fault = std::current_exception();
        pump.stop();
        parser.renew();
        pump.finish();  // what is wrong with the blob comes first
        std::rethrow_exception(fault);
    }
    into.budget.image_bytes = reader.inflated();
    if (reader.lacks_end()) {
        into.warnings.insert(fmt::format(
            "tar-without-end: the layer {} ends without the blocks that end a tar: was it cut off when it was made?",
            layer.digest.short_text()));
    }
    require_diff_id(diff_id, reader.diff_id());
}

}  // namespace kmm::registry
