// SPDX-License-Identifier: Apache-2.0
// A journal in memory whose program dies at an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "upgrade/drive/driver.hpp"
#include "value/node.hpp"

namespace kmm::drive::test {

/// Throws once it has more than `dies_after` entries; the last one is kept.
class MortalJournal final : public Journal {
public:
    void begin(const value::Node& header) override { entries.push_back(header); }
    void append(const value::Node& event) override {
        entries.push_back(event);
        if (entries.size() > dies_after) throw bug("killed");
    }
    void snapshot(const value::Node&) override {}
    std::vector<value::Node> entries;
    std::size_t dies_after = SIZE_MAX;
};

}  // namespace kmm::drive::test
