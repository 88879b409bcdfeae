// SPDX-License-Identifier: Apache-2.0
// Build, sign and pull-check Pods. Source: KMM internal/buildsign and internal/pod; facts: KMM 11.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/image_labels.hpp"
#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "image/reference.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"
#include "render/parts.hpp"
#include "render/quote.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_dockerfile_annotation = "dockerfile";
constexpr std::string_view k_hash_annotation = "kmm.node.kubernetes.io/last-hash";

/// One image that a Module needs, for the first of its kernels that asks for it.
struct WantedImage {
    const api::Module* module;
    plan::Resolved resolved;
    bool missing = false;  ///< in its registry

    [[nodiscard]] const std::string& image() const { return resolved.config.container_image; }
};

/// By Module, then kernel; each image of a Module once, as in KMM's ModuleImagesConfig.
std::vector<WantedImage> wanted_images(const Scene& scene) {
    std::map<std::tuple<std::string, std::string, std::string>, const plan::Verdict*> by_kernel;
    for (const auto& verdict : scene.verdicts) {
        const auto* resolved = std::get_if<plan::Resolved>(&verdict.resolution);
        if (resolved == nullptr || !verdict.selected || !verdict.tolerated) { continue; }
        by_kernel.emplace(std::tuple{verdict.entry.namespace_, verdict.entry.module, resolved->kernel}, &verdict);
    }
    std::vector<WantedImage> result;
    std::set<std::tuple<std::string, std::string, std::string>> seen;
    for (const auto& [key, verdict] : by_kernel) {
        const auto& [ns, name, kernel] = key;
        const auto& resolved = std::get<plan::Resolved>(verdict->resolution);
        const api::Module* module = scene.find_module(ns, name);
        if (module == nullptr || module->meta.deleting) { continue; }
        if (seen.emplace(ns, name, resolved.config.container_image).second) {
            result.push_back({module, resolved, verdict->image_missing});
        }
    }
    return result;
}

bool is_asked_for(const WantedImage& wanted, Images images) { return images == Images::all || wanted.missing; }

void append_tls(std::vector<std::string>& args, const api::TlsOptions& tls, std::string_view insecure,
                std::string_view skip) {
    if (tls.insecure) { args.emplace_back(insecure); }
    if (tls.insecure_skip_tls_verify) { args.emplace_back(skip); }
}

/// What the build Pod pushes, and the sign Pod takes. KMM up to v2.6.0 keeps an image that is to be signed apart from
/// the signed one. Source: internal/module/helper.go there.
std::string built_image(const Scene& scene, const WantedImage& wanted) {
    if (!scene.is_released() || !wanted.resolved.sign) { return wanted.image(); }
    const char separator = wanted.image().find(':') == std::string::npos ? ':' : '_';
    return fmt::format("{}{}{}_{}_kmm_unsigned", wanted.image(), separator, wanted.module->meta.namespace_,
                       wanted.module->meta.name);
}

/// Where the result goes, and how the images it is made from are pulled.
std::vector<std::string> kaniko_arguments(const WantedImage& wanted, const std::string& result,
                                          const api::TlsOptions& pull_tls) {
    std::vector<std::string> args{"--destination", result};
    append_tls(args, wanted.resolved.registry_tls, "--insecure", "--skip-tls-verify");
    append_tls(args, pull_tls, "--insecure-pull", "--skip-tls-verify-pull");
    return args;
}

/// The user's arguments in order, KMM's own in their place where the user has them, the rest of them at the end.
std::vector<api::BuildArg> build_arguments(const WantedImage& wanted) {
    std::map<std::string, std::string> own{{"KERNEL_FULL_VERSION", wanted.resolved.kernel},
                                           {"KERNEL_VERSION", wanted.resolved.kernel},
                                           {"MOD_NAME", wanted.module->meta.name},
                                           {"MOD_NAMESPACE", wanted.module->meta.namespace_}};
    std::vector<api::BuildArg> result = wanted.resolved.build->build_args;
    std::set<std::string> used;
    for (auto& argument : result) {
        const auto found = own.find(argument.name);
        if (found == own.end()) { continue; }
        argument.value = found->second;
        used.insert(argument.name);
    }
    for (const auto& [name, text] : own) {
        if (used.count(name) == 0) { result.push_back({name, text}); }
    }
    return result;
}

