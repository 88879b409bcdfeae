// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/diff_plugins.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "api/labels.hpp"
#include "render/served.hpp"

namespace kmm::tool_plan {

namespace {

using value::Node;
using ModuleName = std::pair<std::string, std::string>;  ///< namespace and name

const std::string& label_at(const api::Labels& labels, const std::string& key) {
    static const std::string none;
    const auto found = labels.find(key);
    return found == labels.end() ? none : found->second;
}

api::Labels labels_of(const Node& object) {
    api::Labels labels;
    if (const Node* tree = object.find_path({"metadata", "labels"}); tree != nullptr) {
        for (const auto& label : tree->members()) { labels.emplace(label.key, label.value.text()); }
    }
    return labels;
}

/// The version in the labels of a DaemonSet, by the key of any KMM.
std::string version_of(const api::Labels& labels, const ModuleName& module) {
    const auto& current = label_at(labels, api::label_version_schedule_pod(module.first, module.second));
    return current.empty() ? label_at(labels, api::label_version_device_plugin(module.first, module.second)) : current;
}

/// KMM up to v2.6.0 has no label of the role, and device plugins only.
std::string role_of(const api::Labels& labels) {
    const auto& role = label_at(labels, std::string(api::k_label_role));
    return role.empty() ? "device-plugin" : role;
}

/// A Pod template's annotations say when somebody restarted the Pods.
Node plugin_spec(const Node* spec) {
    if (spec == nullptr) { return {}; }
    Node result = *spec;
    Node* pod_template = result.find("template");
    if (Node* metadata = pod_template == nullptr ? nullptr : pod_template->find("metadata"); metadata != nullptr) {
        metadata->erase("annotations");
    }
    return render::without_defaults(result);
}

Node wanted_side(const Node& rendered) {
    const Node* labels = rendered.find_path({"metadata", "labels"});
    const Node spec = plugin_spec(rendered.find("spec"));
    return compared(labels == nullptr ? Node::mapping() : *labels, &spec);
}

Node observed_side(const api::PluginObject& object, const Node& rendered) {
    const Node spec = plugin_spec(&object.spec);
    return compared(comparable_labels(object.meta.labels, rendered), &spec);
}

class PluginPairs {
public:
    PluginPairs(const api::Objects& objects, const std::vector<Node>& settled_nodes, std::string ns)
        : objects_(objects), ns_(std::move(ns)) {
        for (const auto& module : objects.modules) { modules_[{module.meta.namespace_, module.meta.name}] = &module; }
        for (const auto& node : settled_nodes) {
            const auto labels = labels_of(node);
            for (const auto& [name, module] : modules_) { in_use_.emplace(name, version_of(labels, name)); }
        }
    }

    void daemon_sets(const std::string& role, const std::vector<Node>& rendered) {
        std::map<ModuleName, const Node*> wanted;
        for (const auto& object : rendered) {
            if (object.get_string({"kind"}) != "DaemonSet") { continue; }
            wanted[{object.get_string({"metadata", "namespace"}),
                    label_at(labels_of(object), std::string(api::k_label_module_name))}] = &object;
        }
        std::set<ModuleName> paired;
        for (const auto& object : objects_.daemon_sets) {
            if (role_of(object.meta.labels) != role) { continue; }
            const ModuleName name{object.meta.namespace_,
                                  label_at(object.meta.labels, std::string(api::k_label_module_name))};
            const auto module = modules_.find(name);
            if (module == modules_.end()) { continue; }
            const auto target = wanted.find(name);
            const std::string version = version_of(object.meta.labels, name);
            if (target == wanted.end()) {
                add("DaemonSet", object, nullptr);
            } else if (version == version_of(labels_of(*target->second), name)) {
                // KMM takes the first it finds and leaves further ones of the same version alone.
                if (paired.insert(name).second) { add("DaemonSet", object, target->second); }
            } else if (module->second->module_loader && !in_use_.contains({name, version})) {
                add("DaemonSet", object, nullptr);
            }
        }
        for (const auto& [name, object] : wanted) {
            if (!paired.contains(name)) { add_missing(*object, modules_.at(name)->meta.origin); }
        }
    }

    void device_classes(const std::vector<Node>& rendered) {
        std::map<std::string, const Node*> wanted;
        for (const auto& object : rendered) {
            if (object.get_string({"kind"}) == "DeviceClass") {
                wanted[object.get_string({"metadata", "name"})] = &object;
            }
        }
        std::set<std::string> paired;
        for (const auto& object : objects_.device_classes) {
            const auto target = wanted.find(object.meta.name);
            if (target != wanted.end()) {
                add("DeviceClass", object, target->second);
                paired.insert(object.meta.name);
            } else if (modules_.contains(owner_of(object.meta.labels))) {
                add("DeviceClass", object, nullptr);
            }
        }
        for (const auto& [name, object] : wanted) {
            if (paired.contains(name)) { continue; }
            const auto module = modules_.find(owner_of(labels_of(*object)));
            add_missing(*object, module == modules_.end() ? Position{} : module->second->meta.origin);
        }
    }

    [[nodiscard]] std::vector<Pair> take() { return std::move(pairs_); }

private:
    static ModuleName owner_of(const api::Labels& labels) {
        return {label_at(labels, "kmm.node.kubernetes.io/module.namespace"),
                label_at(labels, std::string(api::k_label_module_name))};
    }

    [[nodiscard]] bool outside(const std::string& ns) const { return !ns_.empty() && ns != ns_; }

    void add(const char* kind, const api::PluginObject& object, const Node* wanted) {
        const auto& own = object.meta.namespace_;
        const std::string ns =
            !own.empty() ? own : owner_of(wanted == nullptr ? object.meta.labels : labels_of(*wanted)).first;
        if (outside(ns)) { return; }
        pairs_.push_back({kind, own, object.meta.name, observed_side(object, wanted == nullptr ? Node() : *wanted),
                          wanted == nullptr ? Node() : wanted_side(*wanted), object.meta.origin});
    }

    void add_missing(const Node& wanted, const Position& place) {
        const std::string own = wanted.get_string({"metadata", "namespace"});
        if (outside(!own.empty() ? own : owner_of(labels_of(wanted)).first)) { return; }
        pairs_.push_back({wanted.get_string({"kind"}), own, wanted.get_string({"metadata", "name"}), Node(),
                          wanted_side(wanted), place});
    }

    const api::Objects& objects_;
    std::string ns_;
    std::map<ModuleName, const api::Module*> modules_;
    std::set<std::pair<ModuleName, std::string>> in_use_;  ///< versions that nodes are labelled with in the end
    std::vector<Pair> pairs_;
};

}  // namespace

std::vector<Pair> plugin_pairs(const api::Objects& objects, const render::Options& options,
                               const std::vector<Node>& settled_nodes, const std::string& ns) {
    PluginPairs pairs(objects, settled_nodes, ns);
    const auto rendered = [&](render::What what) {
        return render::render(objects, options, std::span(&what, 1)).objects;
    };
    pairs.daemon_sets("device-plugin", rendered(render::What::device_plugin));
    const auto dra = rendered(render::What::dra);
    pairs.daemon_sets("dra", dra);
    pairs.device_classes(dra);
    return pairs.take();
}

}  // namespace kmm::tool_plan
