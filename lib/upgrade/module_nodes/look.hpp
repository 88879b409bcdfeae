// SPDX-License-Identifier: Apache-2.0
// Looking at a node until it answers: how everything that a crash, a lost connection or a reboot left open is settled.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/seam/store.hpp"
#include "sys/clock.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// How a look ended without an answer. `interrupted`: a person asked to stop.
enum class NoLook { unreachable, moving, refused, interrupted };

struct LookResult {
    std::optional<Look> look;
    NoLook why = NoLook::unreachable;
    std::optional<Error> error;  ///< set unless interrupted
    std::optional<Error> lost;   ///< the last call before the answer that was lost or could not reach the node
};

/// Whether two hosts that say `text` are one: Linux makes another id at each boot. What people write into Nodes in its
/// place tells nothing apart.
[[nodiscard]] bool is_boot_id(std::string_view text);
/// Whether a person's configuration, as that of ssh, says which host is a node: it may be wrong.
[[nodiscard]] inline bool is_led_by_name(upgrade::Via via) {
    return via == upgrade::Via::ssh || via == upgrade::Via::local;
}
/// That the host which is reached is not that of a node: checks_failed "node-differs".
[[nodiscard]] Error wrong_host(const std::string& message);
/// wrong_host for a host that answers as `node` and has the boot id of the node `other`.
[[nodiscard]] Error host_of_other(const std::string& node, const std::string& boot_id, const std::string& other);

/// host_of_other if `boot_id`, with which a host answers as `node`, is that of another Node. nullopt if it is not, or
/// if the Node says it, too: nodes may share a kernel. O(nodes).
[[nodiscard]] std::optional<Error> other_host(const api::Objects& objects, const std::string& node,
                                              const std::string& boot_id);
/// The same by what the run has recorded of its nodes and by the Nodes in `store`: since the run began, names have come
/// to lead elsewhere. nullopt, too, if no name leads to hosts. Reads the whole store only where neither the run nor the
/// Node has the boot id. O(nodes of the run). Errors: those of the store.
[[nodiscard]] std::optional<Error> other_host(const Recorder& recorder, cluster::ClusterStore& store,
                                              const std::string& node, const std::string& boot_id);

/// Asks for the status, again and again with growing pauses (1 s to 10 s) while the node cannot be asked or the module
/// is on its way in or out of the kernel, until `deadline`. A refusal by the worker ends it at once.
[[nodiscard]] LookResult look_at(Worker& worker, sys::Clock& clock, const std::string& node,
                                 const std::string& kernel_module, const Deadline& deadline,
                                 const std::function<bool()>& interrupted);

}  // namespace kmm::drive
