// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade migrate --from-daemonset: modules that a DaemonSet has loaded are recorded as a Module's, where they are
// its build already.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/seam/worker_process.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/fleet/apply.hpp"
#include "selector/label_selector.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/prepare_module/prepare_apply.hpp"
#include "upgrade/prepare_module/takeover.hpp"

namespace kmm::tool_upgrade {
namespace {

using drive::Holding;
using value::Node;

/// The DaemonSet that has loaded the module until now.
struct Loader {
    kube::Key key;
    std::string uid;
    std::string selector;          ///< of its Pods and no others, for kubectl in a shell
    bool has_hook = false;         ///< a preStop hook, which unloads the module in the usual recipes
    std::set<std::string> nodes;   ///< that its Pods are on
};

bool has_stop_hook(const Node& daemon_set) {
    const Node* containers = daemon_set.find_path({"spec", "template", "spec", "containers"});
    return containers != nullptr &&
           std::any_of(containers->items().begin(), containers->items().end(), [](const Node& container) {
               return container.find_path({"lifecycle", "preStop"}) != nullptr;
           });
}

/// Errors: usage "bad-value".
void require_loader_name(const std::string& name) {
    const auto slash = name.find('/');
    if (slash != std::string::npos && api::is_dns1123_subdomain(name.substr(0, slash)) &&
        api::is_dns1123_subdomain(name.substr(slash + 1)))
        return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--from-daemonset is \"{}\", expected NAMESPACE/NAME", base::escape(name)))
        .hint("kubectl get daemonsets -A");
}

/// `name` has passed require_loader_name.
Loader find_loader(kube::Client& client, const std::string& name) {
    const auto slash = name.find('/');
    Loader loader;
    loader.key = {name.substr(0, slash), name.substr(slash + 1)};
    const auto found = client.find(kube::resources::k_daemon_sets, loader.key);
    if (!found)
        throw Error(Exit::not_found, "daemonset-not-found", fmt::format("there is no DaemonSet {}", name))
            .hint("kubectl get daemonsets -A");
    if (!found->get_string({"metadata", "labels", api::k_label_module_name}).empty())
        throw Error(
            Exit::usage, "bad-value",
            fmt::format("DaemonSet {} is one of KMM itself, expected one that loads a module by its own means", name))
            .hint("kmm-upgrade doctor finds those that are left over");
    loader.uid = found->get_string({"metadata", "uid"});
    loader.has_hook = has_stop_hook(*found);
    kube::ListQuery query;
    query.namespace_ = loader.key.namespace_;
    if (const Node* selector = found->find_path({"spec", "selector"}); selector != nullptr)
        query.label_selector = selector::to_text(selector::decode_label_selector(*selector));
    loader.selector = base::shell_word(query.label_selector);
    for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
        const Node* owners = pod.find_path({"metadata", "ownerReferences"});
        const bool is_its = owners != nullptr &&
                            std::any_of(owners->items().begin(), owners->items().end(),
                                        [&](const Node& owner) { return owner.get_string({"uid"}) == loader.uid; });
        const auto node = pod.get_string({"spec", "nodeName"});
        if (is_its && !node.empty()) loader.nodes.insert(node);
    }
    return loader;
}

std::vector<kube::Rule> loader_rules(const std::string& ns, bool removes) {
    std::vector<kube::Rule> rules{{"get", "apps", "daemonsets", "", ns, ""}, {"list", "", "pods", "", ns, ""}};
    if (removes) rules.push_back({"delete", "apps", "daemonsets", "", ns, ""});
    return rules;
}

/// What is left to do about the DaemonSet, or doing it.
class Farewell {
public:
    Farewell(Call& call, cluster::KubeStore& server, const api::Module& module)
        : call_(call), server_(server), module_(module) {}

