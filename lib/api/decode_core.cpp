// SPDX-License-Identifier: Apache-2.0
// metadata and the kinds of Kubernetes' core/v1. Field lists: k8s.io/api/core/v1 types.go, as of Kubernetes 1.34.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/names.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// Annotations of Nodes that are read have it in their keys.
constexpr std::string_view k_kmm_part = "kmm";

/// Members that exist in the API and that nothing here reads.
const value::Shape k_annotations_shape{{}, {}, k_kmm_part};
const value::Shape k_metadata_shape{{"generateName", "selfLink", "resourceVersion", "generation", "creationTimestamp",
                                     "deletionGracePeriodSeconds", "ownerReferences", "managedFields", "clusterName"},
                                    {}};
const value::Shape k_labels_shape{{}, {}, "", value::Shape::Repeats::pairs};
const value::Shape k_node_metadata_shape{k_metadata_shape.skipped,
                                         {{"annotations", &k_annotations_shape}, {"labels", &k_labels_shape}}};
const value::Shape k_config_metadata_shape{k_metadata_shape.skipped, {{"labels", &k_labels_shape}}};
const value::Shape k_taint_shape{{"timeAdded"}, {}};
const value::Shape k_node_spec_shape{{"podCIDR", "podCIDRs", "providerID", "configSource", "externalID"},
                                     {{"taints", &k_taint_shape}}};
const value::Shape k_condition_shape{{"lastHeartbeatTime", "lastTransitionTime", "reason", "message"}, {}};
const value::Shape k_node_info_shape{{"swap"}, {}};
const value::Shape k_node_status_shape{
    {"capacity", "allocatable", "phase", "addresses", "daemonEndpoints", "images", "volumesInUse", "volumesAttached",
     "config", "runtimeHandlers", "features", "declaredFeatures"},
    {{"conditions", &k_condition_shape}, {"nodeInfo", &k_node_info_shape}}};
const value::Shape k_node_shape{
    {}, {{"metadata", &k_node_metadata_shape}, {"spec", &k_node_spec_shape}, {"status", &k_node_status_shape}}};
const value::Shape k_module_config_shape{{}, {}, "", value::Shape::Repeats::mapping};
const value::Shape k_tolerations_shape{{}, {}, "", value::Shape::Repeats::list};
// An entry of spec is the same on many nodes, one of status is but for the boot id.
const value::Shape k_spec_entry_shape{{},
                                      {{"config", &k_module_config_shape}, {"tolerations", &k_tolerations_shape}},
                                      "",
                                      value::Shape::Repeats::mapping};
const value::Shape k_status_entry_shape{
    {}, k_spec_entry_shape.inner, "", value::Shape::Repeats::mapping, "bootId"};
const value::Shape k_config_spec_shape{{}, {{"modules", &k_spec_entry_shape}}};
const value::Shape k_config_status_shape{{}, {{"modules", &k_status_entry_shape}}};
const value::Shape k_config_shape{
    {}, {{"metadata", &k_config_metadata_shape}, {"spec", &k_config_spec_shape}, {"status", &k_config_status_shape}}};

void check_label(const Fields& metadata, const value::Member& member) {
    if (!is_qualified_name(member.key)) {
        metadata.scope().fault(
            "bad-value", fmt::format("label key \"{}\" is not valid", base::escape(member.key)), member.key_mark,
            "a key is [PREFIX/]NAME; NAME has 1 to 63 letters, digits, '-', '_' or '.', and starts and ends with a "
            "letter or digit");
    }
    if (member.value.is_string() && !is_label_value(member.value.text())) {
        metadata.scope().fault(
            "bad-value",
            fmt::format("value \"{}\" of label {} is not valid", base::escape(member.value.text()),
                        base::escape(member.key)),
            member.value.mark(),
            "a value has at most 63 letters, digits, '-', '_' or '.', and starts and ends with a letter or digit");
    }
}

void check_name(const Fields& metadata, const ObjectMeta& meta) {
    const value::Node* name = metadata.node().find("name");
    if (name != nullptr && name->is_string() && !is_dns1123_subdomain(meta.name)) {
        metadata.scope().fault("bad-value", fmt::format("metadata.name \"{}\" is not valid", base::escape(meta.name)),
                               name->mark(),
                               meta.name.find("{{") == std::string::npos
                                   ? "a name has lower-case letters, digits, '-' and '.', at most 253 of them"
                                   : "this looks like a template: fill it first");
    }
}

