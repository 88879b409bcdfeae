// SPDX-License-Identifier: Apache-2.0
// Typed Kubernetes and KMM kinds, as far as this toolkit decides on them. Field names are the API's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/label_map.hpp"
#include "api/shared.hpp"
#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Where the fields of an object stand, by path ("spec.moduleLoader.container.kernelMappings[0].regexp",
/// "metadata.labels[a/b]"): the place of the value.
using Places = std::map<std::string, Position, std::less<>>;

/// metadata of any object. `origin` is where the object starts in the user's document.
struct ObjectMeta {
    std::string name;
    std::string namespace_;  ///< "" for cluster-scoped kinds
    std::string uid;
    Labels labels;
    Labels annotations;
    std::vector<std::string> finalizers;
    Position origin;
    bool deleting = false;  ///< deletionTimestamp is set
    std::uint64_t resource_version = 0;  ///< 0 if it is not said, or not read (Nodes, NodeModulesConfigs)

    /// "NAMESPACE/NAME", "NAME" of what has no namespace.
    [[nodiscard]] std::string full_name() const { return namespace_.empty() ? name : namespace_ + "/" + name; }
};

struct Taint {
    std::string key, value, effect;
    friend bool operator==(const Taint&, const Taint&) = default;
};

/// core/v1 Toleration. `operator_` "" means Equal.
struct Toleration {
    std::string key, operator_, value, effect;
    std::optional<std::int64_t> toleration_seconds;
    friend bool operator==(const Toleration&, const Toleration&) = default;
};

/// core/v1 Node, the fields that decisions need.
struct Node {
    ObjectMeta meta;
    std::vector<Taint> taints;
    bool unschedulable = false;
    std::string kernel_version;  ///< status.nodeInfo.kernelVersion as reported, "+" included
    std::string boot_id;
    std::string architecture;    ///< Go name, e.g. "amd64"
    std::string os_image, machine_id;
    std::optional<std::string> ready;  ///< status of condition Ready: "True", "False", "Unknown"; nullopt if absent
};

struct ModprobeArgs {
    std::vector<std::string> load, unload;
    friend bool operator==(const ModprobeArgs&, const ModprobeArgs&) = default;
};

/// modprobe of a Module's container and of a ModuleConfig (the same upstream type).
struct ModprobeSpec {
    std::string module_name;
    std::vector<std::string> parameters;
    std::string dir_name;  ///< "" when absent; consumers default to "/opt" where the CRD does
    std::optional<ModprobeArgs> args, raw_args;
    std::string firmware_path;
    std::vector<std::string> modules_loading_order;
    std::string modprobed_dir;  ///< directory of modprobe.d files in the image; KMM has it since v2.7
    friend bool operator==(const ModprobeSpec&, const ModprobeSpec&) = default;
};

struct TlsOptions {
    bool insecure = false;
    bool insecure_skip_tls_verify = false;
    friend bool operator==(const TlsOptions&, const TlsOptions&) = default;
};

struct BuildArg {
    std::string name, value;
    friend bool operator==(const BuildArg&, const BuildArg&) = default;
};

struct Build {
    std::string dockerfile_config_map;
    std::vector<BuildArg> build_args;
    TlsOptions base_image_registry_tls;
    std::vector<std::string> secrets;
    std::string kaniko_tag;
    Labels selector;
    friend bool operator==(const Build&, const Build&) = default;
};

struct Sign {
    std::string cert_secret, key_secret, unsigned_image;
    TlsOptions unsigned_image_registry_tls;
    std::vector<std::string> files_to_sign;
    friend bool operator==(const Sign&, const Sign&) = default;
};

struct KernelMapping {
    std::string literal, regexp;  ///< exactly one is set in a valid Module
    std::string container_image;  ///< "" inherits the container's
    std::optional<TlsOptions> registry_tls;
    std::optional<std::vector<std::string>> in_tree_modules_to_remove;
    std::string in_tree_module_to_remove;
    std::optional<Build> build;
    std::optional<Sign> sign;
    Position origin;           ///< the mapping's own place
    Position matcher_origin;   ///< place of the literal's or regexp's value
};

struct ModuleLoaderContainer {
    std::string version;  ///< "" = unversioned
    std::string container_image;
    std::string image_pull_policy;
    TlsOptions registry_tls;
    std::optional<std::vector<std::string>> in_tree_modules_to_remove;
    std::string in_tree_module_to_remove;
    std::optional<Build> build;
    std::optional<Sign> sign;
    ModprobeSpec modprobe;
    std::vector<KernelMapping> kernel_mappings;
    Position version_origin;  ///< place of the version's value, unset if absent
};

