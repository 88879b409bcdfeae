// SPDX-License-Identifier: Apache-2.0
// Parts of NodeModulesConfigs that were decoded before from the same text. Internal to lib/api.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "api/types.hpp"
#include "value/object_stream.hpp"

namespace kmm::api {

using Tolerations = std::vector<Toleration>;

/// What values of a stream decode to, by the numbers they get (value/object_stream.hpp). Only what was decoded without
/// a finding counts: its text never has one.
class RepeatedParts {
public:
    /// A label.
    struct Pair {
        Labels::Text key, text;
    };
    using Part = std::variant<NodeModule, Shared<ModuleConfig>, Shared<Tolerations>>;

    /// A number that no value has.
    [[nodiscard]] std::uint32_t next_number() noexcept { return ++numbers_; }
    [[nodiscard]] bool knows(std::uint32_t number) const {
        return is_pair(number) || (number != 0 && parts_.contains(number));
    }
    /// The numbered values of the object that is decoded next.
    void begin_object(const std::vector<value::Repeat>& places) { places_ = places; }
    /// The object waits, and is decoded with the others that wait as one document.
    void put_off() {
        waiting_.insert(waiting_.end(), places_.begin(), places_.end());
        places_.clear();
    }
    void begin_waiting() {
        put_off();
        places_.swap(waiting_);
        std::sort(places_.begin(), places_.end(), is_before);
    }
    /// The number of a value of the object, 0 if it has none. O(log of the numbered values).
    [[nodiscard]] std::uint32_t number(const value::Node& node) const {
        const value::Repeat wanted{node.mark(), 0};
        const auto found = std::lower_bound(places_.begin(), places_.end(), wanted, is_before);
        return found != places_.end() && found->mark == wanted.mark ? found->number : 0;
    }
    /// The part of this number; nullptr if it is not known.
    template <typename T>
    [[nodiscard]] const T* find(std::uint32_t number) const {
        const auto found = number == 0 ? parts_.end() : parts_.find(number);
        return found == parts_.end() ? nullptr : std::get_if<T>(&found->second);
    }
    /// Calls `take` for each Pair that was left out of the mapping.
    template <typename Take>
    void each_pair(const value::Node& mapping, Take&& take) const {
        const value::Repeat wanted{mapping.mark(), 0};
        for (auto at = std::lower_bound(places_.begin(), places_.end(), wanted, is_before);
             at != places_.end() && at->mark == wanted.mark; ++at) {
            if (is_pair(at->number)) { take(pairs_[at->number]); }
        }
    }
    /// What a value of the object that is being decoded is; for a number of 0 nothing happens.
    void note(std::uint32_t number, Part part) {
        if (number != 0) { noted_.emplace_back(number, std::move(part)); }
    }
    void note(std::uint32_t number, Pair pair) {
        if (number != 0) { noted_pairs_.emplace_back(number, std::move(pair)); }
    }
    /// The object was decoded, with or without findings.
    void end_object(bool is_clean) {
        if (is_clean) {
            for (auto& [number, pair] : noted_pairs_) {
                if (number >= pairs_.size()) { pairs_.resize(number + 1); }
                pairs_[number] = std::move(pair);
            }
            for (auto& [number, part] : noted_) { parts_.emplace(number, std::move(part)); }
        }
        noted_.clear();
        noted_pairs_.clear();
        places_.clear();
    }
    /// What was found is another list's from here on.
    void forget() {
        parts_.clear();
        pairs_.clear();
        noted_.clear();
        noted_pairs_.clear();
        places_.clear();
    }

private:
    static bool is_before(const value::Repeat& left, const value::Repeat& right) noexcept {
        return left.mark.line != right.mark.line ? left.mark.line < right.mark.line
                                                 : left.mark.column < right.mark.column;
    }

    [[nodiscard]] bool is_pair(std::uint32_t number) const noexcept {
        return number < pairs_.size() && pairs_[number].key != nullptr;
    }

    std::unordered_map<std::uint32_t, Part> parts_;
    std::vector<Pair> pairs_;  ///< by number; parts have the others
    std::vector<std::pair<std::uint32_t, Pair>> noted_pairs_;
    std::vector<std::pair<std::uint32_t, Part>> noted_;
    std::vector<value::Repeat> places_, waiting_;
    std::uint32_t numbers_ = 0;
};

}  // namespace kmm::api
