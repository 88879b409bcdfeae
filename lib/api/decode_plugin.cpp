// SPDX-License-Identifier: Apache-2.0
// devicePlugin and dra of a Module, and the parts of Kubernetes' Pods in them. Field lists: KMM's v1beta1 CRD (facts: KMM
// 2.1), k8s.io/api/core/v1 types.go as of Kubernetes 1.34.
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/names.hpp"

namespace kmm::api {

namespace {

constexpr std::size_t k_device_class_items_max = 32;

void check_key_ref(Fields& source, std::string_view key) {
    auto reference = source.child(key);
    if (!reference) { return; }
    static_cast<void>(reference->string("name"));
    static_cast<void>(reference->string("key", Need::required));
    static_cast<void>(reference->boolean("optional"));
    reference->done();
}

void check_env(Fields variable) {
    static_cast<void>(variable.string("name", Need::required));
    static_cast<void>(variable.string("value"));
    if (auto source = variable.child("valueFrom")) {
        check_key_ref(*source, "configMapKeyRef");
        check_key_ref(*source, "secretKeyRef");
        if (auto field = source->child("fieldRef")) {
            static_cast<void>(field->string("apiVersion"));
            static_cast<void>(field->string("fieldPath", Need::required));
            field->done();
        }
        if (auto field = source->child("resourceFieldRef")) {
            static_cast<void>(field->string("containerName"));
            static_cast<void>(field->string("resource", Need::required));
            field->allow({"divisor"});
            field->done();
        }
        source->allow({"fileKeyRef"});
        source->done();
    }
    variable.done();
}

void check_mount(Fields mount) {
    static_cast<void>(mount.string("name", Need::required));
    static_cast<void>(mount.string("mountPath", Need::required));
    static_cast<void>(mount.boolean("readOnly"));
    for (const auto* key : {"subPath", "subPathExpr", "mountPropagation", "recursiveReadOnly"}) {
        static_cast<void>(mount.string(key));
    }
    mount.done();
}

void check_quantities(Fields& resources, std::string_view key) {
    auto quantities = resources.child(key);
    if (!quantities) { return; }
    for (const auto& member : quantities->node().members()) {
        const value::Kind kind = member.value.kind();
        const bool is_number = kind == value::Kind::integer || kind == value::Kind::floating;
        if (!is_number && !(kind == value::Kind::string && is_quantity(member.value.text()))) {
            quantities->wrong_type(member.value, quantities->path_of(member.key), "quantity",
                                   kind == value::Kind::string ? "write a number and one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, without a blank: 500m, 2Gi" : "");
        }
    }
}

void check_resources(Fields resources) {
    check_quantities(resources, "limits");
    check_quantities(resources, "requests");
    for (const auto& item : resources.items("claims")) {
        Fields claim(resources.scope(), *item.node, item.path);
        static_cast<void>(claim.string("name", Need::required));
        static_cast<void>(claim.string("request"));
        claim.done();
    }
    resources.done();
}

void check_plugin_container(Fields fields) {
    static_cast<void>(fields.string("image", Need::required));
    static_cast<void>(fields.strings("args"));
    static_cast<void>(fields.strings("command"));
    static_cast<void>(fields.string("imagePullPolicy"));
    for (const auto& item : fields.items("env")) { check_env(Fields(fields.scope(), *item.node, item.path)); }
    if (auto resources = fields.child("resources")) { check_resources(*resources); }
    for (const auto& item : fields.items("volumeMounts")) { check_mount(Fields(fields.scope(), *item.node, item.path)); }
    fields.done();
}

/// name and one source. The sources that drivers use are read, of the others only the name is known.
void check_volume(Fields volume) {
    static_cast<void>(volume.string("name", Need::required));
    if (auto host = volume.child("hostPath")) {
        static_cast<void>(host->string("path", Need::required));
        static_cast<void>(host->string("type"));
        host->done();
    }
    if (auto empty = volume.child("emptyDir")) {
        static_cast<void>(empty->string("medium"));
        empty->allow({"sizeLimit"});
        empty->done();
    }
    for (const auto& [source, name] : {std::pair{"configMap", "name"}, std::pair{"secret", "secretName"}}) {
        auto fields = volume.child(source);
        if (!fields) { continue; }
        static_cast<void>(fields->string(name));
        static_cast<void>(fields->integer("defaultMode"));
        static_cast<void>(fields->boolean("optional"));
        static_cast<void>(fields->items("items"));
        fields->done();
    }
    volume.allow({"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "downwardAPI", "ephemeral",
                  "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "image", "iscsi", "nfs",
                  "persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd",
                  "scaleIO", "storageos", "vsphereVolume"});
    volume.done();
}

std::vector<Fields::Item> limited_items(Fields& device_class, std::string_view key) {
    auto items = device_class.items(key);
    if (items.size() > k_device_class_items_max) {
        device_class.scope().fault("bad-value",
                                   fmt::format("{}: expected at most {} entries, found {}", device_class.path_of(key),
                                               k_device_class_items_max, items.size()),
                                   device_class.node().find(key)->mark(), "split the device class");
    }
    return items;
}

void check_device_class(Fields device_class) {
    static_cast<void>(device_class.string("name", Need::required));
    for (const auto& item : limited_items(device_class, "selectors")) {
        Fields selector(device_class.scope(), *item.node, item.path);
        if (auto cel = selector.child("cel")) {
            static_cast<void>(cel->string("expression", Need::required));
            cel->done();
        }
        selector.done();
    }
    for (const auto& item : limited_items(device_class, "config")) {
        Fields config(device_class.scope(), *item.node, item.path);
        if (auto opaque = config.child("opaque")) {
            static_cast<void>(opaque->string("driver", Need::required));
            static_cast<void>(opaque->child("parameters", Need::required));
            opaque->done();
        }
        config.done();
    }
    device_class.done();
}

}  // namespace

std::optional<value::Node> decode_plugin(Fields& spec, std::string_view key) {
    auto fields = spec.child(key);
    if (!fields) { return std::nullopt; }
    if (auto container = fields->child("container", Need::required)) { check_plugin_container(*container); }
    if (auto container = fields->child("initContainer")) { check_plugin_container(*container); }
    static_cast<void>(fields->string("serviceAccountName"));
    static_cast<void>(fields->boolean("automountServiceAccountToken"));
    for (const auto& item : fields->items("volumes")) { check_volume(Fields(spec.scope(), *item.node, item.path)); }
    if (key == "dra") {
        static_cast<void>(fields->string("driverName", Need::required));
        for (const auto& item : fields->items("deviceClasses")) {
            check_device_class(Fields(spec.scope(), *item.node, item.path));
        }
    }
    fields->done();
    return fields->node();
}

}  // namespace kmm::api
