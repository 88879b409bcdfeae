// SPDX-License-Identifier: Apache-2.0
// start recipe: rendered, reviewed by the API server, recorded, walked.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cluster/live/machine_pools.hpp"
#include "kmm-upgrade/recipe/verbs.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/pools.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/fleet/matrix.hpp"
#include "preflight/images.hpp"
#include "recipe/files/findings.hpp"
#include "recipe/files/observe.hpp"
#include "recipe/files/options.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/ready/recipe_images.hpp"
#include "recipe/resource/graph.hpp"
#include "report/metrics.hpp"
#include "sys/trusted_tree.hpp"
#include "upgrade/drive_recipe/downgrade.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "upgrade/drive_recipe/release_store.hpp"
#include "upgrade/drive_recipe/replaced_drivers.hpp"

namespace kmm::tool_upgrade {
namespace {

using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;
using value::Node;

/// Of a rehearsal without a cluster. Errors: usage "missing-option" for an option about what the cluster has.
void require_no_cluster_options(const cli::Args& args) {
    if (args.source("cluster") == "option")
        throw Error(Exit::usage, "recipe-needs-server",
                    "start recipe does not accept --cluster: recipes need an API server")
            .hint("--context NAME or --kubeconfig FILE; for a preview give the files of the directory with -f");
    for (const char* name : {"pause-pools", "downgrade", "keep-kernel", "force-conflicts", "release-namespace",
                             "lease-namespace", "break-lock"})
        if (args.source(name) == "option")
            throw Error(Exit::usage, "missing-option", fmt::format("--{} requires a live cluster", name))
                .hint("add --context NAME or --kubeconfig FILE, or leave the option out");
}

/// A kernel of --keep-kernel for which nothing is deployed, nor in `next`, is a typing error more often than not.
void note_kept_kernels(Access& access, const std::vector<std::string>& kernels, const std::vector<Release>& all,
                       const Release& next) {
    std::set<std::string> deployed(next.kernels.begin(), next.kernels.end());
    for (const auto& release : all) {
        for (const auto& state : release.states)
            for (const auto& one : state.objects) deployed.insert(one.kernel);
        for (const auto& one : release.kept) deployed.insert(one.kernel);
    }
    deployed.erase("");
    const std::vector<std::string> known(deployed.begin(), deployed.end());
    for (const auto& kernel : kernels) {
        if (deployed.contains(kernel)) continue;
        const auto near = base::nearest(kernel, known);
        access.call.note(fmt::format("--keep-kernel {}: no copy for that kernel is deployed{}", base::escape(kernel),
                                     near          ? fmt::format("; did you mean {}?", base::escape(*near))
                                     : known.empty() ? ""
                                                     : "; found: " + base::escape(base::join(known, ", "))));
    }
}

/// Where the cluster is; nullopt for a rehearsal without one.
std::optional<cluster::Place> place_of(Access& access, bool dry) {
    try {
        auto place = access.cluster.place();
        if (!place.is_live() && dry) return std::nullopt;
        return place;
    } catch (const Error& error) {
        if (!dry || error.code() != "no-cluster") throw;
        return std::nullopt;
    }
}

bool asks_for_rollout(const upgrade::Run& run, const cli::Args& args) {
    return (run.rules == &upgrade::recipe::procedure_rollout() ||
            run.rules == &upgrade::recipe::procedure_downgrade()) &&
           upgrade::recipe::subject_of(run).name == args.positional("NAME") &&
           args.get("to").value_or(run.to_version) == run.to_version;
}

/// Registries are asked for the images of drivers. Errors: checks_failed "recipe-not-ready" with each driver that would
/// wait.
void require_images(const std::vector<recipe::decide::Decision>& decisions, const std::string& name) {
    Error error(Exit::checks_failed, "recipe-not-ready",
                fmt::format("drivers of recipe {} would wait for their images; nothing was changed", name));
    bool is_missing = false;
    for (const auto& one : decisions) {
        if (one.action != recipe::decide::Action::wait) continue;
        is_missing = is_missing || one.reason != "registry-unreachable";
        error.detail(one.reason,
                     fmt::format("{}: {}", one.container.name, one.message.empty() ? one.reason : one.message));
    }
    if (error.details().empty()) return;
    throw std::move(error).hint(is_missing
                                    ? "push the images, or give them a build; kmm-plan show recipe --check-images"
                                    : "run the same command again once the registry answers, or leave --check-images "
                                      "out: kubelets may reach it");
}

/// Images that are known to be missing are built with their state, before the driver is applied.
void build_missing(Release& release, const std::vector<recipe::decide::Decision>& decisions) {
    const auto is_missing = [&](const ReleaseObject& build) {
        return std::any_of(decisions.begin(), decisions.end(), [&](const auto& one) {
            return one.action == recipe::decide::Action::build &&
                   one.container.vendor == drive::driver_vendor(build.object) &&
                   (build.kernel.empty() || build.kernel == one.container.kernel);
        });
    };
    for (auto& state : release.states)
        for (auto& one : state.objects)
            if (one.on_demand && is_missing(one)) one.on_demand = false;
}

/// What a resource needs would be rolled out without it. Errors: data "nothing-to-apply".
void require_managed(const recipe::plan::SpecialResource* resource) {
    if (resource == nullptr || resource->management == recipe::plan::Management::managed) return;
    const bool is_removed = resource->management == recipe::plan::Management::removed;
    throw Error(Exit::data, "nothing-to-apply",
                fmt::format("SpecialResource {}: spec.managementState is {}", resource->name,
                            is_removed ? "Removed" : "Unmanaged"))
        .at(resource->place("spec.managementState"))
        .hint(is_removed ? fmt::format("kmm-upgrade remove recipe {}, or write Managed", resource->name)
                         : "write Managed to roll it out");
}

/// A SpecialResourceModule is for the clusters that its watch names. Errors: not_found "recipe-not-found".
void require_no_module(const recipe::files::RecipeDocuments& documents, const std::string& name) {
    const bool is_module = std::any_of(documents.modules.begin(), documents.modules.end(),
                                       [&](const auto& each) { return each.resource.name == name; });
    if (!is_module || recipe::plan::find_resource(documents.resources, name) != nullptr) return;
    throw Error(Exit::not_found, "recipe-not-found",
                fmt::format("{} is a SpecialResourceModule, start recipe expects a SpecialResource", name))
        .hint(fmt::format("kmm-plan render recipe {} prints its objects, for kubectl apply", name));
}

/// What is applied must be what nobody but root can change, if root applies it. Errors: no_permission "untrusted-file".
void require_trusted_documents(const cli::Args& args) {
    for (const char* option : {"filename", "facts", "values-from"})
        for (const auto& file : args.all(option))
            if (file != "-") sys::require_trusted_tree(file, "document");
}

/// The rendered release; its revision is not set. `waves`: in which wave each of its resources comes.
Release render(Access& access, const std::string& name, kube::Client* client,
               std::map<std::string, std::int64_t>& waves) {
    auto& call = access.call;
    const auto& args = call.args();
    if (client != nullptr) require_trusted_documents(args);
    auto documents = recipe::files::read_recipe_documents(args, call.context(), client);
    documents.is_applied = client != nullptr;
    if (client != nullptr)
        for (auto& document : recipe::files::read_cluster_objects(*client))
            documents.all.push_back(std::move(document));
    require_no_module(documents, name);
    require_managed(recipe::plan::find_resource(documents.resources, name));
    const auto wanted = args.get("to");
    for (auto& resource : documents.resources)
        if (wanted && resource.name == name && !resource.is_built_in()) resource.chart.version = *wanted;
    auto facts = recipe::files::read_facts(args, documents, false);
    if (client != nullptr) recipe::files::add_server_facts(*client, facts);
    for (const auto& kernel : args.all("next-kernel")) recipe::plan::add_next_kernel(facts, kernel);
    std::map<std::string, std::string> versions;
    auto rendered = recipe::files::render_named(args, documents, facts, {name}, true, &versions);
    std::vector<recipe::decide::Decision> decisions;
    if (args.flag("check-images"))
        decisions =
            recipe::ready::decide_recipes(rendered, documents, facts, args, call.context(), rendered.findings);
    recipe::files::report_findings(rendered.findings, args, call.context());
    Release release;
    release.recipe = name;
    release.version = versions[name];
    if (wanted && release.version != *wanted) {
        const auto* resource = recipe::plan::find_resource(documents.resources, name);
        const bool has_chart = resource == nullptr || !resource->is_built_in();
        throw Error(Exit::checks_failed, "version-differs",
                    fmt::format("{} {} is version {}, expected {} as --to says",
                                has_chart ? "the chart of" : "SpecialResource", name, base::escape(release.version),
                                base::escape(*wanted)))
            .hint(has_chart ? "give that version of the chart with --chart, or another --to"
                            : "write it into spec.metadata.version, or give another --to");
    }
    for (const auto& node : facts.kernels)
        if (std::find(release.kernels.begin(), release.kernels.end(), node.kernel) == release.kernels.end())
            release.kernels.push_back(node.kernel);
    for (const auto& one : rendered.objects)
        if (!one.kernel.empty() && std::find(release.kernels.begin(), release.kernels.end(), one.kernel) ==
                                       release.kernels.end())
            release.kernels.push_back(one.kernel);
    release.states = drive::states_of(rendered, documents.resources, facts.update_vendor.value_or(""));
    require_images(decisions, name);
    build_missing(release, decisions);
    const auto all_waves = recipe::plan::apply_waves(documents.resources, {name});
    for (std::size_t place = 0; place < all_waves.size(); ++place)
        for (const auto& resource : all_waves[place]) waves[resource] = static_cast<std::int64_t>(place) + 1;
    return release;
}

Node object_node(const ReleaseObject& one, const std::string& action) {
    const auto id = upgrade::recipe::id_of(one.object);
    auto node =
        Node::mapping({{"action", action}, {"apiVersion", one.object.get_string({"apiVersion"})}, {"kind", id.kind}});
    if (!id.space.empty()) node.set("namespace", id.space);
    node.set("name", id.name);
    if (!one.kernel.empty()) node.set("kernel", one.kernel);
    if (drive::is_gated(one.object)) node.set("wait", true);
    if (const auto pattern = drive::log_pattern(one.object); !pattern.empty()) node.set("waitForLogs", pattern);
    return node;
}

std::string object_line(const ReleaseObject& one, const std::string& action) {
    const auto pattern = drive::log_pattern(one.object);
    return fmt::format("  {:<9}  {}{}{}{}\n", action, base::escape(drive::object_text(one.object)),
                       one.kernel.empty() ? "" : fmt::format(", kernel {}", base::escape(one.kernel)),
                       drive::is_gated(one.object) ? ", waited for" : "",
                       pattern.empty() ? "" : fmt::format(", log \"{}\"", base::escape(pattern)));
}

/// By semantic version where both are such, else by their numbers and texts, as kernels are compared.
bool is_lower(const std::string& version, const std::string& than) {
    const auto left = recipe::tmpl::parse_version(version), right = recipe::tmpl::parse_version(than);
    return left && right ? left->compare(*right) < 0 : plan::version_less(version, than);
}

/// Whether a later release than the deployed one, which was aborted, is of a higher version: nodes may run its drivers.
bool is_below_given_up(const Release& now, const std::vector<Release>& all, const Release* deployed) {
    return std::any_of(all.begin(), all.end(), [&](const Release& one) {
        return (deployed == nullptr || one.revision > deployed->revision) && is_lower(now.version, one.version);
    });
}

bool changes_driver(const std::vector<drive::Judged>& judged) {
    return std::any_of(judged.begin(), judged.end(), [](const drive::Judged& one) {
        return one.change == drive::Change::change && drive::is_driver(*one.object);
    });
}

/// What would be done, in order.
void print_plan(cli::Context& context, const Release& now, const Release* before,
                const std::vector<drive::Judged>& judged, const std::vector<upgrade::recipe::DriverNode>& nodes,
                const upgrade::recipe::Leftovers& left, const drive::RecipeRequest& request, bool has_cluster) {
    const auto& waves = request.waves;
    const auto& pools = request.subject.pools;
    auto states = Node::sequence();
    std::string text;
    auto obsolete_last = left.obsolete;
    /// Drivers that those of the state replace: they go before it is applied.
    const auto take_replaced = [&](const auto& state) {
        auto replaced = drive::replaced_drivers(
            state.objects, before == nullptr ? std::set<upgrade::recipe::ObjectId>() : before->ids(), obsolete_last);
        std::erase_if(obsolete_last, [&](const ReleaseObject& one) {
            return std::any_of(replaced.begin(), replaced.end(), [&](const ReleaseObject& each) {
                return upgrade::recipe::id_of(each.object) == upgrade::recipe::id_of(one.object);
            });
        });
        return replaced;
    };
    if (!pools.empty()) text += fmt::format("pause MachineConfigPool {}\n", base::join(pools, ", "));
    for (const auto& state : now.states) {
        auto objects = Node::sequence(), downgraded = Node::sequence();
        const auto wave = waves.find(state.resource);
        const bool has_wave = nodes.empty() && wave != waves.end();
        text += base::escape(state.name);
        if (has_wave && waves.size() > 1) text += fmt::format(", wave {}", wave->second);
        text += "\n";
        for (const auto& node : nodes) {
            if (node.state != state.name) continue;
            downgraded.push_back(Node::mapping({{"node", node.node}, {"drivers", Node::strings(node.drivers)}}));
            text += fmt::format("  {:<9}  DaemonSet {} on node {}, tainted while it restarts\n", "restart",
                                base::escape(base::join(node.drivers, ", ")), base::escape(node.node));
        }
        for (const auto& one : take_replaced(state)) {
            objects.push_back(object_node(one, "delete"));
            text += object_line(one, "delete");
        }
        for (const auto& one : judged) {
            if (one.state->name != state.name) continue;
            const std::string action(one.object->on_demand ? "on demand"
                                     : one.change          ? to_string(*one.change)
                                                           : "apply");
            objects.push_back(object_node(*one.object, action));
            text += object_line(*one.object, action);
        }
        auto entry = Node::mapping({{"name", state.name}, {"objects", std::move(objects)}});
        if (has_wave) entry.set("wave", wave->second);
        if (!downgraded.items().empty()) entry.set("downgrade", std::move(downgraded));
        if (!state.label.empty()) {
            entry.set("nodeLabel", state.label);
            text += fmt::format("  {:<9}  {}=Ready\n", "label", base::escape(state.label));
        }
        states.push_back(std::move(entry));
    }
    auto obsolete = Node::sequence();
    if (!obsolete_last.empty() || !left.kept.empty()) text += "obsolete\n";
    for (const auto& one : obsolete_last) {
        obsolete.push_back(object_node(one, "delete"));
        text += object_line(one, "delete");
    }
    for (const auto& one : left.kept) {
        obsolete.push_back(object_node(one, "keep"));
        text += object_line(one, "keep");
    }
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"},
                                   {"kind", "RecipeRolloutPlan"},
                                   {"recipe", now.recipe},
                                   {"from", before == nullptr ? "" : before->version},
                                   {"to", now.version},
                                   {"states", std::move(states)},
                                   {"obsolete", std::move(obsolete)}});
    if (!pools.empty()) {
        document.set("pausedPools", Node::strings(pools));
        text += fmt::format("unpause MachineConfigPool {}\n", base::join(pools, ", "));
    }
    if (cli::print_document(context, document)) return;
    if (context.output == "name") {
        for (const auto& state : now.states)
            context.console.out(fmt::format("state/{}\n", cli::plain_name(state.name)));
        return;
    }
    context.console.out(text + "nothing was done; next: the same command without --dry-run" +
                        (has_cluster ? "\n" : ", on a cluster: --context NAME\n"));
}

