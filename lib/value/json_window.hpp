// SPDX-License-Identifier: Apache-2.0
// The part of a JSON text that is read at a time, cut between two tokens. Internal to lib/value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "value/json_index.hpp"
#include "value/object_stream.hpp"

namespace kmm::value {

/// A window of the text: whole tokens from its front to the end of `text()`, and what was read behind them.
class JsonWindow {
public:
    JsonWindow(const ReadMore& read_more, std::size_t bytes_max) : read_more_(read_more), bytes_max_(bytes_max) {}

    [[nodiscard]] std::string_view text() const noexcept { return {buffer_.data(), size_}; }
    /// No text follows the window.
    [[nodiscard]] bool is_last() const noexcept { return ended_ && size_ == filled_; }
    /// What was read from `offset` of the window on, beyond its end, too.
    [[nodiscard]] std::string_view read_from(std::size_t offset) const noexcept {
        return {buffer_.data() + offset, filled_ - offset};
    }
    /// Gives the memory back. The text was read by others; exchange() gives the window a new one.
    void clear() noexcept {
        buffer_ = {};
        size_ = filled_ = 0;
    }
    /// Trades buffers: the window is the first `size` bytes of `buffer`, which is the last of the text and has
    /// JsonIndex::k_padding more bytes. False if the text is not well formed.
    [[nodiscard]] bool exchange(std::vector<char>& buffer, std::size_t size, JsonIndex& index) {
        buffer_.swap(buffer);
        size_ = filled_ = size;
        ended_ = true;
        return index.index(text()) == IndexState::ok;
    }
    /// The other half of the trade; the window is empty then.
    void give_back(std::vector<char>& buffer) noexcept {
        buffer_.swap(buffer);
        size_ = filled_ = 0;
    }

    /// Drops the first `count` bytes and reads on until the window holds more than before or is the last. A message if
    /// that cannot be.
    std::string_view advance(std::size_t count, JsonIndex& index) {
        const std::size_t kept = size_ - count;
        filled_ -= count;
        if (count > 0) std::memmove(buffer_.data(), buffer_.data() + count, filled_);
        for (;;) {
            if (filled_ + JsonIndex::k_padding >= buffer_.size()) {
                if (buffer_.size() > bytes_max_) return "an object that is too large";
                buffer_.resize(std::max(buffer_.size() * 2, k_size + JsonIndex::k_padding));
            }
            fill();
            size_ = cut();
            auto state = index.index(text());
            if (state == IndexState::open_string && close_string()) state = index.index(text());
            if (state == IndexState::not_utf8) return "text that is not UTF-8";
            if (state == IndexState::bad) return "a control character in a string";
            if (is_last()) return state == IndexState::open_string ? "a string that does not end" : "";
            if (state == IndexState::ok && size_ > kept) return "";
        }
    }

private:
    static constexpr std::size_t k_size = std::size_t{1} << 20U;  ///< bytes that a window begins with

    void fill() {
        const std::size_t room = buffer_.size() - JsonIndex::k_padding;
        while (!ended_ && filled_ < room) {
            const std::size_t got = read_more_(buffer_.data() + filled_, room - filled_);
            filled_ += got;
            ended_ = got == 0;
        }
    }

    /// A place that is no part of a token: behind a line, else behind a comma, which may stand in a string.
    [[nodiscard]] std::size_t cut() const noexcept {
        if (ended_) return filled_;
        const std::string_view all(buffer_.data(), filled_);
        auto at = all.rfind('\n');
        if (at == std::string_view::npos || at < filled_ / 2) at = all.rfind(',');
        return at == std::string_view::npos ? filled_ : at + 1;
    }

    /// Moves the end of the window, which is in a string, behind that string.
    bool close_string() noexcept {
        const std::string_view all(buffer_.data(), filled_);
        for (auto at = size_; at < filled_; ++at) {
            if (all[at] == '\\') {
                ++at;
            } else if (all[at] == '"') {
                size_ = at + 1;
                return true;
            }
        }
        return false;
    }

    const ReadMore& read_more_;
    std::size_t bytes_max_;
    std::vector<char> buffer_;
    std::size_t filled_ = 0, size_ = 0;
    bool ended_ = false;
};

}  // namespace kmm::value
