// SPDX-License-Identifier: Apache-2.0
// The record of one upgrade: what was asked for, what was there before, and how far each node has come. It is what a
// journal replays to; nothing in it is a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "value/node.hpp"

namespace kmm::upgrade {

/// Format of header and events. Additions keep the number; readers keep members they do not know.
inline constexpr std::int64_t k_format_version = 1;

/// What `abort` does with nodes that were touched.
enum class Rollback { none, current, all };
[[nodiscard]] std::string_view to_string(Rollback rollback) noexcept;
[[nodiscard]] std::optional<Rollback> parse_rollback(std::string_view text) noexcept;

/// How nodes are reached: `self` makes worker Pods, `operator_` leaves the work to an operator of the cluster, `ssh`
/// and `local` run the worker.
enum class Via { self, operator_, ssh, local };
/// As the command line and the record spell it: "self", "operator", "ssh", "local".
[[nodiscard]] std::string_view to_string(Via via) noexcept;
[[nodiscard]] std::optional<Via> parse_via(std::string_view text) noexcept;

/// What `start` was asked to do.
struct Options {
    std::string order = "name";          ///< "name", "zone", or the file the order was read from
    bool all_nodes = false;              ///< of an ordered upgrade: no node was left out by name or selector
    std::int64_t canary = 0;             ///< nodes before the first stop, 0: none
    std::int64_t pause_after = 0;        ///< nodes between stops, 0: never
    std::int64_t max_unavailable = 1;    ///< nodes in flight at once, at least 1
    std::int64_t node_timeout_ms = 600'000;  ///< for one step on one node
    bool manual = false;                 ///< `start` records and stops
    Via via = Via::ssh;                  ///< "runner" in the record
    std::string operator_said;  ///< "present" or "absent": a person says whether the operator is at work, "" to look
    bool repair = false;                 ///< with `operator_`: what keeps the operator from going on is taken away
    std::string worker_image;            ///< of worker Pods, "" where there are none
    std::string worker_namespace;        ///< of worker Pods, "" for that of what is upgraded
    std::string
        image_policy;  ///< who must have signed what nodes pull, as JSON that needs no further file; "" for nobody
    std::string lease_namespace;         ///< of the Lease on an API server, "" for that of what is upgraded
    std::string worker;                  ///< command of the worker on the nodes, "" for the default
    std::string ssh_config;              ///< file for `ssh -F`, "" for the user's own
    bool drain = false;                  ///< nodes are cordoned and emptied before anything is changed
    bool evict_users = false;            ///< a drain evicts only Pods that use what is upgraded
    std::string user_resources;          ///< extended resources that such Pods ask for, "a,b"
    bool drain_unmanaged = false;        ///< Pods without a controller are evicted too
    bool drain_local_data = false;       ///< Pods with an emptyDir are evicted too
    std::int64_t grace_seconds = 0;      ///< of evicted Pods, 0: their own
    bool evict_at_once = false;          ///< evicted Pods get no time at all, whatever grace_seconds says
    bool count_unavailable = false;      ///< nodes that others made unavailable count towards max_unavailable
    std::int64_t failure_budget = 0;     ///< nodes that may fail before no other one is begun
    std::int64_t soak_ms = 0;            ///< how long a node is watched before it is done
    std::string between;                 ///< "22:00-04:00": when nodes may begin, "" for always
    std::string time_zone;               ///< of `between`, "" for the zone of the host
    std::string check;                   ///< command that must agree with a node's upgrade, "" for none
    std::string on_event;                ///< command that is told of every event, "" for none
    std::string command_directory;       ///< where such commands run, "" for where kmm-upgrade does
};

/// The run has cordoned the node, or was about to: it lifts the cordon before it is done with the node.
inline constexpr std::string_view k_cordon_ours = "ours";
/// Somebody else had cordoned it before: it stays so.
inline constexpr std::string_view k_cordon_foreign = "foreign";
/// One node of the run.
struct NodeRecord {
    std::string name;
    std::string state = "pending";
    bool open = false;               ///< a step was begun and has neither finished nor failed
    std::string step;                ///< the last step that was begun
    std::string since;               ///< time of the last change of state
    std::uint64_t touched = 0;       ///< order in which nodes were first begun, 0: never
    std::int64_t attempts = 0;       ///< how often the first step of a walk was begun
    std::string kernel, boot_id, architecture;  ///< at the last look

    std::string from_version;        ///< "" when nothing, or nothing with a version, was there before
    std::string current_version;     ///< what runs there as far as known: version, "" for nothing
    bool current_known = true;       ///< false while a step is under way that changes it, or a look was impossible
    value::Node facts;               ///< what the procedure keeps of the node: its Procedure::node_members, or null

