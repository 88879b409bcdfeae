// SPDX-License-Identifier: Apache-2.0
// What is special to one kind of upgrade, as pure questions about a run. A procedure has no state of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "upgrade/engine/table.hpp"

namespace kmm::upgrade {

struct Header;
struct NodeRecord;
struct Run;

/// Who takes part in a stage.
struct Members {
    bool is_left_out = false;         ///< the run goes on without this stage
    std::vector<std::size_t> places;  ///< of a walk: places in Run::nodes, in the order in which they begin
    std::int64_t failure_budget = 0;  ///< of a walk: nodes that may fail before no other one begins
    std::int64_t at_once =
        0;  ///< of a walk: nodes that may be between two rests at a time, 0: as many as the run allows
    /// The smaller one of `at_once` and what the run allows.
    [[nodiscard]] std::int64_t limit(const Run& run) const;
};

/// What a member of a procedure may be: text or a mapping, which are not there when they are empty, or a document,
/// which may be empty.
enum class MemberKind { text, mapping, document };
/// How long it is kept: as long as the node; `plan`: until the node goes back; `outcome`: until another step begins, or
/// the node goes back.
enum class Life { lasting, plan, outcome };

/// A member that a procedure has in the record beside those of the engine.
struct Member {
    std::string name;
    MemberKind kind = MemberKind::text;
    std::string after;               ///< the engine's member that it follows where members are printed
    Life life = Life::lasting;
};

/// A run in words for people and in names for files.
struct Description {
    std::string kind;                ///< what the subject is, in one word
    std::string member = "node";     ///< what the members of the run are, in one word
    std::string hold =
        "cordoned";           ///< what a member is that the run keeps others away from (k_cordon_ours), in one word
    std::string space, name;  ///< namespace and name of the subject; the run's Lease is in that namespace unless a
                              ///< person names another
    std::string from, to;            ///< versions, or what there is instead: "none", "removed"
    std::string again_for_left_out;  ///< command for nodes that were left out, "" for `again` with --node
    bool is_one_of_many = false;     ///< runs of the same call may go before it and follow it: outputs name the subject
    std::vector<std::string>
        follows;  ///< subjects that are to follow this run; once it has ended well, resume goes on with them
    std::string again;               ///< the command that starts such a run
    std::string elsewhere;  ///< the command, in words, that brings nodes to another version once the run has ended
    /// Commands beside those of Options that the run executes: the option that they are from, and the text.
    std::vector<std::pair<std::string, std::string>> commands;
    std::vector<std::pair<std::string, std::string>> notes;  ///< further lines of a summary: key and text
    /// NAMESPACE/NAME.
    [[nodiscard]] std::string subject() const { return space + "/" + name; }
    /// Of file names: NAME-VERSION.
    [[nodiscard]] std::string slug() const { return name + "-" + to; }
    /// FROM -> TO.
    [[nodiscard]] std::string versions() const { return from + " -> " + to; }
};
/// True if `run` has ended well and others are to follow: resume goes on with them.
[[nodiscard]] bool is_followed(const Run& run);

/// One object a procedure. Neither it nor anything it returns depends on a clock, a file or a cluster.
class Procedure {
public:
    virtual ~Procedure() = default;
    [[nodiscard]] virtual const Table& table() const = 0;
    /// Members of the header and of a node that are the procedure's own, each name once, none of them one of the
    /// engine's.
    [[nodiscard]] virtual const std::vector<Member>& run_members() const = 0;
    [[nodiscard]] virtual const std::vector<Member>& node_members() const = 0;
    /// Errors: io "state-damaged" for a header that lacks what the procedure needs.
    virtual void check(const Run& run) const = 0;
    /// Costs at most O(nodes).
    [[nodiscard]] virtual Description describe(const Run& run) const = 0;
    /// What a rollback brings back to nodes beside a version, each once; empty where a version is all. O(nodes).
    [[nodiscard]] virtual std::vector<std::string> former(const Run& run) const {
        static_cast<void>(run);
        return {};
    }
    /// For people: what `node` has in the end, "-" for nothing.
    [[nodiscard]] virtual std::string target_text(const Header& run, const NodeRecord& node) const = 0;
    /// What a table of nodes tells beside versions and state: the title of that column, and what it says of `node`, ""
    /// for nothing.
    [[nodiscard]] virtual std::pair<std::string, std::string> aspect(const Header& run, const NodeRecord& node) const;
    /// Costs at most O(nodes).
    [[nodiscard]] virtual Members members(const Run& run, const Stage& stage) const = 0;
    /// Whether the member at `place` must not begin yet, as others that it needs are not through. Of the members that
    /// are not through at least one is not held back.
    [[nodiscard]] virtual bool is_held_back(const Run& run, std::size_t place) const {
        static_cast<void>(run);
        static_cast<void>(place);
        return false;
    }
    /// The step that `node` stands before or in the middle of on its way through `stage`; "" if none is left, or it has
    /// failed.
    [[nodiscard]] virtual std::string next_step(const Run& run, const NodeRecord& node, const Stage& stage) const = 0;
    /// The state that a node goes back to when a person sends it back after a failure, or it is found changed.
    /// That in which it has not begun, where a procedure knows no other.
    [[nodiscard]] virtual std::string restart_state(const Run& run, const NodeRecord& node) const;
    /// Why `node`, which has failed, must not be left out of the run, for people; "" if it may.
    [[nodiscard]] virtual std::string skip_refusal(const Run& run, const NodeRecord& node) const {
        static_cast<void>(run);
        static_cast<void>(node);
        return "";
    }
    /// Whether `nodes`, of rollback_nodes, can go back, as far as the record says.
    [[nodiscard]] virtual bool has_way_back(const Run& run, const std::vector<std::string>& nodes) const {
        static_cast<void>(run);
        static_cast<void>(nodes);
        return true;
    }
    /// Nodes of a lower rank go back before those of a higher one; of one rank, the one that was begun last first.
    [[nodiscard]] virtual int rollback_rank(const Run& run, const NodeRecord& node) const {
        static_cast<void>(run);
        static_cast<void>(node);
        return 0;
    }
    /// Why the run pauses after a stage that pauses, for people.
    [[nodiscard]] virtual std::string pause_note(const Run& run, const Stage& stage) const = 0;
};

/// For Procedure::check: each text of a record, by the name of its member there, is not empty. Errors: io
/// "state-damaged".
void require_recorded(std::initializer_list<std::pair<std::string_view, std::string_view>> members);

/// Procedures that a program knows, which it hands to whoever reads a record. One that names no procedure is of the
/// first.
using Procedures = std::vector<const Procedure*>;

}  // namespace kmm::upgrade
