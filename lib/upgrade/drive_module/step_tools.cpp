// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/step_tools.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::drive {

using upgrade::module::compare;
using upgrade::module::Sameness;

namespace {

/// A file that an editor or git replaces is not there for a moment.
constexpr std::chrono::milliseconds k_replaced_within{200};

/// The error that there is no such Node in the cluster, or nullopt, also where a document cannot be read. Throws only
/// what is wrong with an API server.
std::optional<Error> absence_in(Fleet& fleet, const std::string& node) {
    try {
        static_cast<void>(fleet.view(node));
        return std::nullopt;
    } catch (const Error& error) {
        if (cluster::is_server_trouble(error)) throw;
        return error.code() == "node-not-found" ? std::optional<Error>(error) : std::nullopt;
    }
}

}  // namespace

std::string shown(const std::string& version) { return version.empty() ? "unversioned" : version; }

std::string version_of(const upgrade::Header& run, const upgrade::module::Node& node, const LiveModule& live) {
    if (live.presence == Presence::absent) return "";
    if (live.said_version) return shown(*live.said_version);
    if (compare(live.identity, node.target_identity) == Sameness::same) return shown(run.to_version);
    if (!node.from_entry.is_null() && compare(live.identity, node.from_identity) == Sameness::same)
        return shown(node.from_version);
    return "unknown";
}

std::optional<Error> StepTools::absence_of(const std::string& name) {
    if (!absence_in(fleet, name)) return std::nullopt;
    static_cast<void>(clock.sleep_for(k_replaced_within));
    try {
        return absence_in(fleet, name);
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<upgrade::Event> StepTools::reboot_of(const std::string& name, const NodeFacts& facts) const {
    const auto known = recorder.node(name);
    if (known.boot_id == facts.boot_id && known.kernel == facts.kernel) return std::nullopt;
    auto observed = event(upgrade::EventKind::observed, name, "", std::string(upgrade::k_node_pending));
    observed.reason = "node-rebooted";
    const auto into = known.kernel == facts.kernel ? "" : " into kernel " + facts.kernel;
    observed.message = fmt::format("the node rebooted{}: its steps begin again", into);
    observed.facts.set("kernel", facts.kernel);
    observed.facts.set("bootID", facts.boot_id);
    return observed;
}

void StepTools::plan_again(const std::string& name, const NodeFacts& facts) {
    if (const auto error = other_host(recorder, fleet.store(), name, facts.boot_id)) throw Error(*error);
    if (const auto observed = reboot_of(name, facts)) recorder.record(*observed);
    throw Leave{StepEnd::again};
}

void StepTools::require_same_boot(const std::string& name, const NodeFacts& facts) {
    if (reboot_of(name, facts)) plan_again(name, facts);
}

void StepTools::require_label(const std::string& name) {
    const auto& run = recorder.header();
    const auto node = this->node(name);
    // Whoever tries a node again has seen what it stopped at, and the run itself may have changed the label.
    if (upgrade::module::is_apply(run) || node.attempts > 1) return;
    const auto found = fleet.view(name).labels.module;
    const auto before = decode_module_labels(node.from_labels).module;
    if (found == before || found == run.to_version) return;
    throw Error(
        Exit::locked, "label-changed",
        fmt::format(
            "label version-module was changed from {} to {} by someone else since the start of this upgrade to {}",
            before ? base::escape(*before) : "nothing", found ? base::escape(*found) : "nothing", run.to_version))
        .hint(
            fmt::format("find out who; kmm-upgrade retry {} sets it to {}, kmm-upgrade skip {} --reason TEXT leaves it",
                        name, run.to_version, name));
}

}  // namespace kmm::drive
