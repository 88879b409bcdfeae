// SPDX-License-Identifier: Apache-2.0
// The objects of a cluster that versions and checks are computed from, and the sink that takes them from a dump or an
// API server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "selector/label_selector.hpp"
#include "value/object_stream.hpp"

namespace kmm::kubernetes {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// The value of `key`, nullptr if it is not there.
[[nodiscard]] const std::string* find_label(const Labels& labels, std::string_view key) noexcept;

/// What every object has.
struct ObjectMeta {
    std::string ns, name;  ///< ns "" for kinds of the whole cluster
    Labels labels, annotations;
    Position position;
    std::string revision;  ///< its uid and resourceVersion, "" if the document lacks one

    /// "NAMESPACE/NAME" or "NAME".
    [[nodiscard]] std::string full_name() const { return ns.empty() ? name : ns + "/" + name; }
};

struct Condition {
    std::string type, status, reason, message;
};

/// What Pods ask for, and nodes have.
struct Resources {
    double cpu = 0, memory = 0;  ///< cores, bytes
    double pods = 0;

    [[nodiscard]] bool has_room_for(const Resources& other) const noexcept {
        return cpu >= other.cpu && memory >= other.memory && pods >= other.pods;
    }
    void operator+=(const Resources& other) noexcept {
        cpu += other.cpu;
        memory += other.memory;
        pods += other.pods;
    }
    void operator-=(const Resources& other) noexcept { *this += Resources{-other.cpu, -other.memory, -other.pods}; }
};

/// "WHAT: WHY" with the first line of `why`, cut where it is long; "WHAT" if there is none.
[[nodiscard]] std::string with_reason(std::string_view what, std::string_view why);

struct NodeObject {
    ObjectMeta meta;
    bool unschedulable = false;
    std::string kubelet, runtime;  ///< status.nodeInfo: kubeletVersion, containerRuntimeVersion; "" if absent
    std::string system = {}, image = {};  ///< status.nodeInfo: operatingSystem, osImage; "" if absent
    std::vector<Condition> conditions;
    Resources allocatable;
    std::vector<std::pair<std::string, std::string>> taints = {};  ///< key and effect
    std::vector<std::string> unread_quantities = {};  ///< of allocatable: "cpu 'TEXT'" that is not a quantity