/// Gives an object that says no namespace the one that was given.
void settle_namespace(const Fields& metadata, ObjectMeta& meta, Residence residence) {
    const value::Node* ns = metadata.node().find("namespace");
    if (residence == Residence::cluster) {
        if (!meta.namespace_.empty()) {
            metadata.scope().fault("bad-value",
                                   "metadata.namespace: this kind is cluster-scoped and takes no namespace", ns->mark(),
                                   "remove the line");
        }
    } else if (ns == nullptr || ns->is_null() || (ns->is_string() && meta.namespace_.empty())) {
        const auto& given = metadata.scope().given_namespace;
        if (given && !given->empty()) {
            meta.namespace_ = *given;
            return;
        }
        if (metadata.scope().kind == nullptr) {  // it may be for any namespace, and Modules that need it say theirs
            metadata.scope().homeless = true;
            return;
        }
        metadata.scope().fault(
            "missing-field", "required field metadata.namespace is missing", metadata.node().mark(),
            fmt::format("kubectl would take it from the current context; write it into the document{}",
                        given ? ", or give -n NAMESPACE" : ""));
    } else if (ns->is_string() && !is_dns1123_label(meta.namespace_)) {
        metadata.scope().fault("bad-value",
                               fmt::format("metadata.namespace \"{}\" is not valid", base::escape(meta.namespace_)),
                               ns->mark(), "a namespace has lower-case letters, digits and '-', at most 63 of them");
    }
}

/// What the API server refuses in a taint. A taint that is misspelt would keep nothing away.
void check_taint(const Fields& taint) {
    const auto fault = [&](const char* key, bool is_good, std::string_view expected, std::string hint) {
        const value::Node* found = taint.node().find(key);
        if (found == nullptr || !found->is_string() || is_good) { return; }
        taint.scope().fault(
            "bad-value",
            fmt::format("{}: expected {}, found \"{}\"", taint.path_of(key), expected, base::escape(found->text())),
            found->mark(), std::move(hint));
    };
    const auto text = [&](const char* key) { return taint.node().get_string({key}); };
    fault("key", is_qualified_name(text("key")), "a taint key",
          "a key is [PREFIX/]NAME; NAME has 1 to 63 letters, digits, '-', '_' or '.'");
    fault("value", is_label_value(text("value")), "a label value",
          "at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends");
    const std::vector<std::string> effects{"NoSchedule", "PreferNoSchedule", "NoExecute"};
    const std::string effect = text("effect");
    const auto near = base::nearest(effect, effects);
    fault("effect", std::find(effects.begin(), effects.end(), effect) != effects.end(),
          "NoSchedule, PreferNoSchedule or NoExecute", near ? fmt::format("did you mean {}?", *near) : "");
}

void decode_taints(Fields& spec, Node& node) {
    for (const auto& item : spec.items("taints")) {
        Fields taint(spec.scope(), *item.node, item.path);
        node.taints.push_back(Taint{taint.string("key", Need::required), taint.string("value"),
                                    taint.string("effect", Need::required)});
        check_taint(taint);
        taint.allow(k_taint_shape.skipped);
        taint.done();
    }
}

void decode_conditions(Fields& status, Node& node) {
    for (const auto& item : status.items("conditions")) {
        Fields condition(status.scope(), *item.node, item.path);
        const std::string type = condition.string("type", Need::required);
        const std::string state = condition.string("status", Need::required);
        if (type == "Ready") { node.ready = state; }
        condition.allow(k_condition_shape.skipped);
        condition.done();
    }
}

/// Architectures of Go's Linux and Windows, as kubelets report them, each with what uname -m prints there.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> k_architectures{{
    {"386", "i686"},
    {"amd64", "x86_64"},
    {"arm", "armv7l"},
    {"arm64", "aarch64"},
    {"loong64", "loongarch64"},
    {"mips", ""},
    {"mips64", ""},
    {"mips64le", ""},
    {"mipsle", ""},
    {"ppc64", ""},
    {"ppc64le", ""},
    {"riscv64", ""},
    {"s390x", ""},
}};

/// What is nearly one of them fits no image and no kernel. Others may be of a newer Go.
void check_architecture(const Fields& info, const std::string& found) {
    std::vector<std::string> names;
    std::string meant;
    for (const auto& [name, machine] : k_architectures) {
        if (found == name) { return; }
        names.emplace_back(name);
        if (found == machine) { meant = name; }
    }
    if (meant.empty()) { meant = base::nearest(found, names).value_or(""); }
    if (found.empty() || meant.empty()) { return; }
    info.scope().fault("bad-value",
                       fmt::format("{}: expected an architecture by Go's name, found \"{}\"",
                                   info.path_of("architecture"), base::escape(found)),
                       info.node().find("architecture")->mark(), fmt::format("did you mean {}?", meant));
}

