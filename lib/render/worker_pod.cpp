// SPDX-License-Identifier: Apache-2.0
// The worker Pod in both styles. Source: KMM worker pod manager; facts: KMM 6.
// Style pull differs from the operator's Pod where the worker does the work itself: no init container; the pull Secret
// and the worker's own state directory are mounted; the loading order is read from the configuration; unloading takes
// firmware back, and so may write where loading may; no finalizer, since nobody would take it away.
#include <algorithm>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "base/clean_path.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "render/parts.hpp"
#include "render/quote.hpp"
#include "value/writer.hpp"

namespace kmm::render {

namespace {

using value::Node;

enum class WorkerAction { load, unload };

constexpr std::string_view k_config_file = "/etc/kmm-worker/config.yaml";
constexpr std::string_view k_secrets_directory = "/var/run/kmm/pull-secrets";
constexpr std::string_view k_state_directory = "/run/kmm-worker";
constexpr std::string_view k_config_annotation = "kmm.node.kubernetes.io/worker-config";
constexpr std::string_view k_order_annotation = "kmm.node.kubernetes.io/modules-order";

struct WorkerJob {
    Scene* scene;
    std::string node;
    const api::NodeModulesConfig* owner;  ///< null if the node has none yet
    const api::NodeModule* entry;
    WorkerAction action;

