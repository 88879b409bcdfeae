// SPDX-License-Identifier: Apache-2.0
// NodeModulesConfigs and node labels as they settle. Source: KMM nmc_reconciler.go, module_reconciler.go; facts: KMM
// 1, 8.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "plan/decide/verdict.hpp"
#include "plan/kmm/eligible.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

void set_unless_empty(api::Labels& labels, const std::string& key, const std::string& text) {
    if (!text.empty()) { labels[key] = text; }
}

/// What the DaemonSet controller tolerates for its Pods beyond their own tolerations.
std::vector<api::Toleration> daemon_tolerations(const api::Module& module) {
    std::vector<api::Toleration> result = module.tolerations;
    const auto add = [&](const char* key, const char* effect) {
        api::Toleration toleration;
        toleration.key = fmt::format("node.kubernetes.io/{}", key);
        toleration.operator_ = "Exists";
        toleration.effect = effect;
        result.push_back(std::move(toleration));
    };
    for (const char* key : {"not-ready", "unreachable"}) { add(key, "NoExecute"); }
    for (const char* key : {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"}) {
        add(key, "NoSchedule");
    }
    return result;
}

/// The labels that follow from device-plugin and DRA Pods that all become ready. Facts: KMM 1.1, 9, 17.5.
void add_plugin_labels(const plan::Verdict& verdict, const api::Module& module, const api::Node& node, bool ready,
                       api::Labels& labels) {
    if (module.meta.deleting || (!module.device_plugin && !module.dra)) { return; }
    const std::string& ns = module.meta.namespace_;
    const std::string& name = module.meta.name;
    const std::string target = api::label_device_plugin_target(ns, name);
    const bool versioned = module.module_loader && !module.module_loader->container.version.empty();
    const bool labelled = !versioned || !verdict.labels_after.labels.schedule.empty();
    const bool placed = plan::tolerates(daemon_tolerations(module), node.taints) &&
                        (module.module_loader ? ready && labelled : verdict.selected);
    if (module.dra && placed) { labels[api::label_dra_ready(ns, name)] = ""; }
    if (!module.device_plugin) { return; }
    if (verdict.schedule_key == api::ScheduleKey::device_plugin) {  // KMM up to v2.6.0 has no such label
        if (placed) { labels[api::label_device_plugin_ready(ns, name)] = ""; }
        return;
    }
    // a node that leaves the selector keeps the label
    const bool stays = !verdict.selected && node.meta.labels.count(target) != 0;
    const bool is_target = stays || (verdict.selected && plan::tolerates(module.tolerations, node.taints));
    if (is_target) { labels[target] = ""; }
    if (placed && (is_target || !module.module_loader)) { labels[api::label_device_plugin_ready(ns, name)] = ""; }
}

void add_node_labels(const plan::Verdict& verdict, const api::Module& module, const api::Node& node,
                     api::Labels& labels) {
    const std::string& ns = verdict.entry.namespace_;
    const std::string& name = verdict.entry.module;
    const plan::VersionLabels& versions = verdict.labels_after.labels;
    set_unless_empty(labels, api::label_version_module(ns, name), versions.module);
    set_unless_empty(labels, api::label_version_worker_pod(ns, name), versions.worker);
    set_unless_empty(labels, api::label_version_schedule(verdict.schedule_key, ns, name), versions.schedule);
    const bool ready = plan::ends_loaded(verdict.entry.action) && verdict.wanted;
    add_plugin_labels(verdict, module, node, ready, labels);
    if (!ready) { return; }
    labels[api::label_ready(ns, name)] = "";
    set_unless_empty(labels, api::label_version_ready(ns, name), verdict.wanted->version);
}

value::Node node_with_labels(const std::string& name, const api::Labels& labels) {
    return value::Node::mapping({{"apiVersion", "v1"},
                                 {"kind", "Node"},
                                 {"metadata", value::Node::mapping({{"labels", label_tree(labels)}, {"name", name}})}});
}

/// What one node ends up with.
struct Settled {
    api::NodeModulesConfig config;
    api::Labels node_labels;
};

void keep_unknown_entries(const plan::NodeView& view, const api::Objects& objects, Settled& settled) {
    if (view.config == nullptr) { return; }
    for (const auto& entry : view.config->spec) {
        const bool known = std::any_of(objects.modules.begin(), objects.modules.end(), [&](const api::Module& module) {
            return module.meta.namespace_ == entry.namespace_ && module.meta.name == entry.name;
        });
        if (!known) { settled.config.spec.push_back(entry); }
    }
}

}  // namespace

std::vector<value::Node> node_modules_configs(const api::Objects& objects, const plan::Options& options) {
    plan::Options settled_options = options;
    settled_options.next = false;
    std::map<std::pair<std::string_view, std::string_view>, const api::Module*> modules;
    for (const auto& module : objects.modules) { modules[{module.meta.namespace_, module.meta.name}] = &module; }
    std::vector<value::Node> result;
    plan::judge_nodes(objects, settled_options, [&](const plan::NodeView& view, std::vector<plan::Verdict>& verdicts) {
        Settled settled;
        auto& [config, node_labels] = settled;
        keep_unknown_entries(view, objects, settled);
        for (auto& verdict : verdicts) {
            add_node_labels(verdict, *modules.at({verdict.entry.namespace_, verdict.entry.module}), *view.node,
                            node_labels);
            if (verdict.wanted) { config.spec.push_back(std::move(*verdict.wanted)); }
        }
        const std::string& name = view.node->meta.name;
        if (view.config != nullptr || !config.spec.empty()) {
            config.meta.name = name;
            std::sort(config.spec.begin(), config.spec.end(), [](const api::NodeModule& a, const api::NodeModule& b) {
                return std::tie(a.namespace_, a.name) < std::tie(b.namespace_, b.name);
            });
            for (const auto& entry : config.spec) {
                config.meta.labels[api::label_module_configured(entry.namespace_, entry.name)] = "";
                config.meta.labels[api::label_module_in_use(entry.namespace_, entry.name)] = "";
            }
            value::Node tree = api::encode(config);
            if (!view.node->meta.uid.empty()) {
                set_owner(*tree.find("metadata"), owner_reference("v1", "Node", name, view.node->meta.uid));
            }
            sort_keys(tree);
            result.push_back(std::move(tree));
        }
        if (!node_labels.empty()) { result.push_back(node_with_labels(name, node_labels)); }
    });
    return result;
}

}  // namespace kmm::render