struct ModuleLoader {
    std::string service_account_name;
    ModuleLoaderContainer container;
};

/// kmm.sigs.x-k8s.io/v1beta1 Module. devicePlugin and dra are kept as trees until their renderers need them typed.
struct Module {
    ObjectMeta meta;
    Labels selector;
    std::vector<Toleration> tolerations;
    std::string image_repo_secret;  ///< name of the pull Secret in the Module's namespace, "" if none
    std::optional<ModuleLoader> module_loader;
    std::optional<value::Node> device_plugin, dra;
    Places places;  ///< every field that was read; empty for a Module made by a program
    std::vector<std::string> misread;  ///< paths of values of a wrong type, which were reported and are read as absent

    /// "NAMESPACE/NAME"; "NAME" where the document leaves the namespace out, which is reported.
    [[nodiscard]] std::string full_name() const { return meta.full_name(); }
};

/// The worker's input (KMM's ModuleConfig).
struct ModuleConfig {
    std::string container_image;     ///< template-expanded
    std::string image_pull_policy;
    bool insecure_pull = false;
    std::string kernel_version;      ///< node kernel with one trailing "+" trimmed
    std::vector<std::string> in_tree_modules_to_remove;
    std::string in_tree_module_to_remove;  ///< deprecated singular; "" where there is a list, even an empty one, which
                                           ///< takes its place
    ModprobeSpec modprobe;
    friend bool operator==(const ModuleConfig&, const ModuleConfig&) = default;
};

/// One entry of NodeModulesConfig spec.modules or status.modules. What entries of many nodes have in common they share.
struct NodeModule {
    std::string name, namespace_;
    Shared<ModuleConfig> config;
    std::string service_account_name;
    std::string image_repo_secret;
    Shared<std::vector<Toleration>> tolerations;
    std::string version;
    std::string boot_id;  ///< status entries only
    friend bool operator==(const NodeModule&, const NodeModule&) = default;
};

/// kmm.sigs.x-k8s.io/v1beta1 NodeModulesConfig, named like its node.
struct NodeModulesConfig {
    ObjectMeta meta;
    std::vector<NodeModule> spec;
    std::vector<NodeModule> status;
};

struct Secret {
    ObjectMeta meta;
    std::string type;
    std::map<std::string, std::string> data;  ///< base64 already decoded, stringData merged. Never print it.
};

struct ConfigMap {
    ObjectMeta meta;
    std::map<std::string, std::string> data;
    std::vector<std::string> binary_keys;        ///< of binaryData
    std::map<std::string, Position> places = {};  ///< of the values of data, in ConfigMaps of KMM's operator only
};

/// hub.kmm.sigs.x-k8s.io/v1beta1 ManagedClusterModule.
struct ManagedClusterModule {
    ObjectMeta meta;
    Module module;  ///< spec.moduleSpec; without name and namespace, its places are those of a Module's spec
    std::string spoke_namespace;
    Labels selector;  ///< of ManagedClusters
    value::Node module_spec;  ///< spec.moduleSpec as it was read, null if absent
};

/// cluster.open-cluster-management.io/v1 ManagedCluster, as far as KMM's hub looks at one.
struct ManagedCluster {
    ObjectMeta meta;
    std::map<std::string, std::string> claims;  ///< status.clusterClaims
};

/// kmm.sigs.x-k8s.io PreflightValidation and, on OpenShift, PreflightValidationOCP, v1beta1 and v1beta2.
struct PreflightValidation {
    ObjectMeta meta;
    std::string kind;
    std::string kernel_version;
    Position kernel_origin;  ///< of the value, or of the object if it is absent
};

/// KMM's own record of a Module's images, named like the Module (kmm.sigs.x-k8s.io/v1beta1, since v2.4).
struct ModuleImagesConfig {
    ObjectMeta meta;
    std::map<std::string, std::string>
        states;  ///< by image: Exists, DoesNotExist, NeedsBuilding or NeedsSigning; "" for none so far
};

/// KMM's own record of builds and signings, named like the Module (kmm.sigs.x-k8s.io/v1beta1, since v2.4).
struct ModuleBuildSignConfig {
    struct Result {
        std::string image, action, status;  ///< action: BuildImage or SignImage; status: Success or Failure
    };
    ObjectMeta meta;
    std::vector<Result> results;
};

