// SPDX-License-Identifier: Apache-2.0
#include "value/pairs.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kmm::value {

namespace {

constexpr std::size_t k_pair_bytes_max = std::size_t{8} << 20U;  ///< of all texts

std::uint64_t word_at(const char* text) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text, sizeof word);
    return word;
}

/// Two lanes of eight bytes; the last sixteen overlap those before them.
std::uint32_t pair_hash(std::string_view text) noexcept {
    constexpr std::uint64_t k_left = 0x9E3779B97F4A7C15U, k_right = 0xC2B2AE3D27D4EB4FU;
    std::uint64_t left = text.size() * k_right, right = k_left;
    const auto add = [&](const char* at) {
        left = std::rotl((left ^ word_at(at)) * k_left, 29);
        right = std::rotl((right ^ word_at(at + 8)) * k_right, 31);
    };
    if (text.size() < 16) {
        char block[16] = {};
        std::copy(text.begin(), text.end(), block);
        add(block);
    } else {
        for (std::size_t at = 0; at + 16 < text.size(); at += 16) add(text.data() + at);
        add(text.data() + text.size() - 16);
    }
    const std::uint64_t mixed = (left ^ std::rotl(right, 17)) * k_left;
    return static_cast<std::uint32_t>(mixed >> 32U);
}

}  // namespace

Pairs::Slot& Pairs::slot(std::vector<Slot>& slots, std::string_view text, std::uint32_t hash) const noexcept {
    for (std::size_t at = hash;; ++at) {
        Slot& slot = slots[at & (slots.size() - 1)];
        if (slot.text == nullptr) return slot;
        if (slot.hash == hash && std::string_view(slot.text, slot.size) == text) return slot;
    }
}

void Pairs::grow() {
    std::vector<Slot> more(2 * slots_.size());
    for (const auto& old : slots_) {
        if (old.text != nullptr) slot(more, {old.text, old.size}, old.hash) = old;
    }
    slots_.swap(more);
}

const char* Pairs::keep(std::string_view text) {
    constexpr std::size_t k_block = std::size_t{1} << 14U;
    if (blocks_.empty() || blocks_.back().size() + text.size() > blocks_.back().capacity()) {
        blocks_.emplace_back().reserve(std::max(k_block, text.size()));
    }
    auto& block = blocks_.back();
    block.append(text);
    return block.data() + (block.size() - text.size());
}

std::uint32_t Pairs::number(std::string_view text, ObjectSink& sink) {
    const auto hash = pair_hash(text);
    Slot& found = slot(slots_, text, hash);
    if (found.text != nullptr) return found.number;
    auto& seen = seen_[hash % k_seen];
    if (seen != hash) {
        seen = hash;
        return 0;
    }
    if (bytes_ + text.size() > k_pair_bytes_max) return 0;
    const auto number = sink.number_repeat();
    if (number == 0) return 0;
    bytes_ += text.size();
    found = Slot{keep(text), static_cast<std::uint32_t>(text.size()), hash, number};
    if (2 * ++used_ > slots_.size()) grow();
    return number;
}

}  // namespace kmm::value
