// SPDX-License-Identifier: Apache-2.0
// The tokens of a JSON text, window by window, and the first doubt about it. Internal to lib/value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/json_index.hpp"
#include "value/json_window.hpp"
#include "value/mark_cursor.hpp"

namespace kmm::value {

/// What became of reading one part: `more` text is needed, or there is a doubt.
enum class Step { ok, more, bad };

constexpr bool is_json_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

class JsonTokens {
protected:
    JsonTokens(const ReadMore& read_more, std::size_t bytes_max) : window_(read_more, bytes_max) {}

    [[nodiscard]] char peek() const noexcept { return at_ < index_.size() ? text_[index_[at_]] : '\0'; }

    bool take(char wanted) noexcept {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }

    Mark mark() { return cursor_.mark(text_, at_ < index_.size() ? index_[at_] : text_.size()); }

    Step doubt(std::string_view message) {
        if (at_ >= index_.size() && !window_.is_last()) return Step::more;
        place_ = mark();
        doubt_ = message;
        return Step::bad;
    }
    Step limit(std::string_view message) {
        const auto step = doubt(message);
        if (step == Step::bad) code_ = "document-limit";
        return step;
    }
    Step unexpected(std::string_view expected) {
        if (at_ >= index_.size()) return doubt(fmt::format("expected {}, found the end of the text", expected));
        return doubt(fmt::format("expected {}, found '{}'", expected, base::escape(text_.substr(index_[at_], 1))));
    }

    /// Drops what stands before the current token and reads on.
    bool refill() {
        const std::size_t count = at_ < index_.size() ? index_[at_] : text_.size();
        (void)cursor_.mark(text_, count);
        cursor_.drop(count);
        return refill(count);
    }

    bool refill(std::size_t count) {
        const auto problem = window_.advance(count, index_);
        at_ = 0;
        slash_ = 0;
        text_ = window_.text();
        if (problem.empty()) return true;
        place_ = cursor_.mark(text_, 0);
        doubt_ = fmt::format("expected JSON, found {}", problem);
        return false;
    }

    /// Reads the last window of a text, which begins at `start` (see JsonWindow::exchange). False if it is not well
    /// formed.
    bool exchange(std::vector<char>& buffer, std::size_t size, Mark start) {
        at_ = 0;
        slash_ = 0;
        cursor_ = MarkCursor(start);
        const bool is_good = window_.exchange(buffer, size, index_);
        text_ = window_.text();
        return is_good;
    }

    /// Runs `part` until the window holds all of it; a part that did not is begun again.
    template <typename Part>
    bool complete(Part&& part) {
        for (;;) {
            const auto at = at_;
            const auto cursor = cursor_;
            const auto step = part();
            if (step != Step::more) return step == Step::ok;
            at_ = at;
            cursor_ = cursor;
            if (!refill()) return false;
        }
    }

    /// Behind the scalar at the current token.
    [[nodiscard]] std::size_t token_end() const noexcept {
        std::size_t end = index_[at_ + 1];
        while (is_json_space(text_[end - 1])) --end;
        return end;
    }

    [[nodiscard]] bool has_escape(std::size_t begin, std::size_t end) noexcept {
        if (slash_ < begin || slash_ == 0) slash_ = std::min(text_.find('\\', begin), text_.size());
        return slash_ < end;
    }

    /// The string at the current token; nullopt for a bad escape.
    std::optional<std::string_view> string() {
        const std::size_t begin = index_[at_];
        const std::size_t end = token_end();
        if (has_escape(begin, end)) return index_.unescape(begin);
        if (text_[end - 1] != '"' || end - 1 == begin) return std::nullopt;
        return text_.substr(begin + 1, end - begin - 2);
    }

    JsonWindow window_;
    JsonIndex index_;
    std::string_view text_;
    std::size_t at_ = 0;     ///< the current token
    std::size_t slash_ = 0;  ///< a backslash at or after the place of the last question; 0 for "not looked for"
    MarkCursor cursor_;
    std::string code_ = "json-syntax", doubt_;
    Mark place_;
};

}  // namespace kmm::value
