// SPDX-License-Identifier: Apache-2.0
// NodeModulesConfigs and node labels as they settle. Source: KMM nmc_reconciler.go, module_reconciler.go; facts: KMM 1, 8.
#include <algorithm>
#include <map>
#include <tuple>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "plan/verdict.hpp"
#include "render/manifests.hpp"

namespace kmm::render {

namespace {

using plan::Action;

bool ends_loaded(Action action) {
    return action == Action::load || action == Action::keep || action == Action::reload;
}

void set_unless_empty(api::Labels& labels, const std::string& key, const std::string& text) {
    if (!text.empty()) { labels[key] = text; }
}

void add_node_labels(const plan::Verdict& verdict, api::Labels& labels) {
    const std::string& ns = verdict.entry.namespace_;
    const std::string& name = verdict.entry.module;
    const plan::VersionLabels& versions = verdict.labels_after.labels;
    set_unless_empty(labels, api::label_version_module(ns, name), versions.module);
    set_unless_empty(labels, api::label_version_worker_pod(ns, name), versions.worker);
    set_unless_empty(labels, api::label_version_schedule(verdict.schedule_key, ns, name), versions.schedule);
    if (!ends_loaded(verdict.entry.action) || !verdict.wanted) { return; }
    labels[api::label_ready(ns, name)] = "";
    set_unless_empty(labels, api::label_version_ready(ns, name), verdict.wanted->version);
}

value::Node node_with_labels(const std::string& name, const api::Labels& labels) {
    value::Node tree = value::Node::mapping();
    for (const auto& [key, text] : labels) { tree.set(key, text); }
    value::Node metadata = value::Node::mapping();
    metadata.set("labels", std::move(tree));
    metadata.set("name", name);
    return value::Node::mapping({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", std::move(metadata)}});
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

std::vector<value::Node> node_modules_configs(const api::Objects& objects) {
    std::map<std::string, Settled> nodes;
    for (const auto& view : plan::views(objects)) {
        keep_unknown_entries(view, objects, nodes[view.node->meta.name]);
    }
    for (const auto& verdict : plan::judge_all(objects, plan::Options{})) {
        Settled& settled = nodes[verdict.entry.node];
        if (verdict.wanted) { settled.config.spec.push_back(*verdict.wanted); }
        add_node_labels(verdict, settled.node_labels);
    }
    std::vector<value::Node> result;
    for (const auto& view : plan::views(objects)) {
        const std::string& name = view.node->meta.name;
        auto& [config, node_labels] = nodes[name];
        if (view.config != nullptr || !config.spec.empty()) {
            config.meta.name = name;
            std::sort(config.spec.begin(), config.spec.end(), [](const api::NodeModule& a, const api::NodeModule& b) {
                return std::tie(a.namespace_, a.name) < std::tie(b.namespace_, b.name);
            });
            for (const auto& entry : config.spec) {
                config.meta.labels[api::label_module_configured(entry.namespace_, entry.name)] = "";
                config.meta.labels[api::label_module_in_use(entry.namespace_, entry.name)] = "";
            }
            result.push_back(api::encode(config));
        }
        if (!node_labels.empty()) { result.push_back(node_with_labels(name, node_labels)); }
    }
    return result;
}

}  // namespace kmm::render
