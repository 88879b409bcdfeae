// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/inventory/inventory.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kubernetes/inventory/node_role.hpp"
#include "kubernetes/inventory/object_reader.hpp"
#include "kubernetes/inventory/removed_apis.hpp"
#include "value/kind_phrase.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::string_view k_system = "kube-system";
constexpr const char* k_document_hint = "give documents as kubectl get -o json or -o yaml prints them";

selector::LabelSelector terms_of(ObjectReader& reader, const Node& selector) {
    selector::LabelSelector terms;
    for (auto& [key, text] : reader.labels(&selector, "matchLabels")) { terms.push_back({key, "In", {text}}); }
    for (const auto& each : reader.list(&selector, "matchExpressions")) {
        terms.push_back({reader.text(&each, "key"), reader.text(&each, "operator"), reader.texts(&each, "values")});
    }
    return terms;
}

std::optional<ObjectMeta> meta_of(ObjectReader& reader, const Node& object, const std::string& kind) {
    ObjectMeta meta;
    const Node* node = reader.mapping(&object, "metadata");
    meta.name = reader.text(node, "name");
    meta.ns = reader.text(node, "namespace");
    const auto uid = reader.text(node, "uid"), revision = reader.text(node, "resourceVersion");
    if (!uid.empty() && !revision.empty()) { meta.revision = fmt::format("{} {}", uid, revision); }
    if (meta.name.empty()) {
        reader.fault(object.mark(), "metadata.name is missing, expected the name of the object", k_document_hint);
        return std::nullopt;
    }
    reader.name_it(fmt::format("{} {}", kind, base::escape(meta.full_name())));
    meta.labels = reader.labels(node, "labels");
    meta.annotations = reader.labels(node, "annotations");
    std::erase_if(meta.annotations,
                  [](const auto& each) { return each.first == "kubectl.kubernetes.io/last-applied-configuration"; });
    meta.position = reader.position(object.mark());
    return meta;
}

NodeObject node_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    NodeObject node;
    node.meta = std::move(meta);
    node.unschedulable = reader.flag(reader.mapping(&object, "spec"), "unschedulable");
    const Node* status = reader.mapping(&object, "status");
    const Node* info = reader.mapping(status, "nodeInfo");
    node.kubelet = reader.text(info, "kubeletVersion");
    node.runtime = reader.text(info, "containerRuntimeVersion");
    node.system = reader.text(info, "operatingSystem");
    node.image = reader.text(info, "osImage");
    node.conditions = reader.conditions(status);
    node.allocatable = resources_of(reader.mapping(status, "allocatable"), "", node.unread_quantities);
    for (const auto& taint : reader.list(reader.mapping(&object, "spec"), "taints")) {
        node.taints.emplace_back(reader.text(&taint, "key"), reader.text(&taint, "effect"));
    }
    if (const Node* kubelet = info == nullptr ? nullptr : info->find("kubeletVersion")) {
        node.meta.position = reader.position(kubelet->mark());
    }
    return node;
}

BudgetObject budget_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    BudgetObject budget;
    budget.meta = std::move(meta);
    if (const Node* selector = reader.mapping(reader.mapping(&object, "spec"), "selector")) {
        budget.selector = terms_of(reader, *selector);
    }
    const Node* status = reader.mapping(&object, "status");
    budget.disruptions_allowed = reader.number(status, "disruptionsAllowed");
    budget.observed_generation = reader.number(status, "observedGeneration").value_or(0);
    budget.generation = reader.number(object.find("metadata"), "generation").value_or(0);
    budget.always_evicts_unhealthy =
        reader.text(reader.mapping(&object, "spec"), "unhealthyPodEvictionPolicy") == "AlwaysAllow";
    budget.current_healthy = reader.number(status, "currentHealthy").value_or(0);
    budget.desired_healthy = reader.number(status, "desiredHealthy").value_or(0);
    for (const auto& each : reader.conditions(status)) {
        if (each.type == "DisruptionAllowed" && each.reason == "SyncFailed") { budget.problem = each.message; }
    }
    return budget;
}

