// SPDX-License-Identifier: Apache-2.0
// What the rollout and the removal of a recipe keep in the record beside the members of the engine, as typed views. The
// members of such a run, its nodes for the engine, are the states of the recipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade::recipe {

struct Subject {
    std::string name;                       ///< of the SpecialResource that was asked for
    std::string space;                      ///< namespace of the Secrets with releases
    std::int64_t revision = 0;              ///< of a rollout: the release that it brings; of a removal: the newest one
    std::int64_t previous = 0;              ///< of a rollout: the release that was complete before, 0 for none
    std::vector<std::string> keep_kernels;  ///< kernels whose copies stay although no node runs them
    bool is_forced = false;                 ///< fields of other managers are taken over
    std::vector<std::string> pools{};       ///< of a rollout: MachineConfigPools that are paused meanwhile
    friend bool operator==(const Subject&, const Subject&) = default;
};

[[nodiscard]] Subject subject_of(const Header& run);
void set_subject(Header& run, const Subject& subject);

/// Number of objects of a state, as the record of its node has it.
[[nodiscard]] std::int64_t objects_of(const NodeRecord& state);
void set_objects(NodeRecord& state, std::int64_t objects);

/// Of a state whose resource is rolled out beside others: states of a wave begin when those of all waves before it are
/// through, those of one resource one after the other. nullopt: the state begins when all before it are through.
[[nodiscard]] std::optional<std::int64_t> wave_of(const NodeRecord& state);
/// `wave` is at least 1.
void set_wave(NodeRecord& state, std::int64_t wave);

/// A member of a downgrade that is no state: the drivers of one state on one node, restarted before the state is
/// applied.
struct DriverNode {
    std::string node;                  ///< name of the Node
    std::string state;                 ///< whose drivers they are, as State::name
    std::vector<std::string> drivers;  ///< DaemonSets that had a Pod there, NAMESPACE/NAME
    /// The member in the record: STATE/NODE.
    [[nodiscard]] std::string name() const { return state + "/" + node; }
    friend bool operator==(const DriverNode&, const DriverNode&) = default;
};
/// nullopt for a state.
[[nodiscard]] std::optional<DriverNode> driver_node_of(const NodeRecord& member);
void set_driver_node(NodeRecord& member, const DriverNode& node);

/// The rollout, the same to a lower version with drivers to restart, and the removal.
[[nodiscard]] const Procedure& procedure_rollout();
[[nodiscard]] const Procedure& procedure_downgrade();
[[nodiscard]] const Procedure& procedure_removal();
[[nodiscard]] const Procedures& procedures();
[[nodiscard]] bool is_removal(const Header& run);

/// Stages and steps, as the tables name them.
inline constexpr std::string_view k_stage_states = "states", k_stage_prune = "prune", k_stage_verify = "verify";
inline constexpr std::string_view k_step_apply = "apply", k_step_gate = "gate", k_step_remove = "remove";
inline constexpr std::string_view k_step_taint = "taint", k_step_evict = "evict", k_step_restart = "restart",
                                  k_step_untaint = "untaint";

}  // namespace kmm::upgrade::recipe
