// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/plan_report.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "upgrade/drive_cluster/freeze.hpp"
#include "upgrade/drive_kubernetes/hooks.hpp"
#include "upgrade/engine/procedure.hpp"

namespace kmm::tool_upgrade {
namespace {

using drive::Hooks;
using value::Node;

constexpr std::size_t k_nodes_shown = 8;

/// What a stage does on its nodes, for people. `has_etcd`: control planes run an etcd.
std::string action_of(const upgrade::Run& run, const upgrade::kubernetes::Subject& subject, bool has_etcd,
                      const std::string& stage) {
    if (stage == "images")
        return subject.control_plane.empty()
                   ? "backup"
                   : fmt::format("backup; control planes: {}images of {}",
                                 has_etcd && !subject.is_without_snapshot ? "snapshot of etcd, " : "",
                                 subject.control_plane);
    if (stage == "first-master") return "kubeadm upgrade apply " + subject.control_plane;
    if (stage == "second-master") return "kubeadm upgrade node, one at a time";
    if (stage == "networking")
        return fmt::format("manifests of {}; {}", subject.networking,
                           subject.canary_image.empty() ? "the network is not tried: no --canary-image"
                                                        : "canary Pods of " + subject.canary_image);
    if (subject.kubelet.empty()) return "verify versions";
    const auto kubelet = fmt::format("kubelet {} ({}), restart, verify", subject.kubelet,
                                     subject.way.empty() ? "--switch WAY is missing" : subject.way);
    return run.options.drain ? fmt::format("cordon, drain, {}, uncordon", kubelet) : kubelet;
}

/// Hooks that run at one point, "" for the node if they are of the state.
struct PlannedHooks {
    std::string node;
    std::vector<std::string> before, after;
};

/// Those of a state of the run: its own, then those of each node, in the order of the nodes.
std::vector<PlannedHooks> hooks_of(const std::string& directory, const std::string& state,
                                   const std::vector<std::string>& nodes) {
    std::vector<PlannedHooks> planned;
    const auto add = [&](const std::string& node) {
        PlannedHooks hooks{node, drive::hooks_for(directory, Hooks::When::before, state, node),
                           drive::hooks_for(directory, Hooks::When::after, state, node)};
        if (!hooks.before.empty() || !hooks.after.empty()) planned.push_back(std::move(hooks));
    };
    add("");
    for (const auto& node : nodes) add(node);
    return planned;
}

Node hooks_node(const std::vector<PlannedHooks>& planned) {
    auto list = Node::sequence();
    for (const auto& hooks : planned) {
        auto item = Node::mapping();
        if (!hooks.node.empty()) item.set("node", hooks.node);
        item.set("before", Node::strings(hooks.before));
        item.set("after", Node::strings(hooks.after));
        list.push_back(std::move(item));
    }
    return list;
}

std::string hooks_text(const std::vector<PlannedHooks>& planned) {
    std::string text;
    std::size_t nodes = 0;
    for (const auto& hooks : planned) {
        if (!hooks.node.empty() && ++nodes > k_nodes_shown) continue;
        std::vector<std::string> parts;
        if (!hooks.before.empty()) parts.push_back("before " + base::join(hooks.before, ", "));
        if (!hooks.after.empty()) parts.push_back("after " + base::join(hooks.after, ", "));
        text += fmt::format("  {:<24} hooks {}{}\n", "", hooks.node.empty() ? "" : base::escape(hooks.node) + ": ",
                            base::escape(base::join(parts, "; ")));
    }
    if (nodes > k_nodes_shown) text += fmt::format("  {:<24} hooks of {} more nodes\n", "", nodes - k_nodes_shown);
    return text;
}

/// Where --until has the run stop.
std::string stop_text(const std::string& why) {
    return fmt::format("  {:<24} {}, as --until asks: kmm-upgrade resume goes on\n", "stop", why);
}

struct PlannedFreeze {
    std::string mode, text;
    std::vector<std::string> users, namespaces;
};

PlannedFreeze freeze_of(const PlannedUpgrade& planned) {
    const auto& subject = planned.request.subject;
    PlannedFreeze freeze;
    const auto [users, namespaces] = freeze_exceptions(subject);
    freeze.users = users;
    freeze.namespaces = namespaces;
    if (subject.freeze.empty() || (!planned.is_live && !planned.is_dump)) {
        freeze.mode = "off";
        freeze.text = subject.freeze.empty() ? "applications: not frozen (--no-freeze)"
                                             : "applications: not frozen, a directory cluster has no API server";
        return freeze;
    }
    std::vector<std::string> exceptions;
    for (const auto& name : namespaces) exceptions.push_back("namespace " + base::escape(name));
    for (const auto& name : users) exceptions.push_back("user " + base::escape(name));
    const auto except = exceptions.empty() ? std::string() : ", except " + base::join(exceptions, ", ");
    if (planned.has_policies == false) {
        freeze.mode = "advisory";
        freeze.text =
            "applications: changes are reported, not refused; the API server has no ValidatingAdmissionPolicy v1";
        return freeze;
    }
    freeze.mode = planned.has_policies ? "enforced" : "unknown";
    freeze.text = fmt::format(
        "applications: changes of Helm releases and GitOps objects are refused by ValidatingAdmissionPolicy {}{} "
        "until the upgrade ends, {} at most{}",
        drive::k_freeze_name, planned.has_policies ? "" : ", where the API server has it,", subject.freeze, except);
    return freeze;
}

Node freeze_node(const PlannedFreeze& freeze, const std::string& duration) {
    auto node = Node::mapping({{"mode", freeze.mode}});
    if (freeze.mode == "off" || freeze.mode == "advisory") return node;
    node.set("policy", drive::k_freeze_name);
    node.set("for", duration);
    node.set("namespaces", Node::strings(freeze.namespaces));
    node.set("users", Node::strings(freeze.users));
    return node;
}

/// The tag of the image of an etcd that kubeadm manages, "" where none was seen, or not which.
std::string etcd_that_runs(const kubernetes::Observation& seen) {
    const kubernetes::Version* lowest = nullptr;
    for (const auto& running : seen.etcd)
        if (running.version && (lowest == nullptr || *running.version < *lowest)) lowest = &*running.version;
    return lowest == nullptr ? std::string() : lowest->text().substr(1);
}

/// Until when a run of this hop has a way back, and which; `etcd` is the one before it, "" if kubeadm manages none, and
/// after it the one that it brings.
std::string back_of(const PlannedUpgrade& planned, const upgrade::kubernetes::Subject& subject, std::string& etcd) {
    const auto plain = upgrade::kubernetes::way_back("", "", false, false);
    const auto always = plain + ", until this run is complete";
    if (subject.control_plane.empty() || etcd.empty()) return always;
    const auto version = kubernetes::Version::parse(subject.control_plane);
    const auto* entry = version ? planned.catalogue.find(*version) : nullptr;
    const auto next = !planned.etcd_tag.empty() ? planned.etcd_tag : entry == nullptr ? std::string() : entry->etcd;
    const auto before = std::exchange(etcd, next.empty() ? etcd : next);
    if (next.empty())
        return fmt::format("{}; the metadata does not say which etcd {} brings: if it is another one, its data must go "
                           "back to the snapshot with --restore-etcd",
                           always, subject.control_plane);
    const auto after = upgrade::kubernetes::way_back(before, next, subject.is_without_snapshot, false);
    if (after == plain) return always;
    return fmt::format("{}, until the first etcd is changed; then, until {}, {}", plain,
                       subject.kubelet.empty() || subject.is_without_snapshot ? "this run is complete"
                                                                              : "the first kubelet is changed",
                       after);
}

}  // namespace

void print_plan(cli::Context& context, const PlannedUpgrade& planned) {
    const auto& request = planned.request;
    const auto& hook_directory = request.subject.hooks;
    const auto& until = request.until;
    bool stops = false;  // said once: the run that stops is resumed without --until
    auto runs = Node::sequence();
    std::string text, etcd = etcd_that_runs(planned.seen);
    for (auto rest = planned.hops; !rest.empty(); rest.erase(rest.begin())) {
        const auto run = drive::plan_run(request, planned.seen, rest);
        const auto subject = upgrade::kubernetes::subject_of(run);
        auto stages = Node::sequence();
        text += to_string(rest.front()) + "\n";
        for (const auto& stage : run.rules->table().stages()) {
            const auto members = run.rules->members(run, stage);
            const bool is_last = !stops && !until.empty() && stage.done == until;
            stops = stops || is_last;
            if (members.is_left_out) {
                if (is_last) text += stop_text(fmt::format("{} is left out", stage.during));
                continue;
            }
            std::vector<std::string> names, own_names;
            for (const auto place : members.places) {
                own_names.push_back(run.nodes[place].name);
                names.push_back(base::escape(run.nodes[place].name));
            }
            const auto action = action_of(run, subject, !planned.seen.etcd.empty(), stage.name);
            const auto hooks = hooks_of(hook_directory, stage.during, own_names);
            auto item = Node::mapping(
                {{"stage", stage.name}, {"state", stage.during}, {"nodes", Node::strings(names)}, {"action", action}});
            if (!hook_directory.empty()) item.set("hooks", hooks_node(hooks));
            if (is_last) item.set("stops", true);
            stages.push_back(std::move(item));
            text += fmt::format("  {:<24} {}\n", stage.during, action);
            if (!names.empty())
                text += fmt::format("  {:<24} {}\n", "", base::join_some(names, k_nodes_shown));
            text += hooks_text(hooks);
            if (is_last) text += stop_text(stage.done);
        }
        const auto last =
            drive::hooks_for(hook_directory, Hooks::When::before, std::string(upgrade::k_run_complete), "");
        if (!last.empty()) {
            stages.push_back(Node::mapping({{"stage", ""},
                                            {"state", upgrade::k_run_complete},
                                            {"nodes", Node::sequence()},
                                            {"action", "verify versions"},
                                            {"hooks", hooks_node({{"", last, {}}})}}));
            text += fmt::format("  {:<24} verify versions\n", upgrade::k_run_complete) + hooks_text({{"", last, {}}});
        }
        const auto back = back_of(planned, subject, etcd);
        text += fmt::format("  {:<24} {}\n", "back", base::escape(back));
        runs.push_back(Node::mapping({{"from", run.from_version},
                                      {"controlPlane", subject.control_plane},
                                      {"kubelet", subject.kubelet},
                                      {"back", back},
                                      {"stages", std::move(stages)}}));
    }
    const auto keep = request.subject.keep_backups;
    text += fmt::format("backups: {} on each node after the upgrade (--keep-backups); those of older upgrades are "
                        "removed, the last whole snapshot of etcd never\n",
                        keep == 1 ? std::string("only that of this upgrade stays")
                                  : fmt::format("the newest {} of upgrades stay", keep));
    const auto freeze = freeze_of(planned);
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"},
                                         {"kind", "KubernetesUpgradePlan"},
                                         {"target", request.subject.target},
                                         {"freeze", freeze_node(freeze, request.subject.freeze)},
                                         {"keepBackups", keep},
                                         {"runs", std::move(runs)}});
    if (!until.empty()) document.set("until", until);
    if (!request.left_out.empty()) {
        document.set("leftOut", Node::strings(request.left_out));
        text += fmt::format("left out: {}\n", base::join(request.left_out, ", "));
    }
    if (cli::print_document(context, document)) return;
    if (context.output == "name") {
        for (const auto& running : planned.seen.kubelets)
            context.console.out(fmt::format("node/{}\n", cli::plain_name(running.node)));
        return;
    }
    const bool has_way = !request.subject.way.empty();
    context.console.out(text + freeze.text + "\nnothing was done; next: the same command without --dry-run" +
                        (planned.is_dump ? " and -f, on the cluster" : "") +
                        (has_way ? "" : ", with --switch packages, binaries or command") + "\n");
}

}  // namespace kmm::tool_upgrade
