// SPDX-License-Identifier: Apache-2.0
// Manifests from decisions. Pure and byte-stable: same objects, same trees. Keys are in alphabetical order everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "plan/decide/plan.hpp"
#include "render/operator_config.hpp"
#include "value/node.hpp"

namespace kmm::render {

/// Groups of manifests, in the order in which they are applied.
enum class What { namespaces, rbac, nmc, pull_check, build, sign, device_plugin, dra, worker_pods };

/// A group as users name it.
struct WhatName {
    What what;
    std::string_view name;     ///< "worker-pods"
    std::string_view summary;  ///< one phrase
};

/// All groups in order. Static storage.
[[nodiscard]] std::span<const WhatName> whats() noexcept;

/// How worker Pods get the files of the module image.
enum class WorkerStyle {
    pull,     ///< kmm-worker pulls by itself: images need no shell, nothing is left to the operator
    extract,  ///< as today's operator: an init container made of the image copies them
};

/// Finalizers that only KMM's operator takes away again.
enum class Finalizers { as_operator, none };

/// What manifests need beyond the plan. The images are those that KMM's operator reads from RELATED_IMAGE_*.
struct Options {
    plan::Options plan;  ///< `next` counts for worker Pods alone; missing images are those to build and sign
    WorkerStyle worker_style = WorkerStyle::pull;
    Finalizers finalizers = Finalizers::as_operator;
    std::string worker_image;
    std::string build_image = "gcr.io/kaniko-project/executor:latest";
    std::string sign_image = "gcr.io/k8s-staging-kmm/kernel-module-management-signimage:latest";
    OperatorConfig operator_config;
};

/// Manifests, and what a reader of them should know.
struct Rendered {
    std::vector<value::Node> objects;  ///< grouped by What, sorted within
    Diagnostics findings;              ///< warnings, sorted
};

/// The groups `what` (each once, in the order of What). Build, sign and pull-check Pods are those of every image that
/// the eligible nodes' kernels ask for. Errors: usage "firmware-host-path-missing" if a Module has firmwarePath and the
/// operator's configuration no directory for it; data "bad-reference" or "bad-path" for a sign Pod whose Dockerfile
/// could not be written safely. Finding codes: unsafe-path, name-too-long, kaniko-tag, device-class-conflict,
/// same-name, no-unsigned-image, kernel-plus.
[[nodiscard]] Rendered render(const api::Objects& objects, const Options& options, std::span<const What> what);

/// Everything that the plan needs: namespaces, nmc, device-plugin, dra and worker-pods; build and sign for images that
/// are missing. Errors and codes as render.
[[nodiscard]] Rendered render_needed(const api::Objects& objects, const Options& options);

/// The NodeModulesConfigs that the cluster settles at (spec and labels, no status), each followed by a Node of the same
/// name with the KMM labels it ends up with. Sorted by node; nodes without module and without NodeModulesConfig are
/// left out. Entries are sorted by namespace and name.
[[nodiscard]] std::vector<value::Node> node_modules_configs(const api::Objects& objects,
                                                            const plan::Options& options = {});

/// File names for objects of one rendering, one each, without directory and ending (".yaml"): unique, the same for the
/// same objects, sorted as the objects are applied. Characters: a-z 0-9 '-' '.' '_'.
[[nodiscard]] std::vector<std::string> file_names(const std::vector<value::Node>& objects);

/// File names of DaemonSets for versions that some node is still labelled with (settled) although the Module moved on:
/// no rendering has them any more, and the nodes still need them.
[[nodiscard]] std::vector<std::string> files_in_use(const api::Objects& objects, const plan::Options& options);

}  // namespace kmm::render
