// SPDX-License-Identifier: Apache-2.0
// Source of the table: Kubernetes 1.34 api/openapi-spec/swagger.json (definitions io.k8s.api.*) and KMM's v1beta1 CRD
// of NodeModulesConfig, whole types where render uses them.
#include "unit/render/schema.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace schema {

namespace {

using namespace kmm;

/// One type a line: NAME: FIELD[!] TYPE, ... with ! for required fields. Types: s string, b boolean, i integer, q
/// quantity, t time, any, {T} mapping of T, [T] list of T, or the name of another line.
constexpr std::string_view k_table = R"(
v1/Namespace: apiVersion! s, kind! s, metadata! Meta, spec NamespaceSpec
NamespaceSpec: finalizers [s]
v1/ServiceAccount: apiVersion! s, kind! s, metadata! Meta, automountServiceAccountToken b, imagePullSecrets [Local], secrets [any]
v1/Node: apiVersion! s, kind! s, metadata! Meta, spec any, status any
v1/Pod: apiVersion! s, kind! s, metadata! Meta, spec! PodSpec
apps/v1/DaemonSet: apiVersion! s, kind! s, metadata! Meta, spec! DaemonSetSpec
DaemonSetSpec: selector! Selector, template! Template, minReadySeconds i, revisionHistoryLimit i, updateStrategy any
Selector: matchLabels {s}, matchExpressions [any]
Template: metadata Meta, spec! PodSpec
resource.k8s.io/v1/DeviceClass: apiVersion! s, kind! s, metadata! Meta, spec! DeviceClassSpec
DeviceClassSpec: config [DeviceConfig], extendedResourceName s, selectors [DeviceSelector]
DeviceConfig: opaque Opaque
Opaque: driver! s, parameters! any
DeviceSelector: cel Cel
Cel: expression! s
rbac.authorization.k8s.io/v1/ClusterRole: apiVersion! s, kind! s, metadata! Meta, rules [Rule], aggregationRule any
rbac.authorization.k8s.io/v1/Role: apiVersion! s, kind! s, metadata! Meta, rules [Rule]
rbac.authorization.k8s.io/v1/ClusterRoleBinding: apiVersion! s, kind! s, metadata! Meta, roleRef! RoleRef, subjects [Subject]
rbac.authorization.k8s.io/v1/RoleBinding: apiVersion! s, kind! s, metadata! Meta, roleRef! RoleRef, subjects [Subject]
Rule: verbs! [s], apiGroups [s], resources [s], resourceNames [s], nonResourceURLs [s]
RoleRef: apiGroup! s, kind! s, name! s
Subject: kind! s, name! s, namespace s, apiGroup s
kmm.sigs.x-k8s.io/v1beta1/NodeModulesConfig: apiVersion! s, kind! s, metadata! Meta, spec! NmcSpec
NmcSpec: modules [NmcModule]
NmcModule: config! ModuleConfig, name! s, namespace! s, serviceAccountName! s, imageRepoSecret Local, tolerations [Toleration], version s
ModuleConfig: containerImage! s, imagePullPolicy s, insecurePull! b, kernelVersion! s, inTreeModulesToRemove [s], inTreeModuleToRemove s, modprobe! Modprobe
Modprobe: moduleName s, parameters [s], dirName s, args ModprobeArgs, rawArgs ModprobeArgs, firmwarePath s, modulesLoadingOrder [s]
ModprobeArgs: load [s], unload [s]
work.open-cluster-management.io/v1/ManifestWork: apiVersion! s, kind! s, metadata! Meta, spec! WorkSpec
WorkSpec: workload Workload, deleteOption any, manifestConfigs [WorkConfig], executor any
Workload: manifests [kmm.sigs.x-k8s.io/v1beta1/Module]
WorkConfig: resourceIdentifier! WorkIdentifier, feedbackRules [WorkRule], updateStrategy any
WorkIdentifier: group s, resource! s, name! s, namespace s
WorkRule: type! s, jsonPaths [WorkPath]
WorkPath: name! s, version s, path! s
kmm.sigs.x-k8s.io/v1beta1/Module: apiVersion! s, kind! s, metadata! Meta, spec! ModuleSpec
ModuleSpec: selector! {s}, tolerations [Toleration], imageRepoSecret Local, imageRebuildTriggerGeneration i, moduleLoader Loader, devicePlugin any, dra any
Loader: container! LoaderContainer, serviceAccountName s
LoaderContainer: version s, containerImage s, imagePullPolicy s, registryTLS any, inTreeModulesToRemove [s], inTreeModuleToRemove s, modprobe! Modprobe, kernelMappings! [Mapping]
Mapping: literal! s, containerImage! s, inTreeModulesToRemove [s]
Meta: annotations {s}, creationTimestamp t, deletionGracePeriodSeconds i, deletionTimestamp t, finalizers [s], generateName s, generation i, labels {s}, managedFields [any], name s, namespace s, ownerReferences [Owner], resourceVersion s, selfLink s, uid s
Owner: apiVersion! s, kind! s, name! s, uid! s, blockOwnerDeletion b, controller b
Local: name s
PodSpec: containers! [Container], initContainers [Container], volumes [Volume], activeDeadlineSeconds i, affinity any, automountServiceAccountToken b, dnsConfig any, dnsPolicy s, enableServiceLinks b, ephemeralContainers [any], hostAliases [any], hostIPC b, hostNetwork b, hostPID b, hostUsers b, hostname s, hostnameOverride s, imagePullSecrets [Local], nodeName s, nodeSelector {s}, os any, overhead {q}, preemptionPolicy s, priority i, priorityClassName s, readinessGates [any], resourceClaims [any], resources Resources, restartPolicy s, runtimeClassName s, schedulerName s, schedulingGates [any], securityContext any, serviceAccount s, serviceAccountName s, setHostnameAsFQDN b, shareProcessNamespace b, subdomain s, terminationGracePeriodSeconds i, tolerations [Toleration], topologySpreadConstraints [any]
Container: name! s, args [s], command [s], env [Env], envFrom [any], image s, imagePullPolicy s, lifecycle any, livenessProbe Probe, ports [any], readinessProbe Probe, resizePolicy [any], resources Resources, restartPolicy s, restartPolicyRules [any], securityContext Security, startupProbe Probe, stdin b, stdinOnce b, terminationMessagePath s, terminationMessagePolicy s, tty b, volumeDevices [any], volumeMounts [Mount], workingDir s
Env: name! s, value s, valueFrom EnvSource
EnvSource: configMapKeyRef KeyRef, fieldRef FieldRef, fileKeyRef any, resourceFieldRef ResourceRef, secretKeyRef KeyRef
KeyRef: key! s, name s, optional b
FieldRef: fieldPath! s, apiVersion s
ResourceRef: resource! s, containerName s, divisor q
Probe: exec any, failureThreshold i, grpc Grpc, httpGet any, initialDelaySeconds i, periodSeconds i, successThreshold i, tcpSocket any, terminationGracePeriodSeconds i, timeoutSeconds i
Grpc: port! i, service s
Resources: claims [any], limits {q}, requests {q}
Security: allowPrivilegeEscalation b, appArmorProfile any, capabilities Capabilities, privileged b, procMount s, readOnlyRootFilesystem b, runAsGroup i, runAsNonRoot b, runAsUser i, seLinuxOptions SeLinux, seccompProfile any, windowsOptions any
Capabilities: add [s], drop [s]
SeLinux: level s, role s, type s, user s
Mount: name! s, mountPath! s, mountPropagation s, readOnly b, recursiveReadOnly s, subPath s, subPathExpr s
Toleration: effect s, key s, operator s, tolerationSeconds i, value s
Volume: name! s, configMap ConfigMapSource, csi any, downwardAPI DownwardSource, emptyDir EmptyDir, hostPath HostPath, nfs any, persistentVolumeClaim any, projected any, secret SecretSource
ConfigMapSource: defaultMode i, items [KeyPath], name s, optional b
SecretSource: defaultMode i, items [KeyPath], optional b, secretName s
KeyPath: key! s, path! s, mode i
DownwardSource: defaultMode i, items [DownwardFile]
DownwardFile: path! s, fieldRef FieldRef, mode i, resourceFieldRef ResourceRef
EmptyDir: medium s, sizeLimit q
HostPath: path! s, type s
)";

