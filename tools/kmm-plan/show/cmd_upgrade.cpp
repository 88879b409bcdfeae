// SPDX-License-Identifier: Apache-2.0
// kmm-plan upgrade: the ordered upgrade that kmm-upgrade would do.
#include <algorithm>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/fleet/upgrade_view.hpp"
#include "plan/kmm/eligible.hpp"

namespace kmm::tool_plan {

namespace {

using UpgradeNodes = std::vector<plan::UpgradeNode>;

void require_target(const api::Module& module, const std::string& version) {
    if (!module.module_loader) {
        throw Error(Exit::checks_failed, "no-module-loader",
                    fmt::format("Module {} loads no kernel module", module.full_name()))
            .at(module.meta.origin);
    }
    const auto& container = module.module_loader->container;
    const std::string& found = container.version;
    if (found == version) { return; }
    throw Error(Exit::checks_failed, "version-mismatch",
                fmt::format("Module {} {}, expected version {}", module.full_name(),
                            found.empty() ? "has no version" : "has version " + found, base::escape(version)))
        .at(container.version_origin.file.empty() ? module.meta.origin : container.version_origin)
        .hint(fmt::format("set spec.moduleLoader.container.version to {}, or read the changed Module with -f",
                          base::escape(version)));
}

std::string steps_text(const plan::UpgradeNode& node) {
    if (!node.reason.empty()) { return "-"; }
    return node.steps.empty() ? "nothing to do" : base::join(node.steps, ", ");
}

value::Node upgrade_document(const Source& source, const api::Module& module, const std::string& version,
                             const UpgradeNodes& nodes) {
    value::Node list = value::Node::sequence();
    for (const auto& node : nodes) {
        value::Node item = value::Node::mapping(
            {{"node", node.node}, {"kernel", node.kernel}, {"current", node.current}, {"target", version}});
        if (!node.image.empty()) { item.set("image", node.image); }
        item.set("steps", value::Node::strings(node.steps));
        if (!node.reason.empty()) { item.set("blocker", node.reason); }
        item.set("message", node.message);
        list.push_back(std::move(item));
    }
    value::Node document = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "UpgradePlan"}});
    document.set("source", source.description);
    document.set("module", module.full_name());
    document.set("to", version);
    document.set("nodes", std::move(list));
    return document;
}

/// What comes before the upgrade where the Module is that of -f: the cluster has another one, or none. "" else, and
/// where documents alone were read, which may be what a cluster has.
std::string apply_text(const Source& source, const api::Module& module, const cli::Args& args) {
    const auto* files = source.description.find("files");
    const auto* directory = source.description.find("cluster");
    const std::string& file = module.meta.origin.file;
    const auto is_its = [&](const value::Node& one) { return one.text() == file; };
    if (files == nullptr || std::none_of(files->items().begin(), files->items().end(), is_its)) { return ""; }
    constexpr std::string_view k_below = "\n      ";
    if (directory != nullptr) {
        return fmt::format("write the Module of {} into {}, then{}",
                           file == "-" ? "standard input" : base::shell_word(file),
                           base::shell_word(directory->text()), k_below);
    }
    if (!source.live) { return ""; }
    return fmt::format("kubectl apply -f {}{}{}", base::shell_word(file),
                       given_options(args, {"namespace", "kubeconfig", "context"}), k_below);
}

/// The line about the command that upgrades what is listed, or says why the first node cannot be.
std::string next_text(const Source& source, const api::Module& module, const std::string& version,
                      const plan::UpgradeNode* blocked, const cli::Args& args, const cli::Context& context) {
    if (blocked != nullptr) {
        const std::string place = place_options(args, context) + given_options(args, {"namespace"});
        return fmt::format("next  kmm-plan why {} {}{}\n", base::shell_word(blocked->node),
                           base::shell_word(module.full_name()),
                           place);
    }
    // The cluster is not as it is imagined here.
    if (source.description.find("whatIf") != nullptr) { return ""; }
    return fmt::format("next  {}kmm-upgrade start module {} --to {}{}\n", apply_text(source, module, args),
                       base::shell_word(module.full_name()), base::shell_word(version),
                       given_options(args, {"node", "selector", "cluster", "kubeconfig", "context"}));
}

