// SPDX-License-Identifier: Apache-2.0
// What an update of the kernel keeps in the record beside the members of the engine, as typed views of its trees.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade::kernel {

/// Who loads kernel modules on nodes: kmm-upgrade by kmm-worker, or KMM's operator.
enum class Loader { worker, operator_ };
/// As the record spells it: "worker", "operator".
[[nodiscard]] std::string_view to_string(Loader loader) noexcept;

/// What a run does. The kernel release is Header::to_version.
struct Subject {
    std::string command;               ///< installs the release on a node, run by its sh
    Loader loader = Loader::worker;
    std::vector<std::string> pools{};  ///< MachineConfigPools that are paused while nodes are updated
    std::string releases{};            ///< namespace of the Secrets with releases of recipes, "" without an API server
    friend bool operator==(const Subject&, const Subject&) = default;
};

/// Errors: io "state-damaged" for a loader that is neither of the two.
[[nodiscard]] Subject subject_of(const Header& run);
void set_subject(Header& run, const Subject& subject);

/// Whether the node is a control plane: of those one at a time is under way.
[[nodiscard]] bool is_control_plane(const NodeRecord& node);
/// As a fact of an event.
void set_control_plane(value::Node& facts);

/// The boot of the node when its reboot was asked for, "" before.
[[nodiscard]] std::string boot_before(const NodeRecord& node);
/// As a fact of an event.
void set_boot_before(value::Node& facts, const std::string& boot_id);

/// The boot that was asked to end for the new release, as far as is known, "" for none: where it still runs, it may end
/// at any time.
[[nodiscard]] std::string reboot_asked(const NodeRecord& node);
/// As a fact of an event.
void set_reboot_asked(value::Node& facts, const std::string& boot_id);

/// The release with which the run's command was begun last on the node, "" where it was not: what the node boots next
/// if the command has ended well.
[[nodiscard]] std::string installed_on(const NodeRecord& node);
/// As a fact of an event.
void set_installed(value::Node& facts, const std::string& release);

/// What was loaded on the node after its reboot: NAMESPACE/NAME of a Module to the document that its loader keeps.
[[nodiscard]] std::map<std::string, value::Node> drivers_of(const NodeRecord& node);
void set_drivers(value::Node& facts, const std::map<std::string, value::Node>& drivers);

/// Drivers of recipes, by NAMESPACE/NAME, that have served the node since the run began.
[[nodiscard]] std::vector<std::string> recipe_drivers_of(const NodeRecord& node);
void set_recipe_drivers(value::Node& facts, const std::vector<std::string>& names);

/// Of drivers of recipes, the identities of their containers on the node before it was rebooted.
[[nodiscard]] std::map<std::string, std::string> recipe_containers_of(const NodeRecord& node);
void set_recipe_containers(value::Node& facts, const std::map<std::string, std::string>& containers);

[[nodiscard]] const Procedure& procedure_kernel();
[[nodiscard]] const Procedures& procedures();

/// Steps of a node, as the table names them, beside those that empty it.
inline constexpr std::string_view k_step_check = "check", k_step_install = "install", k_step_reboot = "reboot",
                                  k_step_load = "load", k_step_validate = "validate";

}  // namespace kmm::upgrade::kernel
