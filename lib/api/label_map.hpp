// SPDX-License-Identifier: Apache-2.0
// Labels and annotations: a sorted map of texts, most of which thousands of objects have in common.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kmm::api {

/// Texts, each once. What it gave out outlives it.
class TextPool {
public:
    using Text = std::shared_ptr<const std::string>;
    /// The shared copy of `text`. O(length).
    [[nodiscard]] Text get(std::string_view text);

private:
    std::unordered_map<std::string_view, Text> texts_;  ///< keys are views of the values
    std::array<Text, 4096> recent_;                     ///< by a cheap hash: labels are the same from node to node
};

/// Keys and their texts, sorted by key, as std::map has them, but in one block and with texts that copies share.
/// Elements are changed through the map only. Lookups are O(log size), insertion and removal O(size).
class Labels {
public:
    using Text = TextPool::Text;
    using value_type = std::pair<std::string, std::string>;
    struct Reference {
        const std::string& first;
        const std::string& second;
    };

    class const_iterator {
    public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = Labels::value_type;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = Reference;

        const_iterator() = default;
        [[nodiscard]] Reference operator*() const { return {*at_->first, *at_->second}; }
        struct Arrow {
            Reference reference;
            [[nodiscard]] const Reference* operator->() const noexcept { return &reference; }
        };
        [[nodiscard]] Arrow operator->() const { return {**this}; }
        const_iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        const_iterator operator++(int) noexcept {
            const auto before = *this;
            ++at_;
            return before;
        }
        friend bool operator==(const_iterator, const_iterator) = default;

    private:
        friend class Labels;
        explicit const_iterator(const std::pair<Text, Text>* at) noexcept : at_(at) {}
        const std::pair<Text, Text>* at_ = nullptr;
    };
    using iterator = const_iterator;

    /// Stands for the text of a key: it can be read and set.
    class Slot {
    public:
        Slot& operator=(std::string_view text);
        operator const std::string&() const;  // NOLINT(google-explicit-constructor): as std::map has it

    private:
        friend class Labels;
        Slot(Labels& labels, std::size_t at) noexcept : labels_(labels), at_(at) {}
        Labels& labels_;
        std::size_t at_;
    };

    Labels() = default;
    Labels(std::initializer_list<value_type> entries);

    [[nodiscard]] const_iterator begin() const noexcept { return const_iterator(entries_.data()); }
    [[nodiscard]] const_iterator end() const noexcept { return const_iterator(entries_.data() + entries_.size()); }
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const_iterator find(std::string_view key) const;
    [[nodiscard]] const_iterator lower_bound(std::string_view key) const;
    [[nodiscard]] bool contains(std::string_view key) const { return find(key) != end(); }
    [[nodiscard]] std::size_t count(std::string_view key) const { return contains(key) ? 1 : 0; }
    /// Throws std::out_of_range without the key.
    [[nodiscard]] const std::string& at(std::string_view key) const;

    /// The text of `key`, which is added with "" if it is not there. Valid until the next change.
    Slot operator[](std::string_view key);
    /// Adds the key unless it is there; whether it was added. Appending in order is O(1).
    bool emplace(std::string_view key, std::string_view text);
    /// The same with texts that are shared; neither may be null.
    bool emplace(Text key, Text text);
    void insert_or_assign(std::string_view key, std::string_view text) { (*this)[key] = text; }
    /// Adds the entries whose keys are not there.
    void insert(const_iterator first, const_iterator last);
    std::size_t erase(std::string_view key);
    const_iterator erase(const_iterator at);
    void clear() noexcept { entries_.clear(); }
    void reserve(std::size_t count) { entries_.reserve(count); }

    friend bool operator==(const Labels& left, const Labels& right);

private:
    [[nodiscard]] std::size_t place(std::string_view key) const;
    [[nodiscard]] bool is_at(std::size_t place, std::string_view key) const {
        return place < entries_.size() && *entries_[place].first == key;
    }

    std::vector<std::pair<Text, Text>> entries_;
};

}  // namespace kmm::api
