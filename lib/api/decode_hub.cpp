// SPDX-License-Identifier: Apache-2.0
// Kinds of hubs, and those that only admission rules look at. Fields of KMM's kinds: kmm.schema; of others: Open
// Cluster Management's cluster/v1, core/v1 Namespace.
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/names.hpp"
#include "api/schema_check.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// "spec.moduleSpec.x" as "spec.x": the rules of Modules ask for a Module's paths.
std::string as_module_path(const std::string& path) {
    constexpr std::string_view prefix = "spec.moduleSpec";
    return path.starts_with(prefix) ? "spec" + path.substr(prefix.size()) : path;
}

Places as_module_places(Places places) {
    Places result;
    for (auto& [path, position] : places) { result.emplace(as_module_path(path), std::move(position)); }
    return result;
}

/// The Module is made in that namespace of each cluster.
void check_spoke_namespace(const Fields& spec, const std::string& name) {
    const value::Node* node = spec.node().find("spokeNamespace");
    if (node == nullptr || !node->is_string() || is_dns1123_label(name)) { return; }
    spec.scope().fault("bad-value", fmt::format("spec.spokeNamespace \"{}\" is not valid", base::escape(name)),
                       node->mark(), "a namespace has lower-case letters, digits and '-', at most 63 of them");
}

}  // namespace

ManagedClusterModule decode_managed_cluster_module(Scope& scope, const value::Node& root) {
    ManagedClusterModule object;
    Places places;
    scope.places = &places;
    scope.misread = &object.module.misread;
    Fields fields(scope, root, "");
    object.meta = decode_meta(fields, Residence::cluster);
    check_object(scope, root);
    if (auto spec = fields.child("spec")) {
        object.spoke_namespace = spec->string("spokeNamespace");
        check_spoke_namespace(*spec, object.spoke_namespace);
        object.selector = spec->string_map("selector");
        if (auto module = spec->child("moduleSpec")) {
            object.module_spec = module->node();
            decode_module_spec(*module, object.module);
        }
    }
    scope.places = nullptr;
    scope.misread = nullptr;
    for (auto& path : object.module.misread) { path = as_module_path(path); }
    object.module.meta.origin = object.meta.origin;
    object.module.places = as_module_places(std::move(places));
    return object;
}

ManagedCluster decode_managed_cluster(Scope& scope, const value::Node& root) {
    ManagedCluster object;
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind"});
    object.meta = decode_meta(fields, Residence::cluster);
    if (auto spec = fields.child("spec")) {
        spec->allow({"hubAcceptsClient", "leaseDurationSeconds", "managedClusterClientConfigs", "taints"});
        spec->done();
    }
    if (auto status = fields.child("status")) {
        for (const auto& item : status->items("clusterClaims")) {
            Fields claim(scope, *item.node, item.path);
            const std::string name = claim.string("name", Need::required);
            const std::string text = claim.string("value", Need::required);
            claim.done();
            if (!name.empty() && !object.claims.emplace(name, text).second) {
                scope.fault("bad-value", fmt::format("{}: there are two claims {}", item.path, base::escape(name)),
                            item.node->mark(), "remove one of them");
            }
        }
        status->allow({"allocatable", "capacity", "conditions", "version", "managedNamespaces"});
        status->done();
    }
    fields.done();
    return object;
}

PreflightValidation decode_preflight_validation(Scope& scope, const value::Node& root) {
    PreflightValidation object;
    Fields fields(scope, root, "");
    object.kind = root.get_string({"kind"});
    if (object.kind.empty()) { object.kind = "PreflightValidation"; }  // an item of a list
    object.meta = decode_meta(fields, Residence::cluster);
    object.kernel_origin = object.meta.origin;
    check_object(scope, root);
    if (auto spec = fields.child("spec")) {
        object.kernel_version = spec->string("kernelVersion");
        const value::Node* kernel = spec->node().find("kernelVersion");
        if (kernel != nullptr && kernel->is_string()) { object.kernel_origin = spec->position_of("kernelVersion"); }
    }
    return object;
}

BootModuleConfig decode_boot_module_config(Scope& scope, const value::Node& root) {
    BootModuleConfig object;
    Fields fields(scope, root, "");
    object.meta = decode_meta(fields, Residence::namespaced);
    check_object(scope, root);
    return object;
}

Namespace decode_namespace(Scope& scope, const value::Node& root) {
    Namespace object;
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind", "spec", "status"});
    object.meta = decode_meta(fields, Residence::cluster);
    if (const value::Node* labels = root.find_path({"metadata", "labels"}); labels != nullptr) {
        for (const auto& label : labels->members()) {
            if (label.key.starts_with("pod-security.kubernetes.io/")) {
                object.label_places.emplace(label.key, scope.document.position(label.value.mark()));
            }
        }
    }
    fields.done();
    return object;
}

}  // namespace kmm::api