void decode_node_info(Fields& status, Node& node) {
    auto info = status.child("nodeInfo");
    if (!info) { return; }
    node.kernel_version = info->string("kernelVersion");
    node.boot_id = info->string("bootID");
    node.architecture = info->string("architecture");
    check_architecture(*info, node.architecture);
    node.os_image = info->string("osImage");
    node.machine_id = info->string("machineID");
    for (const auto* key : {"systemUUID", "containerRuntimeVersion", "kubeletVersion", "kubeProxyVersion",
                            "operatingSystem"}) {
        static_cast<void>(info->string(key));
    }
    info->allow(k_node_info_shape.skipped);
    info->done();
}

}  // namespace

const value::Shape* shape_of(std::string_view kind) {
    if (kind == "Node") { return &k_node_shape; }
    return kind == "NodeModulesConfig" ? &k_config_shape : nullptr;
}

ObjectMeta decode_meta(Fields& root, Residence residence, KeptAnnotations kept) {
    ObjectMeta meta;
    meta.origin = root.scope().document.position(root.node().mark());
    auto metadata = root.child("metadata", Need::required);
    if (!metadata) { return meta; }
    // A name that a server is to make up: of Kubernetes' own kinds no such object counts.
    const bool is_nameless =
        metadata->node().find("name") == nullptr && metadata->node().find("generateName") != nullptr;
    if (is_nameless && root.scope().kind == nullptr) {
        root.scope().homeless = true;
    } else if (is_nameless) {
        root.scope().fault("missing-field", "metadata.generateName: the name is not known before the object is there",
                           metadata->node().find("generateName")->mark(),
                           "write metadata.name, which kubectl apply needs, too");
    }
    meta.name = metadata->string("name", is_nameless ? Need::optional : Need::required);
    meta.namespace_ = metadata->string("namespace");
    meta.uid = metadata->string("uid");
    meta.labels = metadata->string_map("labels");
    meta.annotations =
        metadata->string_map("annotations", Need::optional, kept == KeptAnnotations::all ? "" : k_kmm_part);
    meta.finalizers = metadata->strings("finalizers").value_or(std::vector<std::string>{});
    meta.deleting = !metadata->string("deletionTimestamp").empty();
    if (const value::Node* version = metadata->node().find("resourceVersion"); version != nullptr) {
        meta.resource_version = base::parse_number<std::uint64_t>(version->text()).value_or(0);
    }
    metadata->allow(k_metadata_shape.skipped);
    metadata->done();
    check_name(*metadata, meta);
    settle_namespace(*metadata, meta, residence);
    if (const value::Node* labels = metadata->node().find("labels"); labels != nullptr) {
        for (const auto& member : labels->members()) { check_label(*metadata, member); }
    }
    return meta;
}

Node decode_node(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind", "facts"});  // facts: what kmm-worker facts says besides
    Node node;
    node.meta = decode_meta(fields, Residence::cluster, KeptAnnotations::of_kmm);
    if (auto spec = fields.child("spec")) {
        node.unschedulable = spec->boolean("unschedulable");
        decode_taints(*spec, node);
        spec->allow(k_node_spec_shape.skipped);
        spec->done();
    }
    if (auto status = fields.child("status")) {
        decode_conditions(*status, node);
        decode_node_info(*status, node);
        status->allow(k_node_status_shape.skipped);
        status->done();
    }
    fields.done();
    return node;
}

Secret decode_secret(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind", "immutable"});
    Secret secret;
    secret.meta = decode_meta(fields, Residence::namespaced);
    secret.type = fields.string("type");
    scope.secret = true;
    for (const auto& [key, encoded] : fields.string_map("data")) {
        auto bytes = base::from_base64(encoded);
        if (!bytes) {
            const value::Node* value = root.find_path({"data", key});
            scope.fault("bad-value", fmt::format("data.{} is not base64", base::escape(key)), value->mark(),
                        "plain text belongs under stringData");
            continue;
        }
        secret.data[key] = std::move(*bytes);
    }
    for (const auto& [key, text] : fields.string_map("stringData")) { secret.data[key] = text; }
    scope.secret = false;
    fields.done();
    return secret;
}

ConfigMap decode_config_map(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind", "immutable"});
    ConfigMap config_map;
    config_map.meta = decode_meta(fields, Residence::namespaced);
    for (const auto& [key, text] : fields.string_map("data")) { config_map.data.emplace(key, text); }
    for (const auto& [key, text] : fields.string_map("binaryData")) { config_map.binary_keys.push_back(key); }
    if (const value::Node* data = root.find("data"); data != nullptr && is_operator_config_map(config_map.meta.name)) {
        for (const auto& member : data->members()) {
            config_map.places.emplace(member.key, scope.document.position(member.value.mark()));
        }
    }
    fields.done();
    return config_map;
}

}  // namespace kmm::api
