// SPDX-License-Identifier: Apache-2.0
// What the planner and the ledger would have to go through all nodes for: it changes with each event, at a cost that
// does not depend on the number of nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/engine/run.hpp"

namespace kmm::upgrade {

/// Facts about the nodes of one run. Places are those of Run::nodes. It has to be told of every change of a node.
class NodeIndex {
public:
    /// O(nodes log nodes).
    explicit NodeIndex(const Run& run);

    [[nodiscard]] std::optional<std::size_t> place_of(std::string_view name) const;
    /// Nodes that were begun and are not final, and those with a cordon of this run, in walk order.
    [[nodiscard]] const std::vector<std::size_t>& under_way() const noexcept { return under_way_; }
    [[nodiscard]] bool is_under_way(std::size_t place) const noexcept {
        return std::binary_search(under_way_.begin(), under_way_.end(), place);
    }
    /// All nodes before this place were begun, or are final.
    [[nodiscard]] std::size_t begun_until() const noexcept { return begun_until_; }
    [[nodiscard]] std::int64_t finals() const noexcept { return finals_; }
    /// Nodes that busy_nodes (planner.hpp) names.
    [[nodiscard]] std::int64_t busy() const noexcept { return busy_; }
    /// The highest NodeRecord::touched.
    [[nodiscard]] std::uint64_t last_touched() const noexcept { return last_touched_; }

    /// Before and after the node at `place` of `run` changes. O(nodes under way).
    void leave(const Run& run, std::size_t place) noexcept;
    void enter(const Run& run, std::size_t place) noexcept;

    friend bool operator==(const NodeIndex&, const NodeIndex&) = default;

private:
    std::map<std::string, std::size_t, std::less<>> places_;
    std::vector<std::size_t> under_way_;  ///< has room for all nodes
    std::size_t begun_until_ = 0;
    std::int64_t finals_ = 0, busy_ = 0;
    std::uint64_t last_touched_ = 0;
};

}  // namespace kmm::upgrade
