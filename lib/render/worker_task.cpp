// SPDX-License-Identifier: Apache-2.0
#include "render/worker_task.hpp"

#include <fmt/format.h>

#include "render/parts.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_task_config_annotation = "kmmtools.dev/worker-config";
constexpr std::string_view k_apparmor_annotation = "container.apparmor.security.beta.kubernetes.io/worker";
constexpr std::size_t k_task_name_max = 253;
constexpr std::size_t k_label_value_max = 63;

std::string verb_of(const WorkerTask& task) { return worker_task_verb(task.args); }

bool is_of_kubernetes(const WorkerTask& task) { return !task.args.empty() && task.args.front() == "kubernetes"; }

Node named(std::string_view name, std::string_view text) { return Node::mapping({{"name", name}, {"value", text}}); }

/// Load and unload change the kernel: they are privileged, since the device of the kernel's log and the directories of
/// firmware need it, and stay on the host's network, since the driver of a Pod network may be the very module that is
/// replaced. All other verbs only look.
bool changes_the_kernel(const WorkerTask& task) {
    const std::string verb = verb_of(task);
    return verb == "load" || verb == "unload";
}

/// Where the Pods that only look see the node: a container without rights has a /proc and a /sys of its own with parts
/// left out.
constexpr std::string_view k_view = "/host";

std::string seen_at(const WorkerTask& task, std::string_view path) {
    return changes_the_kernel(task) ? std::string(path) : fmt::format("{}{}", k_view, path);
}

/// A node of a kubeadm cluster is made of files everywhere: a Pod that reads it has its / read-only below k_view and
/// goes there by chroot; one that changes it goes over to the namespaces of the node's first process and mounts
/// nothing.
Node kubernetes_volumes(const WorkerTask& task) {
    Node volumes = Node::sequence();
    if (!is_worker_change(verb_of(task))) { volumes.push_back(host_path("node", "/", "Directory")); }
    return volumes;
}

Node kubernetes_mounts(const WorkerTask& task) {
    Node mounts = Node::sequence();
    if (!is_worker_change(verb_of(task))) { mounts.push_back(mount("node", k_view, Access::read_only)); }
    return mounts;
}

/// To read files of every owner, to see which process is the node's kubelet, and to enter k_view. SELinux and AppArmor
/// let an ordinary container do none of that, whatever its capabilities.
Node kubernetes_security(const WorkerTask& task) {
    Node context = Node::mapping();
    if (is_worker_change(verb_of(task))) {
        context.set("privileged", true);
        context.set("readOnlyRootFilesystem", true);
        context.set("runAsUser", 0);
        return context;
    }
    context.set("allowPrivilegeEscalation", false);
    if (task.has_apparmor_field) { context.set("appArmorProfile", Node::mapping({{"type", "Unconfined"}})); }
    context.set("capabilities", Node::mapping({{"add", Node::strings({"DAC_READ_SEARCH", "SYS_CHROOT", "SYS_PTRACE"})},
                                               {"drop", Node::strings({"ALL"})}}));
    context.set("readOnlyRootFilesystem", true);
    context.set("runAsUser", 0);
    context.set("seLinuxOptions", Node::mapping({{"type", "spc_t"}}));
    context.set("seccompProfile", Node::mapping({{"type", "RuntimeDefault"}}));
    return context;
}

/// What only looks at the kernel does not write what a load has noted. A check keeps what it has pulled for the load.
Access state_access(const WorkerTask& task) {
    return changes_the_kernel(task) ? Access::read_write : Access::read_only;
}

bool uses_the_cache(const WorkerTask& task) { return changes_the_kernel(task) || verb_of(task) == "check"; }

bool has_pull_secret(const WorkerTask& task) { return !task.pull_secret.empty() && !task.pull_secret_keys.empty(); }

/// Nothing of the Secret but logins at registries, whatever it is.
Node pull_secret_volume(const WorkerTask& task) {
    Node items = Node::sequence();
    for (const auto& key : task.pull_secret_keys) { items.push_back(Node::mapping({{"key", key}, {"path", key}})); }
    return Node::mapping({{"name", "pull-secret"},
                          {"secret", Node::mapping({{"items", items}, {"secretName", task.pull_secret}})}});
}

