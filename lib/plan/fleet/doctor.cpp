// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/doctor.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/workload.hpp"
#include "base/text.hpp"
#include "plan/decide/observe.hpp"
#include "plan/decide/plan.hpp"
#include "plan/decide/verdict.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/kmm/version_labels.hpp"

namespace kmm::plan {

namespace {

constexpr std::array<std::string_view, 4> k_of_plan{"version-labels-stuck", "label-key-leftover",
                                                    "cordon-loses-version", "node-missing"};

using FindingList = std::vector<Finding>;

Finding complaint(Severity severity, std::string code, std::string message, std::string fix, Mend mend = {}) {
    Finding found;
    found.diagnostic.severity = severity;
    found.diagnostic.code = std::move(code);
    found.diagnostic.message = std::move(message);
    found.diagnostic.hint = std::move(fix);
    found.mend = std::move(mend);
    return found;
}

Mend lift(const std::string& node, const std::string& owner) {
    Mend mend;
    mend.kind = Mend::Kind::lift_cordon;
    mend.node = node;
    mend.owner = owner;
    return mend;
}

/// The command that frees stuck labels, and what it does.
std::map<std::string, Mend> mends_of_stuck_labels(const api::Objects& objects) {
    const auto schedule = detect_schedule_key(objects);
    std::map<std::string, Mend> mends;
    for (const auto& module : objects.modules) {
        const auto& ns = module.meta.namespace_;
        const auto key = api::label_version_schedule(schedule, ns, module.meta.name);
        for (const auto& node : objects.nodes) {
            const auto found = node.meta.labels.find(key);
            if (found == node.meta.labels.end()) { continue; }
            if (next_step(version_labels(node.meta.labels, ns, module.meta.name, schedule)) != LabelStep::stuck) {
                continue;
            }
            Mend mend;
            mend.kind = Mend::Kind::remove_labels;
            mend.labels = {{node.meta.name, key, found->second}};
            mend.module = module.full_name();
            mends[fmt::format("kubectl label node {} {}-", node.meta.name, key)] = std::move(mend);
        }
    }
    return mends;
}

/// The label a Module of that name would have on a node, for each kind of label that KMM sets.
using LabelMaker = std::string (*)(std::string_view, std::string_view);
constexpr std::array<LabelMaker, 6> k_labels{&api::label_version_module,       &api::label_version_worker_pod,
                                             &api::label_version_schedule_pod, &api::label_version_device_plugin,
                                             &api::label_version_ready,        &api::label_ready};

/// NAMESPACE/NAME of the Module that `key` is about; nullopt for any other label. Namespaces have no dots, names may.
std::optional<std::string> module_of_label(const std::string& key) {
    for (const auto make : k_labels) {
        const std::string sample = make("\x01", "\x02");
        const auto at = sample.find("\x01.\x02");
        const auto prefix = sample.substr(0, at);
        const auto suffix = sample.substr(at + 3);
        if (key.size() <= prefix.size() + suffix.size() || !key.starts_with(prefix) || !key.ends_with(suffix)) {
            continue;
        }
        const auto name = key.substr(prefix.size(), key.size() - prefix.size() - suffix.size());
        const auto dot = name.find('.');
        if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) { continue; }
        return name.substr(0, dot) + "/" + name.substr(dot + 1);
    }
    return std::nullopt;
}

void find_left_labels(const api::Objects& objects, FindingList& found) {
    std::set<std::string> modules;
    for (const auto& module : objects.modules) { modules.insert(module.full_name()); }
    std::map<std::string, std::vector<std::string>> left;
    std::map<std::string, Mend> mends;
    for (const auto& node : objects.nodes) {
        for (const auto& [key, text] : node.meta.labels) {
            const auto module = module_of_label(key);
            if (!module || modules.contains(*module)) { continue; }
            left[key].push_back(node.meta.name);
            mends[key].kind = Mend::Kind::remove_labels;
            mends[key].labels.push_back({node.meta.name, key, text});
        }
    }
    for (const auto& [key, nodes] : left) {
        found.push_back(
            complaint(Severity::warning, "label-left",
                      fmt::format("label {} is on {} {}, but there is no Module {}", key,
                                  nodes.size() == 1 ? "node" : "nodes", base::join(nodes, ", "), *module_of_label(key)),
                      fmt::format("kubectl label node {} {}-", base::join(nodes, " "), key), mends.at(key)));
    }
}

/// What a worker Pod that will not end well by itself has to say; nullopt if it is under way.
std::optional<std::string> fault_of(const api::Pod& pod) {
    if (!pod.problems.empty()) { return problem_text(pod.problems.front()); }
    const bool is_over = pod.phase == "Failed" || pod.phase == "Succeeded";
    return is_over ? std::optional(pod.phase) : std::nullopt;
}

/// Nodes that were left on the way to a version: their labels ask for it, it is not loaded, and no worker Pod is under
/// way. Of a Module whose NodeModulesConfigs were not read nothing is known.
void find_left_in_middle(const api::Objects& objects, const Plan& plan, const Recorded& recorded, FindingList& found) {
    const auto schedule = detect_schedule_key(objects);
    std::map<std::string_view, NodeView> nodes;
    for (auto& view : views(objects)) { nodes[view.node->meta.name] = std::move(view); }
    std::map<std::string, std::string> versions;
    for (const auto& module : objects.modules) {
        if (module.module_loader) { versions[module.full_name()] = module.module_loader->container.version; }
    }
    for (const auto& entry : plan.entries) {
        const std::string name = entry.namespace_ + "/" + entry.module;
        const auto version = versions.find(name);
        if ((entry.action != Action::load && entry.action != Action::reload) || name == recorded.module ||
            version == versions.end() || version->second.empty()) {
            continue;
        }
        const auto& view = nodes.at(entry.node);
        const auto said = version_labels(view.node->meta.labels, entry.namespace_, entry.module, schedule);
        const bool has_entry =
            view.config != nullptr && find_entry(view.config->spec, entry.namespace_, entry.module) != nullptr;
        const bool are_walked = said.worker == said.module && said.schedule == said.module;
        const bool is_current = entry.reason == "not-loaded" || entry.reason == "version-changed";
        if (said.module != version->second || !is_current || (are_walked && !has_entry)) { continue; }
        const auto* pod = find_worker_pod(view, entry.namespace_, entry.module);
        const auto fault = pod == nullptr ? std::nullopt : fault_of(*pod);
        if (pod != nullptr && !fault) { continue; }
        Mend mend;
        mend.module = name;
        found.push_back(complaint(
            Severity::warning, "left-unloaded",
            fmt::format("node {} is labelled for {} of Module {}, which is not loaded there{}", entry.node,
                        version->second, name,
                        fault ? fmt::format(": worker Pod {}: {}", pod->meta.name, base::escape(*fault)) : ""),
            fmt::format("KMM's operator loads it while it runs; without it: kmm-upgrade start module {} --to {}; if "
                        "the record of an upgrade was lost: kmm-upgrade adopt {}",
                        name, version->second, name),
            std::move(mend)));
    }
}

void find_cordons(const api::Objects& objects, const Recorded& recorded, FindingList& found) {
    for (const auto& node : objects.nodes) {
        const auto said = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
        const auto owner = said == node.meta.annotations.end() ? std::string() : said->second;
        const auto& name = node.meta.name;
        if (!owner.empty() && owner == recorded.cordon_owner && recorded.cordoned.contains(name)) { continue; }
        if (!owner.empty()) {
            found.push_back(complaint(
                Severity::warning, "cordon-left",
                fmt::format("node {} {} by {}, which this state directory has no record of", name,
                            node.unschedulable ? "was cordoned" : "bears the sign of a cordon", base::escape(owner)),
                fmt::format(
                    "if nobody is working on it: kmm-upgrade adopt goes on with it, or: kubectl annotate node {} {}-{}",
                    name, api::k_annotation_cordoned_by,
                    node.unschedulable ? fmt::format(" && kubectl uncordon {}", name) : std::string()),
                lift(name, owner)));
        } else if (node.unschedulable) {
            found.push_back(complaint(
                Severity::note, "cordon-foreign", fmt::format("node {} is cordoned, not by kmm-upgrade", name),
                fmt::format("kubectl uncordon {}, once who did it agrees", name), lift(name, "")));
        }
    }
}

void find_stuck_deletion(const api::ObjectMeta& meta, const char* kind, const char* plural, FindingList& found) {
    if (!meta.deleting || meta.finalizers.empty()) { return; }
    const auto scope = meta.namespace_.empty() ? std::string() : fmt::format(" -n {}", meta.namespace_);
    found.push_back(complaint(Severity::warning, "deletion-stuck",
                              fmt::format("{} {} is being deleted, and waits for {}", kind, meta.full_name(),
                                          base::join(meta.finalizers, ", ")),
                              fmt::format("KMM's operator takes it away; without one: kubectl patch {} {}{} "
                                          "--type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
                                          plural, meta.name, scope)));
}

void find_left_pods(const api::Objects& objects, FindingList& found) {
    std::set<std::string> nodes;
    for (const auto& node : objects.nodes) { nodes.insert(node.meta.name); }
    for (const auto& pod : objects.pods) {
        if (pod.node_name.empty() || nodes.contains(pod.node_name)) { continue; }
        Mend mend;
        mend.kind = Mend::Kind::remove_pod;
        mend.namespace_ = pod.meta.namespace_;
        mend.name = pod.meta.name;
        mend.uid = pod.meta.uid;
        found.push_back(complaint(
            Severity::warning, "worker-pod-left",
            fmt::format("worker Pod {}/{} is bound to node {}, which is gone", pod.meta.namespace_, pod.meta.name,
                        pod.node_name),
            fmt::format("kubectl delete pod -n {} {} --force --grace-period=0", pod.meta.namespace_, pod.meta.name),
            std::move(mend)));
    }
}

}  // namespace

