// SPDX-License-Identifier: Apache-2.0
// Kernel mapping: choice, merge with the container's fields, expansion. Source: KMM kernelmapper.go; facts: KMM 3.
#include <unordered_map>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/kernel_name.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/merge.hpp"
#include "plan/kmm/regexp.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"

namespace kmm::plan {

struct Resolver::Compiled {
    mutable std::vector<std::optional<Regexp>> regexps;  ///< compiled when first needed
    std::unordered_map<std::string, Resolution> known;   ///< by kernel version, at most k_known_kernels
};

namespace {

constexpr std::string_view k_default_dir_name = "/opt";
constexpr std::size_t k_known_kernels = 128;  // a fleet has fewer; nodes in a row often have the same

Diagnostic fault(std::string code, std::string message, std::optional<Position> position, std::string hint = "") {
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.position = std::move(position);
    diagnostic.hint = std::move(hint);
    return diagnostic;
}

std::optional<Position> known(const Position& position) {
    return position.file.empty() ? std::nullopt : std::optional(position);
}

/// The place of the image text that applies: the mapping's, else the container's.
std::optional<Position> image_place(const api::Module& module, std::size_t index) {
    const std::string container = "spec.moduleLoader.container";
    const bool own = !module.module_loader->container.kernel_mappings[index].container_image.empty();
    const auto found = module.places.find(
        own ? fmt::format("{}.kernelMappings[{}].containerImage", container, index) : container + ".containerImage");
    return found == module.places.end() ? known(module.meta.origin) : std::optional(found->second);
}

/// The deprecated single name wins over every list; a mapping's list, even an empty one, wins over the container's.
std::vector<std::string> in_tree_modules(const api::ModuleLoaderContainer& container,
                                         const api::KernelMapping& mapping) {
    const std::string& single = mapping.in_tree_module_to_remove.empty() ? container.in_tree_module_to_remove
                                                                         : mapping.in_tree_module_to_remove;
    if (!single.empty()) { return {single}; }
    if (mapping.in_tree_modules_to_remove) { return *mapping.in_tree_modules_to_remove; }
    return container.in_tree_modules_to_remove.value_or(std::vector<std::string>{});
}

/// `what` is wrong with the kernel version of a node.
MappingFault unparsable_kernel(std::string_view kernel, std::string_view what) {
    MappingFault unparsable{
        fault("kernel-unparsable",
              fmt::format("kernel version \"{}\" {}, expected like 6.1.0-56-amd64", base::escape(kernel), what),
              std::nullopt, "correct status.nodeInfo.kernelVersion of the Node")};
    unparsable.diagnostic.severity = Severity::warning;  // the Module is fine
    return unparsable;
}

/// `what` is "image template" or the like, for messages.
std::variant<std::string, MappingFault> expand_text(const std::string& text, const Variables& variables,
                                                    const char* what, const std::optional<Position>& place) {
    const Expansion expansion = expand(text, variables);
    if (!expansion.error.empty()) {
        return MappingFault{fault("bad-template",
                                  fmt::format("{} \"{}\": {} (at character {})", what, base::escape(text),
                                              expansion.error, expansion.error_offset + 1),
                                  place)};
    }
    for (const auto& use : expansion.uses) {
        if (use.value || use.has_default) { continue; }
        return MappingFault{unknown_variable(use, what, text, variables, place)};
    }
    return expansion.text;
}

std::variant<std::string, MappingFault> expand_image(const api::Module& module, std::size_t index,
                                                     const Variables& variables) {
    const auto& container = module.module_loader->container;
    const auto& mapping = container.kernel_mappings[index];
    const std::string& text = mapping.container_image.empty() ? container.container_image : mapping.container_image;
    const auto place = image_place(module, index);
    if (text.empty()) {
        return MappingFault{fault("missing-image", fmt::format("no containerImage for kernelMappings[{}]", index),
                                  place, "set containerImage in the mapping or in the container")};
    }
    return expand_text(text, variables, "image template", place);
}

/// Expands the texts of `sign` in place: KMM knows no MOD_NAME and MOD_NAMESPACE there.
std::optional<MappingFault> expand_sign(api::Sign& sign, const api::Module& module, std::size_t index,
                                        Variables variables) {
    variables.erase("MOD_NAME");
    variables.erase("MOD_NAMESPACE");
    const std::string container = "spec.moduleLoader.container";
    auto place = module.places.find(fmt::format("{}.kernelMappings[{}].sign", container, index));
    if (place == module.places.end()) { place = module.places.find(container + ".sign"); }
    const auto position = place == module.places.end() ? known(module.meta.origin) : std::optional(place->second);
    std::vector<std::pair<const char*, std::string*>> texts{{"unsignedImage template", &sign.unsigned_image}};
    for (auto& file : sign.files_to_sign) { texts.emplace_back("filesToSign template", &file); }
    for (auto& [what, text] : texts) {
        auto expanded = expand_text(*text, variables, what, position);
        if (auto* bad = std::get_if<MappingFault>(&expanded)) { return std::move(*bad); }
        *text = std::get<std::string>(std::move(expanded));
    }
    return std::nullopt;
}

}  // namespace

Diagnostic unknown_variable(const VariableUse& use, std::string_view what, std::string_view text,
                            const Variables& variables, std::optional<Position> place) {
    std::vector<std::string> names;
    for (const auto& [name, value] : variables) { names.push_back(name); }
    const auto near = base::nearest(use.name, names);
    const bool is_of_images = use.name.starts_with("MOD_") && !variables.contains("MOD_NAME");
    return fault("unknown-template-variable",
                 fmt::format("{} \"{}\": there is no variable {}", what, base::escape(text), use.name),
                 std::move(place),
                 is_of_images ? "MOD_NAME and MOD_NAMESPACE are known in containerImage only"
                 : near       ? fmt::format("did you mean {}?", *near)
                              : "known: " + base::join(names, ", "));
}

Resolver::Resolver(const api::Module& module)
    : module_(module), tolerations_(loader_tolerations(module)), compiled_(std::make_unique<Compiled>()) {
    if (module.module_loader) {
        compiled_->regexps.resize(module.module_loader->container.kernel_mappings.size());
    }
}
Resolver::~Resolver() = default;
Resolver::Resolver(Resolver&&) noexcept = default;

std::vector<Attempt> Resolver::attempts(std::string_view kernel_version) const {
    std::vector<Attempt> result;
    if (!module_.module_loader) { return result; }
    const std::string kernel = api::trim_kernel(kernel_version);
    const auto& mappings = module_.module_loader->container.kernel_mappings;
    for (std::size_t i = 0; i < mappings.size(); ++i) {
        const auto& mapping = mappings[i];
        if (!mapping.literal.empty()) {
            result.push_back(Attempt{i, true, mapping.literal, mapping.literal == kernel, ""});
            if (result.back().matched) { return result; }
        }
        if (mapping.regexp.empty()) { continue; }
        auto& regexp = compiled_->regexps[i];
        if (!regexp) { regexp.emplace(mapping.regexp); }
        result.push_back(Attempt{i, false, mapping.regexp, regexp->search(kernel), regexp->error()});
        if (result.back().matched || !result.back().fault.empty()) { return result; }
    }
    return result;
}

Resolution Resolver::resolve(std::string_view kernel_version) const {
    const std::string version(kernel_version);
    if (const auto found = compiled_->known.find(version); found != compiled_->known.end()) { return found->second; }
    if (compiled_->known.size() >= k_known_kernels) { compiled_->known.clear(); }
    return compiled_->known.emplace(version, resolve_afresh(kernel_version)).first->second;
}

Resolution Resolver::resolve_afresh(std::string_view kernel_version) const {
    // What no kernel is called is matched with nothing and stands in no image, path or Pod.
    if (!base::is_kernel_name(kernel_version)) {
        return unparsable_kernel(api::trim_kernel(kernel_version), "is not one that a kernel can have");
    }
    const auto tried = attempts(kernel_version);
    if (tried.empty()) { return NoMapping{}; }
    const Attempt& last = tried.back();
    const auto& container = module_.module_loader->container;
    const auto& mapping = container.kernel_mappings[last.index];
    if (!last.fault.empty()) {
        return MappingFault{fault("bad-regexp",
                                  fmt::format("kernelMappings[{}]: \"{}\" is not a regular expression: {}", last.index,
                                              base::printable(last.matcher), base::printable(last.fault)),
                                  known(mapping.matcher_origin), "the syntax is RE2's, as in Go")};
    }
    if (!last.matched) { return NoMapping{}; }
    const std::string kernel = api::trim_kernel(kernel_version);
    const auto variables = template_variables(kernel, module_.meta.name, module_.meta.namespace_);
    if (!variables) { return unparsable_kernel(kernel, "has fewer than three parts"); }
    auto image = expand_image(module_, last.index, *variables);
    if (auto* bad = std::get_if<MappingFault>(&image)) { return std::move(*bad); }

    Resolved resolved;
    resolved.build = merge_build(container.build, mapping.build);
    resolved.sign = merge_sign(container.sign, mapping.sign);
    if (resolved.sign) {
        if (auto bad = expand_sign(*resolved.sign, module_, last.index, *variables)) { return std::move(*bad); }
    }
    resolved.mapping_index = last.index;
    resolved.literal = last.literal;
    resolved.matcher = last.matcher;
    resolved.kernel = kernel;
    resolved.kernel_real = std::string(kernel_version);
    const api::TlsOptions& tls = mapping.registry_tls ? *mapping.registry_tls : container.registry_tls;
    resolved.registry_tls = tls;
    api::ModuleConfig& config = resolved.config;
    config.container_image = std::get<std::string>(std::move(image));
    config.image_pull_policy = container.image_pull_policy;
    config.insecure_pull = tls.insecure || tls.insecure_skip_tls_verify;
    config.kernel_version = kernel;
    config.in_tree_modules_to_remove = in_tree_modules(container, mapping);
    config.modprobe = container.modprobe;
    if (config.modprobe.dir_name.empty()) { config.modprobe.dir_name = k_default_dir_name; }
    return resolved;
}

Resolution resolve(const api::Module& module, std::string_view kernel_version) {
    return Resolver(module).resolve(kernel_version);
}

}  // namespace kmm::plan
