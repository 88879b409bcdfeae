// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

namespace {

/// Debian's own kernels refuse what others only complain of; the first words of /proc/version tell who built it.
MissingVersions rule_of(const HostPaths& host) {
    const auto banner = read_text(host.proc + "/version");
    return banner && banner->find("(debian-kernel@") != std::string::npos ? MissingVersions::refused
                                                                          : MissingVersions::taken;
}

bool has_no_versions(const HostModule& reference) {
    const auto words = base::split(reference.vermagic, ' ');
    return std::find(words.begin(), words.end(), "modversions") == words.end();
}

}  // namespace

void KernelVersions::add(const HostModule& module) {
    known_.insert(module.crcs.begin(), module.crcs.end());
    known_.insert(module.exported_crcs.begin(), module.exported_crcs.end());
}

VersionResult KernelVersions::compare(const ModuleFile& file, const std::vector<HostModule>& host_modules) {
    if (!read_) {
        read_ = true;
        if (reference_ != nullptr) add(*reference_);
        const auto of_headers = header_crcs(directory_);
        headers_ = !of_headers.empty();
        known_.insert(of_headers.begin(), of_headers.end());
    }
    return compare_versions(file, index_, [&](std::string_view symbol) -> std::optional<std::uint32_t> {
        const std::string name(symbol);
        for (const auto& module : host_modules) {
            if (const auto it = module.exported_crcs.find(name); it != module.exported_crcs.end()) return it->second;
        }
        if (const auto it = known_.find(symbol); it != known_.end()) return it->second;
        for (const auto& module : host_modules) {
            if (const auto it = module.crcs.find(name); it != module.crcs.end()) return it->second;
        }
        return std::nullopt;
    });
}

/// Each module of the kernel's tree says with which versions of the kernel's symbols it was built.
void KernelVersions::read_live(const std::vector<std::string>& symbols) {
    live_read_ = true;
    each_host_module(directory_, live_modules(host_), [&](const HostModule& module) {
        if (reference_ != nullptr && module.vermagic == reference_->vermagic) add(module);
        return std::any_of(symbols.begin(), symbols.end(),
                           [&](const std::string& symbol) { return !known_.contains(symbol); });
    });
}

VersionResult KernelVersions::compare_all(const ModuleFile& file, const std::vector<HostModule>& host_modules) {
    VersionResult result = compare(file, host_modules);
    if (result.unknown.empty() || live_read_) return result;
    read_live(result.unknown);
    return compare(file, host_modules);
}

bool KernelVersions::fit(const ModuleFile& file, const std::vector<HostModule>& host_modules) {
    return file.has_versions && compare_all(file, host_modules).fits();
}

void KernelVersions::check(const ModuleFile& file, const std::vector<HostModule>& host_modules,
                           const std::set<std::string>& unexported, Diagnostics& findings) {
    if (reference_ != nullptr && has_no_versions(*reference_)) return;
    VersionResult result = compare_all(file, host_modules);
    report_versions(file, result, rule_of(host_), "rebuild the module against the headers of the running kernel",
                    findings);
    std::erase_if(result.unknown, [&](const std::string& symbol) { return unexported.contains(symbol); });
    if (result.unknown.empty() || file.crcs.empty()) return;
    add_finding(
        findings, Severity::warning, "versions-not-checked",
        fmt::format("this host does not say which version the kernel has of {} of module {}: {}",
                    base::counted(result.unknown.size(), "symbol"), file.name, first_of(result.unknown)),
        headers_ ? "" : "install the headers of the running kernel, whose Module.symvers lists them");
}

}  // namespace kmm::kmod
