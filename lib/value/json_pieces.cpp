// SPDX-License-Identifier: Apache-2.0
#include "value/json_pieces.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "value/json_index.hpp"
#include "value/json_tokens.hpp"
#include "value/text_index.hpp"

namespace kmm::value {

namespace {

/// text.rfind(part), but for an empty one, which compares only where the first character is right.
std::size_t find_last_of(std::string_view text, std::string_view part) {
    if (part.empty() || text.size() < part.size()) { return std::string_view::npos; }
    for (auto left = text.size() - part.size() + 1; left > 0;) {
        const auto* const found = static_cast<const char*>(::memrchr(text.data(), part.front(), left));
        if (found == nullptr) { break; }
        left = static_cast<std::size_t>(found - text.data());
        if (text.substr(left).starts_with(part)) { return left; }
    }
    return std::string_view::npos;
}

}  // namespace

ItemFront::ItemFront(std::string_view text, std::size_t offset) {
    const auto before = text.substr(0, offset).find_last_not_of(" \t\r");
    if (before != std::string_view::npos && text[before] == '\n') {
        needle_ = text.substr(before, offset + 1 - before);
        return;
    }
    keys_ = keys_at(text, offset);
    if (!keys_.empty()) needle_ = text.substr(offset, text.find(':', offset) + 1 - offset);
}

std::string ItemFront::keys_at(std::string_view text, std::size_t offset) {
    constexpr std::size_t k_front = 1024;
    const auto front = text.substr(offset, k_front);
    std::string keys;
    std::size_t count = 0;
    for (std::size_t at = 0; at < front.size();) {
        if (is_json_space(front[at])) {
            ++at;
        } else if (front[at] == '"') {
            const auto end = find_quoted_end(front, at);
            const auto next = end ? front.find_first_not_of(" \t\r\n", *end) : std::string_view::npos;
            if (next == std::string_view::npos) return {};
            if (front[next] == ':') keys += front.substr(at, *end - at);
            if (front[next] == ':' && ++count == 2) return keys;
            at = next;
        } else {
            if (std::string_view("{}[],:").find(front[at]) != std::string_view::npos) keys += front[at];
            ++at;
        }
    }
    return {};
}

std::size_t ItemFront::find_last(std::string_view text) const {
    for (auto at = find_last_of(text, needle_); at != std::string_view::npos && at > 0;
         at = find_last_of(text.substr(0, at - 1 + needle_.size()), needle_)) {
        if (keys_.empty()) return at + needle_.size() - 1;
        const auto before = text.find_last_not_of(" \t\r\n", at - 1);
        if (before != std::string_view::npos && text[before] == ',' && keys_at(text, at) == keys_) return at;
    }
    return std::string_view::npos;
}

JsonPieces::JsonPieces(const ReadMore& read_more, std::string_view front, ItemFront items, Mark start,
                       std::size_t bytes, std::size_t bytes_max)
    : read_more_(read_more), items_(std::move(items)), bytes_(bytes), bytes_max_(bytes_max), carried_(front),
      start_(start) {}

bool JsonPieces::next(Piece& piece) {
    const std::lock_guard lock(mutex_);
    if (ended_ || failed_) return false;
    auto& buffer = piece.buffer;
    if (buffer.size() < bytes_ + JsonIndex::k_padding) buffer.resize(bytes_ + JsonIndex::k_padding);
    const auto carried = std::string_view(carried_).substr(carried_at_);
    for (std::size_t filled = 0;;) {
        for (const auto room = buffer.size() - JsonIndex::k_padding; !ended_ && filled < room;) {
            auto got = std::min(carried.size() - std::min(carried.size(), filled), room - filled);
            if (got > 0) {
                std::copy_n(carried.data() + filled, got, buffer.data() + filled);
            } else {
                got = read_more_(buffer.data() + filled, room - filled);
                ended_ = got == 0;
            }
            filled += got;
        }
        const std::string_view text(buffer.data(), filled);
        const auto end = ended_ ? filled : items_.find_last(text);
        if (end != std::string_view::npos) {
            piece.size = end;
            piece.number = count_++;
            piece.start = start_;
            start_ = MarkCursor(start_).mark(text, end);
            carried_at_ += end;
            if (filled >= carried.size()) {
                carried_ = std::string(text.substr(end));
                carried_at_ = 0;
            }
            return true;
        }
        if (filled > bytes_max_) {
            failed_ = true;
            return false;
        }
        buffer.resize(buffer.size() * 2);
    }
}

void JsonPieces::end_list(Piece piece, std::size_t offset) {
    const std::lock_guard lock(mutex_);
    // A list that ends before the text was cut where it has no items.
    if (end_ || !ended_ || piece.number + 1 != count_) {
        failed_ = true;
    } else {
        end_ = End{std::move(piece), offset};
    }
}

void JsonPieces::fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
}

std::optional<JsonPieces::End> JsonPieces::take_end() {
    const std::lock_guard lock(mutex_);
    return failed_ ? std::nullopt : std::move(end_);
}

}  // namespace kmm::value
