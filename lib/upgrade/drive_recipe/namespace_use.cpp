// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/namespace_use.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cluster/seam/object_facts.hpp"
#include "value/object_stream.hpp"

namespace kmm::drive {
namespace {

using value::Node;

kube::Resource namespaced(const char* group, const char* plural, const char* kind) {
    return {group, "v1", plural, kind, kube::Scope::namespaced};
}

const std::vector<kube::Resource>& kinds_of_kubernetes() {
    static const std::vector<kube::Resource> all{
        kube::resources::k_pods,
        namespaced("apps", "deployments", "Deployment"),
        kube::resources::k_daemon_sets,
        namespaced("apps", "statefulsets", "StatefulSet"),
        namespaced("batch", "cronjobs", "CronJob"),
        namespaced("batch", "jobs", "Job"),
        namespaced("", "services", "Service"),
        namespaced("", "persistentvolumeclaims", "PersistentVolumeClaim"),
        kube::resources::k_config_maps,
        kube::resources::k_secrets,
        namespaced("build.openshift.io", "buildconfigs", "BuildConfig"),
        namespaced("image.openshift.io", "imagestreams", "ImageStream"),
        // Their drivers would be unloaded.
        kube::resources::k_modules,
    };
    return all;
}

/// What Kubernetes, OpenShift or Istio put into every Namespace, and what they put back when it is deleted.
bool is_of_every_namespace(const kube::Resource& kind, const Node& object) {
    const auto name = object.get_string({"metadata", "name"});
    if (kind.kind == "ConfigMap")
        return name == "kube-root-ca.crt" || name == "openshift-service-ca.crt" || name == "istio-ca-root-cert";
    if (kind.kind == "Secret")
        return !cluster::annotation_of(object, "kubernetes.io/service-account.name").empty() ||
               !cluster::annotation_of(object, "openshift.io/internal-registry-auth-token.service-account").empty();
    // The Operator Lifecycle Manager copies these into all Namespaces.
    return object.find_path({"metadata", "labels", "olm.copiedFrom"}) != nullptr;
}

/// A lock of an operator is nobody's data.
bool is_lock(const Node& object) {
    return !cluster::annotation_of(object, "control-plane.alpha.kubernetes.io/leader").empty();
}

bool has_owner(const Node& object) {
    const auto* owners = object.find_path({"metadata", "ownerReferences"});
    return owners != nullptr && !owners->items().empty();
}

void note_objects(kube::Client& client, const kube::Resource& kind, const std::string& space,
                  std::vector<std::string>& found) {
    const kube::ListQuery query{space, "", "", kube::ListQuery::Content::metadata};
    for (const auto& object : client.list_all(kind, query)) {
        if (!object.get_string({"metadata", "deletionTimestamp"}).empty()) continue;
        const bool goes_with_owner = kind.kind != "Pod" && has_owner(object);
        if (goes_with_owner || is_of_every_namespace(kind, object) || is_lock(object)) continue;
        found.push_back(fmt::format("{} {}/{}", kind.kind, space, object.get_string({"metadata", "name"})));
    }
}

/// Definitions may have megabytes of them.
const value::Shape& without_schemas() {
    static const value::Shape version{{"schema", "additionalPrinterColumns"}, {}};
    static const value::Shape spec{{"conversion"}, {{"versions", &version}}};
    static const value::Shape metadata{{"managedFields", "annotations"}, {}};
    static const value::Shape definition{{"status"}, {{"metadata", &metadata}, {"spec", &spec}}};
    return definition;
}

}  // namespace

std::optional<kube::Resource> served_kind(const Node& definition) {
    const auto* versions = definition.find_path({"spec", "versions"});
    if (versions == nullptr) return std::nullopt;
    for (const auto& version : versions->items())
        if (const auto* served = version.find("served"); served == nullptr || served->as_bool() != false)
            return kube::Resource{definition.get_string({"spec", "group"}), version.get_string({"name"}),
                                  definition.get_string({"spec", "names", "plural"}),
                                  definition.get_string({"spec", "names", "kind"}),
                                  definition.get_string({"spec", "scope"}) == "Namespaced" ? kube::Scope::namespaced
                                                                                           : kube::Scope::cluster};
    return std::nullopt;
}

NamespaceUse use_of_namespace(kube::Client& client, const std::string& name) {
    NamespaceUse use;
    for (const auto& kind : kinds_of_kubernetes())
        if (client.serves(kind)) note_objects(client, kind, name, use.objects);
    const auto unless_forbidden = [&](const std::string& kind, const auto& act) {
        try {
            act();
        } catch (const Error& error) {
            if (error.code() != "forbidden") throw;
            use.hidden.push_back(kind);
        }
    };
    std::vector<Node> definitions;
    if (client.serves(kube::resources::k_custom_resource_definitions))
        unless_forbidden("custom resources", [&] {
            definitions =
                client.list_all(kube::resources::k_custom_resource_definitions, {}, nullptr, &without_schemas());
        });
    client.forget_served();  // definitions come and go
    for (const auto& definition : definitions) {
        const auto kind = served_kind(definition);
        if (!kind || kind->scope != kube::Scope::namespaced || !client.serves(*kind)) continue;
        if (kind->full_name() == kube::resources::k_modules.full_name()) continue;  // noted above
        unless_forbidden(kind->full_name(), [&] { note_objects(client, *kind, name, use.objects); });
    }
    return use;
}

}  // namespace kmm::drive
