// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/verb_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/place_options.hpp"

namespace kmm::tool_upgrade {

std::vector<cli::Option> shared() {
    return state_options() + runner_options() + std::vector<cli::Option>{trust_option()} + cli::cluster_options() +
           cli::common_options();
}

cli::Positional node_argument(std::string help) {
    cli::Positional positional;
    positional.name = "NODE";
    positional.help = std::move(help);
    return positional;
}

cli::Verb verb(std::string name, std::string summary, std::string description, std::vector<cli::Example> examples,
               std::vector<cli::Option> own, decltype(cli::Verb::run) run) {
    cli::Verb made;
    made.name = std::move(name);
    made.summary = std::move(summary);
    made.description = std::move(description);
    made.examples = std::move(examples);
    made.options = std::move(own) + shared();
    if (!run) return made;
    made.run = [run = std::move(run)](const cli::Args& args, cli::Context& context) {
        try {
            return run(args, context);
        } catch (Error& error) {
            error.hint(PlaceOptions(args, context.program).put_into(error.hint()));
            throw;
        }
    };
    return made;
}

cli::Verb reworded(cli::Verb made, std::string_view option, std::string help, std::vector<std::string> choices) {
    for (auto& each : made.options) {
        if (each.name != option) continue;
        each.help = std::move(help);
        if (!choices.empty()) each.choices = std::move(choices);
        break;
    }
    return made;
}

cli::Verb without_use(cli::Verb made, const std::vector<cli::Option>& useless,
                      std::initializer_list<std::string_view> used) {
    for (auto& each : made.options) {
        const auto is_same = [&](const cli::Option& other) { return other.name == each.name; };
        if (std::find(used.begin(), used.end(), each.name) == used.end() &&
            std::any_of(useless.begin(), useless.end(), is_same))
            each.hidden = true;
    }
    return made;
}

cli::Verb without_selector(cli::Verb made, const std::string& why) {
    for (auto& each : made.options) each.hidden = each.hidden || each.name == "selector";
    made.run = [why, name = made.name, run = std::move(made.run)](const cli::Args& args, cli::Context& context) {
        if (args.source("selector") == "option")
            throw Error(Exit::usage, "bad-value", fmt::format("{} does not accept --selector: {}", name, why))
                .hint("leave --selector out");
        return run(args, context);
    };
    return made;
}

cli::Verb about_run(cli::Verb made) { return without_selector(std::move(made), "the nodes were fixed at start"); }

cli::Verb about_record(cli::Verb made) {
    auto useless = cli::cluster_options();
    std::erase_if(useless, [](const cli::Option& each) { return each.name == "namespace"; });
    return about_run(
        without_use(std::move(made), useless + runner_options() + std::vector<cli::Option>{trust_option()}));
}

std::vector<cli::Option> walk_options(const std::string& node_timeout) {
    auto node = cli::repeatable(option("node", "NODE", "only this node"));
    auto order =
        cli::with_default(option("order", "ORDER", "name, zone, or a file with one node name per line"), "name");
    auto unavailable = cli::with_default(
        option("max-unavailable", "N|P%", "maximum number of nodes that may be unavailable at a time"), "1");
    auto resource =
        cli::repeatable(option("resource", "NAME", "with --evict-users: resource of the module's device plugin"));
    auto timeout =
        cli::with_default(option("node-timeout", "DURATION", "time limit for one step on one node"), node_timeout);
    return {node,
            order,
            option("canary", "N", "stop after the first N nodes if more follow, exit 11"),
            option("pause-after", "N", "stop after every N nodes if more follow, exit 11"),
            unavailable,
            timeout,
            option("failure-budget", "N", "tolerate up to N failed nodes"),
            option("soak", "DURATION", "watch each node for this time before it counts as done"),
            option("between", "HH:MM-HH:MM", "begin nodes only in this time of day"),
            option("tz", "ZONE", "with --between: its time zone (default: the host's)"),
            option("check", "COMMAND", "run COMMAND for each upgraded node (JSON on stdin); non-zero fails the node"),
            option("on-event", "COMMAND", "run COMMAND for each event (a JSON line on stdin)"),
            option("drain", "", "cordon and empty each node before its module is unloaded"),
            option("evict-users", "", "as --drain, but evict only users of the module's devices"),
            resource,
            option("force", "", "with --drain: also evict Pods without a controller"),
            option("delete-emptydir-data", "", "with --drain: also evict Pods with an emptyDir"),
            option("grace-period", "SECONDS",
                   "with --drain: grace period of evicted Pods; -1: their own, 0 (with --force): at once"),
            metrics_option(), metrics_cluster_option(),
            option("or-resume", "", "resume this upgrade if it is already recorded"),
            option("dry-run", "", "print every action, change nothing")};
}

std::vector<cli::Option> without_drain(std::vector<cli::Option> options) {
    std::erase_if(options, [](const cli::Option& each) {
        return each.name == "drain" || each.name == "evict-users" || each.name == "resource";
    });
    for (auto& each : options)
        if (constexpr std::string_view k_with = "with --drain: "; each.help.starts_with(k_with))
            each.help.erase(0, k_with.size());
    return options;
}

}  // namespace kmm::tool_upgrade
