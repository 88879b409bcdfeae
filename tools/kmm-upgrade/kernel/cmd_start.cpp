// SPDX-License-Identifier: Apache-2.0
// start kernel: would every driver survive the kernel; then nodes one after the other.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "cluster/live/operator_signs.hpp"
#include "kmm-upgrade/kernel/verbs.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "kmm-upgrade/session/pools.hpp"
#include "kmm-upgrade/session/releases.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kube/fleet.hpp"
#include "plan/kmm/template.hpp"
#include "preflight/verdict.hpp"
#include "recipe/ready/recipe_preflight.hpp"
#include "sys/host.hpp"
#include "upgrade/drive_kernel/plan_kernel.hpp"
#include "upgrade/drive_module/drain.hpp"
#include "upgrade/drive_recipe/recipe_drivers.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

using KernelLoader = upgrade::kernel::Loader;
using value::Node;

drive::StartRequest request_of_kernel(const cli::Args& args) {
    drive::StartRequest request;
    request.to_version =
        args.wanted("to", "RELEASE", "name it as uname -r prints it, as --to 6.1.0-60-amd64");
    plan::require_kernel_name(request.to_version);
    request.options.via = upgrade::Via::ssh;
    take_draining_walk_options(args, request);
    request.options.all_nodes = request.nodes.empty() && !args.get("selector");
    return request;
}

/// Who loads modules on the nodes. Without an API server there is no operator.
KernelLoader kernel_loader_of(Access& access, const upgrade::Options& options) {
    if (!options.operator_said.empty())
        return options.operator_said == "present" ? KernelLoader::operator_ : KernelLoader::worker;
    auto* server = access.cluster.opened().server;
    return server != nullptr && cluster::look_for_operator(server->client()).any() ? KernelLoader::operator_
                                                                                   : KernelLoader::worker;
}

/// What preflight says of the kernel, and what else would leave nodes without drivers.
struct Preflight {
    std::vector<plan::Surveyed> rows;
    std::vector<preflight::Verdict> verdicts;
    std::vector<recipe::ready::RecipeVerdict> recipes;
    Diagnostics obstacles;
    std::map<std::string, std::vector<std::string>> recipe_drivers;  ///< by node, for a plan that is printed
};

/// Nodes on which a kernel that names another architecture cannot be installed.
std::optional<Diagnostic> other_architecture(const upgrade::Run& run) {
    const auto named = recipe::ready::image_architecture(run.to_version);
    std::vector<std::string> others;
    for (const auto& node : run.nodes)
        if (recipe::ready::never_runs(node.architecture, run.to_version))
            others.push_back(fmt::format("{} ({})", node.name, base::escape(node.architecture)));
    if (others.empty()) return std::nullopt;
    Diagnostic finding;
    finding.code = "architecture-mismatch";
    finding.exit = Exit::checks_failed;
    finding.message = fmt::format("the kernel is one for {}: {}", named, base::join_some(others, 8));
    finding.hint = fmt::format("--selector kubernetes.io/arch={}", named);
    return finding;
}

/// The rules of kmm-plan preflight, for the Modules of the nodes of `run`; of all nodes where none were chosen, for
/// every Module.
void run_preflight_of(Access& access, const cluster::Snapshot& snapshot, const upgrade::Run& run,
                      const preflight::Trusted& trusted,
                      const std::map<std::string, const kernel::Interface*>& interfaces, Preflight& made) {
    auto& call = access.call;
    made.rows = plan::survey(snapshot.objects, {run.to_version});
    for (auto& row : made.rows) {
        for (auto& pool : row.pools)
            std::erase_if(pool.nodes, [&](const std::string& name) { return run.find(name) == nullptr; });
        std::erase_if(row.pools, [](const plan::Pool& pool) { return pool.nodes.empty(); });
    }
    if (!run.options.all_nodes) std::erase_if(made.rows, [](const plan::Surveyed& row) { return row.pools.empty(); });
    made.verdicts = preflight::first_verdicts(made.rows, interfaces, call.args().flag("check-images"), trusted);
    preflight::answer_questions(made.verdicts, snapshot.objects, call.args(), call.context());
    made.obstacles = drive::kernel_obstacles(snapshot.objects, run);
    if (auto finding = other_architecture(run)) made.obstacles.push_back(std::move(*finding));
}

