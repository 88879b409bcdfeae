// SPDX-License-Identifier: Apache-2.0
// The way back of one node: COMMAND installs the release from which it came, and the node reboots into it.
#include <chrono>

#include <fmt/format.h>

#include "plan/kmm/find_named.hpp"
#include "upgrade/drive_kernel/kernel_actor.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

using namespace upgrade::kernel;

bool KernelActor::is_emptied_for_rollback(const upgrade::NodeRecord& node) const {
    // A node without a known release from before is not rebooted on its way back.
    const bool is_changed = !node.from_version.empty() && node.kernel != node.from_version;
    return recorder_.header().options.drain && is_changed && node.cordon != upgrade::k_cordon_foreign;
}

bool KernelActor::has_no_node(const std::string& name) {
    const auto snapshot = store_.read();
    return !has_errors(snapshot.diagnostics) && plan::find_named(snapshot.objects.nodes, name) == nullptr;
}

void KernelActor::require_present(const std::string& name) {
    // On the way back is_gone() has decided that; what answers there is brought back without its Node.
    if (recorder_.state().state == upgrade::k_run_aborting) return;
    try {
        if (!has_no_node(name)) return;
    } catch (const Error&) {
        return;  // the API server may be the one of this very node
    }
    throw node_gone(name, fmt::format("kmm-upgrade skip {} --reason TEXT leaves it out", name));
}

bool KernelActor::is_gone(const std::string& name) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    return has_no_node(name) && !agent_.glance(name, k_patience) && !interrupted_();
}

bool KernelActor::is_going_down(const upgrade::NodeRecord& node, const std::string& boot) {
    return !boot.empty() && reboot_asked(node) == boot;
}

Done KernelActor::roll_back(const std::string& name, const SystemSight& seen, const Deadline& deadline) {
    const auto node = recorder_.node(name);
    // A Node without a kubelet's word has named none; COMMAND without a release could install anything.
    const auto former = node.from_version.empty() && installed_on(node).empty() ? seen.kernel : node.from_version;
    if (former.empty())
        throw Error(Exit::refused, "previous-unknown",
                    fmt::format("node {}: its kernel from before is unknown: its Node named none at the start", name))
            .hint(fmt::format("kmm-upgrade abort --rollback none, then kmm-upgrade start kernel --to RELEASE --install "
                              "COMMAND --node {}",
                              name));
    auto now = seen;
    // A reboot that was asked for comes whatever is said of the node now: its end is waited for.
    const bool is_reboot_due = seen.kernel == former && is_going_down(node, seen.boot_id);
    const bool is_rebooted = seen.kernel != former || is_reboot_due;
    // Of a host whose Node was deleted the kernel alone is brought back.
    const bool is_host_alone = has_no_node(name);
    // A node that was done has its Pods back.
    if (seen.kernel != former && is_emptied_for_rollback(node) && !is_host_alone) {
        static_cast<void>(emptier_.cordons().cordon(name));
        static_cast<void>(emptier_.drain(name, deadline));
    }
    // One that somebody else had cordoned may have them back, too.
    if (is_rebooted && seen.boot_id == boot_before(node) && !is_host_alone) empty_again(name, deadline);
    // Its next boot is of what COMMAND has installed last, whatever runs now. A node that has rebooted into another
    // kernel since this step asked for it has its word on what it boots: it is not tried again.
    const bool is_to_be_installed = seen.kernel == former ? !installed_on(node).empty()
                                                          : seen.boot_id == boot_before(node);
    if (is_to_be_installed)
        static_cast<void>(agent_.install(name, former, subject_.command, deadline));
    if (is_rebooted && seen.boot_id == boot_before(node)) await_quorum(name, deadline.left());
    if (is_rebooted) {
        now = agent_.reboot(name, former, boot_before(node), seen, deadline);
    } else if (is_to_be_installed) {
        now = agent_.facts(name, deadline);
        require_kernel(name, now, former);
    }
    Done done;
    done.facts = facts_of(now);
    if (is_host_alone) {
        set_installed(done.facts, "");
        done.facts.set("cordon", "");
        done.message = fmt::format("runs {}; there is no Node {}: its drivers were not looked at", now.kernel, name);
        return done;
    }
    require_node(name, now, deadline);
    const auto loaded = drivers_.bring(name, now, deadline);
    await_others(name, now, deadline);
    const auto lifted = emptier_.cordons().lift(name);
    set_drivers(done.facts, encode(loaded));
    set_installed(done.facts, "");
    if (!node.cordon.empty()) done.facts.set("cordon", "");
    done.message = fmt::format("runs {}, {}{}", now.kernel, text_of(loaded), lifted.empty() ? "" : ", " + lifted);
    return done;
}

}  // namespace kmm::drive
