// SPDX-License-Identifier: Apache-2.0
// start kubernetes: checks first, all at once; then the runs that lead to the version.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/kubernetes/plan_report.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/kubernetes/verbs.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/check/checks.hpp"
#include "kubernetes/check/etcd_leader.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "upgrade/drive_cluster/networking.hpp"
#include "upgrade/drive_cluster/operator_rollouts.hpp"
#include "upgrade/drive_kubernetes/hooks.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

void take_switch(const cli::Args& args, upgrade::kubernetes::Subject& subject) {
    subject.way = switch_way(args);
    subject.directory = absolute_option(args, "from");
    subject.command = absolute_option(args, "command");
    if (!subject.directory.empty() && subject.way != "binaries")
        throw Error(Exit::usage, "missing-option", "--from requires --switch binaries")
            .hint("add --switch binaries, or leave --from out");
    if (!subject.command.empty() && subject.way != "command")
        throw Error(Exit::usage, "missing-option", "--command requires --switch command")
            .hint("add --switch command, or leave --command out");
    if (subject.way == "command" && subject.command.empty())
        throw Error(Exit::usage, "missing-option", "--switch command requires --command PROGRAM")
            .hint("add --command PROGRAM");
    if (subject.way.empty() && !args.flag("dry-run"))
        throw Error(Exit::usage, "missing-option",
                    "--switch WAY is missing: how kubeadm and kubelet of the version get onto the nodes")
            .hint("--switch packages uses apt-get or dnf, --switch binaries files below /usr/local/kubernetes/VERSION");
    subject.is_without_snapshot = args.flag("no-etcd-snapshot");
    subject.keep_backups = static_cast<std::uint64_t>(count_option(args, "keep-backups", 2, 1));
    subject.ignored_preflight = args.get("ignore-preflight-errors").value_or("");
    if (const auto phases = args.get("skip-phases"))
        subject.worker_options.insert(subject.worker_options.end(), {"--skip-phases", *phases});
    if (const auto patches = absolute_option(args, "patches"); !patches.empty())
        subject.worker_options.insert(subject.worker_options.end(), {"--patches", patches});
}

drive::KubernetesRequest request_of(const cli::Args& args, Call& call, const kubernetes::Version& target) {
    drive::KubernetesRequest request;
    take_switch(args, request.subject);
    request.subject.target = target.text();
    request.subject.ignored_checks = kubernetes::parse_ignored(args.all("ignore-checks"));
    if (const auto file = args.get("versions"))
        request.subject.versions_file = *file == "-" ? *file : absolute_path(*file);
    take_freeze_options(args, request.subject);
    if (const auto directory = args.get("app-check")) request.subject.app_check = absolute_path(*directory);
    if (const auto directory = args.get("hook-dir")) request.subject.hooks = absolute_path(*directory);
    request.subject.patch_query = command_option(args, "patch-query");
    if (const auto directory = args.get("networking")) request.subject.networking = absolute_path(*directory);
    request.is_networking_first = args.flag("networking-first");
    if (request.is_networking_first && request.subject.networking.empty())
        throw Error(Exit::usage, "missing-option", "--networking-first requires --networking DIR")
            .hint("add --networking DIR");
    if (const auto image = args.get("canary-image")) {
        request.subject.canary_image = *image;
        if (image->empty() || request.subject.networking.empty())
            throw Error(Exit::usage, image->empty() ? "bad-value" : "missing-option",
                        image->empty() ? "--canary-image is empty, expected an image"
                                       : "--canary-image requires --networking DIR")
                .hint("an image with sh, nc, nslookup and grep, as busybox, that every node has or can pull");
    }
    drive::StartRequest walking;
    walking.options.via = upgrade::Via::ssh;
    take_draining_walk_options(args, walking);
    request.options = walking.options;
    sign_kubernetes_request(call, request);
    return request;
}

