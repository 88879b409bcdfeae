// SPDX-License-Identifier: Apache-2.0
// Values of a text that were read before, byte for byte: a fleet's objects repeat few different ones. Internal to
// lib/value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "value/object_stream.hpp"

namespace kmm::value {

/// Texts, each once, for readers in several threads. Thread safe.
class RepeatTexts {
public:
    /// The copy of `text`, which lives as long as this. `hash` is any hash of it. O(length).
    [[nodiscard]] std::string_view keep(std::string_view text, std::size_t hash);

private:
    /// Readers that keep texts at the same time seldom wait for each other.
    struct Part {
        std::mutex mutex;
        std::unordered_multimap<std::size_t, std::string> texts;
    };
    std::array<Part, 32> parts_;  ///< by hash
};

/// Whole values by their text, found by how they begin: where one ends need not be known.
class Repeats {
public:
    /// Readers of one text may have their texts in common.
    explicit Repeats(std::shared_ptr<RepeatTexts> texts = std::make_shared<RepeatTexts>()) : texts_(std::move(texts)) {}

    struct Value {
        std::string_view text;
        const Shape* shape;
        std::uint32_t number;        ///< the sink's
        std::size_t tokens, nodes;   ///< how many it has
    };
    /// The value with which `text` begins; nullptr if none was added. O(length of the value).
    [[nodiscard]] const Value* find(std::string_view text, const Shape* shape) const;
    /// Adds a value; its number, or 0 if it is not kept: it is short, or there are too many. What `find` finds must not
    /// be added again.
    std::uint32_t add(std::string_view text, const Shape* shape, std::size_t tokens, std::size_t nodes,
                      ObjectSink& sink);

private:
    [[nodiscard]] static std::size_t hash(std::string_view text) noexcept;

    std::shared_ptr<RepeatTexts> texts_;
    std::vector<Value> values_;
    std::unordered_map<std::size_t, std::vector<std::uint32_t>> by_front_;  ///< places in values_
    std::size_t bytes_ = 0;
};

}  // namespace kmm::value
