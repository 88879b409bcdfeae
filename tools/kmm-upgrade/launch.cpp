// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "cluster/directory_store.hpp"
#include "cluster/workloads.hpp"
#include "drive/drain.hpp"
#include "kmm-upgrade/progress.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/view.hpp"
#include "record/space.hpp"
#include "sys/host.hpp"
#include "sys/local_time.hpp"
#include "sys/process.hpp"
#include "sys/random.hpp"
#include "sys/signals.hpp"
#include "upgrade/pace.hpp"
#include "upgrade/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

Error bad_value(const std::string& option, const std::string& found, const std::string& expected) {
    return Error(Exit::usage, "bad-value", fmt::format("--{} is \"{}\", expected {}", option, base::escape(found), expected));
}

/// What a number or a duration that is too small may have been meant as.
std::string leave_out(const std::string& name) {
    if (name == "canary") return "leave the option out for no canary";
    if (name == "pause-after") return "leave the option out to walk all nodes without a pause";
    if (name == "soak") return "leave the option out to wait for nothing after a node";
    return "leave the option out for the usual one";
}

std::int64_t count_option(const cli::Args& args, const std::string& name, std::int64_t fallback, std::int64_t least) {
    const auto text = args.get(name);
    if (!text) return fallback;
    const auto number = base::parse_number<std::int64_t>(*text);
    if (!number || *number < least || *number > 1'000'000)
        throw bad_value(name, *text, fmt::format("a number from {}", least)).hint(leave_out(name));
    return *number;
}

std::int64_t duration_option(const cli::Args& args, const std::string& name, std::int64_t fallback_ms) {
    const auto text = args.get(name);
    if (!text) return fallback_ms;
    const auto duration = base::parse_duration(*text);
    if (!duration || duration->count() < 1000) throw bad_value(name, *text, "a duration from 1s").hint(leave_out(name));
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
        throw bad_value("between", options.between, "two different times of day as 22:00-04:00")
            .hint("a window may go past midnight; leave the option out for any time");
    options.time_zone = args.get("tz").value_or("");
    if (args.get("tz") && options.between.empty())
        throw Error(Exit::usage, "missing-option", "--tz is about --between, which is missing").hint("--between 22:00-04:00");
    if (args.get("tz")) sys::use_time_zone(options.time_zone);
    options.check = command_option(args, "check");
    if (!options.check.empty()) sys::require_program(upgrade::command_words(options.check)->front());
    options.on_event = command_option(args, "on-event");
    if (!options.on_event.empty()) sys::require_program(upgrade::command_words(options.on_event)->front());
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
            throw bad_value("resource", name, "the name of an extended resource as example.com/device")
                .hint("it is what the device plugin's Pods offer: kubectl get node NODE -o jsonpath={.status.allocatable}");
    options.user_resources = base::join(resources, ",");
    if (!resources.empty() && !options.evict_users)
        throw Error(Exit::usage, "missing-option", "--resource is about --evict-users, which is missing").hint("add --evict-users");
    options.drain_unmanaged = args.flag("force");
    options.drain_local_data = args.flag("delete-emptydir-data");
    // As kubectl has it: -1 is the Pods' own.
    const auto grace = count_option(args, "grace-period", -1, -1);
    options.grace_seconds = std::max<std::int64_t>(grace, 0);
    options.evict_at_once = grace == 0;
    if (options.evict_at_once && options.drain && !options.drain_unmanaged)
        throw Error(Exit::usage, "missing-option", "--grace-period 0 kills Pods at once and waits for nothing that they do: it needs --force")
            .hint("--grace-period 1 is the shortest without; --force also evicts Pods without a controller");
    if (options.drain) return;
    for (const auto* name : {"force", "delete-emptydir-data", "grace-period"})
        if (args.flag(name) || args.get(name))
            throw Error(Exit::usage, "missing-option", fmt::format("--{} is about --drain, which is missing", name))
                .hint("add --drain or --evict-users");
}

}  // namespace

std::int64_t Share::of(std::size_t nodes) const {
    return percent ? std::max<std::int64_t>(1, static_cast<std::int64_t>(nodes) * number / 100) : number;
}

Share max_unavailable(const cli::Args& args) { return parse_share(args.get("max-unavailable").value_or("1")); }