std::string upgrade_text(const Source& source, const api::Module& module, const std::string& version,
                         const UpgradeNodes& nodes, const cli::Args& args, const cli::Context& context) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& node : nodes) {
        rows.push_back({node.node, node.kernel.empty() ? "-" : node.kernel, node.current, version, steps_text(node),
                        node.reason.empty() ? "-" : node.reason});
    }
    const auto count = [&](const auto& test) { return std::count_if(nodes.begin(), nodes.end(), test); };
    const auto blocked = count([](const auto& node) { return !node.reason.empty(); });
    const auto done = count([](const auto& node) { return node.reason.empty() && node.steps.empty(); });
    const auto open = static_cast<std::ptrdiff_t>(nodes.size()) - blocked - done;
    const auto first = std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return !node.reason.empty(); });
    const std::string next =
        blocked + open == 0 ? "" : next_text(source, module, version, blocked > 0 ? &*first : nullptr, args, context);
    return cli::folded_table({"NODE", "KERNEL", "CURRENT", "TARGET", "STEPS", "BLOCKER"}, std::move(rows), 2,
                             context.table_width()) +
           fmt::format("\n{} of {} to upgrade, one after the other; {} blocked, {} done\n", open,
                       base::counted(nodes.size(), "node"), blocked, done) +
           next;
}

/// The nodes that the Module selects and that kmm-upgrade leaves out, as they run no Linux.
std::vector<std::string> other_systems(const api::Module& module, const std::vector<const api::Node*>& chosen) {
    std::vector<std::string> names;
    for (const auto* node : chosen) {
        const bool is_selected = plan::selects(module.selector, node->meta.labels);
        if (is_selected && !api::runs_linux(*node)) { names.push_back(node->meta.name); }
    }
    return names;
}

void note_other_systems(const std::vector<std::string>& names, cli::Context& context) {
    constexpr std::size_t k_named_max = 4;
    if (names.empty() || context.verbosity < 0) { return; }
    context.console.err(names.size() == 1
                            ? fmt::format("node {} has no part in it: it runs no Linux\n", names.front())
                            : fmt::format("nodes {} have no part in it: they run no Linux\n",
                                          base::join_some(names, k_named_max)));
}

Exit run_upgrade_plan(const cli::Args& args, cli::Context& context) {
    Source source = read_valid_source(args, context);
    apply_what_if(args, source, context);
    const api::Module& module = find_module(source, args, args.positional("MODULE"));
    const std::string version =
        args.wanted("to", "VERSION", fmt::format("kmm-plan upgrade {} --to VERSION", module.full_name()));
    require_target(module, version);
    UpgradeNodes nodes = plan::upgrade_nodes(source.objects, module, plan_options(args, source));
    const auto chosen = require_nodes(source, args, args.all("node"));
    std::erase_if(nodes, [&](const plan::UpgradeNode& node) {
        return std::none_of(chosen.begin(), chosen.end(), [&](const auto* one) { return one->meta.name == node.node; });
    });
    const auto others = other_systems(module, chosen);
    if (nodes.empty() && !others.empty()) {
        throw plan::no_linux_error(others, !args.all("node").empty()).at(module.meta.origin);
    }
    note_other_systems(others, context);
    if (nodes.empty()) {
        throw Error(Exit::checks_failed, "no-nodes",
                    fmt::format("no node is selected for Module {}", module.full_name()))
            .at(module.meta.origin)
            .hint("kmm-plan show says why");
    }
    if (context.output == "name") {
        for (const auto& node : nodes) { context.console.out(fmt::format("{}\n", cli::plain_name(node.node))); }
    } else if (context.output == "table" || context.output == "wide") {
        context.console.out(upgrade_text(source, module, version, nodes, args, context));
    } else {
        print_document(context, upgrade_document(source, module, version, nodes));
    }
    const bool blocked = std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return !node.reason.empty(); });
    return blocked ? Exit::checks_failed : Exit::ok;
}

}  // namespace

cli::Verb upgrade_verb() {
    cli::Verb verb;
    verb.name = "upgrade";
    verb.summary = "preview the upgrade of kmm-upgrade start module";
    verb.description =
        "Lists the nodes of a Module in upgrade order, the steps on each, and what blocks them. Exits 10 if any node "
        "is blocked. Facts that only the node knows, such as whether a module is in use, are checked by kmm-upgrade.";
    verb.examples = {
        {"kmm-plan upgrade drivers/kmm-hello --to v2 --cluster ./fleet", "the whole fleet"},
        {"kmm-plan upgrade kmm-hello --to v2 --cluster ./fleet -f new-module.yaml",
         "with a Module that is not applied yet"},
    };
    verb.positionals = {{"MODULE", "NAMESPACE/NAME, or NAME if it is unique"}};
    auto to = cli::required(cli::option("to", "VERSION", "version to upgrade to, which is that of the Module"));
    auto node = cli::repeatable(cli::option("node", "NODE", "only this node"));
    auto plan = plan_option_list();
    std::erase_if(plan, [](const cli::Option& option) { return option.name == "next"; });
    verb.options =
        std::vector<cli::Option>{to, node} + plan + what_if_option_list() + source_options() + cli::common_options();
    verb.run = run_upgrade_plan;
    return verb;
}

}  // namespace kmm::tool_plan
