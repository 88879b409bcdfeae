// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/walk_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/parse.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"
#include "sys/host.hpp"
#include "sys/local_time.hpp"
#include "sys/program.hpp"
#include "sys/random.hpp"
#include "upgrade/engine/pace.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::tool_upgrade {
namespace {

Error bad_value(const std::string& option, const std::string& found, const std::string& expected) {
    return Error(Exit::usage, "bad-value",
                 fmt::format("--{} is \"{}\", expected {}", option, base::escape(found), expected));
}

/// What a number or a duration that is too small may have been meant as.
std::string leave_out(const std::string& name) {
    if (name == "canary") return "leave the option out for no canary";
    if (name == "pause-after") return "leave the option out to walk all nodes without a pause";
    if (name == "soak") return "leave the option out to wait for nothing after a node";
    return "leave the option out for the usual one";
}

std::int64_t duration_option(const cli::Args& args, const std::string& name, std::int64_t fallback_ms) {
    const auto text = args.get(name);
    if (!text) return fallback_ms;
    const auto duration = base::parse_duration(*text);
    if (!duration || duration->count() < 1000) throw bad_value(name, *text, "a duration from 1s").hint(leave_out(name));
    return duration->count();
}

}  // namespace

std::int64_t count_option(const cli::Args& args, const std::string& name, std::int64_t fallback, std::int64_t least) {
    const auto text = args.get(name);
    if (!text) return fallback;
    const auto number = base::parse_number<std::int64_t>(*text);
    if (!number || *number < least || *number > 1'000'000)
        throw bad_value(name, *text, fmt::format("a number from {}", least)).hint(leave_out(name));
    return *number;
}

std::string command_option(const cli::Args& args, const std::string& name) {
    const auto text = args.get(name).value_or("");
    if (args.get(name) && !upgrade::command_words(text))
        throw bad_value(name, text, "a command and its arguments, with quotes that end")
            .hint("no shell reads it; name one if you want one: sh -c '...'");
    return text;
}

void require_command(const std::string& command) {
    const auto program = upgrade::command_words(command)->front();
    sys::require_program(program);
    if (program.find('/') != std::string::npos) sys::require_trusted(program, "program");
}

namespace {

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
        throw Error(Exit::usage, "missing-option", "--tz requires --between").hint("--between 22:00-04:00");
    if (args.get("tz") && options.time_zone.empty()) throw bad_value("tz", "", "a time zone as Europe/Berlin");
    static_cast<void>(sys::minute_of_day_in(options.time_zone));  // refuses an unknown one
    options.check = command_option(args, "check");
    if (!options.check.empty()) require_command(options.check);
    options.on_event = command_option(args, "on-event");
    if (!options.on_event.empty()) require_command(options.on_event);
    if (!options.check.empty() || !options.on_event.empty() || !command_option(args, "patch-query").empty())
        options.command_directory = absolute_path(".");
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
                .hint(
                    "it is what the device plugin's Pods offer: kubectl get node NODE -o "
                    "jsonpath={.status.allocatable}");
    options.user_resources = base::join(resources, ",");
    if (!resources.empty() && !options.evict_users)
        throw Error(Exit::usage, "missing-option", "--resource requires --evict-users").hint("add --evict-users");
    options.drain_unmanaged = args.flag("force");
    options.drain_local_data = args.flag("delete-emptydir-data");
    // As kubectl has it: -1 is the Pods' own.
    const auto grace = count_option(args, "grace-period", -1, -1);
    options.grace_seconds = std::max<std::int64_t>(grace, 0);
    options.evict_at_once = grace == 0;
    if (options.evict_at_once && options.drain && !options.drain_unmanaged)
        throw Error(Exit::usage, "missing-option",
                    "--grace-period 0 kills Pods at once and waits for nothing that they do: it needs --force")
            .hint("--grace-period 1 is the shortest without; --force also evicts Pods without a controller");
    if (options.drain) return;
    for (const auto* name : {"force", "delete-emptydir-data", "grace-period"})
        if (args.flag(name) || args.get(name))
            throw Error(Exit::usage, "missing-option", fmt::format("--{} requires --drain", name))
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
        throw bad_value("max-unavailable", given, "a number of nodes from 1, or a share from 1% to 100%")
            .hint("leave the option out for one node at a time");
    share.number = *number;
    return share;
}