    std::string zone;                ///< with the order "zone": the node's zone, "" if it has none
    std::string cordon;              ///< k_cordon_ours, k_cordon_foreign, or "" for none that this run knows of

    std::string message;             ///< for people: outcome of the last step
    std::string reason;              ///< stable code, set while the node is failed or skipped
    std::string hint;
};

/// A node that belongs to what is upgraded and is no part of the run, since it could not take part when the run began.
struct LeftOut {
    std::string name;
    std::string reason;              ///< for people: "cordoned", "not ready", or the taint
    friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// What is fixed while a program walks a run. Shared by all of its threads.
struct Header {
    std::string lineage;             ///< UUID of this run
    std::string procedure;
    std::string cluster_identity, cluster_place;  ///< identity, and the text of cluster::Place
    std::string cluster_context;     ///< of an API server: name of the context, which `cluster_place` has in its text
    std::string created, created_by, tool_version;
    bool adopted = false;            ///< made from what the cluster says: what runs where is found out when it matters
    std::string from_version;        ///< "" when no node had one; "v1,v2" when nodes differ
    std::string to_version;          ///< "" where the procedure has none
    bool partial_before = false;     ///< nodes were left without what they should get before this run began
    /// What the procedure keeps of the run: its Procedure::run_members, or null. Who goes on with a run may change it.
    value::Node subject;
    Options options;
    std::vector<LeftOut> left_out;   ///< by name
    value::Node extra;               ///< members of the header that neither the engine nor the procedure knows, kept
    const Procedure* rules = nullptr;  ///< what `procedure` names, of the set that the program has; null: not set yet

    /// What the annotation of a node says that this run has cordoned: "kmm-upgrade LINEAGE".
    [[nodiscard]] std::string cordon_owner() const { return "kmm-upgrade " + lineage; }
};

/// Where a run is, apart from its nodes.
struct RunState {
    std::string state;
    std::string since;
    bool paused = false;
    std::string pause_reason;        ///< stable code: canary, pause-after, node-failed, manual, interrupted
    std::string pause_message;
    std::int64_t batch_base = 0;     ///< nodes that were final when the run was last started or resumed
    std::string resumed_in;          ///< state of the run when it was last resumed
    std::string until;               ///< state in which the run is to stop and has not stopped yet, "" for none
    std::optional<Rollback> rollback;  ///< set once an abort was begun
    std::uint64_t events = 0;        ///< entries replayed
    /// How the step of the run that is a stage of its own has failed; "" once it is begun again.
    std::string step_reason, step_message, step_hint;
};

/// The run.
struct Run : Header, RunState {
    std::vector<NodeRecord> nodes;   ///< in walk order

    /// O(nodes). A Ledger (replay.hpp) finds in O(1).
    [[nodiscard]] const NodeRecord* find(std::string_view name) const noexcept;
    [[nodiscard]] NodeRecord* find(std::string_view name) noexcept;
    /// True if nodes were left out, at the start, by skip, or by what went before this run.
    [[nodiscard]] bool is_partial() const;
};

/// Who begins a run, and when.
struct Signature {
    std::string lineage, created, created_by, tool_version;
};
/// A run of `procedure` at its start, without subject and nodes.
[[nodiscard]] Run begin_run(const Signature& signature, const Procedure& procedure, const Options& options);

/// The names of Header::left_out.
[[nodiscard]] std::vector<std::string> left_out_names(const Header& run);

/// True for states no step of a walk follows.
[[nodiscard]] bool is_final_node_state(std::string_view state);
/// True for the -failed states of a node.
[[nodiscard]] bool is_failed_node_state(std::string_view state);
/// "upgrade-complete" or "upgrade-aborted".
[[nodiscard]] bool is_final_run_state(std::string_view state);

/// Takes over what `facts` names of the engine's members and of the procedure's; other members are not the node's. Of a
/// procedure's member
/// "" and an empty mapping take it away. Errors: io "state-damaged" for a member of another kind.
void merge(NodeRecord& node, const value::Node& facts, const Procedure& procedure);
/// Takes away what the procedure keeps of a node for as long as `life` says.
void forget(NodeRecord& node, const Procedure& procedure, Life life);

/// Tree forms. `encode(Run)` is the journal's header when nothing has happened yet, and the snapshot at any time.
/// `rules` is set.
[[nodiscard]] value::Node encode(const NodeRecord& node, const Procedure& procedure);
[[nodiscard]] value::Node encode(const std::vector<LeftOut>& nodes);
[[nodiscard]] value::Node encode(const Run& run);
/// Inverse of encode. Errors: io "state-damaged" when required members are absent or of another type; config
/// "state-newer".
[[nodiscard]] Run decode_run(const value::Node& node, const Procedures& procedures);

}  // namespace kmm::upgrade
