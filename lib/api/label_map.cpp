// SPDX-License-Identifier: Apache-2.0
#include "api/label_map.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace kmm::api {

namespace {

/// A number of the length and of eight bytes at either end.
std::uint64_t cheap_hash(std::string_view text) noexcept {
    constexpr std::uint64_t k_odd = 0x9E3779B97F4A7C15U;
    std::uint64_t head = 0, tail = 0;
    const std::size_t part = std::min(text.size(), sizeof head);
    std::memcpy(&head, text.data(), part);
    std::memcpy(&tail, text.data() + (text.size() - part), part);
    return ((head * k_odd + tail) * k_odd + text.size()) * k_odd >> 32U;
}

}  // namespace

TextPool::Text TextPool::get(std::string_view text) {
    if (text.empty()) { text = std::string_view(""); }
    Text& recent = recent_[cheap_hash(text) % recent_.size()];
    if (recent != nullptr && *recent == text) { return recent; }
    if (const auto found = texts_.find(text); found != texts_.end()) { return recent = found->second; }
    recent = std::make_shared<const std::string>(text);
    texts_.emplace(*recent, recent);
    return recent;
}

Labels::Slot& Labels::Slot::operator=(std::string_view text) {
    labels_.entries_[at_].second = std::make_shared<const std::string>(text);
    return *this;
}

Labels::Slot::operator const std::string&() const { return *labels_.entries_[at_].second; }

Labels::Labels(std::initializer_list<value_type> entries) {
    reserve(entries.size());
    for (const auto& [key, text] : entries) { emplace(key, text); }
}

std::size_t Labels::place(std::string_view key) const {
    // Servers and kubectl write keys in order.
    if (entries_.empty() || *entries_.back().first < key) { return entries_.size(); }
    const auto found =
        std::partition_point(entries_.begin(), entries_.end(), [&](const auto& entry) { return *entry.first < key; });
    return static_cast<std::size_t>(found - entries_.begin());
}

Labels::const_iterator Labels::lower_bound(std::string_view key) const {
    return const_iterator(entries_.data() + place(key));
}

Labels::const_iterator Labels::find(std::string_view key) const {
    const std::size_t at = place(key);
    return is_at(at, key) ? const_iterator(entries_.data() + at) : end();
}

const std::string& Labels::at(std::string_view key) const {
    const std::size_t at = place(key);
    if (!is_at(at, key)) { throw std::out_of_range("no such label"); }
    return *entries_[at].second;
}

Labels::Slot Labels::operator[](std::string_view key) {
    const std::size_t at = place(key);
    if (!is_at(at, key)) { emplace(key, ""); }
    return Slot(*this, at);
}

bool Labels::emplace(std::string_view key, std::string_view text) {
    return emplace(std::make_shared<const std::string>(key), std::make_shared<const std::string>(text));
}

bool Labels::emplace(Text key, Text text) {
    const std::size_t at = place(*key);
    if (is_at(at, *key)) { return false; }
    entries_.emplace(entries_.begin() + static_cast<std::ptrdiff_t>(at), std::move(key), std::move(text));
    return true;
}

void Labels::insert(const_iterator first, const_iterator last) {
    for (; first != last; ++first) { emplace(first.at_->first, first.at_->second); }
}

std::size_t Labels::erase(std::string_view key) {
    const auto found = find(key);
    if (found == end()) { return 0; }
    erase(found);
    return 1;
}

Labels::const_iterator Labels::erase(const_iterator at) {
    const auto offset = at.at_ - entries_.data();
    entries_.erase(entries_.begin() + offset);
    return const_iterator(entries_.data() + offset);
}

bool operator==(const Labels& left, const Labels& right) {
    const auto same = [](const auto& a, const auto& b) { return a == b || *a == *b; };
    return std::equal(left.entries_.begin(), left.entries_.end(), right.entries_.begin(), right.entries_.end(),
                      [&](const auto& a, const auto& b) { return same(a.first, b.first) && same(a.second, b.second); });
}

}  // namespace kmm::api
