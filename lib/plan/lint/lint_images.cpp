// SPDX-License-Identifier: Apache-2.0
// One image for several kernels or architectures. Facts: KMM 11.1, 11.2: an image is built once, for the first kernel
// that asks for it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

/// Nodes that are alike for an image.
struct NodeKind {
    std::string kernel, architecture;
    std::vector<const api::Node*> nodes;
};

std::vector<NodeKind> node_kinds(const api::Objects& objects) {
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    std::vector<NodeKind> kinds;
    for (const auto& node : objects.nodes) {
        if (node.kernel_version.empty()) { continue; }
        const auto [place, fresh] =
            places.emplace(std::pair(api::trim_kernel(node.kernel_version), node.architecture), kinds.size());
        if (fresh) { kinds.push_back({place->first.first, node.architecture, {}}); }
        kinds[place->second].nodes.push_back(&node);
    }
    return kinds;
}

/// The kinds of nodes that a selector matches.
struct UsedKinds {
    const api::Labels* selector;
    std::vector<const NodeKind*> kinds;
};

/// `known` has the selectors that were asked for: many Modules have the same.
const std::vector<const NodeKind*>& used_kinds(const api::Labels& selector, const std::vector<NodeKind>& kinds,
                                               std::vector<UsedKinds>& known) {
    const auto same =
        std::find_if(known.begin(), known.end(), [&](const UsedKinds& one) { return *one.selector == selector; });
    if (same != known.end()) { return same->kinds; }
    UsedKinds& used = known.emplace_back(UsedKinds{&selector, {}});
    for (const auto& kind : kinds) {
        const bool matches = std::any_of(kind.nodes.begin(), kind.nodes.end(), [&](const api::Node* node) {
            return selects(selector, node->meta.labels);
        });
        if (matches) { used.kinds.push_back(&kind); }
    }
    return used.kinds;
}

/// Who uses one image of a Module.
struct ImageUse {
    std::size_t mapping = 0;
    std::string image;  ///< as the first mapping names it
    bool built = false, is_signed = false;
    api::Labels build_selector;
    std::map<std::string, std::set<std::string>> kernels;  ///< to architectures
};

