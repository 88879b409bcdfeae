// SPDX-License-Identifier: Apache-2.0
// Modules: how a recorded run is taken up again, and what is to be told after it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/linux_nodes.hpp"
#include "base/text.hpp"
#include "kmm-upgrade/module/verbs.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/session/newcomers.hpp"
#include "plan/kmm/eligible.hpp"
#include "upgrade/drive_module/module_actor.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::tool_upgrade {
namespace {

/// The runner of `run`, with all that `extent` needs on the cluster, which is open. Options of the command line are put
/// over those of the run.
std::unique_ptr<cluster::NodeRunner> runner_of(Access& access, upgrade::Run& run, Extent extent) {
    auto& cluster = access.cluster.opened();
    drive::require_cluster_of(run, *cluster.store);
    access.reach.choose(run.options, cluster.place, Reach::Age::recorded);
    drive::require_one_host(run.options, run.nodes.size());
    const auto subject = upgrade::module::subject_of(run);
    Target target{subject.ns, subject.name, "", run.lineage, {}};
    for (const auto& record : run.nodes) {
        const auto node = upgrade::module::read(record);
        if (!node.target_entry.is_null())
            target.service_account = api::decode_node_module(node.target_entry).service_account_name;
    }
    if (extent != Extent::record) {
        if (run.options.via == upgrade::Via::self)
            for (const auto& module : cluster.store->read().objects.modules)
                if (module.full_name() == subject.full_name()) target.rights = cluster::plugin_rules(module);
        auto ahead = run.options;
        ahead.drain = ahead.drain && extent == Extent::onward && upgrade::module::drains_ahead(run);
        access.cluster.expect(ahead, "");
        access.cluster.secure(run.options, target, ClusterAccess::Purpose::change);
    }
    return access.reach.runner(run.options, target);
}

bool was_left_out(const upgrade::Run& run, const std::string& name) {
    return std::any_of(run.left_out.begin(), run.left_out.end(),
                       [&](const upgrade::LeftOut& node) { return node.name == name; });
}

/// Nodes that the Module of `run` selects and that came after it began; those that were left out and can take the
/// module now are put into `returned`. Reads the whole cluster. Errors: those of the cluster.
std::vector<std::string> newcomers_of_module(Access& access, const upgrade::Run& run,
                                             std::vector<std::string>& returned) {
    const auto subject = upgrade::module::full_name(run);
    const auto snapshot = access.cluster.opened().store->read();
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& objects = snapshot.objects;
    std::vector<std::string> names;
    for (const auto& module : objects.modules) {
        if (module.full_name() != subject) continue;
        const auto tolerations = plan::loader_tolerations(module);
        for (const auto& node : objects.nodes)
            if (run.find(node.meta.name) == nullptr && api::runs_linux(node) &&
                plan::selects(module.selector, node.meta.labels) &&
                plan::tolerates(tolerations, node.taints))
                (was_left_out(run, node.meta.name) ? returned : names).push_back(node.meta.name);
    }
    return names;
}

/// Notes nodes that `run`, which has walked all nodes of its Module to the end, does not have.
void tell_others(Access& access, const upgrade::Run& run) {
    std::vector<std::string> returned;
    note_newcomers(access.call, run, {"is selected by the Module", "are selected by the Module"},
                   [&] { return newcomers_of_module(access, run, returned); });
    for (const auto& name : returned)
        access.call.note(fmt::format("node {} was left out at the start and can take the module now: {} --node {}",
                                     name, upgrade::describe(run).again, name));
}

class ModuleHands final : public Hands {
public:
    /// `owned`: the runner, or null where the caller keeps it.
    ModuleHands(Access& access, cluster::NodeRunner& runner, std::unique_ptr<cluster::NodeRunner> owned, Extent extent)
        : access_(access), owned_(std::move(owned)), runner_(runner), extent_(extent) {}

    [[nodiscard]] std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) override {
        if (extent_ != Extent::record) {
            access_.cluster.create_kinds(upgrade::module::subject_of(recorder.header()).created_definitions);
            plugins_ = access_.reach.plugins(recorder.run());
        }
        auto& cluster = access_.cluster.opened();
        auto& store = plugins_ ? static_cast<cluster::ClusterStore&>(*plugins_) : *cluster.store;
        return std::make_unique<drive::ModuleActor>(store, *cluster.workloads, runner_, recorder, access_.call.clock(),
                                                    [this] { return access_.call.stopped(); });
    }
    void require_readable() override {
        auto faults = access_.cluster.opened().store->read().diagnostics;
        if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    }
    void tell_after(const upgrade::Run& run) override {
        if (run.state == upgrade::k_run_complete && run.options.all_nodes) tell_others(access_, run);
    }

private:
    Access& access_;
    std::unique_ptr<cluster::NodeRunner> owned_;
    cluster::NodeRunner& runner_;
    Extent extent_;
    std::unique_ptr<cluster::PluginStore> plugins_;
};

class ModuleCraft final : public Craft {
public:
    [[nodiscard]] const upgrade::Procedures& procedures() const override { return upgrade::module::procedures(); }
    [[nodiscard]] OwnVerbs verbs() const override { return module_verbs(); }
    [[nodiscard]] std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent extent) const override {
        auto runner = runner_of(access, run, extent);
        auto& kept = *runner;
        return std::make_unique<ModuleHands>(access, kept, std::move(runner), extent);
    }
    [[nodiscard]] Exit follow(Access& access, const upgrade::Run& run) const override {
        return go_on_applying(access, run);
    }
};

}  // namespace

std::unique_ptr<Hands> module_hands(Access& access, cluster::NodeRunner& runner) {
    return std::make_unique<ModuleHands>(access, runner, nullptr, Extent::onward);
}

const Craft& module_craft() {
    static const ModuleCraft craft;
    return craft;
}

}  // namespace kmm::tool_upgrade