/// kmm.sigs.x-k8s.io/v1beta1 BootModuleConfig, which KMM has on OpenShift only. It is checked, nothing is decided from
/// it.
struct BootModuleConfig {
    ObjectMeta meta;
};

struct Namespace {
    ObjectMeta meta;
    std::map<std::string, Position> label_places = {};  ///< of the labels pod-security.kubernetes.io/*
};

/// core/v1 Pod, as far as KMM's decisions look at one: worker, pull, build and sign Pods, and those of device plugins
/// and DRA drivers.
struct Pod {
    ObjectMeta meta;
    std::string node_name;
    std::string phase;                 ///< "Pending", "Running", "Succeeded", "Failed", "Unknown" or ""
    std::int64_t worker_restarts = 0;  ///< restartCount of the container "worker", 0 if there is none
    struct Problem {
        std::string container;        ///< "" for the Pod as a whole
        std::string reason, message;  ///< as Kubernetes writes them
    };
    std::vector<Problem>
        problems;  ///< containers that wait or failed, init containers first; then why it is not scheduled
};

/// What KMM makes for a Module's device plugin or DRA driver: apps/v1 DaemonSet, resource.k8s.io/v1 DeviceClass.
struct PluginObject {
    ObjectMeta meta;
    value::Node spec;  ///< as it was read, null if absent
};

/// apiextensions.k8s.io/v1 CustomResourceDefinition: which fields `spec` of the kind has, over all versions. They tell
/// which KMM a cluster has.
struct CustomResourceDefinition {
    ObjectMeta meta;
    std::vector<std::string> spec_fields;  ///< sorted, unique
};

/// A part of an object of KMM's kinds that not every release of KMM knows or requires. Releases are minor versions of
/// v2.
struct ReleaseMark {
    enum class What {
        kind,
        field,
        missing
    };                    ///< the kind or a field is known, or a field that is missing is required, in those releases
    std::string subject;  ///< "Module drivers/hello"
    std::string path;     ///< "" for a kind
    Position position;
    unsigned since = 0, until = 0;  ///< from `since` on and before `until`
    What what = What::field;
    bool by_operator =
        false;  ///< of a kind that KMM's operator writes; see has_operator_mark
};

/// Whether there is a mark of this sort at an object that KMM's operator writes. Fleets have many of them, all of one
/// release: the first mark of a sort does for them.
[[nodiscard]] bool has_operator_mark(const std::vector<ReleaseMark>& marks, ReleaseMark::What what, unsigned since,
                                     unsigned until);

/// An object of KMM that another object holds to have it made elsewhere: a ManifestWork, a policy, a template.
struct WrappedObject {
    value::Document document;  ///< the object alone
    std::string holder;        ///< "Policy fleet/drivers"
    bool is_partial = false;   ///< a policy merges it into one that may exist
    bool is_template = false;  ///< its texts are filled in before it is made
};

/// Everything read from a source, sorted by (namespace, name) within each kind.
struct Objects {
    std::vector<Node> nodes;
    std::vector<Module> modules;
    std::vector<NodeModulesConfig> node_modules_configs;
    std::vector<Secret> secrets;
    std::vector<ConfigMap> config_maps;
    std::vector<ManagedClusterModule> managed_cluster_modules;
    std::vector<ManagedCluster> managed_clusters;
    std::vector<PreflightValidation> preflight_validations;
    std::vector<Namespace> namespaces;
    std::vector<Pod> pods;
    std::vector<CustomResourceDefinition> custom_resource_definitions;
    std::vector<PluginObject>
        daemon_sets;  ///< those with the label of a Module's name; others are nobody's business here
    std::vector<PluginObject> device_classes;
    std::vector<ModuleImagesConfig> module_images_configs;
    std::vector<ModuleBuildSignConfig> module_build_sign_configs;
    std::vector<BootModuleConfig> boot_module_configs;
    std::vector<value::Document>
        operator_configs;  ///< documents that are the operator's controller_config.yaml, in reading order
    std::vector<value::Document> recipes;      ///< SpecialResources and their like, in reading order: not decoded
    std::vector<ReleaseMark> release_marks;    ///< in reading order
    std::vector<Module> doubles;  ///< Modules that another document had defined: checked, never planned
    std::vector<WrappedObject> wrapped;  ///< in reading order: checked, never planned
};

}  // namespace kmm::api
