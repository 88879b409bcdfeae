// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/observe.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "api/codec.hpp"
#include "api/image_labels.hpp"
#include "plan/kmm/template.hpp"
#include "value/reader.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_annotation_config = "kmm.node.kubernetes.io/worker-config";
constexpr std::string_view k_annotation_version = "kmm.node.kubernetes.io/worker-module-version";

const std::string* text_at(const api::Labels& map, std::string_view key) {
    const auto found = map.find(std::string(key));
    return found == map.end() ? nullptr : &found->second;
}

bool is_worker_loader(const api::Pod& pod) {
    const std::string* action = text_at(pod.meta.labels, api::k_label_worker_action);
    return action != nullptr && *action == "Load";
}

constexpr const char* k_label_target_kernel = "kmm.node.kubernetes.io/target-kernel";

bool is_image_pod(const api::Pod& pod) {
    return text_at(pod.meta.labels, api::k_label_image_owner) != nullptr ||
           text_at(pod.meta.labels, api::k_label_resource_type) != nullptr;
}

Phase phase_of(const std::string& phase) {
    if (phase == "Running") { return Phase::running; }
    if (phase == "Failed") { return Phase::failed; }
    return phase == "Succeeded" ? Phase::succeeded : Phase::pending;
}

}  // namespace

const api::NodeModule* find_entry(const std::vector<api::NodeModule>& entries, std::string_view ns,
                                  std::string_view name) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const api::NodeModule& entry) {
        return entry.namespace_ == ns && entry.name == name;
    });
    return found == entries.end() ? nullptr : &*found;
}

const api::Pod* find_worker_pod(const NodeView& view, std::string_view ns, std::string_view name) {
    const auto found = std::find_if(view.pods.begin(), view.pods.end(), [&](const api::Pod* pod) {
        const std::string* module = text_at(pod->meta.labels, api::k_label_module_name);
        return pod->meta.namespace_ == ns && module != nullptr && *module == name;
    });
    return found == view.pods.end() ? nullptr : *found;
}

std::optional<api::NodeModule> loader_entry(const api::Pod& pod, std::string_view name) {
    const std::string* text = text_at(pod.meta.annotations, k_annotation_config);
    if (text == nullptr) { return std::nullopt; }
    Diagnostics diagnostics;
    const auto documents = value::read_any(*text, pod.meta.name, diagnostics);
    if (documents.size() != 1 || has_errors(diagnostics)) { return std::nullopt; }
    api::NodeModule entry;
    entry.config = api::decode_module_config(documents.front(), diagnostics);
    if (has_errors(diagnostics)) { return std::nullopt; }
    entry.name = name;
    entry.namespace_ = pod.meta.namespace_;
    if (const std::string* version = text_at(pod.meta.annotations, k_annotation_version)) { entry.version = *version; }
    return entry;
}

WorkerPod worker_pod(const api::Pod& pod, const api::NodeModule* loads, const api::NodeModule* current) {
    WorkerPod result;
    result.phase = phase_of(pod.phase);
    result.entry = loads;
    const bool stale = loads != nullptr && current != nullptr && loads->config != current->config;
    if (is_worker_loader(pod)) {
        result.state = pod.worker_restarts == 0 ? PodState::loader
                       : stale                  ? PodState::loader_stale
                                                : PodState::loader_restarted;
    } else {
        result.state = pod.worker_restarts == 0 ? PodState::unloader : PodState::unloader_restarted;
    }
    return result;
}

std::string problem_text(const api::Pod::Problem& problem) {
    std::string text = problem.container;
    for (const auto* part : {&problem.reason, &problem.message}) {
        if (part->empty()) { continue; }
        if (!text.empty()) { text += ": "; }
        text += *part;
    }
    return text;
}

bool is_image_pod_of(const api::Pod& pod, std::string_view ns, std::string_view name, std::string_view kernel) {
    if (pod.meta.namespace_ != ns) { return false; }
    if (const std::string* owner = text_at(pod.meta.labels, api::k_label_image_owner)) { return *owner == name; }
    const std::string* module = text_at(pod.meta.labels, api::k_label_module_name);
    const std::string* target = text_at(pod.meta.labels, k_label_target_kernel);
    // KMM up to v2.6.0 writes the kernel as in tags.
    return module != nullptr && *module == name &&
           (target == nullptr || *target == dns_safe_kernel(kernel) || *target == normalise_kernel(kernel));
}

std::vector<NodeView> views(const api::Objects& objects) {
    std::unordered_map<std::string_view, const api::NodeModulesConfig*> configs;
    configs.reserve(objects.node_modules_configs.size());
    for (const auto& config : objects.node_modules_configs) { configs.emplace(config.meta.name, &config); }
    std::unordered_map<std::string_view, std::vector<const api::Pod*>> pods;
    for (const auto& pod : objects.pods) {
        if (text_at(pod.meta.labels, api::k_label_worker_action) != nullptr) { pods[pod.node_name].push_back(&pod); }
    }
    std::vector<const api::Pod*> image_pods;
    for (const auto& pod : objects.pods) {
        if (is_image_pod(pod)) { image_pods.push_back(&pod); }
    }
    const auto shared =
        image_pods.empty() ? nullptr : std::make_shared<const std::vector<const api::Pod*>>(std::move(image_pods));
    std::vector<NodeView> result;
    result.reserve(objects.nodes.size());
    for (const auto& node : objects.nodes) {
        NodeView view;
        view.node = &node;
        view.image_pods = shared;
        if (const auto found = configs.find(node.meta.name); found != configs.end()) { view.config = found->second; }
        if (const auto found = pods.find(node.meta.name); found != pods.end()) { view.pods = found->second; }
        result.push_back(std::move(view));
    }
    return result;
}

}  // namespace kmm::plan