/// Errors: usage "bad-value" where --skip-phases is for a kubeadm that knows no phases of upgrade apply.
void require_phases(const std::vector<drive::Hop>& hops) {
    constexpr kubernetes::MinorVersion k_first{1, 32};
    std::optional<kubernetes::Version> last;
    for (const auto& hop : hops)
        if (const auto version = kubernetes::Version::parse(hop.control_plane); version && version->line() < k_first)
            last = version;
    if (!last) return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--skip-phases: kubeadm upgrade apply has phases from {} on, found {}", k_first.text(),
                            last->text()))
        .hint(fmt::format("go to {} without it first, then on with it: before {} kubeadm leaves kube-proxy out where "
                          "its ConfigMap is missing",
                          last->text(), k_first.text()));
}

bool asks_for(const upgrade::Run& run, const kubernetes::Version& target) {
    const auto& own = upgrade::kubernetes::procedures();
    return std::find(own.begin(), own.end(), run.rules) != own.end() &&
           upgrade::kubernetes::subject_of(run).target == target.text();
}

/// Errors: usage "bad-value" where no upgrade rests in the state of --until.
void require_until(const cli::Args& args, const upgrade::Table& table) {
    const auto until = args.get("until");
    if (!until || table.kind(upgrade::Scope::run, *until) == upgrade::StateKind::resting) return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--until: expected a state in which an upgrade rests, found '{}'", base::escape(*until)))
        .hint("as upgraded-first-master or upgraded-second-master");
}

/// Reads the cluster after the record of it is free, and locked unless the run is dry. Chooses how nodes are reached.
/// Errors: usage "networking-needs-server"; what opening, locking and reading throw.
kubernetes::Inventory read_cluster(Access& access, drive::KubernetesRequest& request, bool dry,
                                   const kubernetes::Catalogue& catalogue) {
    const auto place = access.cluster.place();
    choose_kubernetes_reach(access, request.options, place);
    if (!dry) access.record.open_locked("start kubernetes " + request.subject.target);
    require_free(access.record.load());
    auto& cluster = access.cluster.open(place);
    if (cluster.directory != nullptr && !request.subject.networking.empty())
        throw Error(Exit::usage, "networking-needs-server",
                    "manifests of networking are applied to an API server, found a directory cluster")
            .hint("leave --networking out");
    if (!dry) access.cluster.lock_directory();
    access.cluster.expect(request.options, "");
    return drive::view_of(cluster)->read(extent_of(catalogue));
}

/// Files that the run reads later are read before anything changes: a fault in one of them is reported now.
/// `server`: nullptr if none was asked.
void require_files(cluster::KubeStore* server, const drive::KubernetesRequest& request,
                   const kubernetes::Observation& seen, const std::vector<drive::Hop>& hops,
                   const upgrade::Table& table) {
    if (!request.subject.hooks.empty()) {
        std::vector<std::string> names;
        for (const auto& running : seen.kubelets) names.push_back(running.node);
        drive::require_hooks(request.subject.hooks, table, names);
    }
    if (request.subject.networking.empty()) return;
    for (const auto& hop : hops) {
        if (hop.control_plane.empty()) continue;
        const auto documents = drive::read_networking(request.subject.networking, hop.control_plane,
                                                      seen.lowest_control_plane()->text());
        if (server != nullptr) drive::OperatorRollouts::require_rights(server->client(), documents);
    }
}

/// The command that makes the checks of this start alone, and prints all of them.
std::string check_command(const cli::Args& args, const drive::KubernetesRequest& request, bool asks_nodes) {
    auto command = "kmm-upgrade check kubernetes " + request.subject.target;
    const auto add = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) command += fmt::format(" --{} {}", name, base::command_word(value));
    };
    if (asks_nodes) add("via", upgrade::to_string(request.options.via));
    add("switch", request.subject.way);
    add("from", request.subject.directory);
    for (const auto* name : {"ignore-checks", "ignore-preflight-errors", "leave-out", "versions", "app-check",
                             "patch-query", "ssh-config", "worker", "worker-image", "worker-namespace"})
        if (args.source(name) == "option") add(name, base::join(args.all(name), ","));
    return command;
}

