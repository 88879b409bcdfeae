// SPDX-License-Identifier: Apache-2.0
// The record of one upgrade: what was asked for, what was there before, and how far each node has come. It is what a
// journal replays to; nothing in it is a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/procedure.hpp"
#include "value/node.hpp"

namespace kmm::upgrade {

/// Format of header and events. Additions keep the number; readers keep members they do not know.
inline constexpr std::int64_t k_format_version = 1;

/// What tells one build of a module from another.
struct Identity {
    std::string srcversion, build_id, sha256, version;
    [[nodiscard]] bool empty() const noexcept { return srcversion.empty() && build_id.empty() && sha256.empty(); }
    /// For people: the first twelve characters of what there is, "" if nothing.
    [[nodiscard]] std::string brief() const;
    friend bool operator==(const Identity&, const Identity&) = default;
};

/// `unknown`: the two have no kind of identity in common.
enum class Sameness { same, different, unknown };
/// Compares srcversion if both have one, else build id, else nothing can be said.
[[nodiscard]] Sameness compare(const Identity& left, const Identity& right) noexcept;

/// What `abort` does with nodes that were touched.
enum class Rollback { none, current, all };
[[nodiscard]] std::string_view to_string(Rollback rollback) noexcept;
[[nodiscard]] std::optional<Rollback> parse_rollback(std::string_view text) noexcept;

/// How nodes are reached: `self` makes worker Pods, `operator_` sets version labels and leaves the rest to KMM's operator, `ssh` and
/// `local` run kmm-worker.
enum class Via { self, operator_, ssh, local };
/// As the command line and the record spell it: "self", "operator", "ssh", "local".
[[nodiscard]] std::string_view to_string(Via via) noexcept;
[[nodiscard]] std::optional<Via> parse_via(std::string_view text) noexcept;

/// What `start` was asked to do.
struct Options {
    std::string order = "name";          ///< "name", "zone", or the file the order was read from
    bool all_nodes = false;              ///< of an ordered upgrade: no node was left out by name or label
    std::int64_t canary = 0;             ///< nodes before the first stop, 0: none
    std::int64_t pause_after = 0;        ///< nodes between stops, 0: never
    std::int64_t max_unavailable = 1;    ///< nodes in flight at once, at least 1
    std::int64_t node_timeout_ms = 600'000;  ///< for one step on one node
    bool manual = false;                 ///< `start` records and stops
    Via via = Via::ssh;                  ///< "runner" in the record
    std::string operator_said;           ///< "present" or "absent": a person says whether KMM's operator is at work, "" to look
    bool repair = false;                 ///< version labels that KMM never leaves are mended
    std::string worker_image;            ///< of worker Pods, "" where there are none
    std::string lease_namespace;         ///< of the Lease on an API server, "" for the Module's
    std::string worker;                  ///< command of the worker on the nodes, "" for the default
    std::string ssh_config;              ///< file for `ssh -F`, "" for the user's own
    bool drain = false;                  ///< nodes are cordoned and emptied before anything is unloaded
    bool evict_users = false;            ///< a drain evicts only Pods that use the module's devices
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
};

/// The run has cordoned the node, or was about to: it lifts the cordon before it is done with the node.
inline constexpr std::string_view k_cordon_ours = "ours";
/// Somebody else had cordoned it before: it stays so.
inline constexpr std::string_view k_cordon_foreign = "foreign";
/// NodeRecord::goal of a node that loses the module for good.
inline constexpr std::string_view k_goal_absent = "absent";
/// Run::procedure of an ordered upgrade, and of a run that brings nodes to what the plan says.
inline constexpr std::string_view k_procedure_module = "module", k_procedure_apply = "apply";

/// One node of the run.
struct NodeRecord {
    std::string name;
    std::string state = "pending";
    bool open = false;               ///< a step was begun and has neither finished nor failed
    std::string step;                ///< the last step that was begun
    std::string next;                ///< what `check` found to do next: unload, load or validate
    std::string goal;                ///< "" for the target version live, k_goal_absent for nothing left of the Module
    std::string since;               ///< time of the last change of state
    std::uint64_t touched = 0;       ///< order in which nodes were first begun, 0: never
    std::int64_t attempts = 0;       ///< begun checks
    std::string kernel, boot_id, architecture;  ///< at the last look

    std::string from_version;        ///< "" when nothing, or nothing with a version, was loaded before
    value::Node from_entry;          ///< the NodeModulesConfig entry that was live, null when there was none
    Identity from_identity;
    value::Node from_labels;         ///< version labels before the first change: {"module","worker","schedule","device"}

    std::string target_image, target_digest;
    value::Node target_entry;        ///< the NodeModulesConfig entry of the target version for this kernel; with
                                     ///< k_goal_absent the one that is taken out
    Identity target_identity;        ///< what `check` says the file would have when loaded