struct Field {
    std::string type;
    bool required = false;
};
using Type = std::map<std::string, Field, std::less<>>;
using Table = std::map<std::string, Type, std::less<>>;

Table read_table() {
    Table table;
    for (const auto line : base::split(k_table, '\n')) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string_view::npos) { continue; }
        Type& type = table[std::string(line.substr(0, colon))];
        for (const auto raw : base::split(line.substr(colon + 2), ',')) {
            const auto words = base::split(base::trim(raw), ' ');
            const bool required = words[0].ends_with('!');
            type[std::string(required ? words[0].substr(0, words[0].size() - 1) : words[0])] = {
                std::string(words.at(1)), required};
        }
    }
    return table;
}

const Table& table() {
    static const Table result = read_table();
    return result;
}

class Checker {
public:
    void check(const value::Node& node, const std::string& type, const std::string& path) {
        if (type == "any") { return; }
        if (type.front() == '[') {
            if (!node.is_sequence()) { return report(path, "expected a list"); }
            for (std::size_t i = 0; i < node.items().size(); ++i) {
                check(node.items()[i], type.substr(1, type.size() - 2), fmt::format("{}[{}]", path, i));
            }
        } else if (type.front() == '{') {
            if (!node.is_mapping()) { return report(path, "expected a mapping"); }
            for (const auto& member : node.members()) {
                check(member.value, type.substr(1, type.size() - 2), fmt::format("{}[{}]", path, member.key));
            }
        } else if (const auto found = table().find(type); found != table().end()) {
            check_object(node, found->second, path);
        } else {
            check_scalar(node, type, path);
        }
    }

