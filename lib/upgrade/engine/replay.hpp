// SPDX-License-Identifier: Apache-2.0
// From a journal to the run it tells of. Illegal moves are refused, whoever wrote them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "upgrade/engine/event.hpp"
#include "upgrade/engine/node_index.hpp"
#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"
#include "value/node.hpp"

namespace kmm::upgrade {

/// One journal entry as replay needs it.
struct TimedPayload {
    std::string time;  ///< RFC 3339, information only
    value::Node payload;
};

/// A run with an index of its nodes: events are judged and taken over at a cost that does not depend on the number of
/// nodes.
class Ledger {
public:
    /// O(nodes log nodes).
    explicit Ledger(Run run) : run_(std::move(run)), index_(run_) {}
    [[nodiscard]] const Run& run() const noexcept { return run_; }
    [[nodiscard]] const NodeIndex& index() const noexcept { return index_; }
    [[nodiscard]] Run release() && { return std::move(run_); }
    /// nullptr for a name that is not in the run.
    [[nodiscard]] const NodeRecord* find(std::string_view name) const;

    /// What an event makes of the run: its own state and, for the event of a node, that node.
    struct Change {
        RunState run;
        std::size_t place = 0;  ///< of `node` in Run::nodes
        std::optional<NodeRecord> node;
        /// Hints of nodes, by their place, that change as the run ends.
        std::vector<std::pair<std::size_t, std::string>> hints;
        std::optional<value::Node> subject;  ///< replaces Header::subject: what a person has changed by going on
    };
    /// Changes nothing. Errors: io "state-damaged" if the move is not in the procedure's table, names an unknown node,
    /// or starts from another state than the run is in.
    [[nodiscard]] Change judge(const Event& event, const std::string& time) const;
    /// Takes over what judge said of this very run.
    void commit(Change change) noexcept;

private:
    void judge_run(const Event& event, const std::string& time, RunState& next) const;
    [[nodiscard]] NodeRecord judge_node(const NodeRecord& node, const Event& event, const std::string& time) const;
    [[nodiscard]] NodeRecord begin_step(const NodeRecord& node, const Event& event) const;
    Run run_;
    NodeIndex index_;
};

/// The run a journal tells of: entry 1 is the header. Errors: as Ledger::judge, with the entry's number. `entries` not
/// empty.
[[nodiscard]] Run replay(const std::vector<TimedPayload>& entries, const Procedures& procedures);

/// The procedure that a record names. Errors: config "state-newer" for one that is not among `procedures`: a newer
/// program has written it.
[[nodiscard]] const Procedure& find_procedure(const Header& run, const Procedures& procedures);
/// Header::rules. It is a bug if they are not set.
[[nodiscard]] const Procedure& procedure_of(const Header& run);
/// What the procedure of `run` says of it.
[[nodiscard]] Description describe(const Run& run);

}  // namespace kmm::upgrade