/// The Nodes that are updated.
std::vector<api::Node> nodes_of(const api::Objects& objects, const upgrade::Run& run) {
    auto nodes = objects.nodes;
    std::erase_if(nodes, [&](const api::Node& node) { return run.find(node.meta.name) == nullptr; });
    return nodes;
}

/// The rules of kmm-plan preflight for the SpecialResources of -f and of a live cluster.
void run_recipe_preflight(Access& access, recipe::ready::RecipePreflight& recipes, const cluster::Snapshot& snapshot,
                          const upgrade::Run& run, const std::map<std::string, const kernel::Interface*>& interfaces,
                          Preflight& made) {
    auto* server = access.cluster.opened().server;
    recipes.complete(server == nullptr ? nullptr : &server->client());
    if (!recipes.any()) return;
    auto others = snapshot.objects.nodes;
    std::erase_if(others, [&](const api::Node& node) { return run.find(node.meta.name) != nullptr; });
    made.recipes =
        recipes.judge({run.to_version}, interfaces, nodes_of(snapshot.objects, run), access.call.context(), others);
}

/// What speaks against the kernel, once for each Module and recipe; nothing if drivers are ready for it.
std::vector<std::pair<std::string, Diagnostic>> refusals_of(const Preflight& found) {
    std::vector<std::pair<std::string, Diagnostic>> refusals;
    const auto add = [&](const std::string& module, const Diagnostic& finding) {
        const auto is_same = [&](const auto& other) {
            return other.first == module && other.second.code == finding.code &&
                   other.second.message == finding.message;
        };
        if (std::none_of(refusals.begin(), refusals.end(), is_same)) refusals.emplace_back(module, finding);
    };
    for (const auto& verdict : found.verdicts)
        for (const auto& finding : verdict.findings)
            if (finding.severity == Severity::error) add(verdict.surveyed->module->full_name(), finding);
    for (const auto& verdict : found.recipes)
        for (const auto& finding : verdict.findings)
            if (finding.severity == Severity::error) add(verdict.resource, finding);
    for (const auto& finding : found.obstacles) add("", finding);
    return refusals;
}

/// Errors: checks_failed "kernel-not-ready" with each refusal. Prints warnings.
void require_ready(Call& call, const Preflight& found, const std::string& release, const std::string& command) {
    Diagnostics warnings;
    for (const auto& verdict : found.verdicts)
        for (const auto& finding : verdict.findings)
            if (finding.severity != Severity::error) warnings.push_back(finding);
    for (const auto& verdict : found.recipes)
        for (const auto& finding : verdict.findings)
            if (finding.severity == Severity::warning) warnings.push_back(finding);
    sort_and_merge(warnings);
    for (const auto& warning : warnings)
        if (call.context().verbosity >= 0)
            call.context().console.err(fmt::format("warning: {}: {}\n", warning.code, base::escape(warning.message)));
    if (const auto refusals = refusals_of(found); !refusals.empty()) {
        Error error(Exit::checks_failed, "kernel-not-ready",
                    fmt::format("the cluster is not ready for kernel {}; nothing was changed", release));
        for (const auto& [module, finding] : refusals) {
            error.detail(finding.code, finding.message);
            if (!finding.hint.empty()) error.detail("fix", finding.hint);
        }
        throw std::move(error).hint("repair it, then the same command again");
    }
    const bool are_asked = std::all_of(found.verdicts.begin(), found.verdicts.end(), [](const auto& verdict) {
        return verdict.checked != preflight::Checked::mapping;
    });
    if (!are_asked) call.note("registries were not asked whether the images are there: --check-images does");
    if (command.find('$') == std::string::npos)
        call.note(
            "--install has no $1: unless it reads KMM_KERNEL_RELEASE, it installs the same for each release, also "
            "when abort --rollback asks for the previous one; between double quotes a shell replaces $1 before");
}

Node preflight_node_of(const Preflight& found) {
    auto list = Node::sequence();
    for (const auto& verdict : found.verdicts) {
        auto item = Node::mapping({{"module", verdict.surveyed->module->full_name()},
                                   {"verdict", std::string(verdict.text())},
                                   {"reason", verdict.reason()}});
        if (verdict.resolved != nullptr) item.set("image", verdict.resolved->config.container_image);
        if (verdict.pool != nullptr) item.set("nodes", Node::strings(verdict.pool->nodes));
        list.push_back(std::move(item));
    }
    return list;
}

