// SPDX-License-Identifier: Apache-2.0
#include "render/worker_task.hpp"

#include <fmt/format.h>

#include "render/parts.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_task_config_annotation = "kmmtools.dev/worker-config";
constexpr std::size_t k_task_name_max = 253;
constexpr std::size_t k_label_value_max = 63;

std::string verb_of(const WorkerTask& task) { return task.args.empty() ? std::string() : task.args.front(); }

Node named(std::string_view name, std::string_view text) { return Node::mapping({{"name", name}, {"value", text}}); }

Node task_volumes(const WorkerTask& task) {
    Node volumes = Node::sequence();
    if (!task.config.empty()) { volumes.push_back(annotation_volume("config", k_task_config_annotation, "config.yaml")); }
    volumes.push_back(host_path("lib-modules", "/lib/modules", "Directory"));
    volumes.push_back(Node::mapping({{"emptyDir", Node::mapping()}, {"name", "tmp"}}));
    volumes.push_back(host_path("state", "/run/kmm-worker", "DirectoryOrCreate"));
    volumes.push_back(host_path("cache", "/var/lib/kmm-worker", "DirectoryOrCreate"));
    if (!task.pull_secret.empty()) { volumes.push_back(secret_volume("pull-secret", task.pull_secret)); }
    if (!task.firmware_host_path.empty()) {
        volumes.push_back(host_path("lib-firmware", task.firmware_host_path, "DirectoryOrCreate"));
    }
    return volumes;
}

Node task_mounts(const WorkerTask& task) {
    Node mounts = Node::sequence();
    if (!task.config.empty()) { mounts.push_back(mount("config", "/etc/kmm-worker", Access::read_only)); }
    mounts.push_back(mount("lib-modules", "/lib/modules", Access::read_only));
    mounts.push_back(mount("tmp", "/tmp"));
    mounts.push_back(mount("state", "/run/kmm-worker"));
    mounts.push_back(mount("cache", "/var/lib/kmm-worker"));
    if (!task.pull_secret.empty()) {
        // The worker reads every Secret below this directory.
        mounts.push_back(mount("pull-secret", fmt::format("/var/run/kmm/pull-secrets/{}", task.pull_secret), Access::read_only));
    }
    if (!task.firmware_host_path.empty()) { mounts.push_back(mount("lib-firmware", task.firmware_host_path)); }
    return mounts;
}

/// Small requests, so that a full node takes the Pod; no limits, since a module may be large.
Node task_container(const WorkerTask& task) {
    const Node requests = Node::mapping({{"cpu", "10m"}, {"memory", "32Mi"}});
    return Node::mapping(
        {{"args", Node::strings(task.args)},
         {"env", Node::sequence({named("KMM_TERMINATION_LOG", "/dev/termination-log"), env_field("NODE_NAME", "spec.nodeName")})},
         {"image", task.image},
         {"imagePullPolicy", "IfNotPresent"},
         {"name", "worker"},
         {"resources", Node::mapping({{"requests", requests}})},
         {"securityContext", Node::mapping({{"privileged", true}, {"runAsUser", 0}})},
         {"terminationMessagePath", "/dev/termination-log"},
         {"terminationMessagePolicy", "FallbackToLogsOnError"},
         {"volumeMounts", task_mounts(task)}});
}

}  // namespace

std::string worker_task_name(const WorkerTask& task) {
    // The hash tells "a-b" of "c" from "a" of "b-c", and the Modules of two namespaces in one place.
    const std::string hash = short_hash(fmt::format("{}\n{}\n{}\n{}", task.namespace_, task.module, task.node, verb_of(task)));
    const std::string start = shortened(fmt::format("kmm-upgrade-{}-{}-{}", verb_of(task), task.node, task.module),
                                        k_task_name_max - hash.size() - 1);
    return fmt::format("{}-{}", start, hash);
}

Node worker_task_pod(const WorkerTask& task) {
    const Node labels = Node::mapping({{"app.kubernetes.io/component", "worker"},
                                       {std::string(k_label_managed_by), k_task_manager},
                                       {"app.kubernetes.io/name", "kmm-tools"},
                                       {std::string(k_label_module), shortened(task.module, k_label_value_max)},
                                       {std::string(k_label_run), task.run},
                                       {std::string(k_label_verb), verb_of(task)}});
    Node metadata = Node::mapping();
    if (!task.config.empty()) {
        metadata.set("annotations", Node::mapping({{std::string(k_task_config_annotation), task.config}}));
    }
    metadata.set("labels", labels);
    metadata.set("name", worker_task_name(task));
    metadata.set("namespace", task.namespace_);
    Node spec = Node::mapping({{"activeDeadlineSeconds", static_cast<std::int64_t>(task.deadline.count())},
                               {"automountServiceAccountToken", false},
                               {"containers", Node::sequence({task_container(task)})},
                               {"hostNetwork", true},
                               {"nodeName", task.node},
                               {"restartPolicy", "Never"}});
    if (!task.service_account.empty()) { spec.set("serviceAccountName", task.service_account); }
    spec.set("tolerations", Node::sequence({Node::mapping({{"operator", "Exists"}})}));
    spec.set("volumes", task_volumes(task));
    return object("v1", "Pod", std::move(metadata), std::move(spec));
}

}  // namespace kmm::render