std::string Mend::text() const {
    switch (kind) {
        case Kind::none: break;
        case Kind::remove_labels: {
            std::vector<std::string> nodes;
            for (const auto& label : labels) { nodes.push_back(label.node); }
            return fmt::format("remove label {} from {}", labels.front().key, base::join(nodes, ", "));
        }
        case Kind::lift_cordon: return fmt::format("uncordon {}", node);
        case Kind::remove_pod: return fmt::format("delete Pod {}/{}", namespace_, name);
    }
    return "";
}

std::vector<Finding> examine(const api::Objects& objects, const Recorded& recorded) {
    FindingList found;
    const auto stuck = mends_of_stuck_labels(objects);
    auto plan = make_plan(objects, complete({}, objects));
    find_left_in_middle(objects, plan, recorded, found);
    for (auto& diagnostic : plan.diagnostics) {
        if (std::find(k_of_plan.begin(), k_of_plan.end(), diagnostic.code) == k_of_plan.end()) { continue; }
        const auto mend = stuck.find(diagnostic.hint);
        found.push_back({std::move(diagnostic), mend == stuck.end() ? Mend{} : mend->second});
    }
    find_left_labels(objects, found);
    find_cordons(objects, recorded, found);
    for (const auto& module : objects.modules) {
        find_stuck_deletion(module.meta, "Module", "modules.kmm.sigs.x-k8s.io", found);
    }
    for (const auto& config : objects.node_modules_configs) {
        find_stuck_deletion(config.meta, "NodeModulesConfig", "nodemodulesconfigs.kmm.sigs.x-k8s.io", found);
    }
    find_left_pods(objects, found);
    std::stable_sort(found.begin(), found.end(), [](const Finding& left, const Finding& right) {
        const auto &a = left.diagnostic, &b = right.diagnostic;
        return std::tie(a.severity, a.code, a.message) < std::tie(b.severity, b.code, b.message);
    });
    return found;
}

}  // namespace kmm::plan
