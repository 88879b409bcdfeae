// SPDX-License-Identifier: Apache-2.0
// One image that several Modules make. KMM keeps a ModuleImagesConfig for each Module and builds what does not exist:
// the first build wins, and the other Module finds that its image is there. Facts: KMM 11.1.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

/// How a Module makes an image.
struct Making {
    const api::Module* module;
    std::size_t mapping;
    std::optional<api::Build> build;
    std::optional<api::Sign> sign;
};

/// The kernels for which mappings are compared where there are no Nodes: mappings with one matcher take the same ones.
constexpr std::string_view k_some_kernel = "6.1.0-some.x86_64";

/// The text of the image of the mapping at `index`, and the field that has it.
std::pair<const std::string*, std::string> image_text(const api::ModuleLoaderContainer& container, std::size_t index) {
    const std::string& own = container.kernel_mappings[index].container_image;
    const std::string path = "spec.moduleLoader.container.";
    return own.empty() ? std::pair{&container.container_image, path + "containerImage"}
                       : std::pair{&own, fmt::format("{}kernelMappings[{}].containerImage", path, index)};
}

class Makings {
public:
    explicit Makings(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

    /// `kernels`: what the two must have in common. `shown`: the image as messages name it.
    void add(const std::string& kernels, const std::string& image, const std::string& shown, const Making& making) {
        if (!making.build && !making.sign) { return; }
        const auto [known, fresh] = first_.try_emplace({kernels, canonical_image(image)}, making);
        if (!fresh && known->second.module != making.module) { compare(shown, known->second, making); }
    }

private:
    /// What is not the same, "" if that is said by who builds and who signs; nullopt if all is.
    static std::optional<std::string> difference(const Making& first, const Making& other) {
        if (first.build && other.build) {
            if (first.build->dockerfile_config_map != other.build->dockerfile_config_map) {
                return fmt::format(", from ConfigMap {}", first.build->dockerfile_config_map);
            }
            return *first.build == *other.build ? std::nullopt : std::optional(", with other build settings");
        }
        if (first.build || other.build) { return ""; }
        if (first.sign->unsigned_image != other.sign->unsigned_image) {
            return fmt::format(", out of {}", first.sign->unsigned_image);
        }
        return *first.sign == *other.sign ? std::nullopt : std::optional(", with other keys or files");
    }

    void compare(const std::string& image, const Making& first, const Making& other) {
        const auto what = difference(first, other);
        if (!what || !told_.emplace(first.module, other.module).second) { return; }
        Diagnostic finding;
        finding.severity = Severity::warning;
        finding.code = "image-shared";
        finding.message = fmt::format("Module {}: image {} is also {} by Module {}{}: KMM makes it once, and the other "
                                      "Module takes what is there",
                                      other.module->full_name(), image, first.build ? "built" : "signed",
                                      first.module->full_name(), *what);
        finding.hint = "give each Module an image of its own, as with ${MOD_NAME} in the tag";
        const auto& places = other.module->places;
        const auto place = places.find(image_text(other.module->module_loader->container, other.mapping).second);
        if (place != places.end()) {
            finding.position = place->second;
        } else if (!other.module->meta.origin.file.empty()) {
            finding.position = other.module->meta.origin;
        }
        diagnostics_.push_back(std::move(finding));
    }

    Diagnostics& diagnostics_;
    std::map<std::pair<std::string, std::string>, Making> first_;  ///< by kernels and canonical_image
    std::set<std::pair<const api::Module*, const api::Module*>> told_;
};

bool makes_some(const api::Module& module) {
    if (!module.module_loader || module.meta.deleting) { return false; }
    const auto& container = module.module_loader->container;
    return container.build || container.sign ||
           std::any_of(container.kernel_mappings.begin(), container.kernel_mappings.end(),
                       [](const auto& mapping) { return mapping.build || mapping.sign; });
}

void add_for_kernels(const api::Module& module, const api::Objects& objects, Makings& makings) {
    std::set<std::string> kernels;
    for (const auto& node : objects.nodes) {
        if (!node.kernel_version.empty() && !kernels.contains(node.kernel_version) &&
            selects(module.selector, node.meta.labels)) {
            kernels.insert(node.kernel_version);
        }
    }
    const Resolver resolver(module);
    for (const auto& kernel : kernels) {
        const auto resolution = resolver.resolve(kernel);
        if (const auto* resolved = std::get_if<Resolved>(&resolution); resolved != nullptr) {
            const std::string& image = resolved->config.container_image;
            makings.add(resolved->kernel, image, image,
                        {&module, resolved->mapping_index, resolved->build, resolved->sign});
        }
    }
}

/// Each mapping by itself, as for a kernel that it takes.
void add_for_matchers(const api::Module& module, Makings& makings) {
    const auto& mappings = module.module_loader->container.kernel_mappings;
    for (std::size_t i = 0; i < mappings.size(); ++i) {
        const auto& mapping = mappings[i];
        std::string kernels = mapping.literal.empty() ? mapping.regexp : mapping.literal;
        if (mapping.literal.empty() && takes_everything(mapping.regexp)) { kernels = ".*"; }
        api::Module alone = module;
        auto& container = alone.module_loader->container;
        container.kernel_mappings = {mapping};
        container.kernel_mappings.front().literal = mapping.literal.empty() ? k_some_kernel : mapping.literal;
        container.kernel_mappings.front().regexp.clear();
        const auto resolution = resolve(alone, container.kernel_mappings.front().literal);
        if (const auto* resolved = std::get_if<Resolved>(&resolution); resolved != nullptr) {
            const std::string& text =
                mapping.container_image.empty() ? container.container_image : mapping.container_image;
            makings.add(kernels, resolved->config.container_image, text,
                        {&module, i, resolved->build, resolved->sign});
        }
    }
}

bool names_namespace(const std::string& text) {
    const auto uses = expand(text, {}).uses;
    return std::any_of(uses.begin(), uses.end(), [](const auto& use) { return use.name == "MOD_NAMESPACE"; });
}

}  // namespace

void check_hub_images(const api::Objects& objects, Diagnostics& diagnostics) {
    for (const auto& object : objects.managed_cluster_modules) {
        const api::Module& module = object.module;
        if (!module.module_loader || object.meta.deleting) { continue; }
        std::set<std::string> seen;
        for (std::size_t i = 0; i < module.module_loader->container.kernel_mappings.size(); ++i) {
            const auto [text, field] = image_text(module.module_loader->container, i);
            if (!names_namespace(*text) || !seen.insert(field).second) { continue; }
            Diagnostic finding;
            finding.severity = Severity::warning;
            finding.code = "hub-image-differs";
            finding.message = fmt::format(
                "ManagedClusterModule {}: image {} has MOD_NAMESPACE: KMM's hub looks for it, builds and signs it "
                "with the namespace of its operator, and the clusters pull it with spokeNamespace {}",
                object.meta.name, base::printable(*text), base::printable(object.spoke_namespace));
            finding.hint = "write the namespace itself, else the clusters pull another image than the hub has seen";
            const auto place = module.places.find(field);
            finding.position = place != module.places.end() ? place->second : object.meta.origin;
            diagnostics.push_back(std::move(finding));
        }
    }
}

void check_builds(const api::Objects& objects, Diagnostics& diagnostics) {
    Makings makings(diagnostics);
    for (const auto& module : objects.modules) {
        if (!makes_some(module)) { continue; }
        if (objects.nodes.empty()) {
            add_for_matchers(module, makings);
        } else {
            add_for_kernels(module, objects, makings);
        }
    }
}

}  // namespace kmm::plan
