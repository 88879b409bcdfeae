// SPDX-License-Identifier: Apache-2.0
// What the cluster says about one module on one node, and the changes KMM's controllers would make to it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/types.hpp"
#include "cluster/seam/store.hpp"
#include "plan/fleet/guard.hpp"
#include "plan/kmm/resolve.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::drive {

/// The version labels of a node. Names as in facts KMM 8.1: M, W, S and the old name of S.
struct ModuleLabels {
    std::optional<std::string> module, worker, schedule, device;
    friend bool operator==(const ModuleLabels&, const ModuleLabels&) = default;
};

[[nodiscard]] value::Node encode(const ModuleLabels& labels);
[[nodiscard]] ModuleLabels decode_module_labels(const value::Node& node);

/// One node as the store has it.
struct NodeView {
    api::Node node;
    ModuleLabels labels;
    std::optional<std::string> ready, version_ready;
    std::optional<api::NodeModule> spec, status;
};

/// One module of one store. Every change is level-triggered: it reads first, writes only what differs, and says which
/// value it expects to replace, so that nothing another writer did meanwhile is overwritten (a few new attempts, then
/// the Error `conflict`). Thread safe if the store is.
class Fleet {
public:
    Fleet(cluster::ClusterStore& store, std::string ns, std::string name)
        : store_(store), namespace_(std::move(ns)), name_(std::move(name)) {}

    /// Where documents cannot be read, none of the following takes an object for absent: their faults are the error
    /// then. Errors: not_found "node-not-found".
    [[nodiscard]] NodeView view(const std::string& node);
    /// Errors: data with all faults if a document of the node or of the Module cannot be read, or one that could be
    /// theirs.
    void require_readable(const std::string& node);
    /// Errors: not_found "module-not-found".
    [[nodiscard]] api::Module module();
    /// nullopt if it was deleted.
    [[nodiscard]] std::optional<api::Module> find_module();
    /// The Module; one that was deleted has nothing but its name.
    [[nodiscard]] api::Module module_or_name();
    /// Nodes that the Module selects (a deleted one: that have an entry of it) and that take no Pods now: name to "not
    /// ready" or "cordoned".
    [[nodiscard]] std::map<std::string, std::string> unavailable();
    /// nullptr-like nullopt for the name "". Errors: not_found "secret-not-found".
    [[nodiscard]] std::optional<api::Secret> secret(const std::string& name);

    /// Sets or removes one label.
    void set_label(const std::string& node, const std::string& key, const std::optional<std::string>& value);
    void set_module(const std::string& node, const std::optional<std::string>& version);
    /// W, then S, as KMM's label controller adds them.
    void add_schedule(const std::string& node, const std::optional<std::string>& worker,
                      const std::optional<std::string>& schedule, const std::optional<std::string>& device);
    /// S (both names), then W, as KMM's label controller removes them.
    void remove_schedule(const std::string& node);
    void set_ready(const std::string& node, const std::string& version);
    void remove_ready(const std::string& node);
    /// Those of device plugin and DRA driver.
    void remove_plugin_labels(const std::string& node);
    void put_spec(const std::string& node, const std::optional<api::NodeModule>& entry);
    void put_status(const std::string& node, const std::optional<api::NodeModule>& entry);
    /// Writes kernel, boot id and architecture if they differ from what the store has.
    void put_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                  const std::string& architecture);

    /// Throws checks_failed with the code of the guard (plan/fleet/guard.hpp) if the module must not be taken out of
    /// the node, or put into it.
    void require_unloadable(const std::string& node, const std::string& boot_id);
    void require_loadable(const std::string& node, const std::string& boot_id);

    [[nodiscard]] cluster::ClusterStore& store() noexcept { return store_; }

private:
    cluster::ClusterStore& store_;
    std::string namespace_, name_;
};

[[nodiscard]] ModuleLabels module_labels_of(const api::Node& node, const std::string& ns, const std::string& name);
/// NodeView out of objects already read. Errors: not_found "node-not-found".
[[nodiscard]] NodeView view_of(const api::Objects& objects, const std::string& node, const std::string& ns,
                               const std::string& name);

/// Whether labels, spec and status say that `entry` of version `to` is loaded on a node of that boot, and nothing else.
[[nodiscard]] bool is_in_place(const NodeView& view, const api::NodeModule& entry, const std::string& to,
                               const std::string& boot_id);
/// Whether the way to `entry` of version `to` begins with an unload step. `is_live`: the node has the module in its
/// kernel; `is_target`: as the build that `entry` is about.
[[nodiscard]] bool begins_with_unload(const NodeView& view, const api::NodeModule& entry, const std::string& to,
                                      bool is_live, bool is_target);
/// Throws checks_failed with the guard's code, message and hint if there is one.
void require_unguarded(const std::optional<plan::Guard>& guard);

/// The NodeModulesConfig entry KMM would write for this Module and kernel (facts KMM 4.2 "Writing the entry").
[[nodiscard]] api::NodeModule make_entry(const api::Module& module, const plan::Resolved& resolved);
/// Resolves and makes the entry. Errors: checks_failed "no-mapping", or the mapping's own fault.
[[nodiscard]] api::NodeModule resolve_entry(const api::Module& module, const std::string& kernel);
/// Throws checks_failed "version-mismatch" with the place of the version if the Module is not at `version`.
void require_version(const api::Module& module, const std::string& version);
/// Throws checks_failed "module-deleting" if somebody has deleted the Module: it only waits for its finalizers.
void require_wanted(const api::Module& module);
/// What the node has of the Module, or is to have where it says nothing: part of `view`; nullptr for neither.
[[nodiscard]] const api::NodeModule* entry_there(const NodeView& view);
/// One run is about one kernel module: another one, loaded for an earlier or a later form of the Module, would stay in
/// the kernel and be forgotten. Throws checks_failed "module-renamed" if the node has loaded another one for Module
/// `module`, or if that names another one.
void require_name(const NodeView& view, const std::string& module, const std::string& kernel_module);
void require_name(const api::Module& module, const std::string& kernel_module);

}  // namespace kmm::drive