void read_webhooks(ObjectReader& reader, const Node& object, const ObjectMeta& meta,
                   std::vector<WebhookObject>& webhooks) {
    for (const auto& each : reader.list(&object, "webhooks")) {
        WebhookObject webhook;
        webhook.meta = meta;
        webhook.webhook = reader.text(&each, "name");
        webhook.fails_closed = reader.text(&each, "failurePolicy") != "Ignore";
        const Node* service = reader.mapping(reader.mapping(&each, "clientConfig"), "service");
        webhook.service_ns = reader.text(service, "namespace");
        webhook.service = reader.text(service, "name");
        if (const Node* selector = reader.mapping(&each, "namespaceSelector");
            selector != nullptr && !selector->members().empty()) {
            webhook.has_namespace_selector = true;
            webhook.namespace_selector = terms_of(reader, *selector);
        }
        const Node* objects = reader.mapping(&each, "objectSelector");
        webhook.has_object_selector = objects != nullptr && !objects->members().empty();
        webhook.has_match_conditions = !reader.list(&each, "matchConditions").empty();
        for (const auto& rule : reader.list(&each, "rules")) {
            webhook.rules.push_back({reader.texts(&rule, "apiGroups"), reader.texts(&rule, "resources"),
                                     reader.texts(&rule, "operations"), reader.text(&rule, "scope")});
        }
        webhooks.push_back(std::move(webhook));
    }
}

EndpointsObject endpoints_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    EndpointsObject made;
    made.meta = std::move(meta);
    if (const auto* service = find_label(made.meta.labels, "kubernetes.io/service-name")) { made.service = *service; }
    for (const auto& each : reader.list(&object, "endpoints")) {
        // A missing "ready" means ready, as the API says.
        made.endpoints.emplace_back(reader.flag(reader.mapping(&each, "conditions"), "ready", true),
                                    reader.text(&each, "nodeName"));
    }
    return made;
}

DefinitionObject definition_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    DefinitionObject made;
    made.meta = std::move(meta);
    const Node* spec = reader.mapping(&object, "spec");
    const Node* conversion = reader.mapping(spec, "conversion");
    made.converts_by_webhook = reader.text(conversion, "strategy") == "Webhook";
    const Node* service =
        reader.mapping(reader.mapping(reader.mapping(conversion, "webhook"), "clientConfig"), "service");
    made.service_ns = reader.text(service, "namespace");
    made.service = reader.text(service, "name");
    for (const auto& version : reader.list(spec, "versions")) {
        made.versions.push_back(reader.text(&version, "name"));
        if (reader.flag(&version, "served")) { made.served.push_back(made.versions.back()); }
    }
    made.stored = reader.texts(reader.mapping(&object, "status"), "storedVersions");
    return made;
}

bool is_list_kind(std::string_view kind) { return kind.ends_with("List"); }