/// Every node runs the version: a run that is followed ends, if it asked for that.
Exit end_without_hops(Access& access, const kubernetes::Version& target, const kubernetes::Observation& seen,
                      bool dry) {
    const auto before = dry ? std::nullopt : access.record.load();
    if (before && upgrade::is_followed(*before) && asks_for(*before, target)) {
        end_way(access, *before, seen);
        return Exit::ok;
    }
    access.call.note(fmt::format("every control plane and kubelet runs {} already: nothing to do", target.text()));
    return Exit::ok;
}

}  // namespace

void sign_kubernetes_request(Call& call, drive::KubernetesRequest& request) {
    sign_request(request);
    request.created = base::format_rfc3339(call.clock().now_unix());
}

Exit run_start_kubernetes(const cli::Args& args, cli::Context& context) {
    const auto target = version_argument(args.positional("VERSION"));
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) { return asks_for(run, target); }))
        return run_resume(args, context);
    Access access(args, context);
    auto& call = access.call;
    auto request = request_of(args, call, target);
    const auto share = max_unavailable(args);
    const bool dry = args.flag("dry-run");
    const bool is_dump = !args.all("filename").empty();
    if (is_dump && !dry)
        throw Error(Exit::usage, "bad-value", "-f reads dumps, in which nothing can be upgraded")
            .hint("add --dry-run, or name the cluster with --context");
    request.left_out = left_out_option(args);
    request.until = args.get("until").value_or("");
    const auto& table = (request.is_networking_first ? upgrade::kubernetes::procedure_networking_first()
                                                     : upgrade::kubernetes::procedure_kubernetes())
                            .table();
    require_until(args, table);
    const auto catalogue = read_versions(call);
    drive::take_patches(request, catalogue);
    const auto prerequisites = read_prerequisites(call);
    auto inventory =
        is_dump ? read_inventory(call, extent_of(catalogue)) : read_cluster(access, request, dry, catalogue);
    leave_out_known(inventory, request.left_out);
    const auto seen = kubernetes::observe(inventory);
    const auto hops = drive::hops_of(drive::path_to(catalogue, seen, target));
    if (args.get("skip-phases")) require_phases(hops);
    require_files(is_dump ? nullptr : access.cluster.opened().server, request, seen, hops, table);
    request.options.max_unavailable = share.of(seen.kubelets.size());
    if (hops.empty()) return end_without_hops(access, target, seen, dry);
    std::unique_ptr<cluster::NodeRunner> runner;
    kubernetes::NodeAnswers answers;
    if (!is_dump) {
        runner = kubernetes_runner(access, request.options, request.lineage, !dry, kubernetes_rules(request.subject));
        if (!dry) require_no_notice(access, request.created_by);
        const auto questions =
            questions_before(catalogue, seen, target, request.subject.way, request.subject.directory,
                             request.subject.ignored_preflight);
        answers = ask_nodes(call, *runner, inventory, questions);
        request.etcd_leader = kubernetes::etcd_leader(answers);
    }
    kubernetes::CheckInput input{
        inventory, seen, catalogue, target, is_dump ? nullptr : &answers, call.clock().now_unix()};
    input.way = request.subject.way;
    input.intent = {request.options.drain, request.options.drain_unmanaged, request.options.drain_local_data,
                    !request.subject.freeze.empty(), args.get("skip-phases").value_or(""),
                    args.get("patches").has_value()};
    prerequisites.put_into(input);
    const auto checked = require_checks(call, input, request.subject.ignored_checks, {}, "nothing was changed");
    call.note(fmt::format("{} checks: none fails, {} could not be made: {} names them", checked.made, checked.skipped,
                          check_command(args, request, !is_dump)));
    if (dry) {
        print_plan(context, {request, seen, hops, inventory.is_live, inventory.has_policies, is_dump, catalogue,
                             kubernetes::configured_etcd(inventory)});
        return Exit::ok;
    }
    return walk_hops(access, request, seen, hops, std::move(runner));
}

}  // namespace kmm::tool_upgrade
