// SPDX-License-Identifier: Apache-2.0
// Decoders of the single kinds and of the parts that kinds share. Internal to lib/api.
#pragma once

#include <vector>

#include "api/fields.hpp"
#include "api/types.hpp"
#include "value/object_stream.hpp"

namespace kmm::api {

enum class Residence { cluster, namespaced };
/// Which annotations are kept: thousands of Nodes have many that are nobody's business here.
enum class KeptAnnotations { all, of_kmm };

/// metadata: all ObjectMeta fields are known; name, namespace and labels are checked against Kubernetes' rules.
[[nodiscard]] ObjectMeta decode_meta(Fields& root, Residence residence, KeptAnnotations kept = KeptAnnotations::all);
[[nodiscard]] std::vector<Toleration> decode_tolerations(Fields& parent, std::string_view key);
[[nodiscard]] TlsOptions decode_tls(Fields fields);
[[nodiscard]] ModprobeSpec decode_modprobe(Fields fields);
/// The members of a ModuleConfig, none of which the worker's own file must have.
[[nodiscard]] ModuleConfig decode_config(Fields fields);
[[nodiscard]] NodeModule decode_node_module_fields(Fields fields);

/// The members of a Module's spec, which is also a ManagedClusterModule's spec.moduleSpec.
void decode_module_spec(Fields& spec, Module& module);
/// What readers can leave out of objects of `kind`; nullptr if nothing.
[[nodiscard]] const value::Shape* shape_of(std::string_view kind);

[[nodiscard]] Node decode_node(Scope& scope, const value::Node& root);
[[nodiscard]] Module decode_module(Scope& scope, const value::Node& root);
[[nodiscard]] NodeModulesConfig decode_node_modules_config(Scope& scope, const value::Node& root);
[[nodiscard]] ManagedClusterModule decode_managed_cluster_module(Scope& scope, const value::Node& root);
[[nodiscard]] ManagedCluster decode_managed_cluster(Scope& scope, const value::Node& root);
[[nodiscard]] PreflightValidation decode_preflight_validation(Scope& scope, const value::Node& root);
[[nodiscard]] Namespace decode_namespace(Scope& scope, const value::Node& root);
[[nodiscard]] Secret decode_secret(Scope& scope, const value::Node& root);
[[nodiscard]] ConfigMap decode_config_map(Scope& scope, const value::Node& root);
/// Pods and CustomResourceDefinitions are not ours to check: fields that are not needed are not looked at.
[[nodiscard]] Pod decode_pod(Scope& scope, const value::Node& root);
[[nodiscard]] PluginObject decode_daemon_set(Scope& scope, const value::Node& root);
[[nodiscard]] PluginObject decode_device_class(Scope& scope, const value::Node& root);
[[nodiscard]] ModuleImagesConfig decode_module_images_config(Scope& scope, const value::Node& root);
[[nodiscard]] ModuleBuildSignConfig decode_module_build_sign_config(Scope& scope, const value::Node& root);
[[nodiscard]] BootModuleConfig decode_boot_module_config(Scope& scope, const value::Node& root);
[[nodiscard]] CustomResourceDefinition decode_custom_resource_definition(Scope& scope, const value::Node& root);

}  // namespace kmm::api
