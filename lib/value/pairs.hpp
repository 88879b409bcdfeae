// SPDX-License-Identifier: Apache-2.0
// Members of mappings of strings by how they are written: a fleet's labels repeat few different ones. Internal to
// lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "value/object_stream.hpp"

namespace kmm::value {

/// Numbers texts that come more than once.
class Pairs {
public:
    Pairs() : slots_(k_slots_first), seen_(k_seen) {}

    /// The sink's number of `text`, which it gets when it comes for the second time; 0 if it has none, or there are too
    /// many. O(length).
    std::uint32_t number(std::string_view text, ObjectSink& sink);

private:
    struct Slot {
        const char* text = nullptr;
        std::uint32_t size = 0, hash = 0, number = 0;
    };
    static constexpr std::size_t k_slots_first = 1024, k_seen = std::size_t{1} << 14U;

    [[nodiscard]] Slot& slot(std::vector<Slot>& slots, std::string_view text, std::uint32_t hash) const noexcept;
    void grow();
    const char* keep(std::string_view text);

    std::vector<Slot> slots_;            ///< a power of two, at most half of them in use
    std::vector<std::uint32_t> seen_;    ///< hashes of texts that came once
    std::deque<std::string> blocks_;     ///< the texts
    std::size_t used_ = 0, bytes_ = 0;
};

}  // namespace kmm::value
