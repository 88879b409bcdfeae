// SPDX-License-Identifier: Apache-2.0
// Rules about spec.moduleLoader. Source: KMM webhook module.go; facts: KMM 10.1 rules 12 to 24.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/clean_path.hpp"
#include "base/kernel_name.hpp"
#include "base/module_name.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/regexp.hpp"
#include "plan/kmm/template.hpp"
#include "plan/lint/findings.hpp"

namespace kmm::plan {

namespace {

constexpr Release k_image_tag_rule{2, 2, 0};   // the webhook's rules 13 and 18
constexpr Release k_sign_files_rule{2, 6, 0};  // rule 24

std::string container_path(std::string_view field) { return fmt::format("{}.{}", k_container_path, field); }

std::string mapping_path(std::size_t index, std::string_view field) {
    return fmt::format("{}.kernelMappings[{}].{}", k_container_path, index, field);
}

void check_version(Findings& findings, const api::ModuleLoaderContainer& container) {
    if (container.version.empty()) { return; }
    if (!api::is_label_value(container.version)) {
        findings.error(container_path("version"), "bad-version",
                       fmt::format("version: expected a label value, found \"{}\"", base::escape(container.version)),
                       "KMM writes the version into node labels: letters, digits, '-', '_', '.', at most 63");
    }
    if (findings.module().meta.name.find('.') != std::string::npos) {
        findings.warning("metadata.name", "dotted-name",
                         "the name has a dot, and KMM's ordered upgrade misreads version labels of such Modules",
                         "use '-' instead of '.'");
    }
}

/// An image's name once its template is expanded for some kernel: no Pod starts with one that the runtime cannot read.
void check_reference(Findings& findings, const std::string& path, const std::string& text) {
    if (const auto fault = image_name_fault(text)) findings.warning(path, "bad-reference", fault->message, fault->hint);
}

/// A kernel and names as they could be: a ManagedClusterModule does not know those of its Modules.
Variables some_variables(const Findings& findings) {
    const auto or_some = [](const std::string& name) { return name.empty() ? std::string("some") : name; };
    return *template_variables("6.1.0", or_some(findings.module().meta.name),
                               or_some(findings.module().meta.namespace_));
}

/// The text that a template stands for on some kernel, nullopt if it has a fault. `what` names it for messages.
std::optional<std::string> check_template(Findings& findings, const std::string& path, const std::string& text,
                                          const char* what, const Variables& variables) {
    const Expansion expansion = expand(text, variables);
    if (!expansion.error.empty()) {
        findings.error(path, "bad-template",
                       fmt::format("{} \"{}\": {} (at character {})", what, base::escape(text), expansion.error,
                                   expansion.error_offset + 1),
                       "a variable is $NAME, ${NAME} or ${NAME:-default}; $$ is a dollar sign");
    }
    bool is_whole = expansion.error.empty();
    for (const auto& use : expansion.uses) {
        if (use.value || use.has_default) { continue; }
        Diagnostic diagnostic = unknown_variable(use, what, text, variables, findings.place(path));
        diagnostic.message = fmt::format("{}: {}", findings.subject(), diagnostic.message);
        findings.add(std::move(diagnostic));
        is_whole = false;
    }
    return is_whole ? std::optional(expansion.text) : std::nullopt;
}

void check_image(Findings& findings, const std::string& path, const std::string& text, const ValidateOptions& options) {
    if (text.empty()) { return; }
    if (options.has_rule_of(k_image_tag_rule) && text.find_first_of(":@") == std::string::npos) {
        findings.error(path, "image-untagged",
                       fmt::format("image \"{}\" has neither tag nor digest", base::escape(text)),
                       "add :TAG or @sha256:DIGEST");
    }
    if (const auto image = check_template(findings, path, text, "image template", some_variables(findings))) {
        check_reference(findings, path, *image);
    }
}

/// Tells that both in-tree fields are used. `plural` is the place of the list.
void report_in_tree(Findings& findings, const std::string& plural, const char* where) {
    findings.error(plural, "in-tree-both",
                   fmt::format("inTreeModulesToRemove and inTreeModuleToRemove are both set {}", where),
                   "keep inTreeModulesToRemove");
}

/// A literal that no kernel can have for a name: it looks like a mapping and is none.
void check_literal(Findings& findings, const std::string& text, const std::string& path) {
    if (text.empty()) { return; }
    const auto warn = [&](const char* code, const std::string& why, std::string hint) {
        findings.warning(path, code, fmt::format("literal \"{}\" never matches: {}", base::printable(text), why),
                         std::move(hint));
    };
    constexpr std::string_view patterns = "*?^$|()[]{}\\";
    if (const std::size_t at = text.find_first_of(patterns); at != std::string::npos) {
        warn("literal-impossible", fmt::format("it is compared as it is, and no kernel version has a '{}'", text[at]),
             "write it as regexp, such as '^6[.]1[.]0-.+$'");
    } else if (text.find_first_of(" \t\r\n") != std::string::npos) {
        warn("literal-impossible", "no kernel version has a blank or a line end",
             "write it as uname -r prints it, without a blank");
    } else if (!base::is_kernel_name(text) || !begins_with_number(text)) {
        const std::string meant = kernel_in_name(text);
        warn("literal-impossible", "it is not a kernel version, expected one such as 6.1.0-56-amd64",
             meant.empty() ? "write it as uname -r prints it" : fmt::format("write {}", meant));
    } else if (!template_variables(text, "", "")) {
        warn("literal-impossible", "it has fewer than three parts between '.', ',' and '-'",
             "write it as uname -r prints it; a regexp such as '^6[.]1[.]' takes a whole series");
    } else if (text.ends_with('+')) {
        warn("literal-plus", "KMM drops one trailing '+' of the kernel version", "write it without the '+'");
    }
}

void check_matcher(Findings& findings, const api::KernelMapping& mapping, std::size_t index) {
    const std::string own = fmt::format("{}.kernelMappings[{}]", k_container_path, index);
    if (!mapping.literal.empty() && !mapping.regexp.empty()) {
        findings.error(
            own, "mapping-ambiguous",
            fmt::format("literal and regexp are both set in kernelMappings[{}], expected one of them", index),
            "keep one; two mappings do for both");
    }
    if (mapping.literal.empty() && mapping.regexp.empty() && !findings.misread(mapping_path(index, "literal")) &&
        !findings.misread(mapping_path(index, "regexp"))) {
        findings.error(
            own, "mapping-empty",
            fmt::format("neither literal nor regexp is set in kernelMappings[{}], expected one of them", index),
            "regexp: '^.+$' matches every kernel");
    }
    check_literal(findings, mapping.literal, mapping_path(index, "literal"));
    if (mapping.regexp.empty()) { return; }
    if (const Regexp regexp(mapping.regexp); !regexp.error().empty()) {
        findings.error(mapping_path(index, "regexp"), "bad-regexp",
                       fmt::format("kernelMappings[{}]: \"{}\" is not a regular expression: {}", index,
                                   base::printable(mapping.regexp), base::printable(regexp.error())),
                       "the syntax is RE2's, as in Go");
    }
}

/// Whether alternatives of the whole expression, or quoted text, make its beginning mean something else.
bool is_one_chain(std::string_view regexp) {
    int depth = 0;
    std::size_t member = 0;  // where the first member of the class begins that we are in: a bracket there is one
    for (std::size_t i = 0; i < regexp.size(); ++i) {
        const char c = regexp[i];
        if (c == '\\') {
            if (regexp.substr(i).starts_with("\\Q")) { return false; }
            ++i;
        } else if (member != 0) {
            if (c == ']' && i > member) { member = 0; }
        } else if (c == '[') {
            member = i + (regexp.substr(i).starts_with("[^") ? 2 : 1);
        } else if (c == '|' && depth == 0) {
            return false;
        } else if (c == '(' || c == ')') {
            depth += c == '(' ? 1 : -1;
        }
    }
    return true;
}

/// Whether what `later` is found in, `earlier` is found in as well, since it goes on where `earlier` ends. By their
/// texts, not by proof.
bool goes_on(std::string_view later, std::string_view earlier) {
    if (later.starts_with('^') && !earlier.starts_with('^')) { later.remove_prefix(1); }
    if (earlier.empty() || earlier.ends_with('$') || !later.starts_with(earlier)) { return false; }
    const std::string_view rest = later.substr(earlier.size());
    const bool changes_end = !rest.empty() && std::string_view("*+?{").find(rest.front()) != std::string_view::npos;
    return !changes_end && is_one_chain(earlier) && is_one_chain(later);
}

/// A literal or regexp for kernels that an earlier mapping already takes.
void check_reachable(Findings& findings, const std::vector<api::KernelMapping>& mappings) {
    for (std::size_t later = 1; later < mappings.size(); ++later) {
        const auto& mapping = mappings[later];
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
            const auto& first = mappings[earlier];
            const bool literal_taken = !mapping.literal.empty() &&
                                       (first.literal == mapping.literal ||
                                        (!first.regexp.empty() && Regexp(first.regexp).search(mapping.literal)));
            const bool regexp_taken =
                !mapping.regexp.empty() && (first.regexp == mapping.regexp || goes_on(mapping.regexp, first.regexp));
            if (!literal_taken && !regexp_taken) { continue; }
            findings.warning(
                mapping_path(later, literal_taken ? "literal" : "regexp"), "mapping-unreachable",
                fmt::format("kernelMappings[{}] is never used: kernelMappings[{}] matches first", later, earlier),
                "the first match in list order wins; a literal has no priority");
            break;
        }
    }
}

void check_mapping(Findings& findings, const api::ModuleLoaderContainer& container, std::size_t index,
                   const ValidateOptions& options) {
    const auto& mapping = container.kernel_mappings[index];
    check_matcher(findings, mapping, index);
    if (mapping.container_image.empty() && container.container_image.empty() &&
        !findings.misread(container_path("containerImage")) &&
        !findings.misread(mapping_path(index, "containerImage"))) {
        findings.error(
            mapping_path(index, "containerImage"), "missing-image",
            fmt::format("expected containerImage in kernelMappings[{}] or in the container, found none", index),
            "set containerImage in the mapping or in the container");
    }
    check_image(findings, mapping_path(index, "containerImage"), mapping.container_image, options);
    const bool plural = mapping.in_tree_modules_to_remove.has_value();
    const bool single = !mapping.in_tree_module_to_remove.empty();
    const std::string place = mapping_path(index, plural ? "inTreeModulesToRemove" : "inTreeModuleToRemove");
    if (plural && single) {
        report_in_tree(findings, place, "in this mapping");
    } else if ((plural && !container.in_tree_module_to_remove.empty()) ||
        (single && container.in_tree_modules_to_remove.has_value())) {
        report_in_tree(findings, place, "in the container and in this mapping");
    }
}

/// Whether a command line of modprobe names a root directory: -d DIR, also among other short options, or --dirname.
bool names_directory(const std::vector<std::string>& arguments) {
    return std::any_of(arguments.begin(), arguments.end(), [](std::string_view argument) {
        const bool is_short = argument.starts_with('-') && !argument.starts_with("--");
        return argument.starts_with("--dirname") || (is_short && argument.find('d') != std::string_view::npos);
    });
}

/// rawArgs are the whole command line of modprobe.
void check_beside_raw_args(Findings& findings, const api::ModprobeSpec& modprobe, const api::ModprobeArgs& raw) {
    for (const auto& [field, is_set] :
         {std::pair("parameters", !modprobe.parameters.empty()), std::pair("args", modprobe.args.has_value())}) {
        if (!is_set) { continue; }
        findings.warning(container_path(fmt::format("modprobe.{}", field)), "raw-args-alone",
                         fmt::format("KMM ignores modprobe.{} beside rawArgs", field),
                         "write them into rawArgs.load and rawArgs.unload, or set moduleName instead of rawArgs");
    }
    for (const auto& [field, list] : {std::pair("load", &raw.load), std::pair("unload", &raw.unload)}) {
        if (names_directory(*list)) { continue; }
        const std::string directory = modprobe.dir_name.empty() ? "/opt" : modprobe.dir_name;
        findings.warning(
            container_path(fmt::format("modprobe.rawArgs.{}", field)), "raw-args-alone",
            fmt::format("rawArgs.{} names no directory: modprobe of KMM's worker takes modules of the host, not of the "
                        "image",
                        field),
            fmt::format("add -d and /tmp{}, where the worker has the image's modules", base::escape(directory)));
    }
}

void check_raw_args(Findings& findings, const api::ModprobeSpec& modprobe) {
    const api::ModprobeArgs raw = modprobe.raw_args.value_or(api::ModprobeArgs{});
    if (!modprobe.module_name.empty()) {
        if (!raw.load.empty() || !raw.unload.empty()) {
            findings.error(container_path("modprobe.rawArgs"), "raw-args-with-name",
                           fmt::format("rawArgs cannot be set when moduleName is set, found moduleName {}",
                                       base::escape(modprobe.module_name)),
                           "remove moduleName, or write args instead of rawArgs");
        }
    } else if (findings.misread(container_path("modprobe.moduleName")) ||
               findings.misread(container_path("modprobe.rawArgs"))) {
        return;  // what is meant is not known
    } else if (raw.load.empty() || raw.unload.empty()) {
        findings.error(container_path("modprobe"), "raw-args-missing",
                       fmt::format("expected moduleName, or rawArgs.load and rawArgs.unload; found {}",
                                   raw.load.empty() ? (raw.unload.empty() ? "none of them" : "rawArgs.unload alone")
                                                    : "rawArgs.load alone"),
                       "set moduleName");
    } else {
        check_beside_raw_args(findings, modprobe, raw);
    }
}

/// Why nothing can be loaded by this name, "" if something can.
std::string name_problem(const std::string& name) {
    return name.starts_with('-') ? "is not a module name" : std::string(base::module_name_problem(name));
}

void check_module_name(Findings& findings, const api::ModprobeSpec& modprobe) {
    const std::string problem = modprobe.module_name.empty() ? "" : name_problem(modprobe.module_name);
    if (problem.empty()) { return; }
    findings.warning(container_path("modprobe.moduleName"), "module-name",
                     fmt::format("moduleName: \"{}\" {}", base::escape(modprobe.module_name), problem),
                     base::k_module_name_hint);
}

/// KMM looks for files NAME.ko* below lib/modules: what is named with its ending is never found, and the in-tree module
/// stays.
void check_in_tree_names(Findings& findings, const std::string& path,
                         const std::optional<std::vector<std::string>>& names, const std::string& single) {
    const auto check = [&](const std::string& place, const std::string& name) {
        const std::string problem = name.empty() ? "" : name_problem(name);
        if (!problem.empty()) {
            findings.warning(place, "module-name", fmt::format("\"{}\" {}", base::escape(name), problem),
                             base::k_module_name_hint);
        }
    };
    check(path + "inTreeModuleToRemove", single);
    for (std::size_t i = 0; names && i < names->size(); ++i) {
        check(fmt::format("{}inTreeModulesToRemove[{}]", path, i), (*names)[i]);
    }
}

void check_loading_order(Findings& findings, const api::ModprobeSpec& modprobe) {
    const std::string path = container_path("modprobe.modulesLoadingOrder");
    const auto& order = modprobe.modules_loading_order;
    if ((order.empty() && !findings.present(path)) || findings.misread(path)) { return; }
    if (order.size() < 2) {
        findings.error(path, "loading-order",
                       fmt::format("modulesLoadingOrder needs at least two modules, found {}", order.size()),
                       "remove it: modprobe loads what one module depends on");
    }
    if (findings.misread(container_path("modprobe.moduleName"))) {
        // Whether the list begins with it is not known.
    } else if (modprobe.module_name.empty()) {
        findings.error(path, "loading-order", "modulesLoadingOrder needs moduleName, found none",
                       "set moduleName to the first module of the list");
    } else if (!order.empty() && order.front() != modprobe.module_name) {
        findings.error(path + "[0]", "loading-order",
                       fmt::format("modulesLoadingOrder must start with moduleName {}, found {}",
                                   base::escape(modprobe.module_name), base::escape(order.front())),
                       "the first is loaded last, as the others are what it builds on");
    }
    std::set<std::string> seen;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::string place = fmt::format("{}[{}]", path, i);
        if (const std::string problem = name_problem(order[i]); !problem.empty()) {
            findings.error(place, "loading-order",
                           fmt::format("modulesLoadingOrder[{}]: \"{}\" {}", i, base::escape(order[i]), problem),
                           base::k_module_name_hint);
        } else if (!seen.insert(order[i]).second) {
            findings.error(place, "loading-order",
                           fmt::format("{} is named twice in modulesLoadingOrder", base::escape(order[i])),
                           "remove one of them");
        }
    }
}

