// SPDX-License-Identifier: Apache-2.0
// How a Module's images are built and signed. Facts: KMM 11.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/merge.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"
#include "plan/lint/findings.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

constexpr std::string_view k_architecture = "kubernetes.io/arch";

class MakingLint {
public:
    MakingLint(Findings& findings, const std::vector<api::Node>& nodes)
        : findings_(findings),
          module_(findings.module()),
          container_(module_.module_loader->container),
          nodes_(nodes) {}

    void run() {
        const auto& mappings = container_.kernel_mappings;
        for (std::size_t i = 0; i < mappings.size(); ++i) {
            signed_image(i);
            build_selector(i);
        }
    }

private:
    /// "FIELD", below the mapping if that has it.
    static std::string path_of(std::size_t index, bool is_own, std::string_view field) {
        return is_own ? fmt::format("{}.kernelMappings[{}].{}", k_container_path, index, field)
                      : fmt::format("{}.{}", k_container_path, field);
    }

    /// Kernels of Nodes, by the mapping that takes them.
    const std::set<std::string>& kernels_of_nodes(std::size_t index) {
        if (!kernels_) {
            kernels_.emplace();
            const Resolver resolver(module_);
            for (const auto& node : nodes_) {
                if (node.kernel_version.empty() || !selects(module_.selector, node.meta.labels)) { continue; }
                const auto resolution = resolver.resolve(node.kernel_version);
                if (const auto* resolved = std::get_if<Resolved>(&resolution); resolved != nullptr) {
                    (*kernels_)[resolved->mapping_index].insert(resolved->kernel);
                }
            }
        }
        return (*kernels_)[index];
    }

    /// KMM looks whether containerImage exists, and if it does signs nothing.
    void signed_image(std::size_t index) {
        const auto& mapping = container_.kernel_mappings[index];
        const auto sign = merge_sign(container_.sign, mapping.sign);
        if (!sign || sign->unsigned_image.empty() || container_.build || mapping.build) { return; }
        const std::string& target =
            mapping.container_image.empty() ? container_.container_image : mapping.container_image;
        if (target.empty()) { return; }
        const auto or_some = [](const std::string& name) { return name.empty() ? std::string("some") : name; };
        const auto are_same_for = [&](const std::string& kernel) {
            const auto variables =
                template_variables(kernel, or_some(module_.meta.name), or_some(module_.meta.namespace_));
            return variables && canonical_image(expand(target, *variables).text) ==
                                    canonical_image(expand(sign->unsigned_image, *variables).text);
        };
        std::string kernel = mapping.literal.empty() ? "6.1.0-some.x86_64" : mapping.literal;
        bool is_same = are_same_for(kernel), is_of_one = false;
        if (!is_same && mapping.literal.empty()) {
            const auto& kernels = kernels_of_nodes(index);
            const auto found = std::find_if(kernels.begin(), kernels.end(), are_same_for);
            is_same = is_of_one = found != kernels.end();
            if (is_same) { kernel = *found; }
        }
        if (!is_same) { return; }
        findings_.warning(
            path_of(index, mapping.sign && !mapping.sign->unsigned_image.empty(), "sign.unsignedImage"),
            "sign-same-image",
            fmt::format("unsignedImage and containerImage are the same image{}: KMM finds that it exists and never "
                        "signs it",
                        is_of_one ? " for kernel " + base::escape(kernel) : ""),
            "give the signed image another tag");
    }

    /// The image is of the architecture of the node where it is built.
    void build_selector(std::size_t index) {
        const auto& mapping = container_.kernel_mappings[index];
        const auto build = merge_build(container_.build, mapping.build);
        const std::string key(k_architecture);
        const auto wanted = module_.selector.find(key);
        if (!build || wanted == module_.selector.end()) { return; }
        const auto builder = build->selector.find(key);
        if (builder == build->selector.end() || builder->second == wanted->second) { return; }
        findings_.warning(path_of(index, !container_.build, fmt::format("build.selector[{}]", key)),
                          "image-architectures",
                          fmt::format("the Module is for {} nodes, and its image is built on {} ones",
                                      base::escape(wanted->second), base::escape(builder->second)),
                          fmt::format("write {}: {} into build.selector", key, base::escape(wanted->second)));
    }

    Findings& findings_;
    const api::Module& module_;
    const api::ModuleLoaderContainer& container_;
    const std::vector<api::Node>& nodes_;
    std::optional<std::map<std::size_t, std::set<std::string>>> kernels_;
};

}  // namespace

void check_making(const api::Module& module, const std::string& subject, const std::vector<api::Node>& nodes,
                  Diagnostics& diagnostics) {
    if (!module.module_loader) { return; }
    Findings findings(module, subject, diagnostics);
    MakingLint(findings, nodes).run();
}

}  // namespace kmm::plan