class SharedImages {
public:
    SharedImages(const api::Module& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

    void see(const Resolver& resolver, const NodeKind& kind) {
        const auto resolution = resolver.resolve(kind.kernel);
        const auto* resolved = std::get_if<Resolved>(&resolution);
        if (resolved == nullptr) { return; }
        const auto [use, fresh] = uses_.try_emplace(canonical_image(resolved->config.container_image));
        if (fresh) {
            use->second.mapping = resolved->mapping_index;
            use->second.image = resolved->config.container_image;
        }
        if (resolved->build && !use->second.built) { use->second.build_selector = resolved->build->selector; }
        use->second.built = use->second.built || resolved->build.has_value();
        use->second.is_signed = use->second.is_signed || resolved->sign.has_value();
        use->second.kernels[resolved->kernel].insert(kind.architecture);
    }

    /// `tolerations`: of build Pods.
    void report(const std::vector<NodeKind>& kinds, const std::vector<api::Toleration>& tolerations) const {
        for (const auto& [name, use] : uses_) {
            if (use.built) { report_builder(use.image, use, kinds, tolerations); }
            if (use.kernels.size() > 1) { report_kernels(use.image, use); }
            if (use.built || use.is_signed) { report_architectures(use.image, use); }
        }
    }

private:
    void report_kernels(const std::string& image, const ImageUse& use) const {
        std::vector<std::string> kernels;
        for (const auto& [kernel, architectures] : use.kernels) { kernels.push_back(kernel); }
        const std::string first = kernels.front();
        kernels.erase(kernels.begin());
        constexpr std::size_t k_named_max = 3;
        const std::string directory = kernels.size() == 1 ? fmt::format("lib/modules/{}", kernels.front())
                                                          : "directory of theirs below lib/modules";
        const bool one = kernels.size() == 1;
        const std::string rest = base::join_some(kernels, k_named_max);
        if (!use.built && !use.is_signed) {
            add(Severity::note, use, "image-kernels",
                fmt::format("image {} is used for {} and {}: it must hold the modules of each", image, first, rest),
                fmt::format("nothing if it does; kmm-plan preflight --kernel {} --kernel-devel FILE looks into it, "
                            "FILE being the headers or Module.symvers of that kernel",
                            kernels.front()));
            return;
        }
        add(Severity::warning, use, "image-kernels",
            fmt::format("image {} is {} once, for kernel {}, and used for {}, too, which {} no {} in it", image,
                        use.built ? "built" : "signed", first, rest, one ? "finds" : "find", directory),
            "put ${KERNEL_FULL_VERSION} into the tag");
    }

    /// The build Pod goes where build.selector allows, whatever the Module's own selector says.
    void report_builder(const std::string& image, const ImageUse& use, const std::vector<NodeKind>& kinds,
                        const std::vector<api::Toleration>& tolerations) const {
        std::set<std::string> wanted;
        for (const auto& [kernel, all] : use.kernels) { wanted.insert(all.begin(), all.end()); }
        if (wanted.size() != 1 || wanted.begin()->empty()) { return; }
        constexpr const char* k_key = "kubernetes.io/arch";
        if (use.build_selector.contains(k_key) && module_.selector.contains(k_key)) { return; }  // of check_making
        for (const auto& kind : kinds) {
            if (kind.architecture.empty() || kind.architecture == *wanted.begin()) { continue; }
            const auto other = std::find_if(kind.nodes.begin(), kind.nodes.end(), [&](const api::Node* node) {
                return selects(use.build_selector, node->meta.labels) && tolerates(tolerations, node->taints);
            });
            if (other == kind.nodes.end()) { continue; }
            add(Severity::warning, use, "image-architectures",
                fmt::format("image {} is for {} nodes, and its build Pod may land on node {}, which is {}", image,
                            *wanted.begin(), (*other)->meta.name, kind.architecture),
                fmt::format("add kubernetes.io/arch: {} to build.selector", *wanted.begin()));
            return;
        }
    }

    void report_architectures(const std::string& image, const ImageUse& use) const {
        for (const auto& [kernel, all] : use.kernels) {
            std::vector<std::string> architectures;
            for (const auto& architecture : all) {
                if (!architecture.empty()) { architectures.push_back(architecture); }
            }
            if (architectures.size() < 2) { continue; }
            add(Severity::warning, use, "image-architectures",
                fmt::format("kernel {} runs on {} nodes, and KMM {} one image for {}, {}, on whichever node the "
                            "{} Pod lands",
                            kernel, base::join(architectures, " and "), use.built ? "builds" : "signs",
                            architectures.size() == 2 ? "both" : "all", image, use.built ? "build" : "sign"),
                use.built ? "make one Module for each architecture, with an image of its own, and kubernetes.io/arch "
                            "in spec.selector and in build.selector"
                          : "make one Module for each architecture, with images of its own, and kubernetes.io/arch in "
                            "spec.selector");
        }
    }

    void add(Severity severity, const ImageUse& use, std::string code, const std::string& message,
             std::string hint) const {
        Diagnostic finding;
        finding.severity = severity;
        finding.code = std::move(code);
        finding.message = fmt::format("Module {}: {}", module_.full_name(), message);
        const std::string container = "spec.moduleLoader.container";
        for (const auto& path : {fmt::format("{}.kernelMappings[{}].containerImage", container, use.mapping),
                                 container + ".containerImage"}) {
            const bool is_own = !module_.module_loader->container.kernel_mappings[use.mapping].container_image.empty();
            const auto place = module_.places.find(path);
            if (place == module_.places.end() || is_own != (path.find('[') != std::string::npos)) { continue; }
            finding.position = place->second;
        }
        if (!finding.position && !module_.meta.origin.file.empty()) { finding.position = module_.meta.origin; }
        finding.hint = std::move(hint);
        diagnostics_.push_back(std::move(finding));
    }

    const api::Module& module_;
    Diagnostics& diagnostics_;
    std::map<std::string, ImageUse> uses_;  ///< by canonical_image
};

}  // namespace

void check_shared_images(const api::Objects& objects, Diagnostics& diagnostics) {
    const auto kinds = node_kinds(objects);
    if (kinds.size() < 2) { return; }
    std::vector<UsedKinds> selectors;
    for (const auto& module : objects.modules) {
        if (!module.module_loader || module.meta.deleting) { continue; }
        const Resolver resolver(module);
        SharedImages images(module, diagnostics);
        for (const auto* kind : used_kinds(module.selector, kinds, selectors)) { images.see(resolver, *kind); }
        images.report(kinds, module.tolerations);
    }
}

}  // namespace kmm::plan
