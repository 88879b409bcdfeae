// SPDX-License-Identifier: Apache-2.0
// Inventories of texts.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

#include "kubernetes/inventory/inventory.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes::test {

/// Takes every document of a YAML text; `faults` gets what finish() and the sink report.
inline Inventory read_text(std::string_view text, Diagnostics& faults) {
    Inventory inventory;
    for (const auto& document : value::read_any(text, "dump.yaml", faults)) {
        InventorySink sink;
        sink.take_document(document);
        std::move(sink).commit(inventory, faults);
    }
    finish(inventory, faults);
    return inventory;
}

inline Inventory inventory_of(std::string_view text) {
    Diagnostics faults;
    auto inventory = read_text(text, faults);
    for (const auto& fault : faults) { FAIL_CHECK(fault.position->to_string() << ": " << fault.message); }
    return inventory;
}

/// A control-plane node with its static Pods, all of one version.
/// A document without faults, as a node answers.
inline value::Node answer_of(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_yaml(text, "facts", faults);
    REQUIRE(faults.empty());
    return std::move(documents.front().root);
}

inline std::string control_plane(const std::string& name, const std::string& version) {
    std::string text =
        "---\n{kind: Node, apiVersion: v1, metadata: {name: " + name +
        ", labels: {node-role.kubernetes.io/control-plane: ''}}, status: {nodeInfo: {kubeletVersion: " + version +
        ", containerRuntimeVersion: 'containerd://2.1.0'}, conditions: [{type: Ready, status: 'True'}, {type: "
        "MemoryPressure, status: 'False'}, "
        "{type: DiskPressure, status: 'False'}, {type: PIDPressure, status: 'False'}]}}\n";
    for (const std::string component : {"kube-apiserver", "kube-controller-manager", "kube-scheduler"}) {
        text += "---\n{kind: Pod, apiVersion: v1, metadata: {name: " + component + "-" + name +
                ", namespace: kube-system, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: " + name +
                ", containers: [{name: " + component + ", image: 'registry.k8s.io/" + component + ":" + version +
                "', command: [" + component +
                ", --profiling=false]}]}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}\n";
    }
    return text;
}

inline std::string worker(const std::string& name, const std::string& version) {
    return "---\n{kind: Node, apiVersion: v1, metadata: {name: " + name +
           "}, status: {nodeInfo: {kubeletVersion: " + version + "}}}\n";
}

}  // namespace kmm::kubernetes::test
