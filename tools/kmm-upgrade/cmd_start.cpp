// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <charconv>
#include <csignal>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/workloads.hpp"
#include "drive/drain.hpp"
#include "drive/dry_run.hpp"
#include "drive/prepare.hpp"
#include "kmm-upgrade/session.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/view.hpp"
#include "plan/drift.hpp"
#include "sys/host.hpp"
#include "sys/local_time.hpp"
#include "sys/random.hpp"
#include "sys/signals.hpp"
#include "upgrade/pace.hpp"
#include "upgrade/replay.hpp"
#include "value/reader.hpp"

namespace kmm::tool_upgrade {
namespace {

Error bad_value(const std::string& option, const std::string& found, const std::string& expected) {
    return Error(Exit::usage, "bad-value", fmt::format("--{} is \"{}\", expected {}", option, found, expected));
}

std::int64_t count_option(const cli::Args& args, const std::string& name, std::int64_t fallback, std::int64_t least) {
    const auto text = args.get(name);
    if (!text) return fallback;
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (failed != std::errc() || end != text->data() + text->size() || number < least || number > 1'000'000)
        throw bad_value(name, *text, fmt::format("a number from {}", least));
    return number;
}

/// "N" or "P%"; a percentage is of the nodes of the run, rounded down, at least one. Returned as given: the number of nodes
/// is not known yet.
struct Share {
    std::int64_t number = 1;
    bool percent = false;
};

Share max_unavailable(const cli::Args& args) {
    auto text = args.get("max-unavailable").value_or("1");
    const auto given = text;
    Share share;
    if (!text.empty() && text.back() == '%') {
        share.percent = true;
        text.pop_back();
    }
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), share.number);
    if (failed != std::errc() || end != text.data() + text.size() || share.number < 1 ||
        share.number > (share.percent ? 100 : 1'000'000))
        throw bad_value("max-unavailable", given, "a number of nodes from 1 or a share as 20%");
    return share;
}

std::int64_t duration_option(const cli::Args& args, const std::string& name, std::int64_t fallback_ms) {
    const auto text = args.get(name);
    if (!text) return fallback_ms;
    const auto duration = base::parse_duration(*text);
    if (!duration || duration->count() < 1000) throw bad_value(name, *text, "a duration from 1s");
    return duration->count();
}

/// The text of an option that is a command line.
std::string command_option(const cli::Args& args, const std::string& name) {
    const auto text = args.get(name).value_or("");
    if (args.get(name) && !upgrade::command_words(text))
        throw bad_value(name, text, "a command and its arguments, with quotes that end")
            .hint("no shell reads it; name one if you want one: sh -c '...'");
    return text;
}

void take_pace_options(const cli::Args& args, upgrade::Options& options) {
    options.count_unavailable = args.source("max-unavailable") != "default";
    options.failure_budget = count_option(args, "failure-budget", 0, 0);
    options.soak_ms = duration_option(args, "soak", 0);
    options.between = args.get("between").value_or("");
    if (args.get("between") && !upgrade::parse_window(options.between))
        throw bad_value("between", options.between, "two different times of day as 22:00-04:00");
    options.time_zone = args.get("tz").value_or("");
    if (args.get("tz") && options.between.empty())
        throw Error(Exit::usage, "missing-option", "--tz is about --between, which is missing").hint("--between 22:00-04:00");
    if (args.get("tz")) sys::use_time_zone(options.time_zone);
    options.check = command_option(args, "check");
    options.on_event = command_option(args, "on-event");
}

void take_drain_options(const cli::Args& args, upgrade::Options& options) {
    options.evict_users = args.flag("evict-users");
    if (options.evict_users && args.flag("drain"))
        throw Error(Exit::usage, "bad-value", "--drain and --evict-users contradict each other")
            .hint("--drain evicts all Pods, --evict-users those that use the module's devices");
    options.drain = args.flag("drain") || options.evict_users;
    const auto resources = args.all("resource");
    for (const auto& name : resources)
        if (name.find('/') == std::string::npos || name.find(',') != std::string::npos)
            throw bad_value("resource", name, "the name of an extended resource as example.com/device");
    options.user_resources = base::join(resources, ",");
    if (!resources.empty() && !options.evict_users)
        throw Error(Exit::usage, "missing-option", "--resource is about --evict-users, which is missing").hint("add --evict-users");
    options.drain_unmanaged = args.flag("force");
    options.drain_local_data = args.flag("delete-emptydir-data");
    options.grace_seconds = count_option(args, "grace-period", 0, 1);
    if (options.drain) return;
    for (const auto* name : {"force", "delete-emptydir-data", "grace-period"})
        if (args.flag(name) || args.get(name))
            throw Error(Exit::usage, "missing-option", fmt::format("--{} is about --drain, which is missing", name))
                .hint("add --drain or --evict-users");
}

