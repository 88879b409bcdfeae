// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/entry_channel.hpp"

#include <algorithm>
#include <utility>

#include "registry/unpack/blob_pump.hpp"

namespace kmm::registry {

namespace {

// Answers to a question for content.
constexpr std::string_view k_wanted = "y", k_not_wanted = "n";

constexpr std::size_t k_small_file = 16U << 10U;       ///< what is not larger comes unasked: asking takes longer
constexpr std::size_t k_shared_piece = 4U << 10U;       ///< what is shorter goes with the records
constexpr std::size_t k_shared_message = 256U << 10U;   ///< records are sent when there is so much in shared memory
constexpr std::size_t k_taken_piece = 128U << 10U;      ///< what is taken out of shared memory at a time
constexpr std::size_t k_record_message = 128U << 10U;         ///< records are sent when there is so much of them
constexpr std::size_t k_record_message_max = 16U << 20U;      ///< of one record and the rest before it
constexpr std::size_t k_name_max = 4U << 20U;          ///< names are held to the limits later

}  // namespace

std::string_view ChannelSource::next() {
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

void ChannelSource::drain() {
    try {
        while (!ended_) {
            static_cast<void>(next());
        }
    } catch (const GivenUp&) {
    }
}

sandbox::MessageWriter& Records::begin(Record record) {
    if (out_.bytes().size() >= k_record_message) {
        flush();
    }
    out_.number(static_cast<std::uint64_t>(record));
    return out_;
}

void Records::flush() {
    if (!out_.bytes().empty() && !channel_.send(out_.bytes())) {
        throw GivenUp();
    }
    out_.clear();
    shared_ = 0;
}

void Records::content(std::string_view piece) {
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

bool Records::ask() {
    flush();
    std::string answer;
    if (!answers_.receive(answer, 1)) {
        throw GivenUp();
    }
    return answer == k_wanted;
}

void Records::done(bool lacks_end, const std::string& diff_id, std::uint64_t inflated) {
    auto& out = begin(Record::done);
    out.flag(lacks_end);
    out.text(diff_id);
    out.number(inflated);
    flush();
}

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

ConfinedReader::ConfinedReader(sandbox::Confined& parser, const sys::Fd& ring, bool copies,
                               const std::function<void()>& on_piece)
    : parser_(parser), on_piece_(on_piece) {
    if (ring) {
        ring_.emplace(ring);
    }
    if (ring && copies) {
        copy_ = std::make_unique_for_overwrite<char[]>(k_taken_piece);
    }
}

bool ConfinedReader::next(LayerEntry& entry) {
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
        throw sandbox::bad_message();
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
        throw sandbox::bad_message();
    }
    return true;
}

std::string_view ConfinedReader::content() {
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
            throw sandbox::bad_message();
        }
        return take_shared();
    }
    if (record == Record::content) {
        const std::string_view piece = records().view();
        if (piece.empty()) {
            throw sandbox::bad_message();
        }
        return piece;
    }
    if (record != Record::content_end) {
        throw sandbox::bad_message();
    }
    content_ = Content::none;
    return {};
}

void ConfinedReader::answer(std::string_view word) {
    parser_.answer(word);
    if (word == k_not_wanted) {
        content_ = Content::none;
    }
}

/// The next bytes of what a record says is in the ring, where the process can change them at any time.
std::string_view ConfinedReader::take_shared() {
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
Record ConfinedReader::take() {
    if (ended_) {
        throw sandbox::bad_message();
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

}  // namespace kmm::registry
