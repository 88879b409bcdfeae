// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/cluster_view.hpp"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/guarded_write.hpp"
#include "kube/access.hpp"
#include "kubernetes/inventory/removed_apis.hpp"
#include "kubernetes/versions/observe.hpp"
#include "sys/file_ops.hpp"
#include "upgrade/drive_cluster/directory_reader.hpp"
#include "upgrade/drive_cluster/rights.hpp"
#include "edit/edit.hpp"

namespace kmm::drive {
namespace {

using kubernetes::Inventory;

constexpr const char* k_configuration_key = "ClusterConfiguration";

const kubernetes::ConfigMapObject* kubeadm_config(const Inventory& inventory) {
    for (const auto& map : inventory.config_maps)
        if (map.meta.ns == "kube-system" && map.meta.name == "kubeadm-config") return &map;
    return nullptr;
}

class InventoryTarget final : public cluster::DocumentTarget {
public:
    explicit InventoryTarget(Inventory& inventory) : inventory_(inventory) {}

    value::ObjectSink* begin() override { return &sink_.emplace(); }
    void commit(Diagnostics& diagnostics) override { std::move(*sink_).commit(inventory_, diagnostics); }
    void take(const value::Document& document, Diagnostics& diagnostics) override {
        begin()->take_document(document);
        commit(diagnostics);
    }

private:
    Inventory& inventory_;
    std::optional<kubernetes::InventorySink> sink_;
};

Inventory documents_inventory(const std::vector<std::string>& names) {
    Inventory inventory;
    Diagnostics faults;
    InventoryTarget target(inventory);
    cluster::read_documents(names, target, faults);
    kubernetes::finish(inventory, faults);
    sort_and_merge(faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return inventory;
}

const kube::Resource k_api_services{"apiregistration.k8s.io", "v1", "apiservices", "APIService", kube::Scope::cluster};
const kube::Resource k_endpoint_slices{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice",
                                       kube::Scope::namespaced};
const kube::Resource k_validating{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                                  "ValidatingWebhookConfiguration", kube::Scope::cluster};
const kube::Resource k_mutating{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                "MutatingWebhookConfiguration", kube::Scope::cluster};
const kube::Resource k_autoscalers{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
                                   kube::Scope::namespaced};
const kube::Resource k_system_services{"", "v1", "services", "Service", kube::Scope::namespaced};
const kube::Resource k_policies{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
                                "ValidatingAdmissionPolicy", kube::Scope::cluster};

void list(kube::Client& client, const kube::Resource& resource, const kube::ListQuery& query, Inventory& inventory,
          Diagnostics& faults) {
    std::optional<kubernetes::InventorySink> sink;
    client.list(resource, query, [&]() -> value::ObjectSink& { return sink.emplace(); });
    std::move(*sink).commit(inventory, faults);
}

/// A kind that only some checks look at: without the right to list it they are skipped.
void list_if_allowed(kube::Client& client, const kube::Resource& resource, const kube::ListQuery& query,
                     Inventory& inventory, Diagnostics& faults) {
    try {
        list(client, resource, query, inventory, faults);
    } catch (const Error& error) {
        if (error.exit() != Exit::no_permission && error.exit() != Exit::not_found) throw;
        inventory.unlisted[resource.plural] =
            error.exit() == Exit::no_permission ? fmt::format("this user may not list {}", resource.full_name())
                                                : fmt::format("the API server does not serve {}", resource.full_name());
    }
}

/// Objects by which other programs change the cluster, of the kinds that it has.
void list_orders(kube::Client& client, Inventory& inventory, Diagnostics& faults) {
    const auto definitions = inventory.definitions;
    for (const auto& definition : definitions) {
        const auto& name = definition.meta.name;
        const auto* order = kubernetes::order_of_definition(name);
        if (order == nullptr || definition.served.empty()) continue;
        const auto dot = name.find('.');
        list_if_allowed(client, {name.substr(dot + 1), definition.served.back(), name.substr(0, dot), order}, {},
                        inventory, faults);
    }
}

/// The DaemonSets that Pods name: a drain refuses the Pods of one that is gone.
void find_daemon_sets(kube::Client& client, Inventory& inventory) {
    std::map<std::string, kube::Key> named;
    for (const auto& pod : inventory.pods)
        if (!pod.daemon_set.empty()) {
            const kube::Key key{pod.meta.ns, pod.daemon_set};
            named.emplace(key.to_string(), key);
        }
    std::set<std::string> found;
    try {
        for (const auto& [name, key] : named)
            if (const auto object = client.find(kube::resources::k_daemon_sets, key)) {
                found.insert(name);
                kubernetes::take_kured(*object, inventory);
            }
    } catch (const Error& error) {
        if (error.exit() != Exit::no_permission) throw;
        inventory.unlisted[kube::resources::k_daemon_sets.plural] = "this user may not get daemonsets.apps";
        return;
    }
    inventory.daemon_sets = std::move(found);
}

kubernetes::ObjectMeta meta_of_release(const value::Node& object) {
    kubernetes::ObjectMeta meta;
    meta.ns = object.get_string({"metadata", "namespace"});
    meta.name = object.get_string({"metadata", "name"});
    const auto* metadata = object.find("metadata");
    if (const auto* labels = metadata == nullptr ? nullptr : metadata->find("labels");
        labels != nullptr && labels->is_mapping())
        for (const auto& label : labels->members()) meta.labels.emplace_back(label.key, label.value.text());
    return meta;
}

/// What the current revisions of all namespaces are made of. Only what they name stays in memory.
void list_release_apis(kube::Client& client, Inventory& inventory, Diagnostics& faults) {
    kube::ListQuery query;
    query.label_selector = "owner=helm,status!=superseded";
    for (const auto* resource : {&kube::resources::k_secrets, &kube::resources::k_config_maps})
        list_if_allowed(client, *resource, query, inventory, faults);
    kubernetes::keep_release_apis(inventory);
    // Of ConfigMaps the sink takes more than revisions.
    std::erase_if(inventory.config_maps,
                  [](const auto& map) { return map.meta.ns != "kube-system" || kubernetes::release_of(map.meta); });
}

/// Objects with kinds of which a version goes after the one that runs: who has written them, in which version.
void list_used_apis(kube::Client& client, Inventory& inventory) {
    static const value::Shape k_manager{{"fieldsV1"}, {}};
    static const value::Shape k_metadata{{}, {{"managedFields", &k_manager}}};
    static const value::Shape k_object{{}, {{"metadata", &k_metadata}}};
    const auto lowest = kubernetes::observe(inventory).lowest_control_plane();
    std::set<std::string> asked;
    for (const auto& api : kubernetes::removed_apis()) {
        if (lowest && api.minor <= lowest->minor) continue;
        for (const auto kind : base::split(api.kinds, ' ')) {
            const auto plural = kubernetes::plural_of(kind);
            if (kind.ends_with("Review") || !asked.insert(plural).second) continue;
            const auto slash = api.group_version.find('/');
            const auto served = client.discover({std::string(api.group_version.substr(0, slash)),
                                                 std::string(api.group_version.substr(slash + 1)), plural,
                                                 std::string(kind), kube::Scope::cluster});
            if (!served) continue;  // then there is no such object
            kube::ListQuery query;
            query.content = kube::ListQuery::Content::metadata;
            try {
                for (const auto& object : client.list_all(*served, query, nullptr, &k_object))
                    kubernetes::read_used_apis(object, std::string(kind), inventory.used_apis);
            } catch (const Error& error) {
                if (error.exit() != Exit::no_permission && error.exit() != Exit::not_found) throw;
                inventory.unlisted[plural] = fmt::format("this user may not list {}", served->full_name());
            }
        }
    }
}

std::string text_of(const kube::Rule& rule) {
    return fmt::format("{} {}{}{}{}", rule.verb, rule.resource, rule.subresource.empty() ? "" : "/" + rule.subresource,
                       rule.name.empty() ? "" : " " + rule.name,
                       rule.namespace_.empty() ? "" : " in " + rule.namespace_);
}

/// Revisions of all namespaces, of both of Helm's storage drivers; never their data.
void list_releases(kube::Client& client, Inventory& inventory) {
    kube::ListQuery query;
    query.label_selector = "owner=helm";
    query.content = kube::ListQuery::Content::metadata;
    for (const auto* resource : {&kube::resources::k_secrets, &kube::resources::k_config_maps}) {
        try {
            for (const auto& object : client.list_all(*resource, query))
                if (auto release = kubernetes::release_of(meta_of_release(object)))
                    inventory.releases.push_back(std::move(*release));
        } catch (const Error& error) {
            if (error.exit() != Exit::no_permission) throw;
            inventory.unlisted["secrets"] =
                fmt::format("this user may not list {} of all namespaces", resource->plural);
        }
    }
}

/// Objects of an API server have names and no lines.
void set_places(Inventory& inventory) {
    for (auto& node : inventory.nodes) node.meta.position = Position{"nodes/" + node.meta.name, 0, 0};
    for (auto& pod : inventory.pods) {
        pod.meta.position = Position{"pods/" + pod.meta.full_name(), 0, 0};
        for (auto& container : pod.containers) container.position = pod.meta.position;
    }
}

Inventory finished(Inventory inventory, Diagnostics faults) {
    set_places(inventory);
    kubernetes::finish(inventory, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return inventory;
}

Inventory server_inventory(kube::Client& client, ReadExtent extent) {
    using namespace kube::resources;
    Inventory inventory;
    inventory.is_live = true;
    Diagnostics faults;
    list(client, k_nodes, {}, inventory, faults);
    if (extent == ReadExtent::nodes) return finished(std::move(inventory), std::move(faults));
    kube::ListQuery pods;
    const bool is_all = extent >= ReadExtent::everything;
    if (!is_all) pods.namespace_ = "kube-system";
    if (extent == ReadExtent::control_plane) pods.label_selector = "tier=control-plane";
    list(client, k_pods, pods, inventory, faults);
    if (is_all) {
        kube::ListQuery system;
        system.namespace_ = "kube-system";
        list_if_allowed(client, k_config_maps, system, inventory, faults);
        for (const auto* resource : {&k_pod_disruption_budgets, &k_validating, &k_mutating, &k_endpoint_slices,
                                     &k_api_services, &k_custom_resource_definitions})
            list_if_allowed(client, *resource, {}, inventory, faults);
        inventory.is_admin = kube::missing_rules(client, {{"*", "*", "*", "", "", ""}}).empty();
        if (!*inventory.is_admin)
            for (const auto& rule : kube::missing_rules(client, upgrade_rules()))
                inventory.lacking_rights.push_back(text_of(rule));
        inventory.has_policies = client.serves(k_policies);
    }
    if (extent >= ReadExtent::upgrade) {
        list_if_allowed(client, k_autoscalers, {}, inventory, faults);
        list_if_allowed(client, k_deployments, {"kube-system", "", ""}, inventory, faults);
        list_if_allowed(client, k_system_services, {"kube-system", "", "metadata.name=kube-dns"}, inventory, faults);
        find_daemon_sets(client, inventory);
        list_orders(client, inventory, faults);
        list_used_apis(client, inventory);
        list_release_apis(client, inventory, faults);
    }
    if (extent == ReadExtent::releases) {
        inventory.releases.clear();
        list_releases(client, inventory);
    }
    return finished(std::move(inventory), std::move(faults));
}

class ServerView final : public ClusterView {
public:
    explicit ServerView(kube::Client& client) : client_(client) {}
    [[nodiscard]] Inventory read(ReadExtent extent) override { return server_inventory(client_, extent); }
    [[nodiscard]] Inventory about(const std::string& node) override {
        using namespace kube::resources;
        Inventory inventory;
        inventory.is_live = true;
        Diagnostics faults;
        list(client_, k_nodes, {"", "", "metadata.name=" + node}, inventory, faults);
        list(client_, k_pods, {"kube-system", "", "spec.nodeName=" + node}, inventory, faults);
        list(client_, k_config_maps, {"kube-system", "", "metadata.name=kubeadm-config"}, inventory, faults);
        return finished(std::move(inventory), std::move(faults));
    }
    [[nodiscard]] Inventory control_planes() override {
        Inventory inventory;
        inventory.is_live = true;
        Diagnostics faults;
        list(client_, kube::resources::k_pods, {"kube-system", "tier=control-plane", ""}, inventory, faults);
        return finished(std::move(inventory), std::move(faults));
    }
    [[nodiscard]] std::optional<std::string> renewal(const std::string& node) override {
        const auto lease = client_.find(kube::resources::k_leases, {"kube-node-lease", node});
        if (!lease) return std::nullopt;
        return lease->get_string({"spec", "renewTime"});
    }
    void put_cluster_configuration(const std::string& text) override {
        static_cast<void>(client_.change(kube::resources::k_config_maps, {"kube-system", "kubeadm-config"},
                                         [&](const value::Node& current) -> std::optional<value::Node> {
                                             if (current.get_string({"data", k_configuration_key}) == text)
                                                 return std::nullopt;
                                             return value::Node::mapping(
                                                 {{"data", value::Node::mapping({{k_configuration_key, text}})}});
                                         }));
    }
    [[nodiscard]] std::string unready_reason() override {
        kube::Call call;
        call.path = "/readyz";
        call.accept = "text/plain";
        call.is_answer = [](const kube::Failure&) { return true; };
        const auto reply = client_.exchange(call);
        return reply.failure ? fmt::format("/readyz of the API server answers {}", reply.status) : "";
    }

private:
    kube::Client& client_;
};

class DirectoryView final : public ClusterView {
public:
    explicit DirectoryView(const std::string& path)
        : reader_(path, [path] { return documents_inventory({path}); }) {}
    [[nodiscard]] Inventory read(ReadExtent /*extent*/) override { return *reader_.read(); }
    [[nodiscard]] Inventory about(const std::string& node) override {
        auto inventory = *reader_.read();
        std::erase_if(inventory.nodes, [&](const auto& each) { return each.meta.name != node; });
        std::erase_if(inventory.pods,
                      [&](const auto& each) { return each.node != node || each.meta.ns != "kube-system"; });
        return inventory;
    }
    [[nodiscard]] Inventory control_planes() override { return *reader_.read(); }
    /// There is no kubelet that would renew it.
    [[nodiscard]] std::optional<std::string> renewal(const std::string& /*node*/) override { return std::nullopt; }
    void put_cluster_configuration(const std::string& text) override {
        const auto inventory = reader_.read();
        const auto* map = kubeadm_config(*inventory);
        if (map == nullptr)
            throw Error(Exit::not_found, "object-not-found", "there is no ConfigMap kube-system/kubeadm-config");
        const auto& file = map->meta.position.file;
        const auto image = cluster::read_image(file);
        const auto edited = edit::edit_text(image.bytes, file, {{{"data", k_configuration_key}, value::Node(text)}});
        sys::LinuxFileOps ops;
        if (edited != image.bytes) cluster::replace_file(ops, image, edited);
    }
    [[nodiscard]] std::string unready_reason() override { return ""; }

private:
    DirectoryReader reader_;  // somebody else changes them
};

}  // namespace

std::optional<std::string> cluster_configuration_text(const Inventory& seen) {
    const auto* map = kubeadm_config(seen);
    if (map == nullptr) return std::nullopt;
    const auto found = map->data.find(k_configuration_key);
    return found == map->data.end() ? std::nullopt : std::optional(found->second);
}

kubernetes::Inventory read_inventory(kube::Client& client, ReadExtent extent) {
    return server_inventory(client, extent);
}

kubernetes::Inventory read_inventory(const std::vector<std::string>& names) { return documents_inventory(names); }

std::unique_ptr<ClusterView> view_of(cluster::Cluster& cluster) {
    if (cluster.server != nullptr) return std::make_unique<ServerView>(cluster.server->client());
    return std::make_unique<DirectoryView>(cluster.place.directory);
}

}  // namespace kmm::drive