    /// Has the label node-role.kubernetes.io/control-plane, or master as before 1.24.
    [[nodiscard]] bool is_control_plane() const noexcept;
};

struct Container {
    std::string name, image;
    std::vector<std::string> arguments;  ///< command and args
    Position position;                   ///< of the image
};

struct PodObject {
    ObjectMeta meta;
    std::string node, phase, controller_kind;  ///< kind of the owner that controls it, "" without
    bool is_mirror = false, is_ready = false, has_empty_dir = false, is_deleted = false;
    std::vector<Container> containers;
    /// Of the Pod as a whole, else of all containers, or of the largest init container if that is more.
    Resources requests;
    Labels node_selector = {};
    std::vector<std::pair<std::string, std::string>> tolerations = {};  ///< key and effect, "" for all
    std::map<std::string, std::string, std::less<>> running_images;  ///< status.containerStatuses: container -> image
    std::optional<std::int64_t> ends_by = {};  ///< deleted: when its grace ends, seconds since 1970
    std::vector<std::string> finalizers = {};
    std::string daemon_set = {};  ///< name of the DaemonSet of apps that controls it, "" without
    std::vector<std::string> unread_quantities = {};  ///< "CONTAINER requests.cpu 'TEXT'" that is not a quantity
    std::string waiting = {};  ///< of kube-system: why its first waiting container waits, "" if none does
};

struct ConfigMapObject {
    ObjectMeta meta;
    std::map<std::string, std::string, std::less<>> data;  ///< of namespace kube-system only
};

struct BudgetObject {
    ObjectMeta meta;
    /// nullopt selects nothing, an empty one every Pod of the namespace.
    std::optional<selector::LabelSelector> selector;
    std::optional<std::int64_t> disruptions_allowed;    ///< nullopt: its controller has not said
    std::int64_t generation = 0, observed_generation = 0;
    bool always_evicts_unhealthy = false;               ///< unhealthyPodEvictionPolicy: AlwaysAllow
    std::int64_t current_healthy = 0, desired_healthy = 0;
    std::string problem = {};  ///< why its controller cannot compute it, "" if it can
};

struct WebhookRule {
    std::vector<std::string> groups, resources, operations;
    std::string scope = {};  ///< "Cluster", "Namespaced", or "*" or "" for both
};

struct WebhookObject {
    ObjectMeta meta;    ///< of the configuration
    std::string webhook;
    bool fails_closed = true;
    std::string service_ns, service;  ///< "" for a URL
    bool has_namespace_selector = false, has_object_selector = false, has_match_conditions = false;
    selector::LabelSelector namespace_selector;
    std::vector<WebhookRule> rules;
};

/// An EndpointSlice.
struct EndpointsObject {
    ObjectMeta meta;
    std::string service;
    std::vector<std::pair<bool, std::string>> endpoints;  ///< ready, and the node it is on
};

struct ApiServiceObject {
    ObjectMeta meta;
    std::vector<Condition> conditions;
};

struct DefinitionObject {
    ObjectMeta meta;
    bool converts_by_webhook = false;
    std::string service_ns, service;
    std::vector<std::string> versions, served;  ///< of spec: all, and those that are served
    std::vector<std::string> stored;            ///< status.storedVersions
};

struct RemovedApi;
/// An API that some release no longer serves, and what names it.
struct UsedApi {
    enum class Where { object, release };
    std::string object;  ///< "Ingress prod/web", or "prod/web" of a release of Helm
    std::string kind;    ///< of the API
    std::string by;      ///< how the object names it, "was applied as"
    Where where = Where::object;
    const RemovedApi* removed = nullptr;
    friend bool operator==(const UsedApi&, const UsedApi&) = default;
};

/// A revision of a Helm release, of the Secret or ConfigMap that Helm keeps it in.
struct ReleaseObject {
    ObjectMeta meta;
    std::string release, status;
    std::int64_t revision = 0;
    std::vector<UsedApi> used = {};  ///< by its manifest, until keep_release_apis
    bool is_unread = false;          ///< its text cannot be read