Node recipes_node_of(const Preflight& found) {
    auto list = Node::sequence();
    for (const auto& verdict : found.recipes) {
        auto item = Node::mapping(
            {{"recipe", verdict.resource}, {"verdict", std::string(verdict.text())}, {"reason", verdict.reason}});
        if (!verdict.container.empty()) item.set("container", verdict.container);
        if (!verdict.image.empty()) item.set("image", verdict.image);
        list.push_back(std::move(item));
    }
    return list;
}

/// "" without recipes.
std::string recipe_table(const Preflight& found, std::size_t width) {
    if (found.recipes.empty()) return "";
    std::vector<std::vector<std::string>> rows;
    const auto or_none = [](const std::string& text) { return text.empty() ? std::string("-") : base::escape(text); };
    for (const auto& verdict : found.recipes)
        rows.push_back({base::escape(verdict.resource), or_none(verdict.container), std::string(verdict.text()),
                        verdict.reason, or_none(verdict.image)});
    return "\n" + cli::folded_table({"RECIPE", "CONTAINER", "VERDICT", "REASON", "IMAGE"}, std::move(rows), 2, width);
}

std::string module_table(const Preflight& found, std::size_t width) {
    if (found.verdicts.empty()) return "no Module is checked: none selects these nodes\n";
    std::vector<std::vector<std::string>> rows;
    for (const auto& verdict : found.verdicts)
        rows.push_back({verdict.surveyed->module->full_name(),
                        verdict.pool == nullptr ? "0" : fmt::format("{}", verdict.pool->nodes.size()),
                        std::string(verdict.text()), verdict.reason(),
                        verdict.resolved == nullptr ? "-" : base::escape(verdict.resolved->config.container_image)});
    return cli::folded_table({"MODULE", "NODES", "VERDICT", "REASON", "IMAGE"}, std::move(rows), 2, width);
}

std::string preflight_table(const Preflight& found, const cli::Context& context) {
    return module_table(found, context.table_width()) + recipe_table(found, context.table_width());
}

/// Preflight, then what would be done: nodes with equal actions stand together, in the order of the walk.
void print_kernel_plan(cli::Context& context, const Preflight& found, const api::Objects& objects,
                       const upgrade::Run& run) {
    constexpr std::size_t k_named = 8;
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> groups;  // names, actions
    auto nodes = Node::sequence();
    for (const auto& node : run.nodes) {
        auto actions = drive::kernel_actions(run, node, drive::modules_on(objects, run.to_version, node.name),
                                             found.recipe_drivers.contains(node.name)
                                                 ? found.recipe_drivers.at(node.name)
                                                 : std::vector<std::string>());
        nodes.push_back(
            Node::mapping({{"node", node.name}, {"from", node.from_version}, {"actions", Node::strings(actions)}}));
        if (groups.empty() || groups.back().second != actions) groups.push_back({{}, std::move(actions)});
        groups.back().first.push_back(node.name);
    }
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"},
                                   {"kind", "KernelUpdatePlan"},
                                   {"release", run.to_version},
                                   {"command", upgrade::kernel::subject_of(run).command},
                                   {"preflight", preflight_node_of(found)},
                                   {"nodes", std::move(nodes)}});
    if (!found.recipes.empty()) document.set("recipes", recipes_node_of(found));
    if (const auto pools = upgrade::kernel::subject_of(run).pools; !pools.empty())
        document.set("pausedPools", Node::strings(pools));
    if (!run.left_out.empty()) document.set("leftOut", encode(run.left_out));
    if (cli::print_document(context, document)) return;
    if (context.output == "name") {
        for (const auto& node : run.nodes) context.console.out(fmt::format("node/{}\n", cli::plain_name(node.name)));
        return;
    }
    if (!refusals_of(found).empty()) return context.console.out(preflight_table(found, context));
    std::string text = preflight_table(found, context) + "\n";
    const auto pools = upgrade::kernel::subject_of(run).pools;
    if (!pools.empty()) text += fmt::format("pause MachineConfigPool {}\n", base::join(pools, ", "));
    for (const auto& [names, actions] : groups) {
        text += base::join_some(names, k_named) + "\n";
        for (const auto& action : actions) text += "  " + base::escape(action) + "\n";
    }
    if (!pools.empty()) text += fmt::format("unpause MachineConfigPool {}\n", base::join(pools, ", "));
    context.console.out(text + "nothing was done; next: the same command without --dry-run\n");
}

