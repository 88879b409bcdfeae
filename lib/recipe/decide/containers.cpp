// SPDX-License-Identifier: Apache-2.0
#include "recipe/decide/containers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/plan/kernel_names.hpp"

namespace kmm::recipe::decide {

using tmpl::Value;

namespace {

/// The Pod of a workload, or of a Pod itself.
const Value* pod_spec(const Value& object) {
    const Value* spec = member_at(object, {"spec", "template", "spec"});
    return spec != nullptr ? spec : member_at(object, {"spec"});
}

/// What a build needs and this one does not have.
std::string build_fault_of(const Value& build) {
    if (text_at(build, {"kind"}) != "BuildConfig") { return ""; }
    const Value* source = member_at(build, {"spec", "source"});
    if (source == nullptr || !source->is_map()) { return "it has no spec.source"; }
    if (!text_at(*source, {"git", "uri"}).empty() || !text_at(*source, {"dockerfile"}).empty()) { return ""; }
    for (const auto key : {"images", "configMaps", "secrets"}) {
        const Value* list = member_at(*source, {key});
        if (list != nullptr && list->is_list() && !list->items().empty()) { return ""; }
    }
    if (const Value* binary = member_at(*source, {"binary"}); binary != nullptr && !binary->is_nil()) {
        return "its spec.source is binary: somebody has to upload it with each start";
    }
    return "its spec.source names neither git.uri nor dockerfile nor images";
}

/// Whether the object loads drivers, whatever its image is called: it says so, or is a DaemonSet's copy for a kernel.
bool is_driver(const plan::RecipeObject& one) {
    return own_annotation(one.object, "state") == "driver-container" ||
           (!one.kernel.empty() && text_at(one.object, {"kind"}) == "DaemonSet");
}

bool keeps_pods(const Value& object) {
    const std::string kind = text_at(object, {"kind"});
    return kind == "DaemonSet" || kind == "Deployment" || kind == "StatefulSet" || kind == "Pod";
}

/// Those that are made for `kernel`, and the image of the first container if `all` is set.
std::vector<std::string> driver_images(const Value& pod, const std::string& kernel, bool all) {
    std::vector<std::string> images;
    for (const auto key : {"containers", "initContainers"}) {
        const Value* list = member_at(pod, {key});
        const bool is_list = list != nullptr && list->is_list();
        for (const auto& one : is_list ? list->items() : std::span<const Value>()) {
            const std::string image = text_at(one, {"image"});
            const bool is_first = &one == &list->items().front() && key == std::string_view("containers");
            const bool names_kernel = plan::names_kernel(image, kernel);
            const bool is_known = std::find(images.begin(), images.end(), image) != images.end();
            if ((is_first && all) || (names_kernel && !is_known)) { images.push_back(image); }
        }
        if (images.empty() && all) { return images; }
    }
    return images;
}

std::string output_of(const Value& build) { return text_at(build, {"spec", "output", "to", "name"}); }

/// Name and tag: a registry has another name from inside a cluster.
std::string name_and_tag(const std::string& image) {
    const std::string name = image.substr(image.rfind('/') + 1);
    return name.find(':') == std::string::npos ? name + ":latest" : name;
}

/// Whether a build says that it makes an image.
bool makes(const Value& build, const std::string& image) {
    const std::string output = output_of(build);
    return !output.empty() && name_and_tag(output) == name_and_tag(image);
}

/// Of several builds the one that makes the image, else the first.
void find_builder(const plan::RenderedRecipes& rendered, DriverContainer& container) {
    const plan::RecipeObject* build = nullptr;
    for (const auto& other : rendered.objects) {
        if (!is_build_of(other, container)) { continue; }
        if (build == nullptr || (makes(other.object, container.image) && !makes(build->object, container.image))) {
            build = &other;
        }
    }
    container.builder = build == nullptr ? "" : name_of(build->object);
    container.build_fault = build == nullptr ? "" : build_fault_of(build->object);
    if (build == nullptr || !container.build_fault.empty()) { return; }
    const std::string output = output_of(build->object);
    if (!output.empty() && !makes(build->object, container.image)) {
        container.build_fault = fmt::format("its output is {}", base::escape(output));
    }
}

}  // namespace

const Value* member_at(const Value& object, std::initializer_list<std::string_view> path) {
    const Value* at = &object;
    for (const auto key : path) {
        if (!at->is_map()) { return nullptr; }
        const auto found = at->members().find(key);
        if (found == at->members().end()) { return nullptr; }
        at = &found->second;
    }
    return at;
}

std::string text_at(const Value& object, std::initializer_list<std::string_view> path) {
    const Value* found = member_at(object, path);
    return found == nullptr || found->type() != tmpl::Type::string ? std::string() : found->text();
}

std::string own_annotation(const Value& object, std::string_view name) {
    return text_at(object, {"metadata", "annotations", fmt::format("specialresource.openshift.io/{}", name)});
}

bool is_waited_for(const Value& object) {
    return own_annotation(object, "wait") == "true" || text_at(object, {"kind"}) == "CustomResourceDefinition" ||
           !text_at(object, {"metadata", "annotations", "helm.sh/hook"}).empty();
}

std::string name_of(const Value& object) {
    return fmt::format("{} {}", text_at(object, {"kind"}), text_at(object, {"metadata", "name"}));
}

bool is_paired_build(const Value& object) {
    const std::string kind = text_at(object, {"kind"});
    return (kind == "BuildConfig" || kind == "Job") && !own_annotation(object, "driver-container-vendor").empty();
}

bool is_build_of(const plan::RecipeObject& build, const DriverContainer& container) {
    return is_paired_build(build.object) && build.cr == container.cr &&
           (build.kernel == container.kernel || build.kernel.empty()) &&
           own_annotation(build.object, "driver-container-vendor") == container.vendor;
}

std::vector<DriverContainer> driver_containers(const plan::RenderedRecipes& rendered, const std::string& kernel) {
    std::vector<DriverContainer> made;
    for (const auto& one : rendered.objects) {
        const bool says_so = is_driver(one);
        const Value* pod = says_so || keeps_pods(one.object) ? pod_spec(one.object) : nullptr;
        if (pod == nullptr) { continue; }
        DriverContainer container;
        container.cr = one.cr;
        container.state = one.state;
        container.kernel = one.kernel;
        container.name = name_of(one.object);
        container.name_space = text_at(one.object, {"metadata", "namespace"});
        container.vendor = own_annotation(one.object, "driver-container-vendor");
        container.origin = one.origin;
        if (const Value* secrets = member_at(*pod, {"imagePullSecrets"}); secrets != nullptr && secrets->is_list()) {
            for (const auto& secret : secrets->items()) { container.pull_secrets.push_back(text_at(secret, {"name"})); }
        }
        for (const auto& image : driver_images(*pod, one.kernel.empty() ? kernel : one.kernel, says_so)) {
            container.image = image;
            find_builder(rendered, container);
            container.ordinal =
                static_cast<std::size_t>(std::count_if(made.begin(), made.end(), [&](const DriverContainer& other) {
                    return other.cr == container.cr && other.kernel == container.kernel &&
                           other.origin == container.origin;
                }));
            made.push_back(container);
        }
    }
    return made;
}

}  // namespace kmm::recipe::decide