/// `list_kind` "" for an object that stands alone.
void take_object(const value::Document& document, const Node& object, const std::string& list_kind, Inventory& taken,
                 Diagnostics& faults) {
    ObjectReader reader(document, faults, "the document");
    if (!object.is_mapping()) {
        reader.fault(object.mark(), fmt::format("expected an object, found {}", value::a_kind(object.kind())),
                     k_document_hint);
        return;
    }
    std::string kind = reader.text(&object, "kind");
    if (kind.empty() && is_list_kind(list_kind) && list_kind != "List") {
        kind = list_kind.substr(0, list_kind.size() - 4);
    }
    if (kind.empty()) {
        reader.fault(object.mark(), "kind is missing, expected an object of Kubernetes", k_document_hint);
        return;
    }
    // Lists may be in lists; what has a name is an object of a kind that is called so.
    if (is_list_kind(kind) && object.find("items") != nullptr && object.find_path({"metadata", "name"}) == nullptr) {
        for (const auto& item : reader.list(&object, "items")) { take_object(document, item, kind, taken, faults); }
        return;
    }
    reader.name_it(base::escape(kind));
    ++taken.counts[kind];
    read_used_apis(object, kind, taken.used_apis);
    static constexpr std::array<std::string_view, 13> k_kept{
        "Node", "Pod", "ConfigMap", "PodDisruptionBudget", "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration", "EndpointSlice", "APIService", "CustomResourceDefinition", "Secret", "Service",
        "Deployment", "DaemonSet"};
    const auto version = object.get_string({"apiVersion"});
    const bool is_order = order_kind(kind, std::string_view(version).substr(0, version.find('/'))) != nullptr;
    if (!is_order && std::find(k_kept.begin(), k_kept.end(), kind) == k_kept.end()) { return; }
    auto meta = meta_of(reader, object, kind);
    if (!meta) { return; }
    if (is_order) {
        taken.orders.push_back(order_of(object, std::move(*meta), kind));
        return;
    }
    if (kind == "Node") { taken.nodes.push_back(node_of(reader, object, std::move(*meta))); }
    else if (kind == "Pod") { taken.pods.push_back(pod_of(reader, object, std::move(*meta))); }
    else if (kind == "PodDisruptionBudget") { taken.budgets.push_back(budget_of(reader, object, std::move(*meta))); }
    else if (kind == "EndpointSlice") { taken.endpoints.push_back(endpoints_of(reader, object, std::move(*meta))); }
    else if (kind == "APIService") {
        taken.api_services.push_back({std::move(*meta), reader.conditions(reader.mapping(&object, "status"))});
    } else if (kind == "CustomResourceDefinition") {
        taken.definitions.push_back(definition_of(reader, object, std::move(*meta)));
    } else if (kind == "DaemonSet" && object.get_string({"apiVersion"}).starts_with("apps/")) {
        (taken.daemon_sets ? *taken.daemon_sets : taken.daemon_sets.emplace()).insert(meta->full_name());
        if (auto kured = kured_of(object, *meta)) { taken.kured_sets.push_back(std::move(*kured)); }
    } else if (kind == "Deployment") {
        taken.has_system_deployments |= meta->ns == k_system;
        if (meta->ns == k_system && (meta->name == "coredns" || has_label_of_dns(meta->labels))) {
            taken.core_dns.push_back(core_dns_of(reader, object, std::move(*meta)));
        }
    } else if (kind == "ConfigMap") {
        ConfigMapObject map{std::move(*meta), {}};
        if (map.meta.ns == k_system) {
            for (auto& [key, text] : reader.labels(&object, "data")) { map.data.emplace(key, std::move(text)); }
        }
        take_release(object, map.meta, false, taken);
        taken.config_maps.push_back(std::move(map));
    } else if (kind == "Secret") {
        take_release(object, *meta, true, taken);
    } else if (kind == "Service") {
        auto address = object.get_string({"spec", "clusterIP"});
        if (meta->full_name() == "kube-system/kube-dns") { taken.dns_services.push_back({*meta, std::move(address)}); }
    } else {
        read_webhooks(reader, object, *meta, taken.webhooks);
    }
}

const value::Shape k_metadata_shape{{"managedFields"}, {}};
const value::Shape k_container_shape{{"env", "envFrom", "livenessProbe", "readinessProbe", "startupProbe",
                                      "volumeMounts", "lifecycle", "securityContext"},
                                     {}};
const value::Shape k_pod_spec_shape{{"affinity", "ephemeralContainers"},
                                    {{"containers", &k_container_shape}, {"initContainers", &k_container_shape}}};
const value::Shape k_pod_status_shape{{"initContainerStatuses", "podIPs", "hostIPs"}, {}};
const value::Shape k_pod_shape{
    {}, {{"metadata", &k_metadata_shape}, {"spec", &k_pod_spec_shape}, {"status", &k_pod_status_shape}}};
const value::Shape k_node_status_shape{{"images", "volumesInUse", "volumesAttached", "runtimeHandlers"}, {}};
const value::Shape k_node_shape{{}, {{"metadata", &k_metadata_shape}, {"status", &k_node_status_shape}}};
const value::Shape k_version_shape{{"schema", "additionalPrinterColumns"}, {}};
const value::Shape k_definition_spec_shape{{"names"}, {{"versions", &k_version_shape}}};
const value::Shape k_definition_shape{{}, {{"metadata", &k_metadata_shape}, {"spec", &k_definition_spec_shape}}};
const value::Shape k_release_shape{{}, {}, "release"};
const value::Shape k_secret_shape{{"stringData"}, {{"metadata", &k_metadata_shape}, {"data", &k_release_shape}}};
const value::Shape k_other_shape{{"binaryData"}, {{"metadata", &k_metadata_shape}}};
/// Who has written it, in which version: of kinds with versions that go.
const value::Shape k_manager_shape{{"fieldsV1"}, {}};
const value::Shape k_managed_metadata_shape{{}, {{"managedFields", &k_manager_shape}}};
const value::Shape k_managed_shape{{"binaryData"}, {{"metadata", &k_managed_metadata_shape}}};