drive::StartRequest request_of(const cli::Args& args) {
    drive::StartRequest request;
    const auto module = args.positional("MODULE");
    const auto slash = module.find('/');
    request.ns = slash == std::string::npos ? args.get("namespace").value_or("") : module.substr(0, slash);
    request.name = slash == std::string::npos ? module : module.substr(slash + 1);
    if (const auto given = args.get("namespace"); given && *given != request.ns)
        throw Error(Exit::usage, "bad-value", fmt::format("module {} and --namespace {} contradict each other", module, *given));
    const auto version = args.get("to");
    if (!version || version->empty())
        throw Error(Exit::usage, "missing-option", "--to VERSION is missing").hint("name the version to upgrade to, as --to v2");
    request.to_version = *version;
    request.nodes = args.all("node");
    request.selector = cluster::Selector::parse(args.get("selector").value_or(""));
    auto& options = request.options;
    options.order = args.get("order").value_or("name");
    if (options.order != "name" && options.order != "zone") {
        request.order.emplace();
        const auto text = sys::read_file(options.order, 1U << 20U);
        for (const auto line : base::split(text, '\n')) {
            const auto name = base::trim(line);
            if (!name.empty() && name.front() != '#') request.order->emplace_back(name);
        }
    }
    options.canary = count_option(args, "canary", 0, 1);
    options.pause_after = count_option(args, "pause-after", 0, 1);
    options.node_timeout_ms = duration_option(args, "node-timeout", options.node_timeout_ms);
    options.manual = args.flag("manual");
    take_drain_options(args, options);
    take_pace_options(args, options);
    request.tool_version = KMM_VERSION;
    const auto* user = getlogin();
    request.created_by = fmt::format("{}@{}", user != nullptr ? std::string(user) : fmt::format("uid {}", getuid()), sys::host_name());
    sys::LinuxRandom random;
    request.lineage = sys::uuid_v4(random);
    return request;
}

/// Refuses while another upgrade is recorded that has not ended.
void require_free(const std::optional<upgrade::Run>& run) {
    if (!run || upgrade::is_final_run_state(run->state)) return;
    throw Error(Exit::paused, "run-exists",
                fmt::format("the upgrade of {} to {} is in state {}", run->module(), run->to_version, run->state))
        .hint(upgrade::next_commands(*run).front() + ", or: kmm-upgrade abort");
}

Session::Errand errand_of(const cluster::Snapshot& snapshot, const drive::StartRequest& request) {
    Session::Errand errand{request.ns, request.name, "", request.lineage, {}};
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& module = drive::find_module(snapshot.objects, request.ns, request.name);
    errand.ns = module.meta.namespace_;
    if (request.options.runner == "self") errand.rights = cluster::plugin_rules(module);
    if (module.module_loader) errand.service_account = module.module_loader->service_account_name;
    return errand;
}

/// Refuses if the cluster would be planned otherwise today than in the plan file. Errors: checks_failed "plan-drifted" with
/// a detail a node; data "bad-plan"; the reader's own.
void require_as_planned(const std::string& file, const api::Objects& objects, const drive::StartRequest& request) {
    constexpr std::size_t k_told_max = 20;
    Diagnostics faults;
    const auto documents = value::read_any(sys::read_file(file, 1U << 30U), file, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (documents.size() != 1)
        throw Error(Exit::data, "bad-plan", fmt::format("expected one plan, found {} documents", documents.size())).at({file});
    const auto& module = drive::find_module(objects, request.ns, request.name);
    const auto saved = plan::read_saved_plan(documents.front(), module.meta.namespace_, module.meta.name);
    plan::Options options;
    options.next = saved.next;
    const auto now = plan::make_plan(objects, plan::complete(options, objects));
    const auto drifted = plan::drift(saved, now, module.meta.namespace_, module.meta.name);
    if (drifted.empty()) return;
    Error error(Exit::checks_failed, "plan-drifted",
                fmt::format("the cluster is no longer as {} says: {} of {} nodes differ; nothing was changed", file, drifted.size(),
                            saved.nodes.size()));
    for (std::size_t i = 0; i < std::min(drifted.size(), k_told_max); ++i) error.detail(drifted[i].first, drifted[i].second);
    if (drifted.size() > k_told_max) error.detail("more", fmt::format("{} nodes", drifted.size() - k_told_max));
    throw std::move(error).hint("look at it with kmm-plan show, save the new plan with -o json, and start with that");
}

drive::Ended dry_run(Session& session, const upgrade::Run& prepared, cluster::ClusterStore& store, cluster::Workloads& workloads,
                     cluster::NodeRunner& runner) {
    auto& console = session.context().console;
    std::mutex mutex;
    const auto sink = [&](const std::string& node, const std::string& action) {
        const std::lock_guard guard(mutex);
        console.out(fmt::format("{}  {}\n", node, action));
    };
    drive::DryStore dry_store(store, sink);
    drive::DryWorkloads dry_workloads(workloads, sink);
    drive::DryRunner dry_runner(runner, sink);
    drive::MemoryJournal journal;
    auto run = prepared;
    // Stops for people make no sense when nothing happens.
    run.options.canary = run.options.pause_after = run.options.soak_ms = 0;
    run.options.max_unavailable = 1;
    run.options.count_unavailable = false;
    run.options.between.clear();
    run.options.check.clear();
    drive::Recorder recorder(run, journal, session.clock(),
                             [&](const upgrade::Event& event, const upgrade::Run&, const std::string&) {
                                 if (event.kind == upgrade::EventKind::intent && !event.node.empty())
                                     console.out(fmt::format("{}  -- {}\n", event.node, event.to));
                             });
    drive::Driver driver(dry_store, dry_workloads, dry_runner, recorder, session.clock(), [&] { return session.stopped(); });
    return driver.walk();
}

}  // namespace

