// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/versions.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"

namespace kmm::kmod {

namespace {

constexpr std::string_view k_layout = "module_layout";

void add_version_finding(Diagnostics& findings, Severity severity, std::string code, std::string message,
                         std::string hint) {
    findings.push_back(
        Diagnostic{severity, std::move(code), std::move(message), std::nullopt, std::move(hint), Exit::checks_failed});
}

}  // namespace

VersionResult compare_versions(const ModuleFile& file, const ModuleIndex& index, const VersionOf& of_kernel) {
    VersionResult result;
    bool compared = false;
    const auto compare = [&](const std::string& symbol, bool weak) {
        const std::string exporter = index.exporter_of(symbol);
        const auto wanted = exporter.empty() ? of_kernel(symbol) : index.find(exporter)->file.export_crcs.find(symbol);
        if (!wanted) {
            if (exporter.empty() && !weak) result.unknown.push_back(base::escape(symbol));
            return;
        }
        compared = true;
        const auto found = file.crcs.find(symbol);
        if (!found) {
            result.missing.push_back(base::escape(symbol));
        } else if (*found != *wanted) {
            auto& list = exporter.empty() ? result.of_kernel : result.of_modules[exporter];
            list.push_back(fmt::format("{} {:#010x} (expected {:#010x})", base::escape(symbol), *found, *wanted));
        }
    };
    compare(std::string(k_layout), false);
    for (const auto& symbol : file.undefined) compare(symbol.name, symbol.weak);
    result.none = compared && file.crcs.empty();
    return result;
}

void report_versions(const ModuleFile& file, const VersionResult& result, MissingVersions rule,
                     const std::string& rebuild, Diagnostics& findings) {
    if (result.none) {
        add_version_finding(findings, Severity::error, "symbol-version-missing",
                            fmt::format("module {} has no symbol versions, which the kernel and the modules it needs "
                                        "have: it would only be loaded by force",
                                        file.name),
                            rebuild);
        return;
    }
    if (!result.of_kernel.empty()) {
        add_version_finding(
            findings, Severity::error, "symbol-version-differs",
            fmt::format("module {} was built for another kernel interface: {}", file.name, first_of(result.of_kernel)),
            rebuild);
    }
    for (const auto& [exporter, symbols] : result.of_modules) {
        add_version_finding(
            findings, Severity::error, "symbol-version-differs",
            fmt::format("module {} was built against another build of module {}, which is in the image too: {}",
                        file.name, exporter, first_of(symbols)),
            fmt::format("build both together, with the Module.symvers of {} in KBUILD_EXTRA_SYMBOLS", exporter));
    }
    if (!result.missing.empty()) {
        const bool refused = rule == MissingVersions::refused;
        add_version_finding(
            findings, refused ? Severity::error : Severity::warning, "symbol-version-missing",
            fmt::format("module {} was built without the version of {}: {}", file.name, first_of(result.missing),
                        refused ? "this kernel refuses it" : "the kernel cannot tell whether it fits"),
            "build it with the Module.symvers of all that it needs: that of the kernel's headers, and those of other "
            "modules in KBUILD_EXTRA_SYMBOLS");
    }
}

}  // namespace kmm::kmod
