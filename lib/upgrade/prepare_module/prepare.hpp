// SPDX-License-Identifier: Apache-2.0
// Everything `start` finds out before anything is changed or recorded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cluster/seam/selector.hpp"
#include "cluster/seam/store.hpp"
#include "sys/clock.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// What the owner of a cordon begins with, before the lineage of the run.
inline constexpr std::string_view k_owner_prefix = "kmm-upgrade ";

struct StartRequest : upgrade::Signature {
    std::string ns;                   ///< "" : the one Module of that name
    std::string name, to_version;
    std::vector<std::string> nodes;   ///< --node, empty: by selector
    cluster::Selector selector;       ///< -l
    std::optional<std::vector<std::string>> order;  ///< names in walk order, nullopt: as options.order says
    upgrade::Options options;
};

struct Prepared {
    upgrade::Run run;
    std::vector<std::string> notes;  ///< nodes left out and why, for people
};

/// Told how far the checks are: node, and what is asked of it, "status" or "check"; or Silence::text of a node that
/// does not answer. May be called from several threads.
using CheckObserver = std::function<void(const std::string& node, const std::string& what)>;

/// Reads the cluster, chooses the nodes and passes facts, status and check on all of them; beside an operator, which no
/// worker is asked for, what operator_check.hpp finds out of the objects. Changes nothing. Errors: not_found for the
/// Module or a named node; checks_failed "version-mismatch", "no-nodes"; checks_failed "nodes-not-ready" with one
/// detail per reason (names: reason and message); the reader's own for a faulty cluster, and data with the faults of
/// annotations that cannot be read.
[[nodiscard]] Prepared prepare(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock,
                               const StartRequest& request, const CheckObserver& observer);

/// Errors: not_found "node-not-found" for the first of `names` that is no node of the cluster, with those that are.
void require_known_nodes(const api::Objects& objects, const std::vector<std::string>& names);

struct Chosen {
    std::vector<std::string> names;          ///< in walk order
    std::vector<upgrade::LeftOut>
        left_out;  ///< selected by the Module and by the request, but with a taint that is not tolerated
    std::vector<std::string> notes;          ///< for people: nodes left out and why, and what the order does
};

/// The nodes of the run: those that the Module selects, that run Linux and whose taints it tolerates, of `request`'s
/// choice; one that runs another system is in `notes` alone, as it never gets a module. Nodes for
/// which `is_begun` holds are taken whatever their taints are. Errors: not_found "node-not-found"; checks_failed
/// "node-not-eligible", "no-nodes", "order-incomplete".
[[nodiscard]] Chosen choose_nodes(const api::Objects& objects, const api::Module& module, const StartRequest& request,
                                  const std::function<bool(const api::Node& node)>& is_begun = {});

/// Why `node` cannot take `module` now, for people: "cordoned", "cordoned by kmm-upgrade LINEAGE", "not ready", or the
/// taint that is not tolerated; "" if it can.
[[nodiscard]] std::string left_out_reason(const api::Module& module, const api::Node& node);

/// Where the labels of nodes are looked at, for people: objects of an API server have no file.
[[nodiscard]] std::string where_labels_are(const api::Node& node);

/// Via::local knows no names: with several nodes one host would be taken for all of them. Errors: usage
/// "several-nodes".
void require_one_host(const upgrade::Options& options, std::size_t nodes);

/// The zone that a label of the node names, "" for a node that has none.
[[nodiscard]] std::string zone_of(const api::Objects& objects, const std::string& name);

/// The Module a user named. Errors: not_found "module-not-found" with "did you mean", usage "module-ambiguous".
[[nodiscard]] const api::Module& find_module(const api::Objects& objects, const std::string& ns,
                                             const std::string& name);

}  // namespace kmm::drive