Share parse_share(std::string text) {
    const auto given = text;
    Share share;
    if (!text.empty() && text.back() == '%') {
        share.percent = true;
        text.pop_back();
    }
    const auto number = base::parse_number<std::int64_t>(text);
    if (!number || *number < 1 || *number > (share.percent ? 100 : 1'000'000))
        throw bad_value("max-unavailable", given, "a number of nodes from 1 or a share as 20%")
            .hint("leave the option out for one node at a time");
    share.number = *number;
    return share;
}

void take_module(const cli::Args& args, drive::StartRequest& request) {
    const auto module = args.positional("MODULE");
    // migrate goes without one.
    const auto said = args.positionals("MODULE").empty() ? api::ModuleName() : api::parse_module_name(module);
    request.ns = said.namespace_.empty() ? args.get("namespace").value_or("") : said.namespace_;
    request.name = said.name;
    if (const auto given = args.get("namespace"); given && *given != request.ns)
        throw Error(Exit::usage, "bad-value", fmt::format("module {} and --namespace {} contradict each other", module, *given)).hint("write NAMESPACE/NAME alone");
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

/// The text of the file of --order. A name that is no file was meant as an order.
std::string order_text(const std::string& file) {
    const std::string expected = "name, zone, or a file with one node name a line";
    if (file.empty()) throw bad_value("order", file, expected).hint("leave the option out for the order of names");
    try {
        return sys::read_file(file, 1U << 20U);
    } catch (const Error& error) {
        if (error.exit() != Exit::not_found) throw;
        const std::vector<std::string> orders{"name", "zone"};
        const auto near = base::nearest(file, orders);
        throw Error(Exit::not_found, "file-not-found", fmt::format("--order is \"{}\", expected {}: there is no such file", base::escape(file), expected))
            .hint(near ? fmt::format("did you mean {}?", *near) : "write the file, or leave the option out for the order of names");
    }
}

void read_order(drive::StartRequest& request) {
    if (request.options.order != "name" && request.options.order != "zone") {
        request.order.emplace();
        auto text = order_text(request.options.order);
        if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // the byte order mark of some editors
        for (const auto line : base::split(text, '\n')) {
            const auto name = base::trim(line);
            if (!name.empty() && name.front() != '#') request.order->emplace_back(name);
        }
    }
}

void sign_request(drive::StartRequest& request) {
    request.tool_version = KMM_VERSION;
    const auto* user = getlogin();
    request.created_by = fmt::format("{}@{}", user != nullptr ? std::string(user) : fmt::format("uid {}", getuid()), sys::host_name());
    sys::LinuxRandom random;
    request.lineage = sys::uuid_v4(random);
}

void take_walk_options(const cli::Args& args, drive::StartRequest& request) {
    request.nodes = args.all("node");
    // Else an empty variable of a script would be looked for as a node.
    if (std::find(request.nodes.begin(), request.nodes.end(), "") != request.nodes.end())
        throw bad_value("node", "", "the name of a node").hint("leave the option out for all nodes that the Module selects");
    request.selector = cluster::Selector::parse(args.get("selector").value_or(""));
    auto& options = request.options;
    options.order = args.get("order").value_or("name");
    read_order(request);
    options.canary = count_option(args, "canary", 0, 1);
    options.pause_after = count_option(args, "pause-after", 0, 1);
    options.node_timeout_ms = duration_option(args, "node-timeout", options.node_timeout_ms);
    options.manual = args.flag("manual");
    take_drain_options(args, options);
    take_pace_options(args, options);
    sign_request(request);
}

void require_matches(const api::Objects& objects, const std::string& ns, const cluster::Selector& selector) {
    const auto known = api::module_namespaces(objects);
    if (!ns.empty() && !known.empty() && !known.contains(ns)) {
        const auto near = base::nearest(ns, std::vector<std::string>(known.begin(), known.end()));
        throw Error(Exit::not_found, "module-not-found", fmt::format("no Module of namespace {} is in the cluster or on a node", base::escape(ns)))
            .hint(near ? "did you mean " + *near + "?" : "kmm-plan show lists the Modules");
    }
    const auto matches = [&](const api::Node& node) { return selector.matches(node.meta.labels); };
    if (!objects.nodes.empty() && std::none_of(objects.nodes.begin(), objects.nodes.end(), matches))
        throw Error(Exit::checks_failed, "no-nodes", "no node is selected").hint("--selector leaves no node over");
}

void require_free(const std::optional<upgrade::Run>& run) {
    if (!run || upgrade::is_final_run_state(run->state)) return;
    throw Error(Exit::paused, "run-exists",
                fmt::format("the upgrade of {} to {} is in state {}", run->module(), run->to_text(), run->state))
        .hint(upgrade::next_commands(*run).front() + ", or: kmm-upgrade abort");
}

namespace {

/// Whether `args`, of start or of apply, ask for what `run` does.
bool asks_for(const cli::Args& args, const upgrade::Run& run) {
    const auto version = args.get("to");
    if (run.is_apply() ? version.has_value() : run.to_version != version.value_or("")) return false;
    const auto names = args.positionals("MODULE");
    const auto ns = args.get("namespace").value_or(run.module_namespace);
    if (ns != run.module_namespace) return false;
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
               return name == run.module() || name == run.module_name;
           });
}

}  // namespace