    void report(const std::string& path, const std::string& what) {
        faults.push_back(fmt::format("{}: {}", path, what));
    }

    std::vector<std::string> faults;

private:
    void check_object(const value::Node& node, const Type& type, const std::string& path) {
        if (!node.is_mapping()) { return report(path, "expected an object"); }
        std::string before;
        for (const auto& member : node.members()) {
            const std::string own = path.empty() ? member.key : path + "." + member.key;
            if (member.key < before) { report(own, "out of order"); }
            before = member.key;
            const auto field = type.find(member.key);
            if (field == type.end()) {
                report(own, "unknown field");
            } else {
                check(member.value, field->second.type, own);
            }
        }
        for (const auto& [name, field] : type) {
            if (field.required && node.find(name) == nullptr) { report(path, fmt::format("{} is missing", name)); }
        }
    }

    void check_scalar(const value::Node& node, const std::string& type, const std::string& path) {
        const bool number = node.kind() == value::Kind::integer;
        const bool fits = type == "b"   ? node.kind() == value::Kind::boolean
                          : type == "i" ? number
                          : type == "q" ? number || node.is_string()
                          : type == "s" || type == "t" ? node.is_string()
                                                       : throw bug("the table has no type " + type);
        if (!fits) { report(path, fmt::format("expected type {}, found {}", type, value::kind_name(node.kind()))); }
    }
};

/// Rules of the API server's validation that a wrong rendering is most likely to break.
void check_names(Checker& checker, const value::Node& object) {
    const std::string name = object.get_string({"metadata", "name"});
    if (!api::is_dns1123_subdomain(name)) { checker.report("metadata.name", "no name"); }
    const value::Node* template_ = object.find_path({"spec", "template"});
    for (const auto* holder : {&object, template_}) {
        if (holder == nullptr) { continue; }
        const value::Node* labels = holder->find_path({"metadata", "labels"});
        if (labels == nullptr) { continue; }
        for (const auto& label : labels->members()) {
            if (!api::is_qualified_name(label.key)) { checker.report(label.key, "no label key"); }
            if (!api::is_label_value(label.value.text())) { checker.report(label.key, "no label value"); }
        }
    }
    const value::Node* spec = template_ != nullptr ? template_->find("spec") : object.find("spec");
    if (spec == nullptr) { return; }
    std::map<std::string, int> volumes;
    if (const value::Node* list = spec->find("volumes"); list != nullptr) {
        for (const auto& volume : list->items()) {
            const std::string volume_name = volume.get_string({"name"});
            if (!api::is_dns1123_label(volume_name)) {
                checker.report("volumes", volume_name + " is not the name of a volume");
            }
            if (++volumes[volume_name] > 1) { checker.report("volumes", volume_name + " is there twice"); }
            if (volume.members().size() != 2) { checker.report("volumes", volume_name + " must have one source"); }
        }
    }
    for (const char* key : {"containers", "initContainers"}) {
        const value::Node* containers = spec->find(key);
        if (containers == nullptr) { continue; }
        for (const auto& container : containers->items()) {
            std::map<std::string, int> paths;
            const value::Node* mounts = container.find("volumeMounts");
            if (mounts == nullptr) { continue; }
            for (const auto& mount : mounts->items()) {
                const std::string path = mount.get_string({"mountPath"});
                if (++paths[path] > 1) { checker.report(key, path + " is mounted twice"); }
                if (volumes.count(mount.get_string({"name"})) == 0) { checker.report(key, path + " has no volume"); }
            }
        }
    }
}

}  // namespace

std::vector<std::string> faults(const value::Node& object) {
    Checker checker;
    const std::string type = fmt::format("{}/{}", object.get_string({"apiVersion"}), object.get_string({"kind"}));
    if (table().count(type) == 0) {
        checker.report(type, "unknown kind");
    } else {
        checker.check(object, type, "");
        check_names(checker, object);
    }
    return checker.faults;
}

}  // namespace schema
