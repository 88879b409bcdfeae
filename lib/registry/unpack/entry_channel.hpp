// SPDX-License-Identifier: Apache-2.0
// How a tar that a confined process reads gets here: packed bytes go in, entries and their content come out, record
// after record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "registry/layer/entry_reader.hpp"
#include "registry/layer/source.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/confined.hpp"
#include "sandbox/message.hpp"
#include "sys/fd.hpp"
#include "sys/shared_ring.hpp"

namespace kmm::registry {

/// What the process says, in messages of any number of records.
enum class Record : std::uint64_t { entry, content, shared_content, content_end, done, failed };
/// Whether the content of an entry follows.
enum class Content : std::uint64_t { none, follows, on_demand };

/// What the parent has given up is read no further.
struct GivenUp {};

/// In the process: the packed bytes as a BlobPump sends them.
class ChannelSource final : public ByteSource {
public:
    explicit ChannelSource(sandbox::Channel& channel) : channel_(channel) {}
    /// Throws GivenUp where nothing more comes although the end was not reached.
    [[nodiscard]] std::string_view next() override;
    /// Reads on until nothing more comes for this request.
    void drain();

private:
    sandbox::Channel& channel_;
    std::string message_;
    bool ended_ = false;
};

/// In the process: sends records together. Throws GivenUp once the parent is gone.
class Records {
public:
    Records(sandbox::Channel& channel, sandbox::Channel& answers) : channel_(channel), answers_(answers) {}

    /// From now on content goes through the ring in `file`.
    void share(const sys::Fd& file) { ring_.emplace(file); }
    /// The record's values are to be written into what is returned.
    sandbox::MessageWriter& begin(Record record);
    void flush();
    void content(std::string_view piece);
    /// Whether the content of the entry that was sent last is wanted.
    [[nodiscard]] bool ask();
    /// The last record of a tar that was read to its end.
    void done(bool lacks_end, const std::string& diff_id, std::uint64_t inflated);

private:
    sandbox::Channel& channel_;
    sandbox::Channel& answers_;
    sandbox::MessageWriter out_;
    std::optional<sys::RingWriter> ring_;
    std::size_t shared_ = 0;  ///< bytes in the ring that records in `out_` are of
};

/// In the process: all entries of `tar`, the content of large ones if it is wanted.
void send_entries(EntryReader& tar, Records& records);

/// In the parent: the entries as the process says them. Errors: what the process has met; sandbox::bad_message() for
/// records that cannot be; those of sandbox::Confined::receive().
class ConfinedReader final : public EntryReader {
public:
    /// `ring` is the file through which content comes, or empty. With `copies` content may be looked at twice.
    /// `parser` and `on_piece`, which is called often and may throw, must outlive the reader.
    ConfinedReader(sandbox::Confined& parser, const sys::Fd& ring, bool copies, const std::function<void()>& on_piece);

    [[nodiscard]] bool next(LayerEntry& entry) override;
    [[nodiscard]] std::string_view content() override;

    /// True once next() was false.
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] bool lacks_end() const noexcept { return lacks_end_; }
    [[nodiscard]] const std::string& diff_id() const noexcept { return diff_id_; }
    [[nodiscard]] std::uint64_t inflated() const noexcept { return inflated_; }

private:
    void answer(std::string_view word);
    [[nodiscard]] std::string_view take_shared();
    [[nodiscard]] Record take();
    [[nodiscard]] sandbox::MessageReader& records() { return *reader_; }

    sandbox::Confined& parser_;
    const std::function<void()>& on_piece_;
    std::optional<sys::RingReader> ring_;
    std::unique_ptr<char[]> copy_;
    std::size_t lent_ = 0;       ///< bytes of the ring that the last piece lies in
    std::uint64_t in_ring_ = 0;  ///< bytes of the last record that are still to be taken
    std::string message_;
    std::optional<sandbox::MessageReader> reader_;  ///< of `message_`
    Content content_ = Content::none;           ///< of the current entry, what is still to come
    bool ended_ = false;
    bool lacks_end_ = false;
    std::string diff_id_;
    std::uint64_t inflated_ = 0;
};

}  // namespace kmm::registry