/// The node of `run` that this process runs on, in a Pod or as a program of the host; "" for none.
std::string own_node(cluster::Workloads& workloads, const upgrade::Run& run) {
    if (auto own = drive::own_node_of(workloads, run); !own.empty()) return own;
    const auto boot = sys::boot_id();
    const auto found = std::find_if(run.nodes.begin(), run.nodes.end(),
                                    [&](const auto& node) { return !boot.empty() && node.boot_id == boot; });
    return found == run.nodes.end() ? "" : found->name;
}

}  // namespace

Exit run_start_kernel(const cli::Args& args, cli::Context& context) {
    const auto command = args.wanted(
        "install", "COMMAND", "what installs the release on a node, as --install 'apt-get install -y linux-image-$1'");
    preflight::require_question(args, {"kernel-devel", "cert", "sig-enforce"}, preflight::PolicyUse::nodes);
    const auto release = args.get("to").value_or("");
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) {
            return run.rules == &upgrade::kernel::procedure_kernel() && run.to_version == release &&
                   upgrade::kernel::subject_of(run).command == command;
        }))
        return run_resume(args, context);
    Access access(args, context);
    auto& call = access.call;
    auto request = request_of_kernel(args);
    const auto share = max_unavailable(args);
    const auto release_space = release_namespace_of(args);
    const auto interfaces = preflight::read_interfaces(args);
    const auto trusted = preflight::read_trusted(args);
    recipe::ready::RecipePreflight recipes(args);
    const bool dry = args.flag("dry-run");
    const auto place = access.cluster.place();
    choose_kernel_reach(access, request.options, place);
    if (!dry) access.record.open_locked("start kernel " + release);
    require_free(access.record.load());
    auto& cluster = access.cluster.open(place);
    if (!dry) access.cluster.lock_directory();
    access.cluster.expect(request.options, "");
    auto snapshot = cluster.store->read();
    if (cluster.server != nullptr)
        kube::add_image_states(cluster.server->client(), snapshot.objects, snapshot.diagnostics);
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    auto planned = drive::plan_kernel(snapshot.objects, request, {command, kernel_loader_of(access, request.options)},
                                      call.clock());
    auto& run = planned.run;
    const auto paused = leave_paused_out(access, run, request.nodes);
    for (const auto& [name, pool] : paused)
        planned.notes.push_back(fmt::format("node {} is left out: MachineConfigPool {} is paused", name, pool));
    if (run.nodes.empty())
        throw Error(Exit::checks_failed, "no-nodes", "every node is left out: their MachineConfigPools are paused")
            .hint("unpause a pool, or name nodes with --node");
    auto subject = upgrade::kernel::subject_of(run);
    subject.pools = pools_to_pause(access, [&](const Node& node) {
        return run.find(node.get_string({"metadata", "name"})) != nullptr;
    });
    if (cluster.server != nullptr) subject.releases = release_space;
    upgrade::kernel::set_subject(run, subject);
    drive::require_one_host(run.options, run.nodes.size());
    for (const auto& note : planned.notes) call.note(note);
    Preflight found;
    const auto interface_of = preflight::by_kernel(interfaces, {release});
    run_preflight_of(access, snapshot, run, trusted, interface_of, found);
    run_recipe_preflight(access, recipes, snapshot, run, interface_of, found);
    const auto releases = deployed_releases(access, subject.releases);
    const auto nodes = nodes_of(snapshot.objects, run);
    for (auto& finding : drive::missing_copies(releases, nodes, release)) found.obstacles.push_back(std::move(finding));
    if (dry) {
        require_no_kubernetes_upgrade(access);
        for (const auto& node : nodes) found.recipe_drivers[node.meta.name] = drive::selected_drivers(releases, node);
        print_kernel_plan(context, found, snapshot.objects, run);
        require_ready(call, found, release, command);
        return run.is_partial() ? Exit::partial : Exit::ok;
    }
    require_ready(call, found, release, command);
    auto hands = kernel_hands(access, run.options, run.lineage, true);
    require_no_kubernetes_upgrade(access);
    const auto own = own_node(*cluster.workloads, run);
    if (drive::put_last(run, own)) call.note(fmt::format("node {} comes last: this runs on it", own));
    if (!own.empty() && run.find(own)->kernel != release)
        call.note(fmt::format("the reboot of node {} ends this command: then kmm-upgrade resume", own));
    run.options.max_unavailable = share.of(run.nodes.size());
    put_place(run, cluster.place);
    const auto launched = launch(access, std::move(run), std::move(hands));
    return finish(call, launched.ended, launched.run);
}

}  // namespace kmm::tool_upgrade