/// KMM knows neither MOD_NAME nor MOD_NAMESPACE there.
void check_sign_templates(Findings& findings, const api::Sign& sign, const std::string& path) {
    Variables variables = some_variables(findings);
    variables.erase("MOD_NAME");
    variables.erase("MOD_NAMESPACE");
    const std::string unsigned_path = path + ".unsignedImage";
    if (const auto image =
            check_template(findings, unsigned_path, sign.unsigned_image, "unsignedImage template", variables);
        image && !image->empty()) {
        check_reference(findings, unsigned_path, *image);
    }
    for (std::size_t i = 0; i < sign.files_to_sign.size(); ++i) {
        check_template(findings, fmt::format("{}.filesToSign[{}]", path, i), sign.files_to_sign[i],
                       "filesToSign template", variables);
    }
}

void check_sign(Findings& findings, const api::Sign& sign, const std::string& path, const std::string& dir_name,
                const ValidateOptions& options) {
    check_sign_templates(findings, sign, path);
    if (!options.has_rule_of(k_sign_files_rule) || findings.misread(path + ".filesToSign") ||
        findings.misread(container_path("modprobe.dirName"))) {
        return;
    }
    if (sign.files_to_sign.empty()) {
        findings.error(path + ".filesToSign", "sign-files", "filesToSign: expected at least one file, found none",
                       "list the .ko files to sign here too: this level inherits none");
    }
    for (std::size_t i = 0; i < sign.files_to_sign.size(); ++i) {
        if (sign.files_to_sign[i].starts_with(dir_name + "/")) { continue; }
        findings.error(fmt::format("{}.filesToSign[{}]", path, i), "sign-files",
                       fmt::format("filesToSign: expected a file below dirName {}, found {}", base::escape(dir_name),
                                   base::escape(sign.files_to_sign[i])),
                       "write the file's whole path in the image, or set modprobe.dirName");
    }
}

