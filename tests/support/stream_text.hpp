// SPDX-License-Identifier: Apache-2.0
// All that a stream of documents gives its sink, as one text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "value/object_stream.hpp"

namespace kmm::tests {

inline const value::Shape k_stream_labels{{}, {}, "", value::Shape::Repeats::pairs};
inline const value::Shape k_stream_list{{}, {}, "", value::Shape::Repeats::list};
inline const value::Shape k_stream_entry{{}, {{"list", &k_stream_list}}, "", value::Shape::Repeats::mapping, "id"};
inline const value::Shape k_stream_entries{{}, {{"entries", &k_stream_entry}}};
inline const value::Shape k_stream_spec{{}, {{"entries", &k_stream_list}}, "", value::Shape::Repeats::mapping};
inline const value::Shape k_stream_object{
    {"left-out"},
    {{"labels", &k_stream_labels}, {"list", &k_stream_list}, {"spec", &k_stream_spec}, {"status", &k_stream_entries}}};

/// Writes down what it gets, with all marks. Some members are left out, some values have numbers.
class StreamText final : public value::ObjectSink {
public:
    const value::Shape* shape(const value::Node& object, const value::Node* /*list*/) override {
        return object.find("kind") == nullptr ? nullptr : &k_stream_object;
    }
    std::uint32_t number_repeat() override { return ++numbers_; }
    bool knows(std::uint32_t number) const override { return known_.contains(number); }
    void take_repeats(const std::vector<value::Repeat>& repeats) override {
        for (const auto& one : repeats) {
            text += "number " + std::to_string(one.number) + " at " + place(one.mark) + "\n";
            if (one.number != 0) known_.insert(one.number);
        }
    }
    bool take_item(value::Document& item, const value::Node& list) override {
        text += "item of " + dump(list) + ": " + written(item) + dump(item.root) + "\n";
        return ++items_ % 5 != 0;
    }
    void take_document(const value::Document& document) override {
        text += "document " + std::to_string(document.index) + ": " + written(document) + dump(document.root) + "\n";
    }

    std::string text;

private:
    static std::string place(value::Mark mark) {
        return std::to_string(mark.line) + ":" + std::to_string(mark.column);
    }
    static std::string written(const value::Document& document) {
        std::string out;
        for (const auto& [mark, scalar] : document.written) out += place(mark) + "=" + scalar + " ";
        return out;
    }
    static std::string dump(const value::Node& node) {
        std::string out = std::string(value::kind_name(node.kind())) + "@" + place(node.mark()) + " " + node.text();
        for (const auto& item : node.items()) out += "[" + dump(item) + "]";
        for (const auto& member : node.members())
            out += "{" + member.key + "@" + place(member.key_mark) + "=" + dump(member.value) + "}";
        return out;
    }

    std::set<std::uint32_t> known_;
    std::uint32_t numbers_ = 0;
    std::size_t items_ = 0;
};

using Stream = std::optional<Diagnostic> (*)(const value::ReadMore&, std::string_view, value::ObjectSink&,
                                             const value::ReadLimits&);

/// What a stream makes of a text that comes in pieces; "" if it has a doubt.
inline std::string stream_text(Stream stream, std::string_view text, std::size_t piece) {
    StreamText sink;
    const auto doubt = stream(
        [&](char* into, std::size_t size) {
            const auto count = std::min({text.size(), piece, size});
            std::memcpy(into, text.data(), count);
            text.remove_prefix(count);
            return count;
        },
        "f", sink, {});
    return doubt ? "" : sink.text;
}

}  // namespace kmm::tests
