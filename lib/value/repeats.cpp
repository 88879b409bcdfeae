// SPDX-License-Identifier: Apache-2.0
#include "value/repeats.hpp"

#include <algorithm>

namespace kmm::value {

namespace {

constexpr std::size_t k_front = 160;                           ///< bytes that a hash is made of
constexpr std::size_t k_same_front_max = 8;                    ///< values with one hash that are compared
constexpr std::size_t k_bytes_max = std::size_t{8} << 20U;     ///< of all values

}  // namespace

std::string_view RepeatTexts::keep(std::string_view text, std::size_t hash) {
    Part& part = parts_[hash % parts_.size()];
    const std::lock_guard lock(part.mutex);
    const auto [first, last] = part.texts.equal_range(hash);
    const auto found = std::find_if(first, last, [&](const auto& kept) { return kept.second == text; });
    return found != last ? found->second : part.texts.emplace(hash, text)->second;
}

std::size_t Repeats::hash(std::string_view text) noexcept {
    return std::hash<std::string_view>{}(text.substr(0, k_front));
}

const Repeats::Value* Repeats::find(std::string_view text, const Shape* shape) const {
    const auto candidates = by_front_.find(hash(text));
    if (candidates == by_front_.end()) { return nullptr; }
    for (const auto place : candidates->second) {
        const Value& value = values_[place];
        if (value.shape == shape && text.starts_with(value.text)) { return &value; }
    }
    return nullptr;
}

std::uint32_t Repeats::add(std::string_view text, const Shape* shape, std::size_t tokens, std::size_t nodes,
                           ObjectSink& sink) {
    if (text.size() < k_front || bytes_ + text.size() > k_bytes_max) { return 0; }
    const auto front = hash(text);
    const auto candidates = by_front_.find(front);
    if (candidates != by_front_.end() && candidates->second.size() >= k_same_front_max) { return 0; }
    const auto number = sink.number_repeat();
    if (number == 0) { return 0; }
    auto& places = by_front_[front];
    bytes_ += text.size();
    places.push_back(static_cast<std::uint32_t>(values_.size()));
    values_.push_back(Value{texts_->keep(text, front), shape, number, tokens, nodes});
    return number;
}

}  // namespace kmm::value