    std::string current_version;     ///< what runs there as far as known: version, "" for nothing
    bool current_known = true;       ///< false while a step is under way that changes it, or a look was impossible
    Identity live;                   ///< identity of the live module at the last look

    std::string zone;                ///< with the order "zone": the node's zone, "" if it has none
    std::string cordon;              ///< k_cordon_ours, k_cordon_foreign, or "" for none that this run knows of

    std::string message;             ///< for people: outcome of the last step
    std::string reason;              ///< stable code, set while the node is failed or skipped
    std::string kernel_line;         ///< the kernel's own words, if any
    std::string hint;
};

/// A node that the Module selects and that is no part of the run, since it could not take the module when the run began.
struct LeftOut {
    std::string name;
    std::string reason;              ///< for people: "cordoned", "not ready", or the taint
    friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

/// What an apply has to do after this run: more Modules, with the options of this one.
struct Rest {
    std::string modules;             ///< "NS/NAME NS/NAME", "" for none
    std::string nodes;               ///< that it is narrowed to, "a,b", "" for all
    std::string selector;            ///< that it is narrowed to, "" for all
    std::string share;               ///< max_unavailable as it was given
};

/// What is fixed when a run begins. Shared by all who walk it: it never changes while a program has it.
struct Header {
    std::string lineage;             ///< UUID of this run
    std::string procedure = "module";
    std::string cluster_identity, cluster_place;  ///< identity, and the text of cluster::Place
    std::string cluster_context;     ///< of an API server: name of the context, which `cluster_place` has in its text
    std::string created, created_by, tool_version;
    std::string created_definitions;  ///< CustomResourceDefinitions that were created for it, "a,b"; they stay
    bool adopted = false;            ///< made from what the cluster says: which builds run where is found out when it matters
    std::string module_namespace, module_name, kernel_module;  ///< kernel_module: the main module's name, "-" as "_"
    std::string from_version;        ///< "" when no node had one; "v1,v2" when nodes differ
    std::string to_version;          ///< "" only with the procedure "apply": of a Module without versions, or one that goes
    Rest rest;
    bool partial_before = false;     ///< of an apply: nodes were left without what they should get before this run began
    Options options;
    std::vector<LeftOut> left_out;   ///< by name
    value::Node extra;               ///< members of the header that this program does not know, kept
    const Procedure* rules = nullptr;  ///< what `procedure` names, of the set the run was decoded with; null: look there

    /// What the annotation of a node says that this run has cordoned: "kmm-upgrade LINEAGE".
    [[nodiscard]] std::string cordon_owner() const { return "kmm-upgrade " + lineage; }
    /// "NAMESPACE/NAME".
    [[nodiscard]] std::string module() const { return module_namespace + "/" + module_name; }
    [[nodiscard]] bool is_apply() const { return procedure == k_procedure_apply; }
    /// For people: the version before, "none" if there was none.
    [[nodiscard]] std::string from_text() const { return from_version.empty() ? "none" : from_version; }
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
    /// For people: the version that is the goal; "unversioned" and "removed" where that is not a version.
    [[nodiscard]] std::string to_text() const;
    /// True if this run has ended well and more Modules are to follow: resume goes on with them.
    [[nodiscard]] bool is_to_be_followed() const;
    /// True if nodes were left out, at the start, by skip, or by what the same apply did before this run.
    [[nodiscard]] bool is_partial() const;
};

/// For people: what `node` runs in the end; "unversioned" for a version without a name, "-" for nothing.
[[nodiscard]] std::string target_text(const Header& run, const NodeRecord& node);

/// True for states no step of a walk follows.
[[nodiscard]] bool is_final_node_state(std::string_view state);
/// True for the -failed states of a node.
[[nodiscard]] bool is_failed_node_state(std::string_view state);
/// "upgrade-complete" or "upgrade-aborted".
[[nodiscard]] bool is_final_run_state(std::string_view state);

/// Takes over what `facts` names, by the member names of encode(NodeRecord); other members stay as they are.
void merge(NodeRecord& node, const value::Node& facts);

/// Tree forms. `encode(Run)` is the journal's header when nothing has happened yet, and the snapshot at any time.
[[nodiscard]] value::Node encode(const Identity& identity);
[[nodiscard]] Identity decode_identity(const value::Node& node);
[[nodiscard]] value::Node encode(const NodeRecord& node);
[[nodiscard]] value::Node encode(const std::vector<LeftOut>& nodes);
[[nodiscard]] value::Node encode(const Run& run);
/// Inverse of encode. Errors: io "state-damaged" when required members are absent or of another type; config "state-newer".
[[nodiscard]] Run decode_run(const value::Node& node, const Procedures& procedures = released_procedures());

}  // namespace kmm::upgrade