/// The builder's image with its tag replaced. KMM cuts at the first ':' or '@', which may be that of a registry's port.
std::string builder_image(Scene& scene, const WantedImage& wanted) {
    const std::string& image = scene.options.build_image;
    const std::string& tag = wanted.resolved.build->kaniko_tag;
    if (tag.empty()) { return image; }
    const std::size_t slash = image.rfind('/');
    const std::size_t start = slash == std::string::npos ? 0 : slash;
    const std::size_t cut = std::min(image.find('@'), image.find(':', start));
    if (image.find_first_of(":@") < start) {
        scene.warn(wanted.module, "spec.moduleLoader.container.build.kanikoParams.tag", "kaniko-tag",
                   fmt::format("KMM would cut \"{}\" at the port of its registry to put tag {} there",
                               base::escape(image), tag),
                   "here the tag is replaced; with KMM's operator use a builder image without a port");
    }
    return fmt::format("{}:{}", image.substr(0, cut), tag);
}

/// KMM's name of a Secret's volume; where that is none, a name that is.
std::string secret_volume_name(const std::string& secret) {
    const std::string name = "secret-" + secret;
    return api::is_dns1123_label(name) ? name : "secret-" + short_hash(secret);
}

/// A Pod of kaniko. Volumes and mounts are appended as they are needed.
struct BuilderPod {
    Node mounts = Node::sequence();
    Node volumes = Node::sequence();

    void add(Node volume, std::string_view path) {
        mounts.push_back(mount(volume.get_string({"name"}), path, Access::read_only));
        volumes.push_back(std::move(volume));
    }
    [[nodiscard]] bool has_volume(std::string_view name) const {
        return std::any_of(volumes.items().begin(), volumes.items().end(),
                           [&](const Node& volume) { return volume.get_string({"name"}) == name; });
    }
};

/// kaniko's own credentials. A Secret may be mounted a second time, under a name of its own.
void add_push_secret(const WantedImage& wanted, BuilderPod& pod) {
    const std::string& secret = wanted.module->image_repo_secret;
    if (secret.empty()) { return; }
    std::string name = secret_volume_name(secret);
    if (pod.has_volume(name)) { name = "registry-" + short_hash(secret); }
    pod.add(secret_volume(name, secret, ".dockerconfigjson", "config.json"), "/kaniko/.docker");
}

Node builder_pod(Scene& scene, const WantedImage& wanted, BuilderPod pod, const std::vector<std::string>& args,
                 std::string_view type, Node annotations) {
    const std::string kernel = scene.is_released() ? plan::normalise_kernel(wanted.resolved.kernel)
                                                   : plan::dns_safe_kernel(wanted.resolved.kernel);
    const bool builds = type == "BuildImage";
    const std::string builder = builds ? builder_image(scene, wanted) : scene.options.build_image;
    Node spec =
        Node::mapping({{"containers", Node::sequence({Node::mapping({{"args", Node::strings(args)},
                                                                     {"image", builder},
                                                                     {"name", "kaniko"},
                                                                     {"volumeMounts", std::move(pod.mounts)}})})},
                       {"restartPolicy", "Never"},
                       {"volumes", std::move(pod.volumes)}});
    if (builds && !wanted.resolved.build->selector.empty()) {
        spec.set("nodeSelector", label_tree(wanted.resolved.build->selector));
    }
    set_tolerations(spec, wanted.module->tolerations);
    annotations.set(std::string(k_hash_annotation),
                    tree_hash(Node::mapping({{"annotations", annotations}, {"spec", spec}})));
    const Node labels =
        Node::mapping({{"app.kubernetes.io/component", type},
                       {"app.kubernetes.io/name", "kmm"},
                       {"app.kubernetes.io/part-of", "kmm"},
                       {std::string(api::k_label_module_name), wanted.module->meta.name},
                       {std::string(api::k_label_resource_type), type},
                       {"kmm.node.kubernetes.io/target-kernel", kernel.substr(0, api::k_label_length_max)}});
    const std::string start = fmt::format("{}-{}-", wanted.module->meta.name, builds ? "build" : "sign");
    const std::string name = start + (scene.is_released() ? short_hash(wanted.module->full_name() + kernel) : kernel);
    Node metadata = Node::mapping({{"annotations", std::move(annotations)}});
    if (scene.is_released()) { metadata.set("generateName", start); }
    metadata.set("labels", labels);
    metadata.set("name", shortened(name, k_name_length_max));
    metadata.set("namespace", wanted.module->meta.namespace_);
    set_finalizers(metadata, scene.finalizers({std::string(k_gc_delay_finalizer), std::string(k_job_event_finalizer)}));
    return object("v1", "Pod", std::move(metadata), std::move(spec));
}