Exit run_start_module(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    auto request = request_of(args);
    const auto share = max_unavailable(args);
    const bool dry = args.flag("dry-run");
    const auto place = session.cluster_place("");
    session.choose_runner(request.options, place, Session::Age::fresh);
    if (dry) {
        require_free(session.load());
    } else {
        // The lock comes before the question what is recorded: who is at work matters more than in which state.
        session.directory().open(true);
        session.lock("start module " + args.positional("MODULE"));
        require_free(session.load());
    }
    const auto store = session.open_cluster(place);
    Session::require_kinds(*store);
    const auto workloads = cluster::workloads_of(*store);
    using Leaving = cluster::Workloads::Leaving;
    if (request.options.drain) workloads->require_rights(request.options.evict_users ? Leaving::users : Leaving::all);
    const auto snapshot = store->read();
    const auto errand = errand_of(snapshot, request);
    session.secure(request.options, *store, errand, dry ? Session::Purpose::look : Session::Purpose::change);
    const auto runner = session.make_runner(request.options, *store, errand);
    drive::Worker worker(*runner);
    std::mutex mutex;
    const auto told = [&](const std::string& node, const std::string& what) {
        const std::lock_guard guard(mutex);
        if (what == "check" && context.verbosity >= 0)
            context.console.err(fmt::format("{} {} checks {}\n", clock_text(base::format_rfc3339(session.clock().now_unix())), node,
                                            request.to_version));
    };
    if (context.verbosity >= 0)
        for (const auto& diagnostic : snapshot.diagnostics)
            if (diagnostic.severity == Severity::warning) context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
    if (const auto file = args.get("plan")) require_as_planned(*file, snapshot.objects, request);
    auto prepared = drive::prepare(snapshot, worker, session.clock(), request, told);
    if (context.verbosity >= 0)
        for (const auto& note : prepared.notes) context.console.err("note: " + base::escape(note) + "\n");
    auto& run = prepared.run;
    if (run.options.drain) {
        for (const auto& warning : drive::review_drain(*workloads, drive::find_module(snapshot.objects, run.module_namespace, run.module_name), run))
            if (context.verbosity >= 0) context.console.err("warning: " + base::escape(warning) + "\n");
    }
    run.options.max_unavailable =
        share.percent ? std::max<std::int64_t>(1, static_cast<std::int64_t>(run.nodes.size()) * share.number / 100) : share.number;
    run.cluster_place = place;
    if (session.stopped()) {
        const auto exit = !sys::interrupt_requested()             ? Exit::timeout
                          : sys::interrupt_signal() == SIGINT ? Exit::interrupted
                                                              : Exit::terminated;
        throw Error(exit, "interrupted", "interrupted before anything was changed").hint("start again");
    }
    if (dry) {
        const auto ended = dry_run(session, run, *store, *workloads, *runner);
        context.console.out(ended == drive::Ended::complete ? "nothing was done; next: the same command without --dry-run\n"
                                                            : "nothing was done; the walk would stop here\n");
        return ended == drive::Ended::complete ? Exit::ok : Exit::checks_failed;
    }
    if (const auto old = session.load()) session.directory().archive(old->module_name + "-" + old->to_version);
    run.cluster_identity = store->identity(true);
    session.directory().begin(upgrade::encode(run));
    drive::StateJournal journal(session.directory());
    Progress progress(context, run);
    drive::Recorder recorder(upgrade::replay({{run.created, upgrade::encode(run)}}), journal, session.clock(),
                             told_to_command(progress, run.options.on_event));
    recorder.save();
    progress.note(fmt::format("{} {}: {} -> {} on {} nodes", clock_text(run.created), run.state,
                              run.from_version.empty() ? "none" : run.from_version, run.to_version, run.nodes.size()));
    const auto plugins = session.make_plugins(run, *store);
    drive::Driver driver(plugins ? static_cast<cluster::ClusterStore&>(*plugins) : *store, *workloads, *runner, recorder, session.clock(),
                         [&] { return session.stopped(); });
    driver.set_pace(pace_of(progress));
    auto ended = drive::Ended::paused;
    if (request.options.manual) driver.pause("manual", "as --manual asks; go on with step");
    else ended = recording_loss(driver, recorder, [&] { return driver.walk(); });
    progress.stop();
    return session.finish(ended, recorder.run());
}

}  // namespace kmm::tool_upgrade