/// Every worker Pod has it, and no API server takes a Pod with such a name. Source: Kubernetes
/// pkg/apis/core/validation/validation.go.
void check_service_account(Findings& findings, const std::string& name) {
    if (name.empty() || api::is_dns1123_subdomain(name)) { return; }
    findings.error("spec.moduleLoader.serviceAccountName", "bad-value",
                   fmt::format("serviceAccountName \"{}\" is not the name of a ServiceAccount", base::escape(name)),
                   "lower-case letters, digits, '-' and '.', a letter or digit at both ends, at most 253");
}

/// KMM's rule since v2.7 is a well-formed absolute path; which forms are not well-formed is its own matter.
void check_modprobed_dir(Findings& findings, const std::string& directory) {
    const std::string place = container_path("modprobe.modprobedDir");
    if (directory.empty()) { return; }
    const auto below = base::path_below(directory);
    if (!directory.starts_with('/')) {
        findings.error(place, "modprobed-dir",
                       fmt::format("modprobedDir \"{}\" is not absolute", base::escape(directory)),
                       "write the path as it is in the image, beginning with '/'");
    } else if (!below || base::clean_path(directory) != directory) {
        findings.warning(place, "modprobed-dir",
                         fmt::format("modprobedDir \"{}\" is not the plain form of a path, which KMM may refuse",
                                     base::escape(directory)),
                         "write the path as it is in the image, without '..', doubled slashes or one at its end");
    } else if (*below == "tmp" || below->starts_with("tmp/")) {
        findings.warning(place, "modprobed-dir",
                         fmt::format("modprobedDir \"{}\" is hidden by the volume that KMM mounts at /tmp to copy it "
                                     "to",
                                     base::escape(directory)),
                         "put the files elsewhere in the image, as below /opt");
    } else if (below->empty()) {
        findings.warning(place, "modprobed-dir", "modprobedDir is the root of the image: KMM refuses sub-directories",
                         "put the modprobe.d files alone into a directory");
    }
}

