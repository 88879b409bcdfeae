// SPDX-License-Identifier: Apache-2.0
// What is there: nodes with their configurations and worker Pods.
#pragma once

#include <optional>

#include "plan/decide/verdict.hpp"

namespace kmm::plan {

/// The worker Pod of (ns, name) among the view's; nullptr if there is none. The first by name if there are several.
[[nodiscard]] const api::Pod* find_worker_pod(const NodeView& view, std::string_view ns, std::string_view name);

/// What a loader was made to load: its annotations worker-config, worker-module-version and its Pod's fields. nullopt
/// if the annotation is absent or no ModuleConfig.
[[nodiscard]] std::optional<api::NodeModule> loader_entry(const api::Pod& pod, std::string_view name);

/// State of the Pod. `current` is the entry that a loader should load now: a restarted one with another configuration
/// is stale. KMM compares a hash of the whole Pod template instead.
[[nodiscard]] WorkerPod worker_pod(const api::Pod& pod, const api::NodeModule* loads, const api::NodeModule* current);

/// "image-extractor: ImagePullBackOff: MESSAGE", without what is not known.
[[nodiscard]] std::string problem_text(const api::Pod::Problem& problem);

/// A pull, build or sign Pod that KMM made for images of (ns, name), and for `kernel` if its label names one.
[[nodiscard]] bool is_image_pod_of(const api::Pod& pod, std::string_view ns, std::string_view name,
                                   std::string_view kernel);

}  // namespace kmm::plan