    /// Nodes that have the module from the DaemonSet alone.
    [[nodiscard]] std::vector<std::string> dependent(const Loader& loader) const {
        const auto objects = server_.read().objects;
        std::vector<std::string> names;
        for (const auto& name : loader.nodes) {
            const bool is_there = std::any_of(objects.nodes.begin(), objects.nodes.end(),
                                              [&](const auto& node) { return node.meta.name == name; });
            if (is_there && !drive::view_of(objects, name, module_.meta.namespace_, module_.meta.name).status)
                names.push_back(name);
        }
        return names;
    }
    void tell(const Loader& loader) const {
        const auto name = loader.key.to_string();
        const auto left = dependent(loader);
        auto& console = call_.context().console;
        if (!left.empty())
            console.out(fmt::format("DaemonSet {} is still what loads it on {}\n", name, base::join(left, ", ")));
        else
            console.out(fmt::format(
                "DaemonSet {} is not needed any more: kmm-upgrade migrate {} --from-daemonset {} --remove-daemonset\n",
                name, module_.full_name(), name));
    }
    /// Its Pods stay: what ends with them is not for us to know. Errors: checks_failed "daemonset-in-use".
    void remove(const Loader& loader) const {
        const auto name = loader.key.to_string();
        if (const auto left = dependent(loader); !left.empty())
            throw Error(Exit::checks_failed, "daemonset-in-use",
                        fmt::format("DaemonSet {} is still what loads {} on {}", name, module_.meta.name,
                                    base::join(left, ", ")))
                .hint(way_out(left));
        kube::DeleteOptions options;
        options.uid = loader.uid;
        options.propagation = kube::Propagation::orphan;
        static_cast<void>(server_.client().remove(kube::resources::k_daemon_sets, loader.key, options));
        auto& console = call_.context().console;
        console.out(fmt::format("deleted DaemonSet {}; its Pods stay and load nothing any more\n", name));
        if (loader.has_hook)
            console.out("they have a preStop hook, which may unload the module where a Pod is deleted: let them end\n"
                        "with their nodes' next restart, or load it again with kmm-upgrade start or apply\n");
        console.out(fmt::format("next       kubectl delete pod -n {} -l {}\n", loader.key.namespace_, loader.selector));
    }

private:
    /// How nodes with another build get rid of it. start and apply refuse them while it is live: nobody but its
    /// DaemonSet knows it.
    [[nodiscard]] std::string way_out(const std::vector<std::string>& nodes) const {
        const auto version = module_.module_loader ? module_.module_loader->container.version : "";
        const auto kernel_module =
            module_.module_loader ? drive::kernel_module_name(module_.module_loader->container.modprobe.module_name)
                                  : "the module";
        return fmt::format(
            "on each of them: keep the DaemonSet's Pod away (its nodeSelector), run rmmod {} there, then kmm-upgrade "
            "{} --node {}",
            kernel_module,
            version.empty() ? "apply " + module_.full_name()
                            : fmt::format("start module {} --to {}", module_.full_name(), version),
            nodes.size() == 1 ? nodes.front() : "NODE");
    }

    Call& call_;
    cluster::KubeStore& server_;
    const api::Module& module_;
};

const char* holding_text(Holding holding) {
    switch (holding) {
        case Holding::right: return "taken over";
        case Holding::managed: return "done already";
        default: return "left";
    }
}

/// A run that records `names` as they are: an ordered one for a Module with versions, else one of apply. nullopt: the
/// plan does not want the module on any of them.
std::optional<drive::Prepared> prepare_takeover(Call& call, const cluster::Snapshot& snapshot, drive::Worker& worker,
                                                drive::StartRequest request, const api::Module& module) {
    const auto observer = check_observer(call, module.full_name());
    if (!request.to_version.empty()) return drive::prepare(snapshot, worker, call.clock(), request, observer);
    for (auto& work : plan::apply_work(snapshot.objects, plan::complete({}, snapshot.objects))) {
        if (work.full_name() != module.full_name()) continue;
        auto narrowed = drive::narrow(std::move(work), snapshot.objects, request);
        narrowed.unload.clear();
        if (!narrowed.load.empty())
            return drive::prepare_apply(snapshot, worker, call.clock(), request, narrowed, observer);
    }
    return std::nullopt;
}

/// What the arguments ask for. Errors: usage.
drive::StartRequest takeover_request(const cli::Args& args) {
    drive::StartRequest request;
    take_module(args, request);
    take_walk_options(args, request);
    if (request.name.empty())
        throw Error(Exit::usage, "missing-argument",
                    "MODULE is missing: the Module that is to have what the DaemonSet has loaded")
            .hint("kmm-upgrade migrate NAMESPACE/NAME --from-daemonset NAMESPACE/NAME");
    require_loader_name(args.get("from-daemonset").value_or(""));
    return request;
}

/// Is the module on this node the Module's once the command has ended?
bool is_taken(const drive::HeldNode& node) {
    return node.holding == Holding::right || node.holding == Holding::managed;
}

