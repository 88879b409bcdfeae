// SPDX-License-Identifier: Apache-2.0
// A Pod that runs kmm-worker once on one node and leaves its result document as termination message. No operator is
// needed for it, and KMM's operator does not take it for one of its own: it has none of the labels by which KMM finds
// worker Pods.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::render {

inline constexpr std::string_view k_task_manager = "kmm-upgrade";  ///< app.kubernetes.io/managed-by of such Pods
inline constexpr std::string_view k_label_managed_by = "app.kubernetes.io/managed-by";
inline constexpr std::string_view k_label_run = "kmmtools.dev/run";    ///< which upgrade has made the Pod
inline constexpr std::string_view k_label_verb =
    "kmmtools.dev/verb";  ///< what the worker does: status, check, load, unload, pull
inline constexpr std::string_view k_label_module =
    "kmmtools.dev/module";  ///< NAME of the Module; KMM's own key would be read by KMM
inline constexpr std::string_view k_label_module_namespace =
    "kmmtools.dev/module-namespace";  ///< of the Module, where the Pod is in another one
/// Where the ModuleConfig is in the container: an argument of the worker.
inline constexpr std::string_view k_task_config_file = "/etc/kmm-worker/config.yaml";

/// What the Pod is for. Everything is as the API server takes it; nothing is checked here.
struct WorkerTask {
    std::string namespace_;           ///< of the Pod; the pull Secret is mounted from there
    std::string module;               ///< metadata.name of the Module
    std::string module_namespace{};   ///< of the Module, "" for that of the Pod
    std::string node;                 ///< spec.nodeName
    std::string run;                  ///< value of k_label_run
    std::string image;                ///< with kmm-worker as its entry point
    std::string service_account;      ///< "" for the namespace's default
    std::vector<std::string> args;    ///< of kmm-worker, the verb first; k_task_config_file where the config is meant
    std::string config;               ///< ModuleConfig as YAML, "" for none
    std::string pull_secret;          ///< name of the Secret with registry credentials, "" for none
    std::vector<std::string> pull_secret_keys{};  ///< of its data, those that are mounted; without one it is not
    std::string firmware_host_path;   ///< directory of the host's firmware to be mounted, "" for none
    std::chrono::seconds deadline{};  ///< spec.activeDeadlineSeconds: a Pod whose maker is gone ends by itself
    bool has_apparmor_field = true;   ///< the API server is one of 1.30 or later; an earlier one reads an annotation
};

/// The value of k_label_verb: the verb, of two words where it has two, as "kubernetes-facts".
[[nodiscard]] std::string worker_task_verb(const std::vector<std::string>& args);
/// True for a verb of that label which changes the node: it must not be killed half-way.
[[nodiscard]] bool is_worker_change(std::string_view verb);

/// True for a verb that only reads the node: a Pod of it may be there beside any other, and is in nobody's way.
[[nodiscard]] bool is_worker_reading(std::string_view verb);

/// The name is the same for the same namespace, Module, node and verb, of a verb that only reads also for the same run
/// alone, and has at most 253 characters.
[[nodiscard]] std::string worker_task_name(const WorkerTask& task);

/// Keys of the spec in alphabetical order. A Pod for load and unload is privileged and uses the host's network (the
/// driver of a Pod network may be what is replaced); others have no capability, no network of the host and a seccomp
/// profile, and see the node's /proc and /sys and what was loaded below /host, read-only; check alone writes the cache.
/// None has a token or a root that can be written. manifests/admission lists what is mounted here.
/// Tolerates every taint and is never restarted. Pods of `kubernetes` VERB use the host's
/// network and are system-node-critical. `facts` mounts the node's / read-only and has three capabilities beside
/// nothing; the other verbs are privileged and have the node's pids, so that they enter its namespaces.
[[nodiscard]] value::Node worker_task_pod(const WorkerTask& task);

}  // namespace kmm::render
