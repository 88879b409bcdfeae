// SPDX-License-Identifier: Apache-2.0
// The seam to the source of truth: a directory of objects, or an API server.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::cluster {

/// All objects at one moment, and what is wrong with them.
struct Snapshot {
    api::Objects objects;
    Diagnostics diagnostics;
};

/// True if `error` is about the way to the API server, or our account there, and not about what was asked for: what was
/// under way is neither done nor failed, and can be gone on with later. Never true for what nodes say.
[[nodiscard]] bool is_server_trouble(const Error& error);

/// True if nothing may be concluded, or done, by this process any more: trouble with the server, a Lease that is lost,
/// or somebody who wants it to stop ("interrupted").
[[nodiscard]] bool ends_run(const Error& error);

/// not_found "node-not-found"; `place`: where the objects are, as ClusterStore::describe.
[[nodiscard]] Error node_not_found(const std::string& node, const std::string& place);

/// Objects that a caller asks about, by name; "" for none.
struct Subject {
    std::string node;  ///< the Node and its NodeModulesConfig
    std::string module_namespace, module;
};

/// Desired change of label values: nullopt removes the label.
using LabelChange = std::map<std::string, std::optional<std::string>>;

/// Thread safe: every implementation takes calls from several threads at once.
class ClusterStore {
public:
    virtual ~ClusterStore() = default;
    /// Reads everything. Faults of documents are in the diagnostics; only an unreadable source throws.
    [[nodiscard]] virtual Snapshot read() = 0;
    /// As read(), where only `subject` matters: of other objects there may be none, and of the diagnostics those of
    /// `subject` alone. If its Node or Module is not found, everything has been read. Costs the same in a fleet of any
    /// size. Errors: as read().
    [[nodiscard]] virtual Snapshot read_about(const Subject& subject) {
        static_cast<void>(subject);
        return read();
    }
    /// Sets and removes labels of one Node. `expected` are values the decision was based on (nullopt: absent): if one
    /// differs now, nothing is written and Error `conflict` (exit 75, code "conflict", retryable) is thrown. A change
    /// that is already there writes nothing. Errors: not_found, io, data "cannot-edit".
    virtual void patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) = 0;
    /// Replaces spec.modules / status.modules entries of (namespace, name) in the NodeModulesConfig of `node`, creating
    /// the object if absent: `spec` / `status` nullopt-inner removes the entry, an absent outer optional leaves it
    /// alone. Labels module-configured and module-in-use follow as KMM keeps them (facts: KMM 1.2).
    virtual void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                                 const std::optional<std::optional<api::NodeModule>>& spec,
                                 const std::optional<std::optional<api::NodeModule>>& status) = 0;
    /// Writes status.nodeInfo.kernelVersion, bootID and architecture of a Node, as its kubelet would.
    virtual void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                               const std::string& architecture) = 0;
    /// An identity that never changes for this cluster (for a directory: a UUID in DIR/.kmm-cluster-id). `create` makes
    /// one if there is none; else "" is returned.
    [[nodiscard]] virtual std::string identity(bool create) = 0;
    /// Waits until something may have changed since `seen` was returned, `timeout` at most, and returns the number for
    /// the next call. Without a timeout it only asks for the number. Holds up no other call.
    [[nodiscard]] virtual std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) = 0;
    /// For messages: "directory ./fleet".
    [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace kmm::cluster
