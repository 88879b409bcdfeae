// SPDX-License-Identifier: Apache-2.0
// Reading documents of any size object by object: what `kubectl get -o json` prints is one list with everything in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::value {

/// Which members of a mapping a tree does not need. Their syntax is checked and they are left out. For a list the shape
/// is that of each item.
struct Shape {
    struct Inner {
        std::string_view key;
        const Shape* shape;
    };
    std::vector<std::string_view> skipped;
    std::vector<Inner> inner;  ///< shapes of members that are kept
    std::string_view part = "";  ///< strings whose key does not have it in it need not be kept either; "" keeps all
    /// Values of this shape that many objects have alike: see ObjectSink::number_repeat. `pairs`: a mapping of strings
    /// whose members have numbers, each its own.
    enum class Repeats { none, mapping, list, pairs } repeats = Repeats::none;
    /// A string of a repeated mapping that objects do not have alike. Where it comes first, the others have the number.
    std::string_view varies = "";
};

/// A value that has a number, by its place: no other value starts there. A member of `pairs` that the sink knows has
/// the place of its mapping and is left out of the tree; one that it does not know has that of its value.
struct Repeat {
    Mark mark;
    std::uint32_t number;
};

/// Receives what a stream holds, in its order.
class ObjectSink {
public:
    virtual ~ObjectSink() = default;
    /// Asked before the first member of an object and after its `kind`: what of the members that follow can be left
    /// out, nullptr for nothing. `object` and `list`, the list that holds it, are what has been read of them so far;
    /// `list` is nullptr for a root.
    [[nodiscard]] virtual const Shape* shape(const Node& object, const Node* list) = 0;
    /// A number, from 1, for a value whose shape `repeats`: it and all that are read from the same text have it. 0 if
    /// the sink has no use for numbers.
    [[nodiscard]] virtual std::uint32_t number_repeat() { return 0; }
    /// Asked for a value that has this number: whether its mark, its kind and the number do, without what is in it (of
    /// a mapping that varies, without all but the member that does).
    [[nodiscard]] virtual bool knows(std::uint32_t /*number*/) const { return false; }
    /// The numbered values of the item or document that is taken next, in the order of their marks.
    virtual void take_repeats(const std::vector<Repeat>& /*repeats*/) {}
    /// An item of the root's list "items"; what is taken may be changed or moved from. False if it must wait for the
    /// rest of `list`: it is then found in its items.
    [[nodiscard]] virtual bool take_item(Document& item, const Node& list) = 0;
    /// A root with its marks; the items that were taken are missing.
    virtual void take_document(const Document& document) = 0;

    // Items that several threads read, see stream_json_in_pieces.

    /// A sink for one of the threads that read items of a list of this one; nullptr if they must be read by one thread.
    /// The members of a part are called by its thread alone, while those of the whole are not called.
    [[nodiscard]] virtual std::unique_ptr<ObjectSink> part() { return nullptr; }
    /// What a part takes from here on belongs to piece `number` of the list. A part gets its pieces in their order.
    virtual void begin_piece(std::size_t /*number*/) {}
    /// All pieces were read without a doubt: takes over what the parts took, in the order of the pieces.
    virtual void join(const std::vector<std::unique_ptr<ObjectSink>>& /*parts*/) {}
};

/// Puts at most `size` bytes at `into` and returns how many; 0 at the end of the text. May throw.
using ReadMore = std::function<std::size_t(char* into, std::size_t size)>;

/// Reads one JSON document. Only text without any fault is read this way: at the first doubt the reading ends and the
/// doubt is returned, with its place; then what the sink has got so far is void, and read_any says what is wrong, or
/// reads what this reader does not know. Nothing is returned for a good text. Memory: a window of the text that holds
/// the largest item. `limits.bytes_max` and `limits.json_nodes_max` are those of an item. Keys that are twice in a part
/// that the shape leaves out are not noticed.
[[nodiscard]] std::optional<Diagnostic>
stream_json(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits = {});

/// How two threads read a text.
struct InPieces {
    /// Calls `work` once or twice, at the same time, and returns when the calls have ended.
    std::function<void(const std::function<void()>& work)> run;
    std::size_t bytes = std::size_t{1} << 18U;  ///< of a piece
};

/// The same in the threads of `pieces`: the root's list "items" is cut before objects that look like its first one, and
/// each thread reads pieces of it with a part of the sink. A piece counts only if the one before it ends where it
/// begins; so a text without a doubt is read as stream_json reads it. Any doubt voids everything: then nothing is said
/// about the text, and it must be read again, with stream_json. `read_more` is called by one thread at a time.
[[nodiscard]] bool stream_json_in_pieces(const ReadMore& read_more, std::string_view file, ObjectSink& sink,
                                         const InPieces& pieces, const ReadLimits& limits = {});

/// The same as stream_json for YAML of any number of documents. Anchors, aliases, tags, merges, keys that are no
/// strings and line ends other than LF and CRLF are doubts. `limits.nodes_max` counts for an item.
[[nodiscard]] std::optional<Diagnostic>
stream_yaml(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits = {});

}  // namespace kmm::value
