// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/plugin_store.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "kube/watch.hpp"
#include "render/manifests.hpp"

namespace kmm::cluster {

namespace {

using std::chrono::milliseconds;
using value::Node;

const kube::Resource k_device_classes{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", kube::Scope::cluster};
constexpr milliseconds k_idle_patience{60'000};  // until a DaemonSet's status says that no node asks for it

std::string plugin_label(const Node& object, std::string_view key) {
    return object.get_string({"metadata", "labels", key});
}

std::string version_text(const Node& object) { return object.get_string({"metadata", "resourceVersion"}); }

bool is_of_daemon_set(const Node& pod) {
    const Node* owners = pod.find_path({"metadata", "ownerReferences"});
    if (owners == nullptr) { return false; }
    return std::any_of(owners->items().begin(), owners->items().end(),
                       [](const Node& owner) { return owner.get_string({"kind"}) == "DaemonSet"; });
}

bool serves(const Node& pod) {
    return pod.find_path({"metadata", "deletionTimestamp"}) == nullptr && is_ready(pod);
}

/// Follows the Pods of DaemonSets until they are as they should be, or time is over.
class PluginPodWatch final : public kube::WatchReceiver {
public:
    using Pods = std::map<std::string, Node>;
    PluginPodWatch(sys::Clock& clock, milliseconds timeout, const std::function<bool(const Pods&)>& done,
                   const std::function<bool()>& stop)
        : clock_(clock), end_(clock.monotonic() + timeout), done_(done), stop_(stop) {}

    void listed(std::vector<Node> objects) override {
        pods.clear();
        for (auto& object : objects) { put(std::move(object)); }
        look();
    }
    void changed(const kube::WatchEvent& event) override {
        if (event.type == kube::EventType::deleted) {
            pods.erase(event.object.get_string({"metadata", "uid"}));
        } else {
            put(event.object);
        }
        look();
    }
    [[nodiscard]] bool finished() override { return is_done || clock_.monotonic() >= end_ || (stop_ && stop_()); }

    Pods pods;
    bool is_done = false;

private:
    void put(Node pod) {
        if (is_of_daemon_set(pod)) { pods.insert_or_assign(pod.get_string({"metadata", "uid"}), std::move(pod)); }
    }
    void look() { is_done = done_(pods); }

    sys::Clock& clock_;
    milliseconds end_;
    const std::function<bool(const Pods&)>& done_;
    const std::function<bool()>& stop_;
};

bool is_unversioned(const api::Module& module) {
    return !module.module_loader || module.module_loader->container.version.empty();
}

std::string titles(const std::map<std::string, Node>& pods) {
    std::vector<std::string> names;
    for (const auto& [uid, pod] : pods) { names.push_back(pod.get_string({"metadata", "name"})); }
    return base::join(names, ", ");
}

/// Roles of the Module's DaemonSets, and the labels that say they serve.
std::vector<std::pair<std::string, std::string>> roles_of(const api::Module& module) {
    std::vector<std::pair<std::string, std::string>> roles;
    if (module.device_plugin) {
        roles.emplace_back("device-plugin", api::label_device_plugin_ready(module.meta.namespace_, module.meta.name));
    }
    if (module.dra) { roles.emplace_back("dra", api::label_dra_ready(module.meta.namespace_, module.meta.name)); }
    return roles;
}

}  // namespace

bool has_plugins(const api::Module& module) { return module.device_plugin.has_value() || module.dra.has_value(); }

std::vector<kube::Rule> plugin_rules(const api::Module& module) {
    std::vector<kube::Rule> rules;
    if (!has_plugins(module)) { return rules; }
    for (const char* verb : {"get", "list", "watch", "create", "patch", "delete"}) {
        rules.push_back({verb, "apps", "daemonsets", "", module.meta.namespace_, ""});
    }
    if (!module.dra) { return rules; }
    for (const char* verb : {"get", "create", "patch"}) {
        rules.push_back({verb, k_device_classes.group, k_device_classes.plural, "", "", ""});
    }
    return rules;
}

PluginStore::PluginStore(KubeStore& store, std::string ns, std::string name, milliseconds timeout)
    : store_(store), namespace_(std::move(ns)), name_(std::move(name)), timeout_(timeout) {}

std::optional<api::Module> PluginStore::module() {
    for (auto& module : store_.read_about({"", namespace_, name_}).objects.modules) {
        if (module.meta.namespace_ == namespace_ && module.meta.name == name_) { return std::move(module); }
    }
    return std::nullopt;
}

bool PluginStore::wait_for_pods(const std::string& node, const std::function<bool(const Pods&)>& done, Pods& last) {
    kube::ListQuery query;
    query.namespace_ = namespace_;
    query.label_selector = fmt::format("{}={}", api::k_label_module_name, name_);
    query.field_selector = "spec.nodeName=" + node;
    const auto& asked = store_.client().options().stop_waiting;
    PluginPodWatch watch(store_.client().clock(), timeout_, done, asked);
    kube::follow(store_.client(), kube::resources::k_pods, query, watch);
    if (!watch.is_done && asked && asked()) {
        throw kube::stopped_waiting(fmt::format("Pods of {}/{} on node {}", namespace_, name_, node));
    }
    last = std::move(watch.pods);
    return watch.is_done;
}

void PluginStore::wait_gone(const std::string& node) {
    Pods left;
    if (wait_for_pods(node, [](const Pods& pods) { return pods.empty(); }, left)) { return; }
    throw Error(Exit::busy, "plugin-still-there",
                fmt::format("Pods of the previous version have not ended within {}: {}",
                            base::format_duration(timeout_), titles(left)))
        .hint(fmt::format("kubectl describe pod -n {} {}", namespace_,
                          left.begin()->second.get_string({"metadata", "name"})));
}

void PluginStore::wait_ready(const std::string& node, const api::Module& module, const std::string& version) {
    const std::string key = api::label_version_schedule_pod(namespace_, name_);
    const auto ready_role = [&](const Pods& pods, const std::string& role) {
        return std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
            return plugin_label(entry.second, api::k_label_role) == role &&
                   plugin_label(entry.second, key) == version && serves(entry.second);
        });
    };
    const auto roles = roles_of(module);
    Pods pods;
    const bool ready = wait_for_pods(
        node,
        [&](const Pods& now) {
            return std::all_of(roles.begin(), roles.end(),
                               [&](const auto& role) { return ready_role(now, role.first); });
        },
        pods);
    for (const auto& [role, label] : roles) {
        if (ready_role(pods, role)) {
            store_.patch_node_labels(node, {{label, ""}}, {});
        } else if (!ready) {
            throw Error(Exit::unhealthy, "plugin-not-ready",
                        fmt::format("the {} of {} is not ready after {}{}", role,
                                    version.empty() ? module.full_name() : version, base::format_duration(timeout_),
                                    pods.empty() ? "; it has no Pod there" : ": " + titles(pods)))
                .hint(fmt::format("kubectl get pods -n {} -l {}={} -o wide", namespace_, api::k_label_module_name,
                                  name_));
        }
    }
}

void PluginStore::collect(const std::string& version) {
    kube::Client& client = store_.client();
    const std::string key = api::label_version_schedule_pod(namespace_, name_);
    std::set<std::string> asked_for{version};
    for (const auto& node : store_.read().objects.nodes) {
        if (const auto found = node.meta.labels.find(key); found != node.meta.labels.end()) {
            asked_for.insert(found->second);
        }
    }
    kube::ListQuery query;
    query.namespace_ = namespace_;
    query.label_selector = fmt::format("{}={},{}", api::k_label_module_name, name_, key);
    for (const auto& set : client.list_all(kube::resources::k_daemon_sets, query)) {
        if (asked_for.contains(plugin_label(set, key))) { continue; }
        const kube::Key which{namespace_, set.get_string({"metadata", "name"})};
        const bool idle = kube::wait_for(
            client, kube::resources::k_daemon_sets, which,
            [](const std::optional<Node>& now) {
                const Node* desired = now ? now->find_path({"status", "desiredNumberScheduled"}) : nullptr;
                return !now || (desired != nullptr && desired->as_int() == 0);
            },
            std::min(timeout_, k_idle_patience));
        if (!idle) { continue; }  // somebody else's nodes: facts KMM 9.3
        kube::DeleteOptions options;
        options.uid = set.get_string({"metadata", "uid"});
        static_cast<void>(client.remove(kube::resources::k_daemon_sets, which, options));
    }
}

std::vector<std::string> PluginStore::apply(kube::Force force) {
    std::vector<std::string> changed;
    const auto wanted = module();
    if (!wanted || !has_plugins(*wanted)) { return changed; }
    kube::Client& client = store_.client();
    if (wanted->dra && !client.serves(k_device_classes)) {
        throw Error(Exit::checks_failed, "dra-not-served",
                    fmt::format("Module {} has a DRA driver, but {} does not serve {}", wanted->full_name(),
                                store_.describe(), k_device_classes.api_version()))
            .hint("DRA needs Kubernetes 1.34");
    }
    api::Objects objects;
    objects.modules.push_back(*wanted);
    render::Options options;
    options.finalizers = render::Finalizers::none;
    options.plan.schedule_key = api::ScheduleKey::schedule_pod;
    constexpr std::array k_groups{render::What::device_plugin, render::What::dra};
    kube::ListQuery query;
    query.namespace_ = namespace_;
    query.label_selector = fmt::format("{}={}", api::k_label_module_name, name_);
    const auto there = client.list_all(kube::resources::k_daemon_sets, query);
    for (auto& object : render::render(objects, options, k_groups).objects) {
        if (object.get_string({"kind"}) == "DeviceClass") {
            const std::string name = object.get_string({"metadata", "name"});
            const auto before = client.find(k_device_classes, {"", name});
            const auto after = client.apply(k_device_classes, object, force);
            if (!before || version_text(*before) != version_text(after)) { changed.push_back("DeviceClass " + name); }
            continue;
        }
        const Node* labels = object.find_path({"metadata", "labels"});
        std::string before;
        for (const auto& set : there) {
            const Node* theirs = set.find_path({"metadata", "labels"});
            if (theirs == nullptr || !theirs->same_value(*labels)) { continue; }
            object.find("metadata")->set("name", set.get_string({"metadata", "name"}));
            before = version_text(set);
        }
        object.find("metadata")->erase("generateName");
        const auto after = client.apply(kube::resources::k_daemon_sets, object, force);
        if (before.empty() || before != version_text(after)) {
            changed.push_back(fmt::format("DaemonSet {}/{}", namespace_, object.get_string({"metadata", "name"})));
        }
    }
    return changed;
}

void PluginStore::patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) {
    const auto worker = change.find(api::label_version_worker_pod(namespace_, name_));
    const auto ready = change.find(api::label_ready(namespace_, name_));
    const auto version = change.find(api::label_version_ready(namespace_, name_));
    const bool leaves = worker != change.end() && !worker->second;
    const bool loaded = ready != change.end() && ready->second;
    const bool done = version != change.end() && version->second;
    const bool unready = ready != change.end() && !ready->second;
    const auto wanted = leaves || loaded || done || unready ? module() : std::nullopt;
    LabelChange all = change;
    if (wanted && has_plugins(*wanted) && is_unversioned(*wanted)) {
        // The ready label alone brings them and sends them away.
        if (wanted->device_plugin && (loaded || unready)) {
            all[api::label_device_plugin_target(namespace_, name_)] =
                loaded ? std::optional<std::string>("") : std::nullopt;
        }
        if (unready) {
            for (const auto& [role, label] : roles_of(*wanted)) { all[label] = std::nullopt; }
        }
        store_.patch_node_labels(node, all, expected);
        if (unready) { wait_gone(node); }
        if (loaded) { wait_ready(node, *wanted, ""); }
        return;
    }
    if (wanted && has_plugins(*wanted)) {
        if (leaves) {
            wait_gone(node);
            for (const auto& [role, label] : roles_of(*wanted)) { all[label] = std::nullopt; }
        }
        if (loaded && wanted->device_plugin) { all[api::label_device_plugin_target(namespace_, name_)] = ""; }
        if (done) {
            wait_ready(node, *wanted, *version->second);
            collect(*version->second);
        }
    }
    store_.patch_node_labels(node, all, expected);
}

}  // namespace kmm::cluster
