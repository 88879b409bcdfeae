// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/dry_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace kmm::drive {
namespace {

template <typename Entries>
void replace_entry(Entries& entries, const std::string& ns, const std::string& name,
                   const std::optional<api::NodeModule>& entry) {
    entries.erase(
        std::remove_if(entries.begin(), entries.end(),
                       [&](const api::NodeModule& item) { return item.namespace_ == ns && item.name == name; }),
        entries.end());
    if (entry) entries.push_back(*entry);
}

std::string entry_text(const char* what, const std::optional<api::NodeModule>& entry) {
    if (!entry) return fmt::format("NodeModulesConfig: remove the {} entry", what);
    return fmt::format("NodeModulesConfig: {} entry {}{}{}", what, entry->version, entry->version.empty() ? "" : " ",
                       entry->config->container_image);
}

}  // namespace

DryStore::DryStore(cluster::ClusterStore& inner, ActionSink sink)
    : inner_(inner), snapshot_(inner.read()), sink_(std::move(sink)) {
    for (const auto& node : snapshot_.objects.nodes) nodes_.emplace(node.meta.name, nodes_.size());
    for (const auto& config : snapshot_.objects.node_modules_configs)
        configs_.emplace(config.meta.name, configs_.size());
}

cluster::Snapshot DryStore::read_about(const cluster::Subject& subject) {
    const std::lock_guard guard(mutex_);
    const auto& all = snapshot_.objects;
    cluster::Snapshot part;
    part.diagnostics = snapshot_.diagnostics;
    if (const auto found = nodes_.find(subject.node); found != nodes_.end())
        part.objects.nodes.push_back(all.nodes[found->second]);
    if (const auto found = configs_.find(subject.node); found != configs_.end())
        part.objects.node_modules_configs.push_back(all.node_modules_configs[found->second]);
    for (const auto& module : all.modules)
        if (module.meta.namespace_ == subject.module_namespace && module.meta.name == subject.module)
            part.objects.modules.push_back(module);
    return part;
}

cluster::Snapshot DryStore::read() {
    const std::lock_guard guard(mutex_);
    return snapshot_;
}

api::Node& DryStore::find_node(const std::string& node) {
    if (const auto found = nodes_.find(node); found != nodes_.end()) return snapshot_.objects.nodes[found->second];
    throw Error(Exit::not_found, "node-not-found", fmt::format("node {} is not in the cluster", node));
}

void DryStore::patch_node_labels(const std::string& node, const cluster::LabelChange& change,
                                 const cluster::LabelChange& /*expected*/) {
    const std::lock_guard guard(mutex_);
    auto& labels = find_node(node).meta.labels;
    for (const auto& [key, value] : change) {
        if (value) {
            sink_(node, fmt::format("label {}={}", key, *value));
            labels[key] = *value;
        } else if (labels.erase(key) > 0) {
            sink_(node, fmt::format("label {} removed", key));
        }
    }
}

void DryStore::put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                               const std::optional<std::optional<api::NodeModule>>& spec,
                               const std::optional<std::optional<api::NodeModule>>& status) {
    const std::lock_guard guard(mutex_);
    auto& all = snapshot_.objects.node_modules_configs;
    const auto [place, is_new] = configs_.emplace(node, all.size());
    if (is_new) all.emplace_back().meta.name = node;
    auto* found = &all[place->second];
    if (spec) {
        sink_(node, entry_text("spec", *spec));
        replace_entry(found->spec, ns, name, *spec);
    }
    if (status) {
        sink_(node, entry_text("status", *status));
        replace_entry(found->status, ns, name, *status);
    }
}

void DryStore::put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                             const std::string& architecture) {
    const std::lock_guard guard(mutex_);
    auto& item = find_node(node);
    sink_(node, fmt::format("Node: kernel {}, boot id {}", kernel, boot_id));
    item.kernel_version = kernel;
    item.boot_id = boot_id;
    item.architecture = architecture;
}

std::string DryStore::identity(bool create) {
    const auto found = inner_.identity(false);
    return found.empty() && create ? "dry-run" : found;
}

cluster::WorkerReply DryRunner::run(const cluster::WorkerCall& call) {
    const auto verb = call.args.empty() ? std::string() : call.args.front();
    if (verb == "check") {
        auto reply = inner_.run(call);
        const std::lock_guard guard(mutex_);
        if (reply.exit_code == 0) memory_[call.node].checked = reply.document;
        return reply;
    }
    if (verb == "status") {
        auto reply = inner_.run(call);
        const std::lock_guard guard(mutex_);
        const auto& live = memory_[call.node].live;
        if (!live || reply.exit_code != 0) return reply;
        auto module = live->is_null() ? value::Node::mapping({{"state", "absent"}}) : *live;
        module.set("name", call.args.size() > 1 ? call.args[1] : "");
        reply.document.set("modules", value::Node::sequence({module}));
        return reply;
    }
    const std::lock_guard guard(mutex_);
    auto& memory = memory_[call.node];
    cluster::WorkerReply reply;
    reply.document = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "WorkerResult"}, {"verb", verb}});
    if (verb == "unload") {
        sink_(call.node, "kmm-worker unload (previous version)");
        memory.live = value::Node();
        reply.document.set("outcome", "unloaded");
        return reply;
    }
    const auto image = memory.checked.get_string({"image", "reference"});
    sink_(call.node, image.empty() ? "kmm-worker load" : "kmm-worker load " + image);
    reply.document.set("outcome", "loaded");
    const auto* modules = memory.checked.find("modules");
    if (modules != nullptr && !modules->items().empty()) {
        reply.document.set("modules", *modules);
        const value::Node* chosen = &modules->items().back();
        for (const auto& module : modules->items())
            if (const auto* marked = module.find("main"); marked != nullptr && marked->as_bool() == true)
                chosen = &module;
        memory.live = *chosen;
        memory.live->set("state", "live");
    }
    return reply;
}

}  // namespace kmm::drive