/// Prints what each node has.
void print_held(const std::vector<drive::HeldNode>& held, cli::Context& context) {
    if (context.verbosity < 0) return;
    for (const auto& node : held)
        context.console.err(
            fmt::format("{}  {}: {}\n", node.name, holding_text(node.holding), base::escape(node.message)));
}

/// Prints what would be done, and ends as the run would: the DaemonSet is not removed while a node depends on it.
Exit rehearse(const std::vector<drive::HeldNode>& held, const Loader& loader, const api::Module& module,
              const drive::StartRequest& request, bool removes, cli::Context& context) {
    Rehearsal rehearsal(context);
    rehearsal.module(module.full_name(), "", request.to_version, false);
    for (const auto& node : held)
        rehearsal.action(node.name, fmt::format("{}: {}", holding_text(node.holding), base::escape(node.message)));
    rehearsal.finish(true);
    const auto depends = [&](const std::string& name) {
        return std::none_of(held.begin(), held.end(),
                            [&](const drive::HeldNode& each) { return each.name == name && is_taken(each); });
    };
    if (removes && std::any_of(loader.nodes.begin(), loader.nodes.end(), depends)) return Exit::checks_failed;
    return std::all_of(held.begin(), held.end(), is_taken) ? Exit::ok : Exit::partial;
}

}  // namespace

Exit run_takeover(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    auto& call = access.call;
    auto request = takeover_request(args);
    const bool dry = args.flag("dry-run");
    const bool removes = args.flag("remove-daemonset");
    const auto name = args.get("from-daemonset").value_or("");
    const auto place = access.cluster.place();
    access.reach.choose(request.options, place, Reach::Age::fresh);
    if (request.options.via == upgrade::Via::operator_)
        throw Error(Exit::usage, "bad-value", "--via operator is for start: what is loaded is looked at on the nodes")
            .hint("--via self looks by worker Pods, --via ssh by ssh");
    if (!dry) access.record.open_locked("migrate");
    require_free(access.record.load());
    auto& cluster = access.cluster.open(place);
    auto* server = cluster.server;
    if (server == nullptr)
        throw Error(Exit::usage, "bad-value", "--from-daemonset needs an API server, found a directory cluster")
            .hint("name the server with --context");
    const auto definitions = access.cluster.kinds_to_create(request.options, ClusterAccess::Definitions::of_nodes);
    const auto snapshot = cluster.store->read();
    auto target = target_of(snapshot, request);
    const auto& module = drive::find_module(snapshot.objects, target.ns, target.module);
    request.to_version = module.module_loader ? module.module_loader->container.version : "";
    const auto extra = loader_rules(name.substr(0, name.find('/')), removes);
    target.rights.insert(target.rights.end(), extra.begin(), extra.end());
    access.cluster.secure(request.options, target, dry ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    const auto loader = find_loader(server->client(), name);
    const auto runner = access.reach.runner(request.options, target);
    drive::Worker worker(*runner);
    tell_warnings(call, snapshot.diagnostics);
    const auto held =
        drive::survey_held(snapshot, worker, call.clock(), request, check_observer(call, module.full_name()));
    if (dry) return rehearse(held, loader, module, request, removes, context);
    print_held(held, context);
    request.nodes.clear();
    request.order.reset();
    for (const auto& node : held)
        if (node.holding == Holding::right) request.nodes.push_back(node.name);
    auto exit = Exit::ok;
    bool is_left = !std::all_of(held.begin(), held.end(), is_taken);
    const Farewell farewell(call, *server, module);
    if (!request.nodes.empty()) {
        request.options.order = "name";
        auto prepared = prepare_takeover(call, snapshot, worker, request, module);
        if (prepared) {
            finish_preparing(access, *prepared, Share{}, module);
            upgrade::module::set_created_definitions(prepared->run, definitions);
            const auto launched = launch_module(access, std::move(prepared->run), *runner);
            exit = finish(call, launched.ended, launched.run);
            if (launched.ended != drive::Ended::complete) return exit;
        } else {
            is_left = true;
        }
    } else if (context.verbosity >= 0) {
        context.console.err("note: no node has the Module's build from elsewhere\n");
    }
    if (context.output != "table" && context.output != "wide" && !removes) return is_left ? Exit::partial : exit;
    if (removes) farewell.remove(loader);
    else farewell.tell(loader);
    return is_left ? Exit::partial : exit;
}

}  // namespace kmm::tool_upgrade