void check_modprobe(Findings& findings, const api::ModprobeSpec& modprobe) {
    // A modprobe that is not there is reported by the decoder.
    if (findings.module().places.empty() || findings.present(container_path("modprobe"))) {
        check_raw_args(findings, modprobe);
    }
    check_module_name(findings, modprobe);
    check_loading_order(findings, modprobe);
    check_modprobed_dir(findings, modprobe.modprobed_dir);
    for (const auto& [field, path, code] :
         {std::tuple("dirName", &modprobe.dir_name, "dir-name"),
          std::tuple("firmwarePath", &modprobe.firmware_path, "firmware-path")}) {
        const std::string place = container_path(fmt::format("modprobe.{}", field));
        if (!base::path_below(*path)) {
            findings.warning(place, code,
                             fmt::format("{} \"{}\" leads out of the image: KMM copies it to where its worker does not "
                                         "look",
                                         field, base::escape(*path)),
                             "write the path as it is in the image, without .. that leads above it");
        } else if (!path->empty() && !path->starts_with('/')) {
            findings.warning(
                place, code, fmt::format("{} \"{}\" is not absolute", field, base::escape(*path)),
                "KMM copies from the image's working directory, which may be another than the root: begin it with '/'");
        } else if (const auto clean = *base::path_below(*path); clean == "tmp" || clean.starts_with("tmp/")) {
            findings.warning(place, code,
                             fmt::format("{} \"{}\" is hidden by the volume that KMM mounts at /tmp to copy it to",
                                         field, base::escape(*path)),
                             "put the files elsewhere in the image, as below /opt");
        }
    }
}

}  // namespace

