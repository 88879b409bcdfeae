// SPDX-License-Identifier: Apache-2.0
// What the preparations of start, of apply and of a kernel update have in common.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/actor_parts/watchdog.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::drive {

/// Why a node of another system gets no module, for people.
inline constexpr std::string_view k_no_linux = "it runs no Linux";

/// `chosen` in the order of a walk, as `request` asks for it. Errors: not_found "node-not-found" and checks_failed
/// "order-incomplete" for an order of names.
[[nodiscard]] std::vector<std::string> walk_order(const api::Objects& objects, const StartRequest& request,
                                                  std::vector<std::string> chosen, std::vector<std::string>& notes);

/// Who is told of what takes long.
struct Waiting {
    Watchdog& watchdog;
    const CheckObserver& observer;
};

/// A record of a node with its facts and zone; what is live of `kernel_module` into `live`. Asks again if the
/// connection is lost at once. Errors: those of the node; hung "loader-hung"; checks_failed "node-differs" if a
/// person's configuration leads to a host that is another Node, or of another architecture.
[[nodiscard]] upgrade::module::Node look_before(const api::Objects& objects, Worker& worker, sys::Clock& clock,
                                                const StartRequest& request, const std::string& kernel_module,
                                                const std::string& name, LiveModule& live, const Waiting& waiting);

/// Throws checks_failed "module-shared" if another Module than `module` has loaded `kernel_module` on the node as well,
/// in the boot `boot_id` ("": in any): it would lose it.
void require_unshared(const api::Objects& objects, const std::string& node, const std::string& module,
                      const std::string& kernel_module, const std::string& boot_id);

/// Puts what a rollback needs into `record`: labels, entry and identity of what is there.
void note_previous(upgrade::module::Node& record, const NodeView& view, const LiveModule& live);

/// The pull Secret of that name in the Module's namespace; nullptr for the name "". Errors: not_found
/// "secret-not-found".
[[nodiscard]] const api::Secret* secret_for(const api::Objects& objects, const api::Module& module,
                                            const std::string& name);

/// Status and check of one node that is to run `request.to_version` of `module`. Throws the Error that keeps it from
/// that.
[[nodiscard]] upgrade::module::Node check_node(const api::Objects& objects, const api::Module& module, Worker& worker,
                                               sys::Clock& clock, const StartRequest& request,
                                               const std::string& kernel_module, const std::string& name,
                                               const Waiting& waiting);

/// Refuses what KMM's rules refuse (plan/lint/validate.hpp): a version that is no label value would be written into
/// labels. And annotations that cannot be read, which forbid nothing, which is not what was meant. Errors: data with
/// all faults.
void require_valid(const api::Objects& objects, const api::Module& module);

/// "node-differs" for each of `records` behind whose name the same host is as behind another one, unless its Node says
/// so itself; nullopt for all others.
[[nodiscard]] std::vector<std::optional<Error>> shared_hosts(
    const api::Objects& objects, const StartRequest& request,
    const std::vector<std::optional<upgrade::module::Node>>& records);

/// Calls `check` for every name, a few at once. Errors: checks_failed "nodes-not-ready" with a detail for each trouble,
/// shared_hosts among them; what is no node's fault (cluster::ends_run) as it is.
[[nodiscard]] std::vector<upgrade::module::Node> check_all(
    const api::Objects& objects, const StartRequest& request, const std::vector<std::string>& names,
    const std::function<upgrade::module::Node(const std::string&)>& check);

/// The versions before a run, as "v1,v2,unversioned"; "" where no node had the module.
class VersionsBefore {
public:
    /// The version of `node` before the run; nothing where the module was not on it.
    void add(const upgrade::module::Node& node);
    /// Those of all nodes that were added, each once, in the order of their bytes, "unversioned" last.
    [[nodiscard]] std::string text() const;

private:
    std::set<std::string> named_;
    bool has_unversioned_ = false;
};

/// The header of a run of `request` with these nodes: everything but what only the procedure knows.
[[nodiscard]] upgrade::Run make_run(const StartRequest& request, const std::string& ns, const std::string& module,
                                    const std::string& kernel_module, std::vector<upgrade::module::Node> records,
                                    const sys::Clock& clock);

}  // namespace kmm::drive