std::optional<std::string> until_option(const cli::Args& args, const upgrade::Run& run) {
    auto state = args.get("until");
    if (!state) return state;
    if (const auto problem = upgrade::until_problem(run, *state); !problem.empty()) {
        std::vector<std::string> ahead;
        for (const auto& stage : upgrade::procedure_of(run).table().stages())
            if (upgrade::until_problem(run, stage.done).empty()) ahead.push_back(stage.done);
        throw Error(Exit::usage, "bad-value", "--until: " + problem)
            .hint(ahead.empty() ? "leave the option out" : "expected one of " + base::join(ahead, ", "));
    }
    return state;
}

void take_module(const cli::Args& args, drive::StartRequest& request) {
    const auto module = args.positional("MODULE");
    // migrate goes without one.
    const auto said = args.positionals("MODULE").empty() ? api::ModuleName() : api::parse_module_name(module);
    request.ns = said.namespace_.empty() ? args.get("namespace").value_or("") : said.namespace_;
    request.name = said.name;
    if (const auto given = args.get("namespace"); given && *given != request.ns)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("module {} and --namespace {} contradict each other", module, *given))
            .hint("write NAMESPACE/NAME alone");
}

namespace {

/// The text of the file of --order. A name that is no file was meant as an order.
std::string order_text(const std::string& file) {
    const std::string expected = "name, zone, or a file with one node name a line";
    if (file.empty()) throw bad_value("order", file, expected).hint("leave the option out for the order of names");
    try {
        return sys::read_trusted_file(file, "order of nodes", 1U << 20U);
    } catch (const Error& error) {
        if (error.exit() != Exit::not_found) throw;
        const std::vector<std::string> orders{"name", "zone"};
        const auto near = base::nearest(file, orders);
        throw Error(Exit::not_found, "file-not-found",
                    fmt::format("--order is \"{}\", expected {}: there is no such file", base::escape(file), expected))
            .hint(near ? fmt::format("did you mean {}?", *near)
                       : "write the file, or leave the option out for the order of names");
    }
}

}  // namespace

void read_order(drive::StartRequest& request) {
    if (request.options.order != "name" && request.options.order != "zone") {
        request.order.emplace();
        auto text = order_text(request.options.order);
        if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // the byte order mark of some editors
        for (const auto line : base::split(text, '\n')) {
            const auto name = base::trim(line);
            if (name.empty() || name.front() == '#') continue;
            request.order->push_back(cli::bare_name("NODE", std::string(name)));
        }
    }
}

void sign_request(upgrade::Signature& request) {
    request.tool_version = KMM_VERSION;
    request.created_by = fmt::format("{}@{}", sys::caller_name(), sys::host_name());
    sys::LinuxRandom random;
    request.lineage = sys::uuid_v4(random);
}

void take_walk_options(const cli::Args& args, drive::StartRequest& request) {
    request.nodes = args.all("node");
    // Else an empty variable of a script would be looked for as a node.
    if (std::find(request.nodes.begin(), request.nodes.end(), "") != request.nodes.end())
        throw bad_value("node", "", "the name of a node")
            .hint("leave the option out for all nodes that the Module selects");
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

void take_draining_walk_options(const cli::Args& args, drive::StartRequest& request) {
    auto draining = args;
    if (!args.flag("no-drain")) draining.values["drain"] = {"true"};
    else
        for (const auto* name : {"force", "delete-emptydir-data", "grace-period"})
            if (args.flag(name) || args.get(name))
                throw Error(Exit::usage, "bad-value", fmt::format("--{} and --no-drain contradict each other", name))
                    .hint("leave one of them out");
    take_walk_options(draining, request);
}

void require_matches(const api::Objects& objects, const std::string& ns, const cluster::Selector& selector) {
    const auto known = api::module_namespaces(objects);
    if (!ns.empty() && !known.empty() && !known.contains(ns)) {
        const auto near = base::nearest(ns, std::vector<std::string>(known.begin(), known.end()));
        throw Error(Exit::not_found, "module-not-found",
                    fmt::format("no Module of namespace {} is in the cluster or on a node", base::escape(ns)))
            .hint(near ? "did you mean " + *near + "?" : "kmm-plan show lists the Modules");
    }
    const auto matches = [&](const api::Node& node) { return selector.matches(node.meta.labels); };
    if (!objects.nodes.empty() && std::none_of(objects.nodes.begin(), objects.nodes.end(), matches))
        throw Error(Exit::checks_failed, "no-nodes", "no node is selected").hint("--selector matches no node");
}

}  // namespace kmm::tool_upgrade
