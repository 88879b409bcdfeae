// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/causes.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/image_labels.hpp"
#include "base/text.hpp"
#include "plan/decide/observe.hpp"
#include "plan/kmm/resolve.hpp"

namespace kmm::plan {

namespace {

/// How the decoder of Pods marks what failed and runs at the moment.
constexpr std::string_view k_started_again = "; started again";

bool is_about_access(const std::string& message) {
    constexpr std::array<std::string_view, 5> words{"unauthorized", "denied", "authentication", "forbidden",
                                                    "no basic auth"};
    const std::string text = base::to_lower(message);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

/// What helps against a problem of a Pod, by Kubernetes' reasons.
std::string remedy_of(const api::Pod& pod, const api::Pod::Problem& problem, const api::Module& module) {
    const std::string& reason = problem.reason;
    if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "RegistryUnavailable" ||
        reason == "ImageInspectError") {
        const std::string secret =
            module.image_repo_secret.empty()
                ? std::string("set spec.imageRepoSecret of the Module to a Secret that may pull the image")
                : fmt::format("check that Secret {}/{} of spec.imageRepoSecret may pull the image",
                              module.meta.namespace_, module.image_repo_secret);
        return is_about_access(problem.message)
                   ? secret
                   : fmt::format("push the image or correct containerImage; if the registry is private, {}", secret);
    }
    if (reason == "InvalidImageName") { return "correct containerImage of the Module"; }
    if (reason == "ErrImageNeverPull") {
        return "load the image on the node, or set imagePullPolicy of the Module to IfNotPresent";
    }
    if (reason == "CreateContainerConfigError" || reason == "CreateContainerError") {
        return fmt::format("create the Secret or ConfigMap that the message names in namespace {}",
                           pod.meta.namespace_);
    }
    if (reason == "Unschedulable") {
        return fmt::format("make room for Pod {}, or correct the node selector or the tolerations that it has",
                           pod.meta.name);
    }
    if ((reason == "OOMKilled" || problem.message.find("OOMKilled") != std::string::npos) &&
        (problem.container == "image-extractor" || problem.container == "worker")) {
        return "KMM limits its worker Pods to 128Mi of memory: make the .ko files smaller, as with strip --strip-debug";
    }
    const bool has_begun = !reason.starts_with("Create");
    if (problem.container == "image-extractor" && has_begun) {
        return "put a shell, mkdir and cp into the image, and dirName and firmwarePath at their places";
    }
    if (problem.container.empty() || reason.starts_with("Create")) {
        return fmt::format("kubectl describe pod -n {} {}", pod.meta.namespace_, pod.meta.name);
    }
    const bool has_earlier = reason == "CrashLoopBackOff" || problem.message.ends_with(k_started_again);
    return fmt::format("kubectl logs -n {} {} -c {}{}", pod.meta.namespace_, pod.meta.name, problem.container,
                       has_earlier ? " --previous" : "");
}

bool is_waiting(const api::Pod::Problem& problem) {
    const std::string& reason = problem.reason;
    return problem.container.empty() || reason.ends_with("BackOff") ||
           (reason.starts_with("Err") && reason != "Error") || reason.starts_with("Create") ||
           reason.starts_with("Invalid") || reason.starts_with("Image");
}

/// What an image that KMM makes waits for: the Dockerfile of its build Pod, else KMM alone.
std::string build_change(const api::Module& module, const Resolved& resolved,
                         std::span<const api::ConfigMap> config_maps) {
    const std::string wait = "wait: KMM builds or signs the image";
    if (!resolved.build || resolved.build->dockerfile_config_map.empty()) { return wait; }
    const std::string& ns = module.meta.namespace_;
    const std::string name = fmt::format("ConfigMap {}/{}", ns, resolved.build->dockerfile_config_map);
    bool any = false;
    for (const auto& map : config_maps) {
        if (map.meta.namespace_ != ns) { continue; }
        any = true;
        if (map.meta.name != resolved.build->dockerfile_config_map) { continue; }
        const auto& binary = map.binary_keys;
        if (map.data.contains("dockerfile") || std::find(binary.begin(), binary.end(), "dockerfile") != binary.end()) {
            return wait;
        }
        return fmt::format("give {} the key dockerfile: KMM's build Pod does not start without it", name);
    }
    return any ? fmt::format("see that {} is there, with the key dockerfile; then {}", name, wait) : wait;
}

void add_image_cause(const api::Module& module, const Verdict& verdict, std::span<const api::ConfigMap> config_maps,
                     std::vector<Cause>& found) {
    const auto* resolved = std::get_if<Resolved>(&verdict.resolution);
    const ImageState& known = verdict.image_state;
    if (resolved == nullptr || known.is_usable()) { return; }
    const std::string& image = resolved->config.container_image;
    const std::string name = module.full_name();
    Cause cause{"image", "", {}};
    if (known.kind == ImageState::Kind::unverified) {
        cause.text = fmt::format("ModuleImagesConfig {} says nothing about {} so far", name, image);
        cause.changes.push_back("wait: KMM writes the entry once it has seen that the image exists");
    } else {
        cause.text = known.word.empty() ? fmt::format("ModuleImagesConfig {} does not say Exists for {}", name, image)
                                        : fmt::format("ModuleImagesConfig {} says {} for {}", name, known.word, image);
        const bool is_made = resolved->build || resolved->sign;
        if (known.kind == ImageState::Kind::made) {
            cause.changes.push_back(build_change(module, *resolved, config_maps));
        } else if (!is_made) {
            cause.changes.push_back(fmt::format("push {} to its registry", image));
            cause.changes.push_back(
                "then raise spec.imageRebuildTriggerGeneration of the Module: KMM does not look for an image twice");
        }
    }
    const bool failed = !known.failed_action.empty();
    if (!failed && known.kind == ImageState::Kind::missing && (resolved->build || resolved->sign)) {
        cause.changes.push_back(build_change(module, *resolved, config_maps));
    }
    found.push_back(std::move(cause));
    if (!failed) { return; }
    found.push_back(
        {"image",
         fmt::format("ModuleBuildSignConfig {} says Failure for {} of {}", name, known.failed_action, image),
         {fmt::format("correct what the log of the {} Pod says, then delete that Pod or raise "
                      "spec.imageRebuildTriggerGeneration of the Module",
                      known.failed_action == "SignImage" ? "sign" : "build")}});
}

void add_pod_cause(const api::Pod& pod, std::string_view what, const api::Module& module, bool names_container,
                   std::vector<Cause>& found) {
    for (const auto& problem : pod.problems) {
        api::Pod::Problem shown = problem;
        std::string head = fmt::format("{} Pod {}", what, pod.meta.name);
        if (names_container && !problem.container.empty()) {
            head += fmt::format(" {} in {}", is_waiting(problem) ? "waits" : "failed", problem.container);
        }
        shown.container.clear();
        const std::string text = problem_text(shown);
        found.push_back(
            {"observed", text.empty() ? head : fmt::format("{}: {}", head, text), {remedy_of(pod, problem, module)}});
    }
}

/// Worker Pods name their node, so no scheduler looks whether its kubelet answers.
void add_node_cause(const api::Node& node, const Verdict& verdict, std::vector<Cause>& found) {
    const Action action = verdict.entry.action;
    const bool needs_worker = action == Action::load || action == Action::reload || action == Action::unload;
    const std::string ready = node.ready.value_or("True");
    if (!needs_worker || ready == "True") { return; }
    found.push_back({"observed",
                     fmt::format("node {} is not Ready ({}): its kubelet starts no worker Pod", node.meta.name, ready),
                     {fmt::format("kubectl describe node {}: no worker Pod runs before it is Ready", node.meta.name)}});
}

std::string_view word_of(const api::Pod& pod) {
    const auto type = pod.meta.labels.find(std::string(api::k_label_resource_type));
    if (type == pod.meta.labels.end()) { return "pull"; }
    return base::to_lower(type->second).starts_with("sign") ? "sign" : "build";
}

}  // namespace

std::vector<Cause> causes(const NodeView& view, const api::Module& module, const Verdict& verdict,
                          std::span<const api::ConfigMap> config_maps) {
    std::vector<Cause> found;
    add_image_cause(module, verdict, config_maps, found);
    const std::string& ns = module.meta.namespace_;
    const std::string& name = module.meta.name;
    if (view.image_pods != nullptr && module.module_loader) {
        for (const auto* pod : *view.image_pods) {
            if (is_image_pod_of(*pod, ns, name, view.node->kernel_version)) {
                add_pod_cause(*pod, word_of(*pod), module, false, found);
            }
        }
    }
    if (const auto* pod = find_worker_pod(view, ns, name); pod != nullptr) {
        add_pod_cause(*pod, "worker", module, true, found);
    }
    add_node_cause(*view.node, verdict, found);
    return found;
}

}  // namespace kmm::plan
