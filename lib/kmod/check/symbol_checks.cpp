// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"

namespace kmm::kmod {

namespace {

constexpr std::size_t k_config_bytes = 4U << 20U;

/// Everything known about exports outside of the image: the kernel's headers, then the host's modules that are needed.
std::map<std::string, Export> host_exports(const CheckInput& input) {
    std::map<std::string, Export> exports = header_exports(input.directory);
    for (const auto& module : input.found.host_modules) {
        try {
            const ModuleFile file = parse_module(
                plain_module(read_module_bytes(host_module_file(input.directory, module.path)), module.path),
                module.path);
            exports.insert(file.exports.begin(), file.exports.end());
        } catch (const Error&) {
            continue;  // what cannot be read here is refused when it is loaded
        }
    }
    return exports;
}

/// The configuration of the running kernel: its own copy if it has one, else a file of its packages.
std::optional<std::string> configuration_of(const CheckInput& input) {
    const HostPaths& host = input.host;
    if (auto packed = read_raw(host.proc + "/config.gz", k_config_bytes);
        packed && compression_name(*packed) == "gzip") {
        try {
            return plain_module(std::move(*packed), "config.gz");
        } catch (const Error&) {
            // No kernel writes such a one.
        }
    }
    const std::string root = host.etc.ends_with("/etc") ? host.etc.substr(0, host.etc.size() - 4) : std::string();
    const std::string boot = "/boot/config-" + input.facts.kernel;
    for (const std::string& path : {header_directory(input.directory) + "/.config", input.directory + "/config",
                                    host.root.empty() ? root + boot : here_of(host, boot)}) {
        if (auto text = read_text(path, k_config_bytes)) return text;
    }
    return std::nullopt;
}

}  // namespace

std::optional<bool> kernel_option(const CheckInput& input, std::string_view option) {
    const auto text = configuration_of(input);
    if (!text) return std::nullopt;
    return fmt::format("\n{}\n", *text).find(fmt::format("\n{}=y\n", option)) != std::string::npos;
}

void check_duplicate_symbols(const CheckInput& input, Diagnostics& findings) {
    std::map<std::string, std::string> ours;  // symbol -> the first module of the order that exports it
    const auto report = [&](const std::string& symbol, const std::string& name, const std::string& owner) {
        const bool of_kernel = owner.empty();
        add_finding(
            findings, Severity::error, "duplicate-symbol",
            fmt::format("module {} exports symbol {}, which {} exports already: the kernel refuses a second one", name,
                        base::escape(symbol), of_kernel ? "the kernel itself" : "module " + owner),
            of_kernel
                ? "build the module without it: this kernel has it built in"
                : fmt::format("unload {} first: list it in inTreeModulesToRemove, or kmm-worker unload --module {}",
                              owner, owner));
    };
    const auto leaves = [&](const std::string& owner) {
        const auto& listed = input.request.in_tree_modules_to_remove;
        return std::any_of(listed.begin(), listed.end(),
                           [&](const std::string& raw) { return normalise_name(raw) == owner; });
    };
    const auto& order = input.found.order.names;
    for (const auto& module : input.found.host_modules) {
        for (const auto& symbol : module.exported) ours.emplace(symbol, module.name);
    }
    for (const auto& name : order) {
        for (const auto& symbol : input.index.find(name)->file.exported) {
            const auto [it, fresh] = ours.emplace(symbol, name);
            if (!fresh) report(symbol, name, it->second);
        }
    }
    std::set<std::string> wanted;
    for (const auto& [symbol, name] : ours) {
        if (std::find(order.begin(), order.end(), name) != order.end() && !live_module(input.host, name))
            wanted.insert(symbol);
    }
    if (wanted.empty()) return;
    const auto owners = exporters_of(input.host, wanted);  // without kallsyms, "symbols-not-checked" is told
    for (const auto& [symbol, owner] : owners.value_or(std::map<std::string, std::string>{})) {
        if (owner != ours.at(symbol) && !leaves(owner)) report(symbol, ours.at(symbol), owner);
    }
}

void check_exports(const CheckInput& input, Diagnostics& findings) {
    const auto of_host = host_exports(input);
    const bool optional = kernel_option(input, "CONFIG_MODULE_ALLOW_MISSING_NAMESPACE_IMPORTS") == true;
    for (const auto& name : input.found.order.names) {
        const ModuleFile& file = input.index.find(name)->file;
        std::vector<std::string> gpl_only;
        std::map<std::string, std::vector<std::string>> missing;  // namespace -> symbols
        for (const auto& symbol : file.undefined) {
            const std::string exporter = input.index.exporter_of(symbol.name);
            const auto& table = exporter.empty() ? of_host : input.index.find(exporter)->file.exports;
            const auto it = table.find(symbol.name);
            if (it == table.end()) continue;
            if (it->second.gpl_only && !file.gpl_compatible() && !symbol.weak) gpl_only.push_back(symbol.name);
            const std::string& wanted = it->second.symbol_namespace;
            if (!wanted.empty() && !file.imports(wanted)) missing[wanted].push_back(symbol.name);
        }
        if (!gpl_only.empty()) {
            const std::string license = file.info("license");
            add_finding(
                findings, Severity::error, "gpl-only",
                fmt::format(
                    "module {} has the license '{}' and needs symbols that are exported to GPL modules only: {}", name,
                    base::escape(license.empty() ? "none" : license), first_of(gpl_only)),
                "the kernel treats these symbols as absent for it");
        }
        for (const auto& [wanted, symbols] : missing) {
            add_finding(findings, optional ? Severity::warning : Severity::error, "namespace-missing",
                        fmt::format("module {} does not import the symbol namespace {}, which it needs for {}", name,
                                    base::escape(wanted), first_of(symbols)),
                        wanted.starts_with("module:")
                            ? "only the modules that this namespace lists may use these symbols: build it without them"
                            : fmt::format("add MODULE_IMPORT_NS({}) to the module and rebuild it",
                                          base::escape(wanted)));
        }
    }
}

}  // namespace kmm::kmod
