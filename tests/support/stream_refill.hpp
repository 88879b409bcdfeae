// SPDX-License-Identifier: Apache-2.0
// Items of a stream, with the values put back that were left out because they had been read before.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "support/stream_text.hpp"

namespace kmm::tests {

/// With `numbers` it knows every value that an item before had, without it none.
class Refill final : public value::ObjectSink {
public:
    explicit Refill(bool numbers) : numbers_(numbers) {}

    const value::Shape* shape(const value::Node& object, const value::Node* /*list*/) override {
        return object.find("kind") == nullptr ? nullptr : &k_stream_object;
    }
    std::uint32_t number_repeat() override { return numbers_ ? ++count_ : 0; }
    bool knows(std::uint32_t number) const override { return parts_.contains(number) || pairs_.contains(number); }
    void take_repeats(const std::vector<value::Repeat>& repeats) override { repeats_ = repeats; }
    bool take_item(value::Document& item, const value::Node& /*list*/) override {
        fill(item.root);
        items.push_back(std::move(item.root));
        parts_.merge(new_parts_);
        pairs_.merge(new_pairs_);
        return true;
    }
    void take_document(const value::Document& document) override { items.push_back(document.root); }

    std::vector<value::Node> items;
    std::size_t filled = 0;   ///< values that were put back

private:
    void fill(value::Node& node) {
        for (const auto& [mark, number] : repeats_) {
            if (mark != node.mark() || number == 0) { continue; }
            if (const auto pair = pairs_.find(number); pair != pairs_.end()) {
                put(node, pair->second.first, pair->second.second);
            } else if (const auto part = parts_.find(number); part != parts_.end()) {
                ++filled;
                auto whole = part->second;
                for (const auto& member : node.members()) { whole.set(member.key, member.value); }
                whole.set_mark(node.mark());
                node = std::move(whole);
                return;
            }
        }
        for (auto& item : node.items()) { fill(item); }
        for (auto& member : node.members()) {
            fill(member.value);
            const auto number = number_of(member.value);
            if (member.value.is_string() && number != 0) {
                new_pairs_.emplace(number, std::pair(member.key, member.value));
            }
        }
        const auto number = number_of(node);
        if (!node.is_string() && number != 0 && !knows(number)) { new_parts_.emplace(number, node); }
    }

    void put(value::Node& mapping, const std::string& key, const value::Node& text) {
        ++filled;
        auto& members = mapping.members();
        const auto place = std::find_if(members.begin(), members.end(),
                                        [&](const value::Member& member) { return key < member.key; });
        members.insert(place, value::Member{key, {}, text});
    }

    [[nodiscard]] std::uint32_t number_of(const value::Node& node) const {
        const auto found = std::find_if(repeats_.begin(), repeats_.end(),
                                        [&](const value::Repeat& one) { return one.mark == node.mark(); });
        return found == repeats_.end() ? 0 : found->number;
    }

    bool numbers_;
    std::uint32_t count_ = 0;
    std::vector<value::Repeat> repeats_;
    std::map<std::uint32_t, value::Node> parts_, new_parts_;
    std::map<std::uint32_t, std::pair<std::string, value::Node>> pairs_, new_pairs_;
};

/// How many values were left out of a text and put back, if the items are what they are when none is left out;
/// nullopt if they are not.
inline std::optional<std::size_t> refilled(Stream stream, std::string_view text, std::size_t piece) {
    Refill with(true), without(false);
    bool doubts[2] = {};
    for (auto* sink : {&with, &without}) {
        auto rest = text;
        doubts[sink == &with ? 0 : 1] = stream(
            [&](char* into, std::size_t size) {
                const auto count = std::min({rest.size(), piece, size});
                std::memcpy(into, rest.data(), count);
                rest.remove_prefix(count);
                return count;
            },
            "f", *sink, {}).has_value();
    }
    if (doubts[0] != doubts[1]) { return std::nullopt; }
    if (doubts[0]) { return 0; }
    if (with.items.size() != without.items.size()) { return std::nullopt; }
    for (std::size_t i = 0; i < with.items.size(); ++i) {
        if (!with.items[i].same_value(without.items[i])) { return std::nullopt; }
    }
    return with.filled;
}

}  // namespace kmm::tests
