// SPDX-License-Identifier: Apache-2.0
// Trees of a YAML text from its events, object by object. Internal to lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "value/object_stream.hpp"
#include "value/repeats.hpp"
#include "value/shape_lookup.hpp"

namespace kmm::value {

/// Why a YAML text is left to the other reader.
struct Doubt {
    std::string message;
    Mark mark;
    std::string code = "yaml-syntax";
};

/// A scalar event.
struct YamlScalar {
    std::string_view text;
    bool plain;
    Mark mark;
};

/// Takes the events of documents and gives the sink what they mean. All but `end_document` may throw Doubt.
class YamlTree {
public:
    /// A place between two members of the root or two items, to which an unfinished one can be taken back.
    struct Place {
        std::size_t frames, nodes, bytes, numbered, written;
        SkippedKeys skipped;
    };

    YamlTree(std::string_view file, ObjectSink& sink, const ReadLimits& limits)
        : file_(file), sink_(sink), limits_(limits) {}

    void begin_document();
    void end_document();
    void scalar(const YamlScalar& scalar);
    void start(Kind kind, Mark mark);
    void end();

    [[nodiscard]] Place place() const noexcept;
    void return_to(const Place& place);
    /// What was read ends with an object of the list, or the list has just begun.
    [[nodiscard]] bool is_between_items() const noexcept {
        return !stack_.empty() && stack_.back().role == Role::list;
    }
    /// The same for members of the root.
    [[nodiscard]] bool is_between_members() const noexcept {
        return stack_.size() == 1 && skipping_ == 0 && recording_.open == 0 && at_key();
    }

private:
    enum class Role { part, root, item, list };

    /// The events of a value that may have been read before. Scalars are 'p' or 'q', their length and text; 'm', 's'
    /// and 'e' are the start of a mapping, of a sequence, and the end of either. All but ends have marks.
    struct Recording {
        std::string events;
        std::vector<Mark> marks;
        std::size_t open = 0;  ///< containers; 0 if nothing is recorded
    };

    struct Frame {
        Node node;
        const Shape* shape = nullptr;
        SkippedKeys skipped;
        Member member;             ///< the key whose value comes next
        bool key_pending = false;
        Role role = Role::part;
    };

    void count(Mark mark, std::size_t bytes);
    [[nodiscard]] bool at_key() const noexcept {
        return !stack_.empty() && stack_.back().node.is_mapping() && !stack_.back().key_pending;
    }
    void take_scalar(const YamlScalar& scalar);
    Node plain_value(const YamlScalar& scalar);
    void on_key(const YamlScalar& key);
    void on_start(Kind kind, Mark mark);
    [[nodiscard]] const Shape* shape_of_value() const noexcept;
    [[nodiscard]] bool is_repeated(Kind kind) const noexcept;
    void record(const YamlScalar& scalar);
    void record(Kind kind, Mark mark);
    void finish_recorded();
    void replay(const Recording& recorded, std::uint32_t number);
    void push(Kind kind, Mark mark, std::uint32_t repeat);
    void ask_shape(Frame& frame);
    void finish(Node node);

    std::string file_;
    ObjectSink& sink_;
    const ReadLimits& limits_;
    std::vector<Frame> stack_;
    Recording recording_;
    Repeats repeats_;
    std::vector<Repeat> numbered_;  ///< of the item or document that is being read
    Node root_;
    std::vector<std::pair<Mark, std::string>> written_;
    std::size_t documents_ = 0, nodes_ = 0, bytes_ = 0;
    std::size_t skipping_ = 0;   ///< open containers of a value that is left out
    bool skip_value_ = false;    ///< the next value is left out
};

}  // namespace kmm::value
