// SPDX-License-Identifier: Apache-2.0
// guard: a command while no upgrade is under way; unfreeze: changes of applications are allowed again.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::chrono::milliseconds k_command_grace{60'000};  ///< of a command that is to end
constexpr int k_signal_base = 128;

void require_no_upgrade(Access& access, const std::optional<drive::FreezeNotice>& notice) {
    // Between two runs on the way to a version, the cluster is as little done as within one.
    if (const auto run = access.record.load();
        run && (!upgrade::is_final_run_state(run->state) || (is_kubernetes_run(*run) && is_followed(*run)))) {
        const auto text = upgrade::describe(*run);
        throw Error(
            Exit::locked, "upgrade-under-way",
            fmt::format("an upgrade of {} to {} is under way: it is in state {}", text.subject(), text.to, run->state))
            .detail("by", base::escape(run->created_by))
            .detail("record", base::escape(access.record.directory().path()))
            .hint(upgrade::next_commands(*run).front() +
                  (is_followed(*run) ? ", or: kmm-upgrade delete" : ", or: kmm-upgrade abort"));
    }
    if (notice) refuse_noticed(*notice);
}

}  // namespace

bool is_kubernetes_run(const upgrade::Run& run) { return upgrade::describe(run).kind == "cluster"; }

Exit run_guard(const cli::Args& args, cli::Context& context) {
    const auto words = args.positionals("COMMAND");
    sys::require_program(words.front());
    Access access(args, context);
    auto& call = access.call;
    access.record.open_locked("guard");
    require_no_upgrade(access, std::nullopt);
    auto& cluster = access.cluster.open(access.cluster.place());
    upgrade::Options options;
    options.via = upgrade::Via::ssh;
    hold_kubernetes_lease(access, options);
    // Whoever starts an upgrade takes the Lease first: what is there now stays as it is.
    if (cluster.server != nullptr)
        require_no_upgrade(
            access, drive::Freeze(cluster.server->client(), call.clock(), [&] { return call.stopped(); }).look());
    call.require_going_on();
    sys::ProcessSpec spec;
    spec.argv = words;
    spec.inherit_streams = true;
    spec.new_session = false;
    spec.grace = k_command_grace;
    // Where guard is killed, no upgrade can start here until the command has ended.
    for (const auto lock : {access.record.lock_descriptor(), access.cluster.lock_descriptor()})
        if (lock) spec.inherited.push_back(*lock);
    spec.cancelled = [&] { return call.stopped(); };
    const auto result = sys::run_process(spec);
    if (result.cancelled && result.signal != 0) return call.stop_exit();
    if (result.signal != 0) return static_cast<Exit>(k_signal_base + result.signal);
    if (result.exit_code == 0) access.cluster.require_lease();
    return static_cast<Exit>(result.exit_code);
}

Exit run_unfreeze(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    auto& call = access.call;
    const auto run = access.record.load();
    const bool is_under_way = run && !upgrade::is_final_run_state(run->state) && is_kubernetes_run(*run);
    auto& cluster = access.cluster.open(access.cluster.place(is_under_way ? &*run : nullptr));
    if (cluster.server == nullptr)
        throw Error(Exit::usage, "bad-value", "only an API server can freeze applications, found a directory cluster")
            .hint("name the cluster with --context");
    drive::Freeze freeze(cluster.server->client(), call.clock(), [&] { return call.stopped(); });
    const auto notice = freeze.look();
    if (notice && is_under_way) freeze.lift_for_now(*notice);
    else static_cast<void>(freeze.lift());
    auto document =
        value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Unfreeze"}, {"found", notice.has_value()}});
    if (notice) document.set("mode", drive::to_string(notice->mode));
    if (cli::print_document(context, document)) return Exit::ok;
    if (!notice) call.note("applications of this cluster are not frozen");
    else if (is_under_way)
        call.note(fmt::format("applications may be changed; the upgrade to {} goes on without the freeze",
                              base::escape(notice->to)));
    else
        call.note(fmt::format("applications may be changed; the freeze was of the upgrade to {} by {}",
                              base::escape(notice->to), base::escape(notice->holder)));
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