/// Of a rehearsal: what earlier rollouts have left, and pools that keep nodes from their updates. Without a cluster,
/// nullopt, neither is known: the metrics have no series.
void write_rehearsal_metrics(Access& access, const std::string& name,
                             const std::optional<upgrade::recipe::Leftovers>& left) {
    const auto file = access.call.args().get("metrics");
    if (!file) return;
    auto obsolete = report::obsolete_daemon_sets(), paused = report::pool_paused_seconds();
    if (left) {
        obsolete.samples[{name}] =
            static_cast<std::uint64_t>(std::count_if(left->obsolete.begin(), left->obsolete.end(), [](const auto& one) {
                return upgrade::recipe::id_of(one.object).kind == "DaemonSet";
            }));
        const auto now = access.call.clock().now_unix();
        for (const auto& pool : cluster::MachinePools(recipe_server(access).client()).read())
            if (pool.paused && pool.paused_since)
                paused.samples[{pool.name}] =
                    static_cast<std::uint64_t>(std::max<std::int64_t>(0, now - *pool.paused_since));
            else if (!pool.paused)
                paused.samples[{pool.name}] = 0;
    }
    cli::write_report(access.call.context(), *file, metrics_text(access.call.args(), {obsolete, paused}));
}

/// A first release, while objects have the label of the recipe: what is obsolete of them would stay, and a lower
/// version would be no downgrade. Errors: locked "release-elsewhere" with them.
void require_no_earlier(drive::OwnObjects& own, const Release& now, const std::string& space) {
    std::vector<std::string> found;
    try {
        found = own.labelled(now);
    } catch (const Error& error) {
        if (error.code() != "forbidden") throw;
    }
    if (found.empty()) return;
    constexpr std::size_t k_named = 5;
    const auto more = found.size() - std::min(found.size(), k_named);
    found.resize(found.size() - more);
    if (more > 0) found.push_back(fmt::format("{} more", more));
    throw Error(Exit::locked, "release-elsewhere",
                fmt::format("an earlier rollout of recipe {} created {}, and no release of it is in namespace {}",
                            base::escape(now.recipe), base::escape(base::join(found, ", ")), base::escape(space)))
        .hint("--release-namespace names the namespace of its releases: Secrets with the label "
              "kmmtools.dev/release-of; if they are lost, --force-conflicts begins a new release");
}