/// The text of the Dockerfile in the ConfigMap, "" if it was not read: part of the hash.
std::string dockerfile_of(const Scene& scene, const WantedImage& wanted) {
    for (const auto& map : scene.objects.config_maps) {
        if (map.meta.namespace_ != wanted.module->meta.namespace_ ||
            map.meta.name != wanted.resolved.build->dockerfile_config_map) {
            continue;
        }
        const auto found = map.data.find("dockerfile");
        return found == map.data.end() ? "" : found->second;
    }
    return "";
}

Node build_pod(Scene& scene, const WantedImage& wanted) {
    const api::Build& build = *wanted.resolved.build;
    std::vector<std::string> args = kaniko_arguments(wanted, built_image(scene, wanted), build.base_image_registry_tls);
    for (const auto& argument : build_arguments(wanted)) {
        args.insert(args.end(), {"--build-arg", fmt::format("{}={}", argument.name, argument.value)});
    }
    BuilderPod pod;
    const Node items = Node::sequence({Node::mapping({{"key", "dockerfile"}, {"path", "Dockerfile"}})});
    const Node map = Node::mapping({{"items", items}, {"name", build.dockerfile_config_map}});
    pod.add(Node::mapping({{"configMap", map}, {"name", "dockerfile"}}), "/workspace");
    pod.add(host_path("lib-modules", "/lib/modules", "Directory"), "/host/lib/modules");
    for (const auto& secret : build.secrets) {
        const std::string name = secret_volume_name(secret);
        if (!pod.has_volume(name)) { pod.add(secret_volume(name, secret), fmt::format("/run/secrets/{}", secret)); }
    }
    add_push_secret(wanted, pod);
    Node result = builder_pod(scene, wanted, std::move(pod), args, "BuildImage", Node::mapping());
    Node* annotations = result.find("metadata")->find("annotations");
    const std::string text = dockerfile_of(scene, wanted);
    if (!text.empty()) {
        annotations->set(std::string(k_hash_annotation),
                         tree_hash(Node::mapping({{"dockerfile", text}, {"spec", *result.find("spec")}})));
    }
    return result;
}

void check_dockerfile_path(Scene& scene, const WantedImage& wanted, const std::string& path, const std::string& field) {
    if (!base::is_plain_word(shell_pattern(path)) && shell_pattern(path) != path) {
        scene.warn(wanted.module, "spec.moduleLoader.container.sign", "unsafe-path",
                   fmt::format("KMM puts {} \"{}\" into a shell command without quotes", field, base::escape(path)),
                   "here it is quoted; with KMM's operator use plain characters");
    }
    const bool control =
        std::any_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20U; });
    if (!control && (field != "dirName" || fits_copy(path))) { return; }
    throw Error(Exit::data, "bad-path", fmt::format("Module {}: {} \"{}\" cannot be written into a Dockerfile",
                                                    wanted.module->full_name(), field, base::escape(path)))
        .hint("use a path without control characters and, for dirName, without * ? [ ]");
}

std::string sign_dockerfile(Scene& scene, const WantedImage& wanted, const std::string& source) {
    const auto& resolved = wanted.resolved;
    const std::string& directory = resolved.config.modprobe.dir_name;
    for (const auto& image : {source, scene.options.sign_image}) { static_cast<void>(image::parse_reference(image)); }
    check_dockerfile_path(scene, wanted, directory, "dirName");
    const std::string staged = "/opt" + directory;
    std::string text = fmt::format("FROM {} AS source\n\nFROM {} AS signimage\nCOPY --from=source {}\n", source,
                                   scene.options.sign_image, copy_arguments(directory, staged));
    for (const auto& file : resolved.sign->files_to_sign) {
        check_dockerfile_path(scene, wanted, file, "filesToSign");
        text += fmt::format("RUN set -e; for file in {}; do /usr/local/bin/sign-file sha256 /run/secrets/key/key.pem "
                            "/run/secrets/cert/cert.pem \"$file\"; done\n",
                            shell_pattern("/opt" + file));
    }
    return text + fmt::format("\nFROM source\nCOPY --from=signimage {}\n", copy_arguments(staged, directory));
}