    [[nodiscard]] bool pulls() const { return scene->options.worker_style == WorkerStyle::pull; }
    [[nodiscard]] bool loads() const { return action == WorkerAction::load; }
    [[nodiscard]] bool with_firmware() const { return !entry->config->modprobe.firmware_path.empty(); }
    /// KMM copies them to where modprobe of its worker reads them, which needs more than SYS_MODULE for their commands.
    [[nodiscard]] bool copies_modprobed() const {
        return !pulls() && !entry->config->modprobe.modprobed_dir.empty();
    }
    /// KMM's worker up to v2.6.0 unloads the modules by their soft dependencies, later ones by one call with all names.
    [[nodiscard]] bool with_order() const {
        return (loads() || scene->is_released()) && !entry->config->modprobe.modules_loading_order.empty();
    }
    /// Unloading needs no image, and so no credentials.
    [[nodiscard]] bool mounts_secret() const { return pulls() && loads() && !entry->image_repo_secret.empty(); }
    [[nodiscard]] const std::string& host_firmware() const {
        return scene->options.operator_config.worker_firmware_host_path;
    }
    [[nodiscard]] std::string secret_directory() const {
        return fmt::format("{}/{}", k_secrets_directory, entry->image_repo_secret);
    }
};

/// The file in a mounted pull Secret; decided by its type, dockerconfigjson if the Secret was not read.
std::string auth_file(const WorkerJob& job) {
    std::string_view key = ".dockerconfigjson";
    for (const auto& secret : job.scene->objects.secrets) {
        if (secret.meta.namespace_ == job.entry->namespace_ && secret.meta.name == job.entry->image_repo_secret &&
            secret.type == "kubernetes.io/dockercfg") {
            key = ".dockercfg";
        }
    }
    return fmt::format("{}/{}", job.secret_directory(), key);
}

Node worker_arguments(const WorkerJob& job) {
    const std::string verb = job.loads() ? "load" : "unload";
    std::vector<std::string> args;
    if (job.pulls()) {
        args = {verb, std::string(k_config_file), "-o", "json"};
        if (job.mounts_secret()) { args.insert(args.end(), {"--authfile", auth_file(job)}); }
    } else {
        args = {"kmod", verb, std::string(k_config_file)};
    }
    if (job.with_firmware()) { args.insert(args.end(), {"--firmware-path", job.host_firmware()}); }
    return Node::strings(args);
}

Node worker_security_context(const WorkerJob& job) {
    if (job.copies_modprobed() || (job.with_firmware() && (job.pulls() || job.loads()))) {
        return Node::mapping({{"privileged", true}});
    }
    const OperatorConfig& config = job.scene->options.operator_config;
    Node context = Node::mapping({{"capabilities", Node::mapping({{"add", Node::strings({"SYS_MODULE"})}})},
                                  {"runAsUser", config.worker_run_as_user}});
    if (!config.worker_se_linux_type.empty()) {
        context.set("seLinuxOptions", Node::mapping({{"type", config.worker_se_linux_type}}));
    }
    return context;
}

Node worker_resources() {
    return Node::mapping({{"limits", Node::mapping({{"cpu", "1"}, {"memory", "128Mi"}})},
                          {"requests", Node::mapping({{"cpu", "500m"}, {"memory", "64Mi"}})}});
}

/// Since v2.7 the file alone, so that others can be put beside it.
Node order_mount(const WorkerJob& job) {
    if (job.scene->is_released()) { return mount("modules-order", "/etc/modprobe.d", Access::read_only); }
    Node node = mount("modules-order", "/etc/modprobe.d/softdep.conf", Access::read_only);
    node.set("subPath", "softdep.conf");
    return node;
}

Node worker_container(const WorkerJob& job) {
    Node mounts = Node::sequence({mount("config", "/etc/kmm-worker", Access::read_only),
                                  mount("lib-modules", "/lib/modules", Access::read_only)});
    if (job.pulls()) {
        mounts.push_back(mount("tmp", "/tmp"));
        mounts.push_back(mount("state", k_state_directory));
        if (job.mounts_secret()) {
            mounts.push_back(mount("pull-secret", job.secret_directory(), Access::read_only));
        }
    } else {
        mounts.push_back(mount("lib-modules", "/host/lib/modules", Access::read_only));
        mounts.push_back(mount("tmp", "/tmp", Access::read_only));
        if (job.with_order()) { mounts.push_back(order_mount(job)); }
    }
    if (job.with_firmware()) { mounts.push_back(mount("lib-firmware", job.host_firmware())); }
    Node container = Node::mapping({{"args", worker_arguments(job)},
                                    {"image", job.scene->options.worker_image},
                                    {"name", "worker"},
                                    {"resources", worker_resources()},
                                    {"securityContext", worker_security_context(job)},
                                    {"volumeMounts", std::move(mounts)}});
    if (job.pulls()) { container.set("env", Node::sequence({env_field("NODE_NAME", "spec.nodeName")})); }
    return container;
}

/// Copies the files of modprobedDir, with KMM's rules: a directory, with regular files, and no directory in it. Where
/// KMM copies them to is taken to be as for firmware.
std::string modprobed_script(const std::string& directory) {
    return fmt::format("\nsrc={};\ndst={};\n", base::shell_word(base::clean_path(directory)),
                       base::shell_word(base::join_paths({"/tmp", directory}))) +
           R"(fail() { echo "modprobedDir $src $1" >&2; exit 1; };
[ -d "$src" ] || fail "is missing or not a directory";
mkdir -p "$dst" || exit 1;
found=;
for file in "$src"/* "$src"/.[!.]* "$src"/..?*; do
  [ ! -d "$file" ] || fail "contains a subdirectory";
  [ -f "$file" ] || continue;
  cp "$file" "$dst/" || exit 1;
  found=yes;
done;
[ -n "$found" ] || fail "contains no regular files";
)";
}

/// KMM's commands; for words that KMM does not quote and should, quoted. Paths are joined as its Go does (facts:
/// KMM 6.5).
std::string extract_script(const WorkerJob& job) {
    const auto& modprobe = job.entry->config->modprobe;
    const auto copy = [](const std::string& from, const char* all, const std::string& to) {
        return fmt::format("\nmkdir -p {0};\ncp -R {1}{2} {0};\n", base::shell_word(to),
                           from.empty() ? "" : base::shell_word(from), all);
    };
    std::string script = copy(base::join_paths({modprobe.dir_name, "lib/modules", job.entry->config->kernel_version}),
                              "", base::join_paths({"/tmp", modprobe.dir_name, "lib/modules"}));
    if (job.with_firmware()) {
        const std::string from = base::clean_path(modprobe.firmware_path);
        // filepath.Join(PATH, "*"): nothing stands before the star of the working directory, one slash before that of
        // the root.
        script += copy(from == "." || from == "/" ? "" : from, from == "." ? "*" : "/*",
                       base::join_paths({"/tmp", modprobe.firmware_path}));
    }
    if (job.copies_modprobed()) { script += modprobed_script(modprobe.modprobed_dir); }
    return script;
}

Node extract_container(const WorkerJob& job) {
    const api::ModuleConfig& config = *job.entry->config;
    Node container = Node::mapping({{"args", Node::strings({extract_script(job)})},
                                    {"command", Node::strings({"/bin/sh", "-c"})},
                                    {"image", config.container_image},
                                    {"name", "image-extractor"},
                                    {"resources", worker_resources()},
                                    {"volumeMounts", Node::sequence({mount("tmp", "/tmp")})}});
    if (!config.image_pull_policy.empty()) { container.set("imagePullPolicy", config.image_pull_policy); }
    return container;
}

Node worker_volumes(const WorkerJob& job) {
    Node list = Node::sequence({annotation_volume("config", k_config_annotation, "config.yaml"),
                                host_path("lib-modules", "/lib/modules", "Directory"),
                                Node::mapping({{"emptyDir", Node::mapping()}, {"name", "tmp"}})});
    if (job.pulls()) {
        list.push_back(host_path("state", k_state_directory, "DirectoryOrCreate"));
        if (job.mounts_secret()) {
            list.push_back(secret_volume("pull-secret", job.entry->image_repo_secret));
        }
    } else if (job.with_order()) {
        list.push_back(annotation_volume("modules-order", k_order_annotation, "softdep.conf"));
    }
    if (job.with_firmware()) { list.push_back(host_path("lib-firmware", job.host_firmware(), "DirectoryOrCreate")); }
    return list;
}

/// Facts: KMM 7.4.
std::string softdep_text(const std::vector<std::string>& order) {
    std::string text;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        text += fmt::format("softdep {} pre: {}\n", order[i], order[i + 1]);
    }
    return text;
}

std::string worker_name(const WorkerJob& job) {
    const std::string name = fmt::format("kmm-worker-{}-{}", job.node, job.entry->name);
    if (name.size() <= k_name_length_max) { return name; }
    job.scene->warn(job.scene->find_module(job.entry->namespace_, job.entry->name), "metadata.name", "name-too-long",
                    fmt::format("the worker Pod's name on Node {} would have {} characters, expected at most {}",
                                job.node, name.size(), k_name_length_max),
                    "KMM cannot create that Pod; here it got a shorter name");
    return shortened(name, k_name_length_max);
}

Node worker_metadata(const WorkerJob& job, const Node& spec) {
    Node annotations = Node::mapping();
    annotations.set(std::string(k_config_annotation), value::to_yaml(api::encode(*job.entry->config)));
    if (job.with_order()) {
        annotations.set(std::string(k_order_annotation),
                        softdep_text(job.entry->config->modprobe.modules_loading_order));
    }
    if (job.loads() && !job.entry->version.empty()) {
        annotations.set("kmm.node.kubernetes.io/worker-module-version", job.entry->version);
    }
    if (!job.entry->tolerations->empty()) {
        annotations.set("kmm.node.kubernetes.io/worker-tolerations",
                        value::to_yaml(toleration_list(job.entry->tolerations)));
    }
    const Node labels = Node::mapping({{"app.kubernetes.io/component", "worker"},
                                       {"app.kubernetes.io/name", "kmm"},
                                       {"app.kubernetes.io/part-of", "kmm"},
                                       {std::string(api::k_label_module_name), job.entry->name},
                                       {std::string(api::k_label_worker_action), job.loads() ? "Load" : "Unload"}});
    Node metadata = Node::mapping({{"annotations", annotations},
                                   {"labels", labels},
                                   {"name", worker_name(job)},
                                   {"namespace", job.entry->namespace_}});
    annotations.set("kmm.node.kubernetes.io/worker-hash",
                    tree_hash(Node::mapping({{"metadata", metadata}, {"spec", spec}})));
    metadata.set("annotations", std::move(annotations));
    if (!job.pulls()) { set_finalizers(metadata, job.scene->finalizers({std::string(k_worker_finalizer)})); }
    if (job.owner != nullptr && !job.owner->meta.uid.empty()) {
        set_owner(metadata, controller_reference(api::k_group_version, "NodeModulesConfig", job.owner->meta.name,
                                                 job.owner->meta.uid));
    }
    return metadata;
}

/// Facts: KMM 3.1.
void check_kernel(const WorkerJob& job, const std::string& real_kernel) {
    if (job.pulls() || !job.loads() || real_kernel == job.entry->config->kernel_version) { return; }
    job.scene->warn(job.scene->find_module(job.entry->namespace_, job.entry->name), "metadata.name", "kernel-plus",
                    fmt::format("Node {} runs {}, KMM copies the modules of {} and modprobe does not find them there",
                                job.node, base::escape(real_kernel), base::escape(job.entry->config->kernel_version)),
                    "--worker-style pull looks for both names");
}

void check_paths(const WorkerJob& job) {
    const auto& modprobe = job.entry->config->modprobe;
    const api::Module* module = job.scene->find_module(job.entry->namespace_, job.entry->name);
    const auto check = [&](const std::string& path, const char* field) {
        if (path.empty() || base::is_plain_word(path)) { return; }
        job.scene->warn(
            module, fmt::format("spec.moduleLoader.container.modprobe.{}", field), "unsafe-path",
            fmt::format("KMM puts {} \"{}\" into a shell command without quotes", field, base::escape(path)),
            job.pulls() ? "kmm-worker uses no shell; with KMM's operator use plain characters"
                        : "here it is quoted; with KMM's operator use plain characters");
    };
    check(modprobe.dir_name, "dirName");
    check(modprobe.firmware_path, "firmwarePath");
}

Node worker_pod(const WorkerJob& job) {
    if (job.with_firmware() && job.host_firmware().empty()) {
        throw Error(Exit::usage, "firmware-host-path-missing",
                    fmt::format("Module {}/{} has firmware, expected the hosts' firmware directory",
                                job.entry->namespace_, job.entry->name))
            .hint("--firmware-host-path /lib/firmware");
    }
    check_paths(job);
    Node spec = Node::mapping({{"containers", Node::sequence({worker_container(job)})},
                               {"nodeName", job.node},
                               {"restartPolicy", "OnFailure"},
                               {"serviceAccountName", job.entry->service_account_name},
                               {"volumes", worker_volumes(job)}});
    if (job.pulls()) { spec.set("automountServiceAccountToken", false); }
    if (!job.pulls()) { spec.set("initContainers", Node::sequence({extract_container(job)})); }
    set_pull_secret(spec, job.entry->image_repo_secret);
    set_tolerations(spec, job.entry->tolerations);
    Node metadata = worker_metadata(job, spec);
    return object("v1", "Pod", std::move(metadata), std::move(spec));
}

bool loaded_before_boot(const api::Node& node, const api::NodeModule& status) {
    return !status.boot_id.empty() && !node.boot_id.empty() && status.boot_id != node.boot_id;
}

/// Modules that are only in a status and are no Module's any more: KMM unloads them.
void add_orphans(Scene& scene, const plan::NodeView& view, std::vector<Node>& out) {
    if (view.config == nullptr) { return; }
    for (const auto& status : view.config->status) {
        const bool known = scene.find_module(status.namespace_, status.name) != nullptr;
        const bool wanted = plan::find_entry(view.config->spec, status.namespace_, status.name) != nullptr;
        if (known || wanted || loaded_before_boot(*view.node, status)) { continue; }
        out.push_back(worker_pod({&scene, view.node->meta.name, view.config, &status, WorkerAction::unload}));
    }
}

}  // namespace

void add_worker_pods(Scene& scene, std::vector<Node>& out) {
    auto verdict = scene.verdicts.begin();
    auto by_name = plan::views(scene.objects);
    std::sort(by_name.begin(), by_name.end(),
              [](const plan::NodeView& a, const plan::NodeView& b) { return a.node->meta.name < b.node->meta.name; });
    for (const auto& view : by_name) {
        const std::string& node = view.node->meta.name;
        for (; verdict != scene.verdicts.end() && verdict->entry.node == node; ++verdict) {
            const plan::Action action = verdict->entry.action;
            const bool unloads = action == plan::Action::unload || action == plan::Action::reload;
            const bool loads = action == plan::Action::load || action == plan::Action::reload;
            if (unloads && verdict->observed_status) {
                out.push_back(
                    worker_pod({&scene, node, view.config, &*verdict->observed_status, WorkerAction::unload}));
            }
            if (loads && verdict->wanted) {
                const WorkerJob load{&scene, node, view.config, &*verdict->wanted, WorkerAction::load};
                check_kernel(load, verdict->entry.kernel);
                out.push_back(worker_pod(load));
            }
        }
        add_orphans(scene, view, out);
    }
}

}  // namespace kmm::render