std::vector<drive::Judged> unjudged(const Release& release) {
    std::vector<drive::Judged> all;
    for (const auto& state : release.states)
        for (const auto& one : state.objects) all.push_back({&state, &one, std::nullopt});
    return all;
}

}  // namespace

Exit run_start_recipe(const cli::Args& args, cli::Context& context) {
    const auto name = args.positional("NAME");
    preflight::require_question(args, {}, preflight::PolicyUse::nodes);
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) { return asks_for_rollout(run, args); }))
        return run_resume(args, context);
    Access access(args, context);
    const bool dry = args.flag("dry-run");
    auto request = recipe_request(access.call, name);
    const auto place = place_of(access, dry);
    if (!place) {
        require_no_cluster_options(args);
        const auto release = render(access, name, nullptr, request.waves);
        return access.call.print_beside([&] { write_rehearsal_metrics(access, name, std::nullopt); },
                                        [&] {
                                            print_plan(context, release, nullptr, unjudged(release), {}, {}, request,
                                                       false);
                                            return Exit::ok;
                                        });
    }
    if (!dry) access.record.open_locked("start recipe " + name);
    require_free(access.record.load());
    access.cluster.open(*place);
    auto& client = recipe_server(access).client();
    auto release = render(access, name, &client, request.waves);
    secure_recipe(access, request.options, request.subject, request.lineage,
                  dry ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    drive::ReleaseStore store(client, request.subject.space);
    const auto all = store.of(name);
    note_kept_kernels(access, request.subject.keep_kernels, all, release);
    const auto* previous = drive::deployed_of(all);
    if (previous == nullptr && args.flag("downgrade"))
        access.call.note(fmt::format("--downgrade has no effect: no release of {} is deployed", base::escape(name)));
    release.revision = all.empty() ? 1 : all.back().revision + 1;
    release.lineage = request.lineage;
    release.created = request.created;
    bool is_downgrade =
        previous != nullptr && (args.flag("downgrade") || is_lower(release.version, previous->version));
    if (previous != nullptr) drive::require_new_images(release, *previous);
    drive::tolerate_downgrade(release, previous, is_downgrade);
    drive::Objects objects(client);
    drive::OwnObjects own(
        client, objects, access.call.clock(), [&] { return access.call.stopped(); },
        [&](const std::string& text) { access.call.note(text); }, name, store.of_others(name));
    if (all.empty() && !request.subject.is_forced) require_no_earlier(own, release, request.subject.space);
    const auto force = request.subject.is_forced ? kube::Force::yes : kube::Force::no;
    auto judged = drive::review(release, client, objects, own, force, previous != nullptr);
    if (!is_downgrade && is_below_given_up(release, all, previous) && changes_driver(judged)) {
        is_downgrade = true;
        drive::tolerate_downgrade(release, previous, true);
        judged = drive::review(release, client, objects, own, force, previous != nullptr);
    }
    const auto chosen = [&](const Node& node) {
        return std::any_of(release.states.begin(), release.states.end(),
                           [&](const auto& state) { return state.nodes.selects(node); });
    };
    request.subject.pools = pools_to_pause(access, chosen);
    const auto nodes =
        is_downgrade ? drive::driver_nodes(client, objects, judged) : std::vector<upgrade::recipe::DriverNode>();
    auto left = upgrade::recipe::leftovers(all, release, {});
    if (!left.obsolete.empty())
        left = upgrade::recipe::leftovers(all, release, drive::needed_kernels(client, request.subject, all));
    own.leave_those_of(release, left.obsolete);
    drive::ReleaseStore::require_room(release, left.kept);
    if (dry) {
        return access.call.print_beside([&] { write_rehearsal_metrics(access, name, left); },
                                        [&] {
                                            print_plan(context, release, previous, judged, nodes, left, request, true);
                                            return Exit::ok;
                                        });
    }
    if (!nodes.empty()) recipe_server(access).require_rights(drive::Downgrade::rules());
    access.call.require_going_on();
    // Before the run is on record: whoever takes it up finds its objects there. One that is left by a crash here is
    // replaced by the next start.
    store.put(release);
    return launch_recipe(access, drive::rollout_run(request, release, previous, nodes));
}

}  // namespace kmm::tool_upgrade
