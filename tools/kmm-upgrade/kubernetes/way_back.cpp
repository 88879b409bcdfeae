// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/way_back.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "upgrade/drive_kubernetes/etcd_restore.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::chrono::milliseconds k_look_patience{30'000};

/// The words come from --confirm, or from a person at a terminal.
void require_confirmation(Call& call, const drive::EtcdRestorePlan& plan) {
    const auto wanted = plan.confirmation();
    const auto& args = call.args();
    auto given = args.get("confirm");
    const bool can_ask = !given && !args.flag("no-input") && call.context().console.in_is_terminal();
    if (can_ask)
        given = call.ask(fmt::format("{}\ntype \"{}\" to go on: ", base::escape(plan.loss()), base::escape(wanted)));
    if (given && base::trim(*given) == wanted) return;
    throw Error(Exit::checks_failed, "not-confirmed", plan.loss())
        .detail(given ? "expected" : "words", wanted)
        .hint(fmt::format("kmm-upgrade abort --rollback all --restore-etcd --confirm '{}'", wanted));
}

}  // namespace

void restore_etcd(Access& access) {
    auto& call = access.call;
    access.record.directory().open(false);
    access.record.lock("abort");
    const auto run = access.record.must_load();
    require_trust(access.record, run);
    auto options = run.options;
    auto& cluster = access.cluster.open(access.cluster.place(&run));
    choose_kubernetes_reach(access, options, cluster.place);
    const auto runner = access.reach.runner_beside_server(options);
    drive::StateJournal journal(access.record.directory());
    Progress progress(call.context(), run);
    const auto stopped = [&call] { return call.stopped(); };
    drive::Recorder recorder(run, journal, call.clock(), told_to_command(progress, run.options.on_event, stopped));
    drive::EtcdRestorer restorer(*runner, recorder, call.clock(), stopped);
    const auto patience = std::chrono::milliseconds(options.node_timeout_ms);
    const bool has_begun = upgrade::kubernetes::is_restoring_etcd(run);
    try {
        const auto plan = restorer.look(drive::Deadline(call.clock(), has_begun ? patience : k_look_patience));
        if (!has_begun && !plan.is_under_way()) {
            if (!plan.is_needed())
                throw Error(Exit::checks_failed, "restore-not-needed",
                            fmt::format("etcd {} runs, of which the backups are: its data can stay",
                                        plan.members.front().running))
                    .hint("kmm-upgrade abort --rollback all, without --restore-etcd, loses nothing");
            require_confirmation(call, plan);
            // While there is an API server, nobody else may be at work.
            drive::require_cluster_of(run, *cluster.store);
            static_cast<void>(kubernetes_runner(access, options, run.lineage, true, {}));
        }
        restorer.carry_out(plan, [&] { return drive::Deadline(call.clock(), patience); });
    } catch (const Error& error) {
        progress.stop();
        if (!upgrade::kubernetes::is_restoring_etcd(recorder.run())) throw;
        throw Error(error).detail("then", "kmm-upgrade resume");
    } catch (const drive::Leave&) {
        progress.stop();
        throw Error(call.stop_exit(), "interrupted", "interrupted while the data of etcd is restored")
            .hint("kmm-upgrade resume goes on with it");
    }
    progress.stop();
}

}  // namespace kmm::tool_upgrade
