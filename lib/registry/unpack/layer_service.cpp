// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/layer_service.hpp"

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"
#include "registry/unpack/archive_reader.hpp"
#include "registry/unpack/blob_pump.hpp"
#include "registry/unpack/entry_channel.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "registry/unpack/tar_scan.hpp"
#include "registry/unpack/threaded_source.hpp"
#include "sandbox/message.hpp"
#include "sys/shared_ring.hpp"

namespace kmm::registry {

namespace {

constexpr std::uint64_t k_layer_service = 1;
constexpr std::uint64_t k_layer = 0, k_archive = 1;  // what is asked for
constexpr std::uint64_t k_large_layer = 256U << 10U;  ///< packed bytes: content goes through shared memory from here on

/// The limits, as they are sent.
template <typename Hear>
void each_limit(Limits& limits, const Hear& hear) {
    for (std::uint64_t* limit : {&limits.inflated_layer_bytes, &limits.inflated_bytes, &limits.ratio}) {
        hear(*limit);
    }
}

/// One layer, in the confined process.
void read_layer(sandbox::MessageReader& request, const sys::Fd& ring, ChannelSource& blob, Records& records) {
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
    records.done(lacks_end, hasher.finish().hex, budget.image_bytes);
}

/// An archive of an image, in the confined process.
void send_archive(sandbox::MessageReader& request, sandbox::Channel& channel, Records& records) {
    const auto compression = static_cast<image::Compression>(request.number());
    const std::uint64_t bytes_max = request.number();
    records.share(channel.take_descriptor());
    const sys::Fd fd = channel.take_descriptor();
    FileSource file(fd.get());
    PackedTar tar(file, compression, bytes_max, {});
    send_entries(tar, records);
    records.done(false, "", 0);
}

void serve_layer(const std::string& message, sandbox::Channel& channel, sandbox::Channel& answers) {
    sandbox::MessageReader request(message);
    static_cast<void>(request.number());  // the service
    const bool is_archive = request.number() == k_archive;
    const char* what = is_archive ? "archive" : "layer";
    ChannelSource blob(channel);
    Records records(channel, answers);
    std::optional<Error> fault;
    try {
        if (is_archive) {
            send_archive(request, channel, records);
        } else {
            read_layer(request, channel.take_descriptor(), blob, records);
        }
    } catch (const Error& error) {
        fault = error;
    } catch (const GivenUp&) {
        fault = Error(Exit::interrupted, "interrupted", fmt::format("the {} was given up", what));
    } catch (const std::bad_alloc&) {
        fault = Error(Exit::unsafe, "image-limit", fmt::format("the {} takes more memory than it may", what));
    } catch (const std::system_error&) {
        fault = Error(Exit::io, "io", fmt::format("no thread can be started to inflate the {}", what))
                    .hint("a limit of processes or memory is too low: ulimit -a");
    }
    try {
        if (fault) {
            records.begin(Record::failed).error(*fault);
            records.flush();
        }
    } catch (const GivenUp&) {
        // The parent is gone; the next message that does not come ends the process.
    }
    if (!is_archive) {
        blob.drain();
    }
}

std::string request_for(const image::Descriptor& layer, const image::Digest& diff_id, bool has_ring,
                        const Extraction& into) {
    sandbox::MessageWriter request;
    request.number(k_layer_service);
    request.number(k_layer);
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

void send_archive_request(sandbox::Confined& parser, image::Compression compression, std::uint64_t bytes_max,
                          const sys::Fd& ring, int file) {
    sandbox::MessageWriter request;
    request.number(k_layer_service);
    request.number(k_archive);
    request.number(static_cast<std::uint64_t>(compression));
    request.number(bytes_max);
    parser.send(request.bytes(), std::array{ring.get(), file});
}

sandbox::Service layer_service() { return {k_layer_service, prepare_hashing, prepare_layers, serve_layer}; }

void extract_confined(sandbox::Confined& parser, ByteSource& blob, const image::Descriptor& layer,
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
