// SPDX-License-Identifier: Apache-2.0
// The nodes of a run in as many lines as a terminal has.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// What NODE ASPECT CURRENT TARGET STATE SINCE MESSAGE say of one node; ASPECT is what its procedure tells.
struct NodeLine {
    std::string name, aspect, current, target, state, since, message;
    std::string aspect_title = "KERNEL";  ///< the same in all lines of a table
};
[[nodiscard]] NodeLine node_line(const upgrade::Run& run, const upgrade::NodeRecord& node);

/// A table of `lines`. With `width` 0 it has all columns in full. Else it is no wider: columns are left out (that of
/// the procedure, since, current, target) until 20 columns are left for the message, then names lose their middle, at
/// last the message is cut. Names keep what tells them apart: a domain that all of them end in goes first.
[[nodiscard]] std::string format_nodes(const std::vector<NodeLine>& lines, std::size_t width);

/// At most `width` columns of a name: its beginning and its end, with "…" between.
[[nodiscard]] std::string short_name(const std::string& name, std::size_t width);

/// A view of a run's nodes that is kept up to date one node at a time. Not thread safe.
class Board {
public:
    explicit Board(const upgrade::Run& run);
    /// Takes the node over. O(log nodes); a name that the run does not have is ignored.
    void update(const upgrade::NodeRecord& node);
    /// The table in at most `rows` lines, at least 3, of `width` columns. All nodes in their order if they fit, else
    /// failed ones, those in flight, the next ones, and a last line that counts the others. O(rows), but for runs that
    /// fit.
    [[nodiscard]] std::vector<std::string> lines(std::size_t width, std::size_t rows) const;
    /// "[#####...] 12 of 40 nodes  TAIL" in `width` columns.
    [[nodiscard]] std::string bar(std::size_t width, const std::string& tail) const;
    [[nodiscard]] std::size_t total() const { return lines_.size(); }
    /// Nodes that are done, skipped or rolled back.
    [[nodiscard]] std::size_t finals() const;

private:
    enum class Phase { failed, in_flight, waiting, final };
    [[nodiscard]] static Phase phase_of(const upgrade::NodeRecord& node);
    [[nodiscard]] const std::set<std::size_t>& in(Phase phase) const {
        return groups_[static_cast<std::size_t>(phase)];
    }
    void place(std::size_t index, const upgrade::NodeRecord& node);

    upgrade::Run head_;  ///< without nodes
    std::vector<NodeLine> lines_;
    std::vector<Phase> phases_;
    std::array<std::set<std::size_t>, 4> groups_;  ///< indices of the nodes of each phase
    std::map<std::string, std::size_t> finals_;    ///< nodes of each final state
    std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace kmm::tool_upgrade
