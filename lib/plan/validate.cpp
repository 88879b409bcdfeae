// SPDX-License-Identifier: Apache-2.0
// Everything of a Module but its loader. Source: KMM webhook module.go; facts: KMM 10.1.
#include "plan/validate.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "plan/findings.hpp"

namespace kmm::plan {

namespace {

// A label key's name part has at most 63 bytes; "version-schedule-pod.." takes 22 of them, and the key of released KMM,
// "version-device-plugin..", 23.
constexpr std::size_t k_names_length_max = 41;
constexpr std::size_t k_names_length_released = 40;

void check_names(Findings& findings) {
    const api::Module& module = findings.module();
    const std::size_t length = module.meta.name.size() + module.meta.namespace_.size();
    const std::string message = fmt::format("name and namespace together have {} characters, expected at most ", length);
    if (length > k_names_length_max) {
        findings.error("metadata.name", "name-too-long", message + std::to_string(k_names_length_max),
                       "KMM builds label keys from both, and a key has at most 63 characters");
    } else if (length > k_names_length_released) {
        findings.warning("metadata.name", "name-too-long",
                         message + fmt::format("{} by KMM up to v2.6.0", k_names_length_released));
    }
    for (const auto& [key, text] : module.selector) {
        const std::string path = fmt::format("spec.selector[{}]", key);
        if (!api::is_qualified_name(key)) {
            findings.error(path, "bad-selector", fmt::format("selector key \"{}\" is no label key", base::escape(key)));
        } else if (!api::is_label_value(text)) {
            findings.error(path, "bad-selector", fmt::format("\"{}\" is no label value", base::escape(text)),
                           "no node can match this selector");
        }
    }
}

void check_toleration_operator(Findings& findings, const api::Toleration& toleration, const std::string& path) {
    const std::string& op = toleration.operator_;
    if (op == "Exists") {
        if (!toleration.value.empty()) {
            findings.error(path + ".value", "toleration-value",
                           fmt::format("operator Exists takes no value, found \"{}\"", base::escape(toleration.value)));
        }
    } else if (op.empty() || op == "Equal") {
        if (!api::is_label_value(toleration.value)) {
            findings.error(path + ".value", "toleration-value",
                           fmt::format("\"{}\" is no label value", base::escape(toleration.value)));
        }
    } else {
        findings.error(path + ".operator", "toleration-operator",
                       fmt::format("expected operator Equal or Exists, found \"{}\"", base::escape(op)));
    }
}

void check_tolerations(Findings& findings) {
    const auto& tolerations = findings.module().tolerations;
    for (std::size_t i = 0; i < tolerations.size(); ++i) {
        const api::Toleration& toleration = tolerations[i];
        const std::string path = fmt::format("spec.tolerations[{}]", i);
        if (!toleration.key.empty() && !api::is_qualified_name(toleration.key)) {
            findings.error(path + ".key", "toleration-key",
                           fmt::format("\"{}\" is no taint key", base::escape(toleration.key)));
        }
        if (toleration.key.empty() && toleration.operator_ != "Exists") {
            findings.error(path, "toleration-operator", "a toleration without key needs operator Exists");
        }
        check_toleration_operator(findings, toleration, path);
        if (toleration.toleration_seconds && toleration.effect != "NoExecute") {
            findings.error(path + ".tolerationSeconds", "toleration-seconds",
                           fmt::format("tolerationSeconds needs effect NoExecute, found \"{}\"",
                                       base::escape(toleration.effect)));
        }
        constexpr std::array<std::string_view, 4> effects{"", "NoSchedule", "PreferNoSchedule", "NoExecute"};
        if (std::find(effects.begin(), effects.end(), toleration.effect) == effects.end()) {
            findings.error(path + ".effect", "toleration-effect",
                           fmt::format("expected effect NoSchedule, PreferNoSchedule or NoExecute, found \"{}\"",
                                       base::escape(toleration.effect)));
        }
    }
}

/// Without empty, "." and ".." pieces, as Go's filepath.Clean has it for absolute paths.
std::string clean_path(const std::string& path) {
    std::vector<std::string_view> kept;
    for (const std::string_view piece : base::split(path, '/')) {
        if (piece.empty() || piece == ".") { continue; }
        if (piece != "..") {
            kept.push_back(piece);
        } else if (!kept.empty()) {
            kept.pop_back();
        }
    }
    std::string result;
    for (const std::string_view piece : kept) { result += fmt::format("/{}", piece); }
    return result.empty() ? "/" : result;
}

bool is_allowed_host_path(const std::string& path) {
    const std::string clean = path.starts_with('/') ? clean_path(path) : path;
    for (const std::string_view root : {"/dev", "/sys", "/var", "/opt", "/run"}) {
        if (clean == root || (clean.starts_with(root) && clean[root.size()] == '/')) { return true; }
    }
    return false;
}

void check_volumes(Findings& findings, const value::Node& plugin) {
    const value::Node* volumes = plugin.find("volumes");
    if (volumes == nullptr) { return; }
    for (const auto& volume : volumes->items()) {
        const value::Node* path = volume.find_path({"hostPath", "path"});
        if (path == nullptr || is_allowed_host_path(path->text())) { continue; }
        findings.error_at(*path, "host-path", fmt::format("hostPath {} is not allowed", base::escape(path->text())),
                          "KMM allows /dev, /sys, /var, /opt, /run and what is below them");
    }
}

void check_dra(Findings& findings, const value::Node& dra) {
    const std::string driver = dra.get_string({"driverName"});
    if (!api::is_dns1123_subdomain(driver)) {
        findings.error("spec.dra.driverName", "dra-driver-name",
                       fmt::format("driverName \"{}\" is no DNS subdomain", base::escape(driver)));
    }
    const value::Node* classes = dra.find("deviceClasses");
    std::set<std::string> seen;
    for (std::size_t i = 0; classes != nullptr && i < classes->items().size(); ++i) {
        const std::string name = classes->items()[i].get_string({"name"});
        const std::string path = fmt::format("spec.dra.deviceClasses[{}].name", i);
        if (!api::is_dns1123_subdomain(name)) {
            findings.error(path, "dra-device-class",
                           fmt::format("device class name \"{}\" is no DNS subdomain", base::escape(name)));
        } else if (!seen.insert(name).second) {
            findings.error(path, "dra-device-class", fmt::format("device class {} is named twice", name));
        }
    }
}

}  // namespace

void Findings::add(Severity severity, std::optional<Position> position, std::string code, std::string message,
                   std::string hint) {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    diagnostic.code = std::move(code);
    diagnostic.message = fmt::format("Module {}: {}", module_.full_name(), message);
    diagnostic.position = std::move(position);
    diagnostic.hint = std::move(hint);
    diagnostics_.push_back(std::move(diagnostic));
}

std::optional<Position> Findings::place(std::string_view path) const {
    while (!path.empty()) {
        if (const auto found = module_.places.find(path); found != module_.places.end()) { return found->second; }
        const std::size_t cut = path.find_last_of(".[");
        path = cut == std::string_view::npos ? std::string_view() : path.substr(0, cut);
    }
    return module_.meta.origin.file.empty() ? std::nullopt : std::optional(module_.meta.origin);
}

void validate_pod_fields(Findings& findings) {
    const api::Module& module = findings.module();
    check_names(findings);
    check_tolerations(findings);
    if (module.dra && module.device_plugin) {
        findings.error("spec.dra", "plugins-exclusive", "spec.dra and spec.devicePlugin are mutually exclusive");
    }
    if (module.dra) {
        check_dra(findings, *module.dra);
        check_volumes(findings, *module.dra);
    }
    if (module.device_plugin) { check_volumes(findings, *module.device_plugin); }
}

void validate_module(const api::Module& module, Diagnostics& diagnostics) {
    Findings findings(module, diagnostics);
    validate_pod_fields(findings);
    if (module.module_loader) { validate_loader(findings); }
}

Diagnostics validate(const api::Objects& objects) {
    Diagnostics diagnostics;
    for (const auto& module : objects.modules) { validate_module(module, diagnostics); }
    sort_and_merge(diagnostics);
    return diagnostics;
}

}  // namespace kmm::plan
