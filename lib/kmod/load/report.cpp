// SPDX-License-Identifier: Apache-2.0
// What is told of a load or unload.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/load/steps.hpp"

namespace kmm::kmod {

namespace {

ModuleReport report_of(const HostModule& module) {
    ModuleReport report;
    report.name = module.name;
    report.action = Action::dependency;
    report.path = module.path;
    report.vermagic = module.vermagic;
    return report;
}

}  // namespace

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::load: return "load";
        case Action::loaded: return "loaded";
        case Action::already_loaded: return "already-loaded";
        case Action::unloaded: return "unloaded";
        case Action::not_loaded: return "not-loaded";
        case Action::removed_in_tree: return "removed-in-tree";
        case Action::dependency: return "dependency";
        case Action::kept: return "kept";
        case Action::restored: return "restored";
    }
    return "load";
}

Report describe(const ModuleIndex& index, const Preflight& checked, const LoadRequest& request, const HostPaths& host) {
    Report report;
    for (const auto& module : checked.host_modules) report.modules.push_back(report_of(module));
    const std::string main = normalise_name(request.module);
    for (const auto& name : checked.order.names) {
        ModuleReport entry = report_of(*index.find(name), Action::load);
        add_parameters(entry, checked.config, index.find(name)->file,
                       name == main ? request.parameters : std::vector<std::string>{});
        if (name == main) entry.role = Role::main;
        if (const auto live = live_module(host, name); live && live->state == "live")
            entry.same_by = same_by(judge_identity(host, *index.find(name), *live));
        report.modules.push_back(std::move(entry));
    }
    for (const auto& module : checked.host_after) report.modules.push_back(report_of(module));
    for (const auto& finding : checked.findings) {
        if (finding.severity == Severity::warning)
            report.warnings.push_back(fmt::format("{}: {}", finding.code, finding.message));
    }
    if (request.force.any())
        report.warnings.push_back(
            fmt::format("forced: module {} would be loaded although checks of the kernel are switched off", main));
    return report;
}

void warn_of_parameters(const Machine& machine, const ModuleFile& file,
                        const std::map<std::string, GivenParameter>& wanted, bool was_live,
                        std::vector<std::string>& warnings) {
    const auto live = live_module(machine.host, file.name);
    if (!live) return;
    const auto declared = file.parameters();
    for (const auto& [key, given] : wanted) {
        const std::string name = normalise_name(key);
        const auto type = std::find_if(declared.begin(), declared.end(),
                                       [&](const Parameter& p) { return normalise_name(p.name) == name; });
        const auto it = live->parameters.find(name);
        if (it == live->parameters.end()) {
            if (was_live && given.origin.empty() && type != declared.end())
                warnings.push_back(fmt::format("parameter-unknown: module {} was live already, and the kernel does not "
                                               "show its parameter {}: whether it is {} is not known; unload it "
                                               "first to be sure",
                                               file.name, key, base::escape(given.value)));
            continue;
        }
        if (shows_value(type == declared.end() ? std::string() : type->type, given.value, it->second)) continue;
        const std::string origin = given.origin.empty() ? "" : fmt::format(" ({})", base::escape(given.origin));
        warnings.push_back(fmt::format("parameter-differs: {} is live with {}={}, wanted {}{}{}", file.name, key,
                                       base::escape(it->second), base::escape(given.value), origin,
                                       was_live ? "; unload it first to change that" : ""));
    }
}

std::string message_in_context(const Error& error) {
    std::string text;
    for (const auto& context : error.context()) text += context + ": ";
    return text + error.message();
}

Diagnostics warnings_as_findings(const std::vector<std::string>& warnings) {
    Diagnostics findings;
    for (const auto& warning : warnings) {
        const auto colon = warning.find(": ");
        const bool coded = colon != std::string::npos && warning.find(' ') == colon + 1;
        findings.push_back(Diagnostic{Severity::warning, coded ? warning.substr(0, colon) : "",
                                      coded ? warning.substr(colon + 2) : warning, std::nullopt, "",
                                      Exit::checks_failed});
    }
    return findings;
}

void add_warnings(Error& error, Diagnostics warnings) {
    Diagnostics all = error.diagnostics();
    for (auto& warning : warnings) {
        const bool known = std::any_of(all.begin(), all.end(), [&](const Diagnostic& each) {
            return each.code == warning.code && warning.message.starts_with(each.message);
        });
        if (warning.severity == Severity::warning && !known) all.push_back(std::move(warning));
    }
    if (all.size() > error.diagnostics().size()) error.attach(std::move(all));
}

}  // namespace kmm::kmod