bool is_to_be_resumed(const cli::Args& args, cli::Context& context) {
    if (!args.flag("or-resume") || args.flag("dry-run")) return false;
    const auto run = Session(args, context).load();
    if (!run || !asks_for(args, *run) || run->state == "upgrade-complete") return false;
    if (!upgrade::is_final_run_state(run->state)) return true;
    throw Error(Exit::paused, "run-ended", fmt::format("this upgrade of {} to {} was aborted", run->module(), run->to_text()))
        .hint("the same command without --or-resume starts a new one");
}

void tell_warnings(Session& session, const Diagnostics& diagnostics) {
    auto& context = session.context();
    if (context.verbosity < 0) return;
    for (const auto& diagnostic : diagnostics)
        if (diagnostic.severity == Severity::warning) context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
}

drive::CheckObserver check_observer(Session& session, const std::string& version) {
    auto mutex = std::make_shared<std::mutex>();
    return [&session, version, mutex](const std::string& node, const std::string& what) {
        const std::lock_guard guard(*mutex);
        auto& context = session.context();
        if (what == "status" || context.verbosity < 0) return;
        context.console.err(fmt::format("{} {} {}\n", clock_text(base::format_rfc3339(session.clock().now_unix())), node,
                                        what == "check" ? "checks " + version : what));
    };
}

namespace {

/// What --canary and --pause-after will not do: both stop only where nodes follow.
std::vector<std::string> stops_that_never_come(const upgrade::Run& run) {
    const auto count = static_cast<std::int64_t>(run.nodes.size());
    const auto nodes = count == 1 ? std::string("1 node") : fmt::format("{} nodes", count);
    const auto* hint = count == 1 ? "--manual stops before each step" : "a smaller number stops before the others";
    std::vector<std::string> texts;
    for (const auto& [option, after] : {std::pair{"canary", run.options.canary}, std::pair{"pause-after", run.options.pause_after}})
        if (after >= count) texts.push_back(fmt::format("--{} {} does not stop this run: it has {}, so none follows; {}", option, after, nodes, hint));
    return texts;
}

}  // namespace

void finish_preparing(Session& session, drive::Prepared& prepared, const Share& share, const std::string& place,
                      cluster::Workloads& workloads, const api::Module& module) {
    auto& context = session.context();
    const auto tell = [&](const char* kind, const std::string& text) {
        if (context.verbosity >= 0) context.console.err(fmt::format("{}: {}\n", kind, base::escape(text)));
    };
    for (const auto& note : prepared.notes) tell("note", note);
    auto& run = prepared.run;
    if (run.options.drain) {
        const auto review = drive::review_drain(workloads, module, run);
        for (const auto& warning : review.warnings) tell("warning", warning);
        if (drive::put_last(run, review.own_node)) tell("note", fmt::format("node {} comes last: this runs on it", review.own_node));
    }
    run.options.max_unavailable = share.of(run.nodes.size());
    run.cluster_place = place;
    for (const auto& text : stops_that_never_come(run)) tell("warning", text);
    if (!session.stopped()) return;
    const auto exit = !sys::interrupt_requested()             ? Exit::timeout
                      : sys::interrupt_signal() == SIGINT ? Exit::interrupted
                                                          : Exit::terminated;
    throw Error(exit, "interrupted", "interrupted before anything was changed").hint("start again");
}

void say_definitions(Rehearsal& rehearsal, const std::string& names) {
    for (const auto name : base::split(names, ','))
        if (!name.empty()) rehearsal.action("cluster", fmt::format("create CustomResourceDefinition {}", name));
}