    /// Whether Helm may read the manifest again, if there is no later revision.
    [[nodiscard]] bool is_current() const noexcept { return status != "superseded" && status != "uninstalled"; }
};
/// nullopt if an object with these labels is not one that Helm keeps a revision in.
[[nodiscard]] std::optional<ReleaseObject> release_of(ObjectMeta meta);
/// The revisions that Helm reads for the next upgrade, rollback or removal: the deployed ones, and the last one of each
/// release that is not uninstalled.
[[nodiscard]] std::vector<const ReleaseObject*> current_revisions(const std::vector<ReleaseObject>& releases);

/// Appends what `object` names in its annotation last-applied-configuration, its managedFields, the rules of webhooks,
/// and scaleTargetRef.
void read_used_apis(const value::Node& object, const std::string& kind, std::vector<UsedApi>& used);

/// Deployment kube-system/coredns, which kubeadm writes, or one that kubeadm takes for the DNS that runs.
struct CoreDnsObject {
    ObjectMeta meta;
    std::string image;                   ///< of its first container, "" if it has none
    bool is_dns = false;                 ///< its label says that it is the DNS of the cluster
    std::vector<std::string> differing;  ///< members of the Pod that kubeadm would write in another way
};

/// Service kube-system/kube-dns, which kubeadm writes.
struct DnsServiceObject {
    ObjectMeta meta;
    std::string address;  ///< spec.clusterIP, "" if it is not there
};

/// An object by which a program changes the cluster or its nodes: HelmRelease and Kustomization of Flux, Application of
/// Argo CD, Plan of Rancher's system-upgrade-controller.
struct OrderObject {
    ObjectMeta meta;
    std::string kind;
    bool is_active = false;  ///< neither suspended, nor by hand only, nor of another cluster
};
/// nullptr for a kind that is none of these; else its plural name with its group, "plans.upgrade.cattle.io". `group` ""
/// if the object does not say it.
[[nodiscard]] const char* order_kind(std::string_view kind, std::string_view group) noexcept;

/// The kind of a CustomResourceDefinition with this name if it is one of these, else nullptr.
[[nodiscard]] const char* order_of_definition(std::string_view name) noexcept;

/// A DaemonSet of kured, which reboots nodes.
struct KuredObject {
    ObjectMeta meta;
    std::string lock_owner;  ///< whose lock it is, "" if nobody holds it, it ends by itself, or others may, too
};
/// Whether an image is kured's: "REGISTRY/PATH/kured", with any tag or digest.
[[nodiscard]] bool is_kured(std::string_view image) noexcept;

/// Everything that was read, and which kinds were asked for.
struct Inventory {
    std::vector<NodeObject> nodes;
    std::vector<NodeObject> left_out;  ///< Nodes that an upgrade leaves as they are: their Pods are here, they are not
    std::vector<PodObject> pods;
    std::vector<ConfigMapObject> config_maps;
    std::vector<BudgetObject> budgets;
    std::vector<WebhookObject> webhooks;
    std::vector<EndpointsObject> endpoints;
    std::vector<ApiServiceObject> api_services;
    std::vector<DefinitionObject> definitions;
    std::vector<ReleaseObject> releases;
    std::vector<UsedApi> used_apis;
    std::vector<std::string> unread_releases;  ///< NAMESPACE/NAME of current ones with a text that cannot be read
    std::vector<CoreDnsObject> core_dns;
    std::vector<DnsServiceObject> dns_services;
    std::vector<OrderObject> orders;
    std::vector<KuredObject> kured_sets;  ///< live: of those alone that Pods name
    /// NAMESPACE/NAME of DaemonSets, live of those alone that Pods name; nullopt: none was asked for.
    std::optional<std::set<std::string>> daemon_sets;
    bool has_system_deployments = false;       ///< there is a Deployment of kube-system
    std::map<std::string, std::size_t, std::less<>> counts;  ///< objects of each kind, of kinds that are not kept, too
    bool is_live = false;                                    ///< from an API server
    /// Live: plural names of kinds that were not listed as a whole, with the reason.
    std::map<std::string, std::string, std::less<>> unlisted;
    std::optional<bool> is_admin;        ///< live: whether this user may do everything
    std::vector<std::string> lacking_rights;  ///< live: of those that an upgrade needs, as "create pods/eviction"
    std::optional<bool> has_policies;    ///< live: ValidatingAdmissionPolicy v1 is served

    /// "" if all objects of the kind ("Node") are here, else why that is not known.
    [[nodiscard]] std::string unknown_reason(std::string_view kind, std::string_view plural) const;
    /// "" if all Helm releases are here, else why that is not known.
    [[nodiscard]] std::string releases_unknown_reason() const;
    /// "" if the Pods of every namespace are here, else why that is not known.
    [[nodiscard]] std::string pods_unknown_reason() const;
};

/// Takes documents and lists of any kinds. Objects of kinds that are not needed are counted.
/// Faults: bad-object (what an object says in another form than its kind has), duplicate-object.
class InventorySink final : public value::ObjectSink {
public:
    [[nodiscard]] const value::Shape* shape(const value::Node& object, const value::Node* list) override;
    [[nodiscard]] bool take_item(value::Document& item, const value::Node& list) override;
    void take_document(const value::Document& document) override;

    /// Appends what was taken to `inventory`.
    void commit(Inventory& inventory, Diagnostics& diagnostics) &&;

private:
    Inventory taken_;
    Diagnostics faults_;
};

/// Reports objects of a kind and name that are there twice. To be called once all documents are read. Sorts nodes and
/// Pods.
void finish(Inventory& inventory, Diagnostics& diagnostics);

/// Appends a DaemonSet of a server to `kured_sets` if it is one of kured.
void take_kured(const value::Node& daemon_set, Inventory& inventory);

/// Appends to `used_apis` and `unread_releases` what current revisions have, and forgets that of others. To be called
/// once all revisions are read; `finish` does it.
void keep_release_apis(Inventory& inventory);

/// Moves the Nodes of these names from `nodes` to `left_out`. Returns the names that no Node has. Errors: usage
/// "bad-value" for a control plane.
std::vector<std::string> leave_out(Inventory& inventory, const std::vector<std::string>& names);

/// Whether `labels` satisfy every term.
[[nodiscard]] bool matches(const selector::LabelSelector& terms, const Labels& labels);

}  // namespace kmm::kubernetes
