// SPDX-License-Identifier: Apache-2.0
// The worker Pod. Source: KMM worker pod manager; facts: KMM 6. Deviations: the worker pulls the image itself, so there is no
// init container, the pull Secret is mounted and the loading order is read from the configuration; there is no
// finalizer and no hash, which only KMM's operator uses.
#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "plan/verdict.hpp"
#include "render/manifests.hpp"
#include "value/writer.hpp"

namespace kmm::render {

namespace {

using value::Node;

enum class WorkerAction { load, unload };

constexpr std::string_view k_config_file = "/etc/kmm-worker/config.yaml";
constexpr std::string_view k_secrets_directory = "/var/run/kmm/pull-secrets";

struct Job {
    const api::Objects* objects;
    const plan::Verdict* verdict;
    const api::NodeModule* entry;
    WorkerAction action;
    const WorkerOptions* options;

    /// Only loading copies firmware to the host.
    [[nodiscard]] bool with_firmware() const {
        return action == WorkerAction::load && !entry->config.modprobe.firmware_path.empty();
    }
};

Node mount(std::string_view name, std::string_view path, bool read_only) {
    Node node = Node::mapping({{"name", name}, {"mountPath", path}});
    if (read_only) { node.set("readOnly", true); }
    return node;
}

Node host_path(std::string_view name, std::string_view path, std::string_view type) {
    return Node::mapping({{"name", name}, {"hostPath", Node::mapping({{"path", path}, {"type", type}})}});
}

/// The file in a mounted pull Secret; decided by its type, dockerconfigjson if the Secret was not read.
std::string auth_file(const Job& job) {
    std::string_view key = ".dockerconfigjson";
    for (const auto& secret : job.objects->secrets) {
        if (secret.meta.namespace_ == job.entry->namespace_ && secret.meta.name == job.entry->image_repo_secret &&
            secret.type == "kubernetes.io/dockercfg") {
            key = ".dockercfg";
        }
    }
    return fmt::format("{}/{}/{}", k_secrets_directory, job.entry->image_repo_secret, key);
}

Node arguments(const Job& job) {
    std::vector<std::string> args{job.action == WorkerAction::load ? "load" : "unload", std::string(k_config_file), "-o",
                                  "json"};
    if (!job.entry->image_repo_secret.empty()) {
        args.insert(args.end(), {"--authfile", auth_file(job)});
    }
    if (job.with_firmware()) { args.insert(args.end(), {"--firmware-path", job.options->firmware_host_path}); }
    return Node::strings(args);
}

Node security_context(const Job& job) {
    if (job.with_firmware()) { return Node::mapping({{"privileged", true}}); }
    return Node::mapping({{"capabilities", Node::mapping({{"add", Node::strings({"SYS_MODULE"})}})},
                          {"runAsUser", 0},
                          {"seLinuxOptions", Node::mapping({{"type", "spc_t"}})}});
}

Node resources() {
    return Node::mapping({{"limits", Node::mapping({{"cpu", "1"}, {"memory", "128Mi"}})},
                          {"requests", Node::mapping({{"cpu", "500m"}, {"memory", "64Mi"}})}});
}

Node container(const Job& job) {
    Node mounts = Node::sequence({mount("config", "/etc/kmm-worker", true), mount("lib-modules", "/lib/modules", true),
                                  mount("tmp", "/tmp", false)});
    if (!job.entry->image_repo_secret.empty()) {
        mounts.push_back(mount("pull-secret", fmt::format("{}/{}", k_secrets_directory, job.entry->image_repo_secret), true));
    }
    if (job.with_firmware()) { mounts.push_back(mount("lib-firmware", job.options->firmware_host_path, false)); }
    return Node::mapping({{"name", "worker"},
                          {"image", job.options->image},
                          {"args", arguments(job)},
                          {"resources", resources()},
                          {"securityContext", security_context(job)},
                          {"volumeMounts", std::move(mounts)}});
}

Node volumes(const Job& job) {
    const Node field = Node::mapping({{"fieldPath", "metadata.annotations['kmm.node.kubernetes.io/worker-config']"}});
    const Node items = Node::sequence({Node::mapping({{"path", "config.yaml"}, {"fieldRef", field}})});
    Node list = Node::sequence({Node::mapping({{"name", "config"}, {"downwardAPI", Node::mapping({{"items", items}})}}),
                                host_path("lib-modules", "/lib/modules", "Directory"),
                                Node::mapping({{"name", "tmp"}, {"emptyDir", Node::mapping()}})});
    if (!job.entry->image_repo_secret.empty()) {
        const Node secret = Node::mapping({{"secretName", job.entry->image_repo_secret}});
        list.push_back(Node::mapping({{"name", "pull-secret"}, {"secret", secret}}));
    }
    if (job.with_firmware()) {
        list.push_back(host_path("lib-firmware", job.options->firmware_host_path, "DirectoryOrCreate"));
    }
    return list;
}

Node tolerations(const Job& job) {
    Node list = Node::sequence();
    for (const auto& toleration : job.entry->tolerations) { list.push_back(api::encode(toleration)); }
    return list;
}

Node metadata(const Job& job) {
    Node annotations = Node::mapping();
    annotations.set("kmm.node.kubernetes.io/worker-config", value::to_yaml(api::encode(job.entry->config)));
    if (job.action == WorkerAction::load && !job.entry->version.empty()) {
        annotations.set("kmm.node.kubernetes.io/worker-module-version", job.entry->version);
    }
    if (!job.entry->tolerations.empty()) {
        annotations.set("kmm.node.kubernetes.io/worker-tolerations", value::to_yaml(tolerations(job)));
    }
    const Node labels = Node::mapping({{"app.kubernetes.io/component", "worker"},
                                       {"app.kubernetes.io/name", "kmm"},
                                       {"app.kubernetes.io/part-of", "kmm"},
                                       {std::string(api::k_label_module_name), job.entry->name},
                                       {std::string(api::k_label_worker_action),
                                        job.action == WorkerAction::load ? "Load" : "Unload"}});
    return Node::mapping({{"name", fmt::format("kmm-worker-{}-{}", job.verdict->entry.node, job.entry->name)},
                          {"namespace", job.entry->namespace_},
                          {"labels", labels},
                          {"annotations", std::move(annotations)}});
}

Node pod(const Job& job) {
    if (job.with_firmware() && job.options->firmware_host_path.empty()) {
        throw Error(Exit::usage, "firmware-host-path-missing",
                    fmt::format("Module {}/{} has firmware, expected the hosts' firmware directory", job.entry->namespace_,
                                job.entry->name))
            .hint("--firmware-host-path /lib/firmware");
    }
    Node spec = Node::mapping({{"nodeName", job.verdict->entry.node},
                               {"restartPolicy", "OnFailure"},
                               {"serviceAccountName", job.entry->service_account_name}});
    if (!job.entry->tolerations.empty()) { spec.set("tolerations", tolerations(job)); }
    spec.set("containers", Node::sequence({container(job)}));
    spec.set("volumes", volumes(job));
    return Node::mapping({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata(job)}, {"spec", std::move(spec)}});
}

}  // namespace

std::vector<value::Node> worker_pods(const api::Objects& objects, const plan::Options& plan_options,
                                     const WorkerOptions& options) {
    std::vector<value::Node> result;
    for (const auto& verdict : plan::judge_all(objects, plan_options)) {
        const plan::Action action = verdict.entry.action;
        const bool unloads = action == plan::Action::unload || action == plan::Action::reload;
        const bool loads = action == plan::Action::load || action == plan::Action::reload;
        if (unloads && verdict.observed_status) {
            result.push_back(pod(Job{&objects, &verdict, &*verdict.observed_status, WorkerAction::unload, &options}));
        }
        if (loads && verdict.wanted) {
            result.push_back(pod(Job{&objects, &verdict, &*verdict.wanted, WorkerAction::load, &options}));
        }
    }
    return result;
}

}  // namespace kmm::render