Node task_volumes(const WorkerTask& task) {
    if (is_of_kubernetes(task)) { return kubernetes_volumes(task); }
    Node volumes = Node::sequence();
    if (!task.config.empty()) {
        volumes.push_back(annotation_volume("config", k_task_config_annotation, "config.yaml"));
    }
    volumes.push_back(host_path("lib-modules", "/lib/modules", "Directory"));
    if (!changes_the_kernel(task)) {
        volumes.push_back(host_path("proc", "/proc", "Directory"));
        volumes.push_back(host_path("sys", "/sys", "Directory"));
    }
    volumes.push_back(Node::mapping({{"emptyDir", Node::mapping()}, {"name", "tmp"}}));
    volumes.push_back(host_path("state", "/run/kmm-worker", "DirectoryOrCreate"));
    if (uses_the_cache(task)) { volumes.push_back(host_path("cache", "/var/lib/kmm-worker", "DirectoryOrCreate")); }
    if (has_pull_secret(task)) { volumes.push_back(pull_secret_volume(task)); }
    if (!task.firmware_host_path.empty()) {
        volumes.push_back(host_path("lib-firmware", task.firmware_host_path, "DirectoryOrCreate"));
    }
    return volumes;
}

Node task_mounts(const WorkerTask& task) {
    if (is_of_kubernetes(task)) { return kubernetes_mounts(task); }
    Node mounts = Node::sequence();
    if (!task.config.empty()) { mounts.push_back(mount("config", "/etc/kmm-worker", Access::read_only)); }
    mounts.push_back(mount("lib-modules", seen_at(task, "/lib/modules"), Access::read_only));
    if (!changes_the_kernel(task)) {
        mounts.push_back(mount("proc", seen_at(task, "/proc"), Access::read_only));
        mounts.push_back(mount("sys", seen_at(task, "/sys"), Access::read_only));
    }
    mounts.push_back(mount("tmp", "/tmp"));
    mounts.push_back(mount("state", seen_at(task, "/run/kmm-worker"), state_access(task)));
    if (uses_the_cache(task)) { mounts.push_back(mount("cache", seen_at(task, "/var/lib/kmm-worker"))); }
    if (has_pull_secret(task)) {
        // The worker reads every Secret below this directory.
        mounts.push_back(
            mount("pull-secret", fmt::format("/var/run/kmm/pull-secrets/{}", task.pull_secret), Access::read_only));
    }
    if (!task.firmware_host_path.empty()) {
        mounts.push_back(mount("lib-firmware", seen_at(task, task.firmware_host_path),
                               changes_the_kernel(task) ? Access::read_write : Access::read_only));
    }
    return mounts;
}

Node security_context(const WorkerTask& task) {
    if (is_of_kubernetes(task)) { return kubernetes_security(task); }
    Node context = Node::mapping();
    if (!changes_the_kernel(task)) {
        context.set("allowPrivilegeEscalation", false);
        context.set("capabilities", Node::mapping({{"drop", Node::strings({"ALL"})}}));
    } else {
        context.set("privileged", true);
    }
    context.set("readOnlyRootFilesystem", true);
    context.set("runAsUser", 0);
    if (!changes_the_kernel(task)) { context.set("seccompProfile", Node::mapping({{"type", "RuntimeDefault"}})); }
    return context;
}

