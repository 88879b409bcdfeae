// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/etcd_restore.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {
namespace {

using upgrade::EventKind;

constexpr std::array<std::string_view, 7> k_phases{"",        "prepared", "stopping", "stopped",
                                                   "swapped", "started",  "done"};

std::ptrdiff_t rank_of(const std::string& phase) {
    return std::find(k_phases.begin(), k_phases.end(), phase) - k_phases.begin();
}

/// A member that is not restored with the others would keep the old data, and its API server.
void require_all_members(const EtcdRestorePlan& plan) {
    for (const auto& asked : plan.members)
        for (const auto name : base::split(asked.members, ',')) {
            const auto is_known = std::any_of(plan.members.begin(), plan.members.end(),
                                              [&](const EtcdMemberSight& member) { return member.member == name; });
            if (name.empty() || is_known) continue;
            throw Error(Exit::checks_failed, "etcd-member-unknown",
                        fmt::format("etcd on {} has the member {}, which is not a control plane of this run",
                                    asked.node,
                                    base::escape(name)))
                .hint("remove it first (kubeadm reset on it), or go on to the target with kmm-upgrade resume");
        }
}

std::string verified(const value::Node& document, const char* name) { return document.get_string({"verified", name}); }

std::optional<std::uint64_t> number_of(const value::Node& document, const char* name) {
    return base::parse_number<std::uint64_t>(verified(document, name));
}

/// The node says itself what it waits for, before the call to it is given up.
std::vector<std::string> step_words(const EtcdRestorePlan& plan, const EtcdMemberSight& member, const char* step,
                                    const Deadline& deadline) {
    constexpr std::chrono::seconds k_margin{3}, k_least{1};
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(deadline.left()) - k_margin;
    return {"restore-etcd",      step,
            "--name",            member.backup,
            "--id",              plan.id,
            "--sha256",          plan.sha256,
            "--initial-cluster", plan.initial_cluster,
            "--timeout",         fmt::format("{}s", std::max(left, k_least).count())};
}

}  // namespace

bool EtcdRestorePlan::is_under_way() const {
    return std::any_of(members.begin(), members.end(), [](const EtcdMemberSight& member) {
        return member.phase != "none" && member.phase != "prepared";
    });
}

bool EtcdRestorePlan::is_needed() const {
    return std::any_of(members.begin(), members.end(),
                       [](const EtcdMemberSight& member) { return member.running != member.etcd; });
}

std::string EtcdRestorePlan::confirmation() const {
    std::vector<std::string> names;
    for (const auto& member : members) names.push_back(member.node);
    return fmt::format("restore etcd of {} from {}; everything written since is lost", base::join(names, ", "),
                       created);
}

std::string EtcdRestorePlan::loss() const {
    const auto text = [](const std::optional<std::uint64_t>& number) {
        return number ? std::to_string(*number) : std::string("unknown");
    };
    const bool is_counted = revision && newest && *newest >= *revision;
    return fmt::format("the snapshot is of {}, taken on {} at revision {}; etcd is at revision {} now: {} lost",
                       created, source, text(revision), text(newest),
                       is_counted ? fmt::format("up to {} revisions are", *newest - *revision)
                                  : std::string("what was written since is"));
}

EtcdRestorer::EtcdRestorer(cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock,
                           std::function<bool()> interrupted)
    : recorder_(recorder), agent_(runner, clock, std::move(interrupted), teller(recorder)) {}

void EtcdRestorer::record(const std::string& node, const std::string& phase, const std::string& text) {
    auto told = node_event(recorder_, EventKind::observed, node, "");
    told.message = text;
    told.facts.set("etcdRestore", phase);
    recorder_.record(told);
}

