// SPDX-License-Identifier: Apache-2.0
// What Pods and Nodes say of resources, and Pods of all else.
#include <algorithm>

#include <fmt/format.h>

#include "base/quantity.hpp"
#include "base/text.hpp"
#include "kubernetes/inventory/object_reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// Quantities may be numbers in YAML.
double quantity_of(const Node* in, std::string_view key, std::string_view path, std::vector<std::string>& unread) {
    const Node* found = in == nullptr ? nullptr : in->find(key);
    if (found == nullptr || found->is_null()) { return 0; }
    const auto quantity = base::parse_quantity(found->text());
    if (!quantity) { unread.push_back(fmt::format("{}{} '{}'", path, key, base::escape(found->text()))); }
    return quantity.value_or(0);
}

/// Those of a container, which count as 0 in the sum where they are unread.
Resources requests_of(ObjectReader& reader, const Node& container, PodObject& pod) {
    const auto path = fmt::format("{} requests.", base::escape(reader.text(&container, "name")));
    return resources_of(reader.mapping(reader.mapping(&container, "resources"), "requests"), path,
                        pod.unread_quantities);
}

}  // namespace

Resources resources_of(const Node* in, std::string_view path, std::vector<std::string>& unread) {
    return {quantity_of(in, "cpu", path, unread), quantity_of(in, "memory", path, unread),
            quantity_of(in, "pods", path, unread)};
}

PodObject pod_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    PodObject pod;
    pod.meta = std::move(meta);
    const Node* metadata = object.find("metadata");
    const Node* spec = reader.mapping(&object, "spec");
    const Node* status = reader.mapping(&object, "status");
    pod.node = reader.text(spec, "nodeName");
    pod.phase = reader.text(status, "phase");
    pod.is_mirror = find_label(pod.meta.annotations, "kubernetes.io/config.mirror") != nullptr;
    const auto deletion = reader.text(metadata, "deletionTimestamp");
    pod.is_deleted = !deletion.empty();
    pod.ends_by = base::parse_rfc3339(deletion);
    pod.finalizers = reader.texts(metadata, "finalizers");
    for (const auto& owner : reader.list(metadata, "ownerReferences")) {
        if (!reader.flag(&owner, "controller")) { continue; }
        pod.controller_kind = reader.text(&owner, "kind");
        const auto group = reader.text(&owner, "apiVersion");
        const bool is_of_apps = group.empty() || group.starts_with("apps/");
        if (pod.controller_kind == "DaemonSet" && is_of_apps) { pod.daemon_set = reader.text(&owner, "name"); }
    }
    for (const auto& each : reader.conditions(status)) {
        pod.is_ready = pod.is_ready || (each.type == "Ready" && each.status == "True");
    }
    for (const auto& volume : reader.list(spec, "volumes")) {
        pod.has_empty_dir = pod.has_empty_dir || volume.find("emptyDir") != nullptr;
    }
    for (const auto& each : reader.list(spec, "containers")) {
        Container container{reader.text(&each, "name"), reader.text(&each, "image"), {}, reader.position(each.mark())};
        if (const Node* image = each.find("image")) { container.position = reader.position(image->mark()); }
        if (pod.meta.ns == "kube-system") {
            container.arguments = reader.texts(&each, "command");
            for (auto& argument : reader.texts(&each, "args")) { container.arguments.push_back(std::move(argument)); }
        }
        pod.containers.push_back(std::move(container));
        const auto wanted = requests_of(reader, each, pod);
        pod.requests.cpu += wanted.cpu;
        pod.requests.memory += wanted.memory;
    }
    // Those that restart always run on beside the others; of the rest, one at a time.
    Resources beside, most;
    for (const auto& each : reader.list(spec, "initContainers")) {
        const auto wanted = requests_of(reader, each, pod);
        most.cpu = std::max(most.cpu, beside.cpu + wanted.cpu);
        most.memory = std::max(most.memory, beside.memory + wanted.memory);
        if (reader.text(&each, "restartPolicy") != "Always") { continue; }
        beside.cpu += wanted.cpu;
        beside.memory += wanted.memory;
    }
    pod.requests.cpu = std::max(pod.requests.cpu + beside.cpu, most.cpu);
    pod.requests.memory = std::max(pod.requests.memory + beside.memory, most.memory);
    // What the Pod requests as a whole counts in place of what its containers do.
    if (const Node* whole = reader.mapping(reader.mapping(spec, "resources"), "requests")) {
        const auto wanted = resources_of(whole, "resources.requests.", pod.unread_quantities);
        if (whole->find("cpu") != nullptr) { pod.requests.cpu = wanted.cpu; }
        if (whole->find("memory") != nullptr) { pod.requests.memory = wanted.memory; }
    }
    const auto overhead = resources_of(reader.mapping(spec, "overhead"), "overhead.", pod.unread_quantities);
    pod.requests.cpu += overhead.cpu;
    pod.requests.memory += overhead.memory;
    pod.requests.pods = 1;
    pod.node_selector = reader.labels(spec, "nodeSelector");
    for (const auto& each : reader.list(spec, "tolerations")) {
        pod.tolerations.emplace_back(reader.text(&each, "key"), reader.text(&each, "effect"));
    }
    for (const auto& each : reader.list(status, "containerStatuses")) {
        pod.running_images[reader.text(&each, "name")] = reader.text(&each, "image");
        const Node* waiting = reader.mapping(reader.mapping(&each, "state"), "waiting");
        if (waiting != nullptr && pod.waiting.empty() && pod.meta.ns == "kube-system") {
            pod.waiting = with_reason(reader.text(&each, "name"),
                                      with_reason(reader.text(waiting, "reason"), reader.text(waiting, "message")));
        }
    }
    return pod;
}

}  // namespace kmm::kubernetes