drive::Ended dry_walk(Session& session, Rehearsal& rehearsal, const upgrade::Run& prepared, drive::DryStore& dry_store,
                      cluster::Workloads& workloads, cluster::NodeRunner& runner) {
    const auto sink = rehearsal.sink();
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
                             [&](const upgrade::Event& event, const std::string&) {
                                 if (event.kind == upgrade::EventKind::intent && !event.node.empty())
                                     rehearsal.step(event.node, event.to);
                             });
    drive::Driver driver(dry_store, dry_workloads, dry_runner, recorder, session.clock(), [&] { return session.stopped(); });
    return driver.walk();
}

void tell_newcomers(Session& session, const upgrade::Run& run, cluster::ClusterStore& store) {
    auto& context = session.context();
    if (!run.options.all_nodes || context.verbosity < 0) return;
    std::vector<std::string> names;
    try {
        const auto snapshot = store.read();
        if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
        const auto& objects = snapshot.objects;
        for (const auto& module : objects.modules) {
            if (module.full_name() != run.module()) continue;
            const auto tolerations = plan::loader_tolerations(module);
            for (const auto& node : objects.nodes)
                if (run.find(node.meta.name) == nullptr && plan::selects(module.selector, node.meta.labels) && plan::tolerates(tolerations, node.taints))
                    names.push_back(node.meta.name);
        }
    } catch (const Error& error) {
        // The run has ended well, whatever can be told besides.
        const auto place = error.position() ? error.position()->to_string() + ": " : "";
        context.console.err(fmt::format("note: whether nodes came after the start could not be seen: {}\n", base::escape(place + error.message())));
        return;
    }
    if (names.empty()) return;
    context.console.err(fmt::format("note: {} {} selected by the Module and came after the start: kmm-upgrade start module {} --to {}\n",
                                    names.size() == 1 ? "node " + names.front() : fmt::format("nodes {}", base::join(names, ", ")),
                                    names.size() == 1 ? "is" : "are", run.module(), run.to_version));
}

Launched launch(Session& session, upgrade::Run run, cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner) {
    auto& context = session.context();
    if (auto* directory = dynamic_cast<cluster::DirectoryStore*>(&store)) {
        std::vector<std::string> names;
        for (const auto& node : run.nodes) names.push_back(node.name);
        directory->check_editable(names, api::label_version_module(run.module_namespace, run.module_name));
    }
    run.cluster_identity = store.identity(true);
    // Not archived first: a run of `apply` says what is left to do after it until the next one does.
    const auto old = session.load();
    if (old && old->is_to_be_followed() && !run.is_apply() && context.verbosity >= 0)
        context.console.err(fmt::format("note: the apply before this left out {}: kmm-upgrade apply\n", base::escape(old->rest.modules)));
    record::with_space_explained(session.directory().path(), "the same command again", [&] {
        if (old) session.directory().succeed(old->module_name + "-" + old->to_text(), upgrade::encode(run));
        else session.directory().begin(upgrade::encode(run));
    });
    seal_record(session.directory().path(), run);
    session.create_kinds(run.created_definitions, store);
    drive::StateJournal journal(session.directory());
    Progress progress(context, run);
    drive::Recorder recorder(upgrade::replay({{run.created, upgrade::encode(run)}}), journal, session.clock(),
                             told_to_command(progress, run.options.on_event));
    recorder.save();
    progress.note(fmt::format("{} {}{}: {} -> {} on {} node{}", clock_text(run.created), run.state, run.is_apply() ? " " + run.module() : "",
                              run.from_text(), run.to_text(), run.nodes.size(), run.nodes.size() == 1 ? "" : "s"));
    const auto plugins = session.make_plugins(run, store);
    drive::Driver driver(plugins ? static_cast<cluster::ClusterStore&>(*plugins) : store, workloads, runner, recorder, session.clock(),
                         [&] { return session.stopped(); });
    driver.set_pace(pace_of(progress));
    auto ended = drive::Ended::paused;
    if (run.options.manual) driver.pause("manual", "as --manual asks; go on with step");
    else ended = recording_loss(driver, recorder, [&] { return driver.walk(); });
    progress.stop();
    if (ended == drive::Ended::complete) tell_newcomers(session, recorder.run(), store);
    return {ended, recorder.run()};
}

}  // namespace kmm::tool_upgrade