EtcdMemberSight EtcdRestorer::look_at(const std::string& node, const std::string& backup, const std::string& id,
                                      const Deadline& deadline) {
    const auto seen = agent_.step(node, {"restore-etcd", "look", "--name", backup, "--id", id}, deadline);
    EtcdMemberSight member{node,
                           backup,
                           verified(seen, "created"),
                           verified(seen, "sha256"),
                           verified(seen, "etcd"),
                           verified(seen, "member"),
                           verified(seen, "peerURL"),
                           verified(seen, "runningEtcd"),
                           verified(seen, "runningMembers"),
                           verified(seen, "phase"),
                           number_of(seen, "size").value_or(0),
                           number_of(seen, "revision"),
                           number_of(seen, "runningRevision")};
    return member;
}

std::string EtcdRestorer::kubelet_now(const upgrade::NodeRecord& node, const Deadline& deadline) {
    constexpr std::chrono::milliseconds k_patience{15'000};
    auto reply = agent_.facts_once(node.name, std::min(k_patience, deadline.left()));
    const auto sight = reply.value ? read_sight(std::move(*reply.value)) : NodeSight{};
    if (!sight.kubelet || (sight.node && *sight.node != node.name))
        return node.current_known ? node.current_version : std::string();
    auto text = sight.kubelet->text();
    if (text == node.current_version && node.current_known) return text;
    auto seen = node_event(recorder_, EventKind::observed, node.name, "");
    seen.message = fmt::format("its kubelet runs {}", text);
    seen.facts.set("currentVersion", text);
    seen.facts.set("currentKnown", true);
    recorder_.record(seen);
    return text;
}

EtcdRestorePlan EtcdRestorer::look(const Deadline& deadline) {
    EtcdRestorePlan plan;
    plan.id = "run-" + recorder_.header().lineage.substr(0, 8);
    std::vector<std::string> newer, members;
    std::set<std::string> before;  // what the newer kubelets ran
    const auto run = recorder_.run();
    const auto subject = upgrade::kubernetes::subject_of(run);
    const bool has_kubelets = !subject.kubelet.empty();
    for (const auto& each : run.nodes) {
        const auto node = upgrade::kubernetes::read(each);
        // An API server must never be older than a kubelet.
        if (has_kubelets && !node.from_version.empty() && node.current_version != node.from_version) {
            const auto runs = kubelet_now(node, deadline);
            if (runs != node.from_version) {
                newer.push_back(fmt::format("{} runs {} ({} before)", node.name,
                                            runs.empty() ? "an unknown version" : runs, node.from_version));
                before.insert(node.from_version);
            }
        }
        if (!node.is_control_plane) continue;
        if (node.backup.empty())
            throw Error(Exit::checks_failed, "backup-not-found",
                        fmt::format("the record names no backup of {}: its etcd cannot be restored", node.name))
                .hint("kmm-upgrade resume goes on to the target");
        plan.members.push_back(look_at(node.name, node.backup, plan.id, deadline));
    }
    if (!newer.empty() && !plan.is_under_way())
        throw Error(Exit::checks_failed, "kubelet-newer",
                    fmt::format("kubelets would be newer than their API servers: {}", base::join(newer, ", ")))
            .hint(fmt::format("kmm-upgrade resume goes on to the target; or bring these kubelets back first, on each "
                              "node: kmm-worker kubernetes kubelet --target {} --switch {}; then this command again",
                              before.size() == 1 ? *before.begin() : "VERSION",
                              subject.way.empty() ? "packages|binaries|command" : subject.way));
    if (plan.members.empty()) throw bug("a Kubernetes upgrade without a control plane");
    const auto& best = *std::max_element(plan.members.begin(), plan.members.end(),
                                         [](const EtcdMemberSight& left, const EtcdMemberSight& right) {
                                             return left.revision.value_or(0) < right.revision.value_or(0);
                                         });
    plan.source = best.node;
    plan.created = best.created;
    plan.sha256 = best.sha256;
    plan.size = best.size;
    plan.revision = best.revision;
    for (const auto& member : plan.members) {
        if (member.etcd != best.etcd)
            throw Error(Exit::checks_failed, "etcd-differs",
                        fmt::format("the backups are of etcd {} on {} and {} on {}", best.etcd, best.node, member.etcd,
                                    member.node))
                .hint("restore the snapshots by hand: etcdutl snapshot restore on each member");
        members.push_back(member.member + "=" + member.peer_url);
        if (member.running_revision && *member.running_revision > plan.newest.value_or(0))
            plan.newest = member.running_revision;
    }
    plan.initial_cluster = base::join(members, ",");
    if (!plan.is_under_way()) require_all_members(plan);
    return plan;
}

void EtcdRestorer::bring_snapshot(const EtcdRestorePlan& plan, const EtcdMemberSight& to,
                                  const std::function<Deadline()>& deadline) {
    const auto& source = *std::find_if(plan.members.begin(), plan.members.end(),
                                       [&](const EtcdMemberSight& member) { return member.node == plan.source; });
    for (std::uint64_t at = 0; at < plan.size;) {
        const auto piece =
            agent_.step(plan.source, {"restore-etcd", "give", "--name", source.backup, "--offset", std::to_string(at)},
                        deadline());
        const auto taken = agent_.step(to.node,
                                       {"restore-etcd", "take", "--id", plan.id, "--sha256", plan.sha256, "--offset",
                                        std::to_string(at), "--size", std::to_string(plan.size)},
                                       deadline(), verified(piece, "data"));
        const auto next = number_of(taken, "next");
        if (!next || *next <= at)
            throw Error(Exit::integrity, "snapshot-cut",
                        fmt::format("node {}: the snapshot ends at {} of {} bytes", to.node, at, plan.size));
        at = *next;
    }
    tell(recorder_, to.node, fmt::format("has the snapshot of {}: {} bytes, proven", plan.source, plan.size));
}

void EtcdRestorer::carry_out(const EtcdRestorePlan& plan, const std::function<Deadline()>& deadline) {
    const auto on_all = [&](const char* step, const std::string& phase) {
        for (const auto& member : plan.members) {
            const auto limit = deadline();
            const auto done = agent_.step(member.node, step_words(plan, member, step, limit), limit);
            const auto before = upgrade::kubernetes::read(recorder_.node(member.node)).etcd_restore;
            // A node that is further says so: what is on record never goes back.
            if (rank_of(before) < rank_of(phase)) record(member.node, phase, "etcd: " + done.get_string({"message"}));
        }
    };
    for (const auto& member : plan.members)
        if (member.phase == "none" && member.sha256 != plan.sha256) bring_snapshot(plan, member, deadline);
    on_all("prepare", "prepared");
    // From here on there is no way but on with it, and the record says so before the first member stops.
    const auto& first = plan.members.front().node;
    if (rank_of(upgrade::kubernetes::read(recorder_.node(first)).etcd_restore) < rank_of("stopping"))
        record(first, "stopping", fmt::format("etcd: all members stop, and restore the snapshot of {}", plan.created));
    // Nobody is restored beside one that is not: all have stopped before the first one changes its data.
    on_all("stop", "stopped");
    on_all("swap", "swapped");
    on_all("start", "started");
    std::string cluster;
    for (const auto& member : plan.members) {
        const auto limit = deadline();
        const auto seen = agent_.step(member.node, step_words(plan, member, "prove", limit), limit);
        const auto found = fmt::format("{} of etcd {}", verified(seen, "cluster"), verified(seen, "version"));
        if (!cluster.empty() && found != cluster)
            throw Error(Exit::unhealthy, "etcd-members-differ",
                        fmt::format("{} is a member of cluster {}, others are of {}", member.node, base::escape(found),
                                    base::escape(cluster)))
                .hint("see the logs of etcd; kmm-upgrade resume looks again");
        cluster = found;
        tell(recorder_, member.node, "etcd: " + seen.get_string({"message"}));
    }
    on_all("servers", "done");
}

}  // namespace kmm::drive
