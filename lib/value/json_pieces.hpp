// SPDX-License-Identifier: Apache-2.0
// A long list of objects in pieces, for threads that each read some of them. Internal to lib/value.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value/mark_cursor.hpp"
#include "value/node.hpp"
#include "value/object_stream.hpp"

namespace kmm::value {

/// How the first item of a list begins, and where others may.
class ItemFront {
public:
    /// The first item begins at `offset`. In a text with line ends others are what stands at the same depth of a line;
    /// in a text without, what follows a comma and has the same two first keys.
    ItemFront(std::string_view text, std::size_t offset);
    /// False if the item cannot be told from others.
    [[nodiscard]] bool is_usable() const noexcept { return !needle_.empty(); }
    /// The last place behind the front of `text` where an item may begin; npos if there is none.
    [[nodiscard]] std::size_t find_last(std::string_view text) const;

private:
    /// The brackets and the first two keys of the object at `offset`, without values; "" if they are not in the text.
    [[nodiscard]] static std::string keys_at(std::string_view text, std::size_t offset);

    std::string needle_;  ///< ends with the bracket of the item, or begins with it if there are keys
    std::string keys_;    ///< of keys_at; "" if the line tells
};

/// Hands out the text behind the bracket of a list. Thread safe.
class JsonPieces {
public:
    struct Piece {
        std::vector<char> buffer;  ///< has JsonIndex::k_padding bytes behind the text
        std::size_t size = 0, number = 0;
        Mark start;
    };
    /// `front` is what was read of the text, from the first item on; the rest comes from `read_more`.
    JsonPieces(const ReadMore& read_more, std::string_view front, ItemFront items, Mark start, std::size_t bytes,
               std::size_t bytes_max);

    /// The next piece, in a buffer that is used again. False if there is none, or after fail().
    [[nodiscard]] bool next(Piece& piece);
    /// The list ends in this piece, at this offset.
    void end_list(Piece piece, std::size_t offset);
    /// There is a doubt: no more pieces are handed out.
    void fail();
    /// Without a doubt, the piece in which the list ends, which is the last one, and where in it. Call it when nothing
    /// else is called any more.
    struct End {
        Piece piece;
        std::size_t offset = 0;
    };
    [[nodiscard]] std::optional<End> take_end();

private:
    const ReadMore& read_more_;
    const ItemFront items_;
    const std::size_t bytes_, bytes_max_;
    std::mutex mutex_;
    std::string carried_;  ///< what was read behind the last piece, from carried_at_ on
    std::size_t carried_at_ = 0;
    Mark start_;           ///< of what follows
    std::size_t count_ = 0;
    bool ended_ = false, failed_ = false;
    std::optional<End> end_;
};

}  // namespace kmm::value