const value::Shape* shape_of_kind(std::string_view kind) {
    if (kind == "Pod") { return &k_pod_shape; }
    if (kind == "Node") { return &k_node_shape; }
    if (kind == "CustomResourceDefinition") { return &k_definition_shape; }
    if (kind == "Secret") { return &k_secret_shape; }
    if (is_list_kind(kind)) { return nullptr; }
    return is_removable(kind) ? &k_managed_shape : &k_other_shape;
}

template <typename T>
void append_all(std::vector<T>& to, std::vector<T>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename T>
void report_doubles(std::vector<T>& objects, std::string_view kind, Diagnostics& diagnostics) {
    const auto key = [](const T& object) { return std::tie(object.meta.ns, object.meta.name); };
    std::stable_sort(objects.begin(), objects.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
    // A dump may have one object in two files, as must-gather has each Pod.
    const auto is_same = [&](const T& a, const T& b) {
        return key(a) == key(b) && !a.meta.revision.empty() && a.meta.revision == b.meta.revision;
    };
    objects.erase(std::unique(objects.begin(), objects.end(), is_same), objects.end());
    for (std::size_t i = 1; i < objects.size(); ++i) {
        if (key(objects[i - 1]) != key(objects[i])) { continue; }
        Diagnostic made;
        made.code = "duplicate-object";
        made.message = fmt::format("{} {} appears twice, first at {}", kind, base::escape(objects[i].meta.full_name()),
                                   objects[i - 1].meta.position.to_string());
        made.position = objects[i].meta.position;
        made.hint = "give each object once: one dump of one cluster";
        diagnostics.push_back(std::move(made));
    }
}

}  // namespace

const std::string* find_label(const Labels& labels, std::string_view key) noexcept {
    const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& each) { return each.first == key; });
    return found == labels.end() ? nullptr : &found->second;
}

std::string with_reason(std::string_view what, std::string_view why) {
    constexpr std::size_t k_max = 160;
    why = base::trim(why.substr(0, why.find('\n')));
    if (why.empty()) { return std::string(what); }
    const bool cut = why.size() > k_max;
    return fmt::format("{}{}{}{}", what, what.empty() ? "" : ": ", why.substr(0, k_max), cut ? "..." : "");
}

std::optional<ReleaseObject> release_of(ObjectMeta meta) {
    const auto* owner = find_label(meta.labels, "owner");
    const auto* name = find_label(meta.labels, "name");
    const auto* status = find_label(meta.labels, "status");
    const auto* revision = find_label(meta.labels, "version");
    if (owner == nullptr || *owner != "helm" || name == nullptr) { return std::nullopt; }
    ReleaseObject release;
    release.release = *name;
    if (status != nullptr) { release.status = *status; }
    if (revision != nullptr) { release.revision = base::parse_number<std::int64_t>(*revision).value_or(0); }
    release.meta = std::move(meta);
    return release;
}

bool NodeObject::is_control_plane() const noexcept {
    return kubernetes::is_control_plane([&](auto key) { return find_label(meta.labels, key) != nullptr; });
}

std::string Inventory::unknown_reason(std::string_view kind, std::string_view plural) const {
    if (is_live) {
        const auto found = unlisted.find(plural);
        return found == unlisted.end() ? std::string() : found->second;
    }
    return counts.contains(kind) ? std::string() : fmt::format("the documents contain no {}", kind);
}

std::string Inventory::releases_unknown_reason() const { return unknown_reason("Secret", "secrets"); }

