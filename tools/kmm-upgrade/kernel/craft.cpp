// SPDX-License-Identifier: Apache-2.0
// The kernel: how a recorded run is taken up again.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "kmm-upgrade/kernel/verbs.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/session/newcomers.hpp"
#include "recipe/ready/recipe_preflight.hpp"
#include "upgrade/drive_kernel/kernel_actor.hpp"
#include "upgrade/drive_kernel/plan_kernel.hpp"
#include "upgrade/drive_recipe/recipe_drivers.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Nodes that came after `run`, which walks all nodes, began and run another kernel, though they could run this one.
/// Errors: those of the cluster.
std::vector<std::string> newcomers_of_kernel(cluster::ClusterStore& store, const upgrade::Run& run) {
    const auto snapshot = store.read();
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto left_out = left_out_names(run);
    std::vector<std::string> names;
    for (const auto& node : snapshot.objects.nodes) {
        const auto& name = node.meta.name;
        const bool was_there = run.find(name) != nullptr ||
                               std::find(left_out.begin(), left_out.end(), name) != left_out.end();
        if (recipe::ready::never_runs(node.architecture, run.to_version) || !api::runs_linux(node)) continue;
        if (!was_there && node.kernel_version != run.to_version) names.push_back(name);
    }
    return names;
}

class KernelHands final : public Hands {
public:
    KernelHands(Access& access, std::unique_ptr<cluster::NodeRunner> runner)
        : access_(access), runner_(std::move(runner)) {}

    [[nodiscard]] std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) override {
        auto& cluster = access_.cluster.opened();
        const auto subject = upgrade::kernel::subject_of(recorder.header());
        auto* server = cluster.server;
        std::unique_ptr<drive::NodeDrivers> recipes;
        if (server != nullptr && !subject.releases.empty())
            recipes = std::make_unique<drive::RecipeDrivers>(server->client(), subject.releases);
        return std::make_unique<drive::KernelActor>(
            *cluster.store, *cluster.workloads, *runner_, recorder, access_.call.clock(),
            [this] { return access_.call.stopped(); }, server != nullptr,
            drive::PoolPauses(server == nullptr ? nullptr : &server->client(), subject.pools,
                              recorder.header().cordon_owner()),
            std::move(recipes));
    }
    void require_readable() override {
        auto faults = access_.cluster.opened().store->read().diagnostics;
        if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    }
    void tell_after(const upgrade::Run& run) override {
        if (run.state == upgrade::k_run_complete && run.options.all_nodes)
            note_newcomers(access_.call, run, {"does not run " + run.to_version, "do not run " + run.to_version},
                           [&] { return newcomers_of_kernel(*access_.cluster.opened().store, run); });
    }

private:
    Access& access_;
    std::unique_ptr<cluster::NodeRunner> runner_;
};

class KernelCraft final : public Craft {
public:
    [[nodiscard]] const upgrade::Procedures& procedures() const override { return upgrade::kernel::procedures(); }
    [[nodiscard]] OwnVerbs verbs() const override { return {{start_kernel_verb()}, {}}; }

    [[nodiscard]] std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent extent) const override {
        auto& cluster = access.cluster.opened();
        drive::require_cluster_of(run, *cluster.store);
        choose_kernel_reach(access, run.options, cluster.place);
        if (extent == Extent::onward) access.cluster.expect(run.options, "");
        auto hands = kernel_hands(access, run.options, run.lineage, extent != Extent::record);
        if (extent == Extent::onward) require_no_kubernetes_upgrade(access);
        return hands;
    }

    [[nodiscard]] Exit follow(Access& /*access*/, const upgrade::Run& /*run*/) const override {
        throw bug("nothing follows an update of the kernel");
    }
};

}  // namespace

void choose_kernel_reach(Access& access, upgrade::Options& options, const cluster::Place& place) {
    // First, so that nothing is asked for that only another way would need.
    const auto& args = access.call.args();
    const auto named = args.get("via").value_or(args.get("runner").value_or(""));
    const auto via = upgrade::parse_via(named).value_or(options.via);
    if (via != upgrade::Via::ssh && via != upgrade::Via::local)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--via {}: nodes are reached by ssh or local here", upgrade::to_string(via)))
            .hint("a Pod ends when its node reboots: use --via ssh");
    access.reach.choose(options, place, Reach::Age::recorded);
}

std::unique_ptr<Hands> kernel_hands(Access& access, const upgrade::Options& options, const std::string& lineage,
                                    bool to_change) {
    Target target{"kube-system", "kernel", "", lineage, {}};
    target.apart = {"kubernetes"};
    if (to_change) access.cluster.secure(options, target, ClusterAccess::Purpose::change);
    return std::make_unique<KernelHands>(access, access.reach.runner(options, target));
}

const Craft& kernel_craft() {
    static const KernelCraft craft;
    return craft;
}

}  // namespace kmm::tool_upgrade