std::optional<Node> sign_pod(Scene& scene, const WantedImage& wanted) {
    const api::Sign& sign = *wanted.resolved.sign;
    const std::string& source = wanted.resolved.build ? built_image(scene, wanted) : sign.unsigned_image;
    if (source.empty()) {
        scene.warn(
            wanted.module, "spec.moduleLoader.container.sign", "no-unsigned-image",
            fmt::format("there is nothing to sign for {}: neither build nor sign.unsignedImage is set", wanted.image()),
            "set sign.unsignedImage");
        return std::nullopt;
    }
    BuilderPod pod;
    pod.add(annotation_volume("dockerfile", k_dockerfile_annotation, "Dockerfile"), "/workspace");
    pod.add(secret_volume(secret_volume_name(sign.key_secret), sign.key_secret, "key", "key.pem"),
            "/run/secrets/key");
    const bool is_shared = sign.cert_secret == sign.key_secret;
    const std::string cert_name =
        is_shared ? "cert-" + short_hash(sign.cert_secret) : secret_volume_name(sign.cert_secret);
    pod.add(secret_volume(cert_name, sign.cert_secret, "cert", "cert.pem"), "/run/secrets/cert");
    add_push_secret(wanted, pod);
    const Node annotations =
        Node::mapping({{std::string(k_dockerfile_annotation), sign_dockerfile(scene, wanted, source)}});
    return builder_pod(scene, wanted, std::move(pod),
                       kaniko_arguments(wanted, wanted.image(), sign.unsigned_image_registry_tls), "SignImage",
                       annotations);
}

Node pull_pod(Scene& scene, const WantedImage& wanted) {
    const api::Module& module = *wanted.module;
    const bool once = wanted.resolved.build || wanted.resolved.sign;
    const Node labels =
        Node::mapping({{std::string(api::k_label_image_owner), module.meta.name},
                       {"kmm.node.kubernetes.io/pull-pod-type", once ? "one-time-pull" : "until-success"}});
    const std::string start = fmt::format("{}-pull-pod-", module.meta.name);
    Node container = Node::mapping(
        {{"command", Node::strings({"/bin/sh", "-c", "exit 0"})}, {"image", wanted.image()}, {"name", "puller"}});
    if (!wanted.resolved.config.image_pull_policy.empty()) {
        container.set("imagePullPolicy", wanted.resolved.config.image_pull_policy);
    }
    Node spec = Node::mapping({{"containers", Node::sequence({std::move(container)})}, {"restartPolicy", "Never"}});
    set_pull_secret(spec, module.image_repo_secret);
    set_tolerations(spec, module.tolerations);
    Node metadata =
        Node::mapping({{"generateName", start},
                       {"labels", labels},
                       {"name", start + short_hash(fmt::format("{}/{}", module.full_name(), wanted.image()))},
                       {"namespace", module.meta.namespace_}});
    static_cast<void>(scene);
    return object("v1", "Pod", std::move(metadata), std::move(spec));
}

}  // namespace

void add_build_pods(Scene& scene, Images images, std::vector<Node>& out) {
    for (const auto& wanted : wanted_images(scene)) {
        if (wanted.resolved.build && is_asked_for(wanted, images)) { out.push_back(build_pod(scene, wanted)); }
    }
}

void add_sign_pods(Scene& scene, Images images, std::vector<Node>& out) {
    for (const auto& wanted : wanted_images(scene)) {
        if (!wanted.resolved.sign || !is_asked_for(wanted, images)) { continue; }
        if (auto pod = sign_pod(scene, wanted)) { out.push_back(std::move(*pod)); }
    }
}

void add_pull_pods(Scene& scene, std::vector<Node>& out) {
    for (const auto& wanted : wanted_images(scene)) { out.push_back(pull_pod(scene, wanted)); }
}

}  // namespace kmm::render