std::string Inventory::pods_unknown_reason() const {
    auto reason = unknown_reason("Pod", "pods");
    if (is_live || !reason.empty()) { return reason; }
    const auto& ns = pods.front().meta.ns;
    const bool one = std::all_of(pods.begin(), pods.end(), [&](const auto& pod) { return pod.meta.ns == ns; });
    return one ? fmt::format("the documents contain Pods of namespace {} only; dump them with kubectl get pods -A",
                             base::escape(ns))
               : std::string();
}

const value::Shape* InventorySink::shape(const value::Node& object, const value::Node* list) {
    if (const Node* kind = object.find("kind")) { return kind->is_string() ? shape_of_kind(kind->text()) : nullptr; }
    const std::string list_kind = list == nullptr ? std::string() : list->get_string({"kind"});
    return is_list_kind(list_kind) && list_kind != "List"
               ? shape_of_kind(std::string_view(list_kind).substr(0, list_kind.size() - 4))
               : nullptr;
}

bool InventorySink::take_item(value::Document& item, const value::Node& list) {
    const std::string list_kind = list.get_string({"kind"});
    if (!is_list_kind(list_kind)) { return false; }
    take_object(item, item.root, list_kind, taken_, faults_);
    return true;
}

void InventorySink::take_document(const value::Document& document) {
    take_object(document, document.root, "", taken_, faults_);
}

void InventorySink::commit(Inventory& inventory, Diagnostics& diagnostics) && {
    append_all(inventory.nodes, taken_.nodes);
    append_all(inventory.pods, taken_.pods);
    append_all(inventory.config_maps, taken_.config_maps);
    append_all(inventory.budgets, taken_.budgets);
    append_all(inventory.webhooks, taken_.webhooks);
    append_all(inventory.endpoints, taken_.endpoints);
    append_all(inventory.api_services, taken_.api_services);
    append_all(inventory.definitions, taken_.definitions);
    append_all(inventory.releases, taken_.releases);
    append_all(inventory.used_apis, taken_.used_apis);
    append_all(inventory.unread_releases, taken_.unread_releases);
    append_all(inventory.core_dns, taken_.core_dns);
    append_all(inventory.dns_services, taken_.dns_services);
    append_all(inventory.orders, taken_.orders);
    append_all(inventory.kured_sets, taken_.kured_sets);
    if (taken_.daemon_sets) {
        if (inventory.daemon_sets) { taken_.daemon_sets->merge(*inventory.daemon_sets); }
        inventory.daemon_sets = std::move(taken_.daemon_sets);
    }
    inventory.has_system_deployments |= taken_.has_system_deployments;
    for (const auto& [kind, count] : taken_.counts) { inventory.counts[kind] += count; }
    append_all(diagnostics, faults_);
}

void finish(Inventory& inventory, Diagnostics& diagnostics) {
    report_doubles(inventory.nodes, "Node", diagnostics);
    report_doubles(inventory.pods, "Pod", diagnostics);
    report_doubles(inventory.config_maps, "ConfigMap", diagnostics);
    report_doubles(inventory.budgets, "PodDisruptionBudget", diagnostics);
    report_doubles(inventory.endpoints, "EndpointSlice", diagnostics);
    report_doubles(inventory.api_services, "APIService", diagnostics);
    report_doubles(inventory.definitions, "CustomResourceDefinition", diagnostics);
    keep_release_apis(inventory);
}

std::vector<std::string> leave_out(Inventory& inventory, const std::vector<std::string>& names) {
    std::vector<std::string> unknown;
    for (const auto& name : names) {
        const auto found = std::find_if(inventory.nodes.begin(), inventory.nodes.end(),
                                        [&](const auto& node) { return node.meta.name == name; });
        if (found == inventory.nodes.end()) {
            unknown.push_back(name);
            continue;
        }
        if (found->is_control_plane()) {
            throw Error(Exit::usage, "bad-value", fmt::format("node {} is a control plane: it is not left out", name))
                .hint("all control planes of a cluster are upgraded");
        }
        inventory.left_out.push_back(std::move(*found));
        inventory.nodes.erase(found);
    }
    return unknown;
}

bool matches(const selector::LabelSelector& terms, const Labels& labels) {
    return selector::matches(terms, [&](const std::string& key) { return find_label(labels, key); });
}

}  // namespace kmm::kubernetes