void validate_loader(Findings& findings, const ValidateOptions& options) {
    const api::ModuleLoaderContainer& container = findings.module().module_loader->container;
    const std::string dir_name = container.modprobe.dir_name.empty() ? "/opt" : container.modprobe.dir_name;
    check_version(findings, container);
    check_service_account(findings, findings.module().module_loader->service_account_name);
    if (container.in_tree_modules_to_remove && !container.in_tree_module_to_remove.empty()) {
        report_in_tree(findings, container_path("inTreeModulesToRemove"), "in the container");
    }
    check_image(findings, container_path("containerImage"), container.container_image, options);
    check_pull_policy(findings, container_path("imagePullPolicy"), container.image_pull_policy);
    check_in_tree_names(findings, container_path(""), container.in_tree_modules_to_remove,
                        container.in_tree_module_to_remove);
    for (std::size_t i = 0; i < container.kernel_mappings.size(); ++i) {
        const auto& mapping = container.kernel_mappings[i];
        check_in_tree_names(findings, mapping_path(i, ""), mapping.in_tree_modules_to_remove,
                            mapping.in_tree_module_to_remove);
    }
    for (std::size_t i = 0; i < container.kernel_mappings.size(); ++i) {
        check_mapping(findings, container, i, options);
    }
    check_reachable(findings, container.kernel_mappings);
    check_modprobe(findings, container.modprobe);
    if (container.sign) { check_sign(findings, *container.sign, container_path("sign"), dir_name, options); }
    for (std::size_t i = 0; i < container.kernel_mappings.size(); ++i) {
        const auto& sign = container.kernel_mappings[i].sign;
        if (sign) { check_sign(findings, *sign, mapping_path(i, "sign"), dir_name, options); }
    }
    validate_pod_secrets(findings);
}

}  // namespace kmm::plan