/// Small requests, so that a full node takes the Pod; no limits, since a module may be large.
Node task_container(const WorkerTask& task) {
    const Node requests = Node::mapping({{"cpu", "10m"}, {"memory", "32Mi"}});
    Node env =
        Node::sequence({named("KMM_TERMINATION_LOG", "/dev/termination-log"), env_field("NODE_NAME", "spec.nodeName")});
    if (is_of_kubernetes(task)) {
        const bool changes = is_worker_change(verb_of(task));
        env.push_back(changes ? named("KMM_NODE_NAMESPACES", "/proc/1/ns") : named("KMM_NODE_ROOT", k_view));
    } else if (!changes_the_kernel(task)) {
        env.push_back(named("KMM_HOST_ROOT", k_view));
    }
    // What a node has under a tag may be anything that was pulled or imported there once; a digest says what it is.
    const bool by_digest = task.image.find("@sha256:") != std::string::npos;
    return Node::mapping(
        {{"args", Node::strings(task.args)},
         {"env", env},
         {"image", task.image},
         {"imagePullPolicy", by_digest ? "IfNotPresent" : "Always"},
         {"name", "worker"},
         {"resources", Node::mapping({{"requests", requests}})},
         {"securityContext", security_context(task)},
         {"terminationMessagePath", "/dev/termination-log"},
         {"terminationMessagePolicy", "FallbackToLogsOnError"},
         {"volumeMounts", task_mounts(task)}});
}

}  // namespace

std::string worker_task_verb(const std::vector<std::string>& args) {
    if (args.empty()) { return ""; }
    return args.front() == "kubernetes" && args.size() > 1 ? fmt::format("kubernetes-{}", args[1]) : args.front();
}

bool is_worker_change(std::string_view verb) {
    if (verb.starts_with("kubernetes-")) { return !is_worker_reading(verb); }
    return verb == "load" || verb == "unload";
}

bool is_worker_reading(std::string_view verb) { return verb == "kubernetes-facts"; }

std::string worker_task_name(const WorkerTask& task) {
    // The hash tells "a-b" of "c" from "a" of "b-c", and the Modules of two namespaces in one place.
    const std::string hash = short_hash(
        fmt::format("{}\n{}\n{}\n{}{}", task.module_namespace.empty() ? task.namespace_ : task.module_namespace,
                    task.module, task.node, verb_of(task), is_worker_reading(verb_of(task)) ? "\n" + task.run : ""));
    const std::string start = shortened(fmt::format("kmm-upgrade-{}-{}-{}", verb_of(task), task.node, task.module),
                                        k_task_name_max - hash.size() - 1);
    return fmt::format("{}-{}", start, hash);
}

Node worker_task_pod(const WorkerTask& task) {
    Node labels = Node::mapping({{"app.kubernetes.io/component", "worker"},
                                       {std::string(k_label_managed_by), k_task_manager},
                                       {"app.kubernetes.io/name", "kmm-tools"},
                                       {std::string(k_label_module), shortened(task.module, k_label_value_max)},
                                       {std::string(k_label_run), task.run},
                                       {std::string(k_label_verb), verb_of(task)}});
    if (!task.module_namespace.empty()) { labels.set(std::string(k_label_module_namespace), task.module_namespace); }
    Node metadata = Node::mapping();
    if (!task.config.empty()) {
        metadata.set("annotations", Node::mapping({{std::string(k_task_config_annotation), task.config}}));
    }
    if (is_of_kubernetes(task) && !task.has_apparmor_field && !is_worker_change(verb_of(task))) {
        metadata.set("annotations", Node::mapping({{std::string(k_apparmor_annotation), "unconfined"}}));
    }
    metadata.set("labels", labels);
    metadata.set("name", worker_task_name(task));
    metadata.set("namespace", task.namespace_);
    Node spec = Node::mapping({{"activeDeadlineSeconds", static_cast<std::int64_t>(task.deadline.count())},
                               {"automountServiceAccountToken", false},
                               {"containers", Node::sequence({task_container(task)})},
                               {"hostNetwork", changes_the_kernel(task) || is_of_kubernetes(task)}});
    // The node's services answer on its loopback network. With its pids a job is no child of the container.
    if (is_of_kubernetes(task) && is_worker_change(verb_of(task))) { spec.set("hostPID", true); }
    spec.set("nodeName", task.node);
    if (is_of_kubernetes(task)) { spec.set("priorityClassName", "system-node-critical"); }
    spec.set("restartPolicy", "Never");
    if (!task.service_account.empty()) { spec.set("serviceAccountName", task.service_account); }
    spec.set("tolerations", Node::sequence({Node::mapping({{"operator", "Exists"}})}));
    spec.set("volumes", task_volumes(task));
    return object("v1", "Pod", std::move(metadata), std::move(spec));
}

}  // namespace kmm::render
