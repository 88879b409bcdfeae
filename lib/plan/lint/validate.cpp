// SPDX-License-Identifier: Apache-2.0
// Everything of a Module but its loader. Source: KMM webhook module.go; facts: KMM 10.1.
#include "plan/lint/validate.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/clean_path.hpp"
#include "base/kernel_name.hpp"
#include "base/text.hpp"
#include "plan/kmm/hub_module.hpp"
#include "plan/kmm/template.hpp"
#include "plan/lint/findings.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

// A label key's name part has at most 63 bytes; "version-schedule-pod.." takes 22 of them, and the key of released KMM,
// "version-device-plugin..", 23.
constexpr std::size_t k_names_length_max = 41;
constexpr std::size_t k_names_length_released = 40;

void check_names(Findings& findings, const std::optional<Release>& release) {
    const api::Module& module = findings.module();
    const std::size_t length = module.meta.name.size() + module.meta.namespace_.size();
    const std::string message =
        fmt::format("name and namespace together have {} characters, expected at most ", length);
    const std::size_t limit = release && *release < k_after_last_known ? k_names_length_released : k_names_length_max;
    if (length > limit) {
        findings.error("metadata.name", "name-too-long", message + std::to_string(limit),
                       "shorten one: KMM builds label keys from both, and a key has at most 63 characters");
    } else if (length > k_names_length_released && !release) {
        findings.warning("metadata.name", "name-too-long",
                         message + fmt::format("{} by KMM up to v2.6.0", k_names_length_released),
                         "shorten one of them, or use a later KMM, which takes 41");
    }
    for (const auto& [key, text] : module.selector) {
        const std::string path = fmt::format("spec.selector[{}]", key);
        if (!api::is_qualified_name(key)) {
            findings.error(path + ".key", "bad-selector",
                           fmt::format("selector key \"{}\" is not a label key", base::escape(key)),
                           "no node can match this selector");
        } else if (!api::is_label_value(text)) {
            findings.error(path, "bad-selector", fmt::format("\"{}\" is not a label value", base::escape(text)),
                           "no node can match this selector");
        }
    }
}

void check_toleration_operator(Findings& findings, const api::Toleration& toleration, const std::string& path) {
    const std::string& op = toleration.operator_;
    if (op == "Exists") {
        if (!toleration.value.empty()) {
            findings.error(path + ".value", "toleration-value",
                           fmt::format("operator Exists takes no value, found \"{}\"", base::escape(toleration.value)),
                           "remove value, or write operator: Equal");
        }
    } else if (op.empty() || op == "Equal") {
        if (!api::is_label_value(toleration.value)) {
            findings.error(path + ".value", "toleration-value",
                           fmt::format("expected a label value, found \"{}\"", base::escape(toleration.value)),
                           "at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends");
        }
    } else {
        const auto near = base::nearest(op, std::vector<std::string>{"Equal", "Exists"});
        findings.error(path + ".operator", "toleration-operator",
                       fmt::format("expected operator Equal or Exists, found \"{}\"", base::escape(op)),
                       near ? fmt::format("did you mean {}?", *near) : "without operator, Equal is meant");
    }
}

void check_tolerations(Findings& findings) {
    const auto& tolerations = findings.module().tolerations;
    for (std::size_t i = 0; i < tolerations.size(); ++i) {
        const api::Toleration& toleration = tolerations[i];
        const std::string path = fmt::format("spec.tolerations[{}]", i);
        if (!toleration.key.empty() && !api::is_qualified_name(toleration.key)) {
            findings.error(path + ".key", "toleration-key",
                           fmt::format("expected a taint key, found \"{}\"", base::escape(toleration.key)),
                           "a key is [PREFIX/]NAME; NAME has 1 to 63 letters, digits, '-', '_' or '.'");
        }
        if (toleration.key.empty() && toleration.operator_ != "Exists") {
            findings.error(path, "toleration-operator",
                           fmt::format("a toleration without key needs operator Exists, found {}",
                                       toleration.operator_.empty() ? "none" : base::escape(toleration.operator_)),
                           "add key, or operator: Exists to tolerate every taint");
        }
        check_toleration_operator(findings, toleration, path);
        if (toleration.toleration_seconds && toleration.effect != "NoExecute") {
            findings.error(path + ".tolerationSeconds", "toleration-seconds",
                           fmt::format("tolerationSeconds needs effect NoExecute, found {}",
                                       toleration.effect.empty() ? "none" : base::escape(toleration.effect)),
                           "remove tolerationSeconds, or write effect: NoExecute");
        }
        const std::vector<std::string> effects{"NoSchedule", "PreferNoSchedule", "NoExecute"};
        if (!toleration.effect.empty() &&
            std::find(effects.begin(), effects.end(), toleration.effect) == effects.end()) {
            const auto near = base::nearest(toleration.effect, effects);
            findings.error(path + ".effect", "toleration-effect",
                           fmt::format("expected effect NoSchedule, PreferNoSchedule or NoExecute, found \"{}\"",
                                       base::escape(toleration.effect)),
                           near ? fmt::format("did you mean {}?", *near) : "without effect, all of them are tolerated");
        }
    }
}

bool is_allowed_host_path(const std::string& path) {
    const std::string clean = base::clean_path(path);
    for (const std::string_view root : {"/dev", "/sys", "/var", "/opt", "/run"}) {
        if (clean == root || (clean.starts_with(root) && clean[root.size()] == '/')) { return true; }
    }
    return false;
}

void check_volumes(Findings& findings, const value::Node& plugin, const ValidateOptions& options) {
    const value::Node* volumes = plugin.find("volumes");
    if (volumes == nullptr) { return; }
    for (const auto& volume : volumes->items()) {
        const value::Node* path = volume.find_path({"hostPath", "path"});
        if (path == nullptr) { continue; }
        if (options.has_rule_of(k_after_last_known) && !is_allowed_host_path(path->text())) {
            findings.error_at(
                *path, "host-path", fmt::format("hostPath {} is not allowed", base::escape(path->text())),
                "since v2.7 KMM allows /dev, /sys, /var, /opt, /run and what is below them; v2.6.0 takes any path");
            continue;
        }
        const auto pieces = base::split(path->text(), '/');
        if (std::find(pieces.begin(), pieces.end(), "..") !=
            pieces.end()) {  // KMM takes the path that it stands for, Kubernetes does not
            findings.warning_at(*path, "plugin-refused",
                                fmt::format("hostPath {} has a \"..\"", base::escape(path->text())),
                                fmt::format("write {}", base::clean_path(path->text())));
        }
    }
}

void check_plugin_policies(Findings& findings, const value::Node& plugin, const std::string& path) {
    for (const char* name : {"container", "initContainer"}) {
        check_pull_policy(findings, fmt::format("{}.{}.imagePullPolicy", path, name),
                          plugin.get_string({name, "imagePullPolicy"}));
    }
}

constexpr std::size_t k_subdomain_length_max = 253;
constexpr std::string_view k_subdomain_hint =
    "lower-case letters, digits, '-' and '.', a letter or digit at both ends, at most 253";

void check_dra(Findings& findings, const value::Node& dra) {
    const std::string driver = dra.get_string({"driverName"});
    // A field that is absent or no string is reported by the decoder.
    if (const value::Node* place = dra.find("driverName");
        place != nullptr && place->is_string() && !api::is_dns1123_subdomain(driver)) {
        findings.error("spec.dra.driverName", "dra-driver-name",
                       fmt::format("driverName: expected a DNS subdomain, found \"{}\"", base::escape(driver)),
                       std::string(k_subdomain_hint));
    }
    const value::Node* classes = dra.find("deviceClasses");
    std::set<std::string> seen;
    for (std::size_t i = 0; classes != nullptr && i < classes->items().size(); ++i) {
        const value::Node* place = classes->items()[i].find("name");
        if (place == nullptr || !place->is_string()) { continue; }
        const std::string& name = place->text();
        const std::string path = fmt::format("spec.dra.deviceClasses[{}].name", i);
        if (name.size() > k_subdomain_length_max) {  // of what stands in it the definition takes care
            findings.error(path, "dra-device-class",
                           fmt::format("deviceClasses[{}].name has {} characters, expected at most {}", i, name.size(),
                                       k_subdomain_length_max),
                           std::string(k_subdomain_hint));
        } else if (!seen.insert(name).second) {
            findings.error(path, "dra-device-class", fmt::format("device class {} is named twice", name),
                           "remove one of them");
        }
    }
}

constexpr int k_dra_minor = 34;  // of Kubernetes 1

/// Major and minor of "1.34", "v1.34.2-rc.0" or "1.34+"; nullopt for anything else.
std::optional<std::pair<int, int>> parse_kubernetes_version(std::string_view text) {
    if (text.starts_with('v')) { text.remove_prefix(1); }
    std::pair<int, int> version;
    const auto major = std::from_chars(text.data(), text.data() + text.size(), version.first);
    if (major.ec != std::errc() || major.ptr == text.data() + text.size() || *major.ptr != '.') { return std::nullopt; }
    const auto minor = std::from_chars(major.ptr + 1, text.data() + text.size(), version.second);
    if (minor.ec != std::errc()) { return std::nullopt; }
    const bool ends = minor.ptr == text.data() + text.size() || *minor.ptr == '.' || *minor.ptr == '+' ||
                      *minor.ptr == '-';
    return ends ? std::optional(version) : std::nullopt;
}

void check_dra_version(Findings& findings, const std::string& cluster) {
    const auto version = parse_kubernetes_version(cluster);
    if (!version || version->first > 1 || (version->first == 1 && version->second >= k_dra_minor)) { return; }
    findings.error("spec.dra", "dra-kubernetes-version",
                   fmt::format("spec.dra needs Kubernetes 1.{} or later, found {}", k_dra_minor, base::escape(cluster)),
                   "use spec.devicePlugin instead");
}

void check_preflight(const api::PreflightValidation& object, Diagnostics& diagnostics) {
    const std::string& kernel = object.kernel_version;
    const auto parts =
        1 + std::count_if(kernel.begin(), kernel.end(), [](char c) { return c == '.' || c == ',' || c == '-'; });
    constexpr int parts_min = 3;
    const bool is_name = base::is_kernel_name(kernel);
    if (kernel.empty() ? object.kernel_origin == object.meta.origin : is_name && parts >= parts_min) {
        return;
    }  // absent: reported
    Diagnostic diagnostic;
    diagnostic.code = "preflight-kernel";
    diagnostic.message = is_name || kernel.empty()
                             ? fmt::format(
                                   "{} {}: kernelVersion: expected at least {} parts between '.', ',' and '-', "
                                   "found \"{}\"",
                                   object.kind, base::escape(object.meta.name), parts_min, base::escape(kernel))
                             : fmt::format(
                                   "{} {}: kernelVersion: expected a kernel version such as 6.1.0-56-amd64, "
                                   "found \"{}\"",
                                   object.kind, base::escape(object.meta.name), base::escape(kernel));
    diagnostic.position = object.kernel_origin;
    diagnostic.hint = "write it as uname -r prints it";
    diagnostics.push_back(std::move(diagnostic));
}

void check_namespace_deletion(const api::Namespace& object, Diagnostics& diagnostics) {
    if (!object.meta.deleting || object.meta.labels.count(std::string(api::k_label_contains_modules)) == 0) { return; }
    Diagnostic diagnostic;
    diagnostic.severity = Severity::warning;  // of a cluster: it is so, whether KMM's webhook was asked or not
    diagnostic.code = "namespace-has-modules";
    diagnostic.message = fmt::format("Namespace {} is to be deleted and has label {}", base::escape(object.meta.name),
                                     api::k_label_contains_modules);
    diagnostic.position = object.meta.origin;
    diagnostic.hint = "delete its Modules first; KMM then removes the label";
    diagnostics.push_back(std::move(diagnostic));
}

bool is_path_inside(std::string_view inner, std::string_view outer) {
    return inner.starts_with(outer) &&
           (inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

}  // namespace

void Findings::add(Severity severity, std::optional<Position> position, std::string code, std::string message,
                   std::string hint) {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    diagnostic.code = std::move(code);
    diagnostic.message = fmt::format("{}: {}", subject_, message);
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

bool Findings::misread(std::string_view path) const {
    return std::any_of(module_.misread.begin(), module_.misread.end(), [&](const std::string& wrong) {
        return is_path_inside(path, wrong) || is_path_inside(wrong, path);
    });
}

bool Findings::stands_in_misread(std::string_view path) const {
    return std::any_of(module_.misread.begin(), module_.misread.end(),
                       [&](const std::string& wrong) { return is_path_inside(path, wrong); });
}

void check_pull_policy(Findings& findings, const std::string& path, const std::string& policy) {
    const std::vector<std::string> policies{"Always", "IfNotPresent", "Never"};
    if (policy.empty() || std::find(policies.begin(), policies.end(), policy) != policies.end()) { return; }
    const auto near = base::nearest(policy, policies);
    findings.error(
        path, "pull-policy",
        fmt::format("imagePullPolicy: expected Always, IfNotPresent or Never, found \"{}\"", base::escape(policy)),
        near ? fmt::format("did you mean {}?", *near) : "no Pod with another word is taken by Kubernetes");
}

void validate_pod_fields(Findings& findings, const ValidateOptions& options) {
    const api::Module& module = findings.module();
    check_names(findings, options.release);
    check_tolerations(findings);
    if (module.dra) {
        check_dra_version(findings, options.kubernetes_version);
        check_dra(findings, *module.dra);
        check_volumes(findings, *module.dra, options);
        check_plugin_policies(findings, *module.dra, "spec.dra");
        validate_plugin(findings, *module.dra, "dra");
    }
    if (module.device_plugin) {
        check_volumes(findings, *module.device_plugin, options);
        check_plugin_policies(findings, *module.device_plugin, "spec.devicePlugin");
        validate_plugin(findings, *module.device_plugin, "devicePlugin");
    }
}

namespace {

void validate_as(const api::Module& module, const std::string& subject, const ValidateOptions& options,
                 Diagnostics& diagnostics) {
    Findings findings(module, subject, diagnostics);
    validate_pod_fields(findings, options);
    if (module.module_loader) { validate_loader(findings, options); }
}

}  // namespace

void require_kubernetes_version(const std::string& text) {
    if (parse_kubernetes_version(text)) { return; }
    throw Error(Exit::usage, "bad-value",
                fmt::format("expected a version of Kubernetes as 1.34, found '{}'", base::escape(text)))
        .hint("kubectl version prints that of the server");
}

void validate_module(const api::Module& module, const ValidateOptions& options, Diagnostics& diagnostics) {
    const std::string subject = fmt::format("Module {}", module.full_name());
    validate_as(module, subject, options, diagnostics);
    if (Findings findings(module, subject, diagnostics); !module.places.empty() && !findings.present("spec")) {
        findings.warning("metadata", "missing-field",
                         "there is no spec, or it is empty: KMM admits the Module and does nothing",
                         "add spec; what belongs to it is indented below it");
    }
}

void validate_update(const api::Module& before, const api::Module& after, Diagnostics& diagnostics) {
    if (!before.module_loader || !after.module_loader) { return; }
    const std::string& old_version = before.module_loader->container.version;
    const std::string& new_version = after.module_loader->container.version;
    if (old_version.empty() == new_version.empty()) { return; }
    Findings findings(after, fmt::format("Module {}", after.full_name()), diagnostics);
    const Findings former(before, "", diagnostics);
    if (const std::string path = fmt::format("{}.version", k_container_path);
        findings.misread(path) || former.misread(path)) {
        return;
    }
    findings.error(fmt::format("{}.version", k_container_path), "version-toggled",
                   old_version.empty()
                       ? fmt::format("version {} is added to a Module that has none", base::escape(new_version))
                       : fmt::format("version is removed from a Module that has version {}", base::escape(old_version)),
                   "delete the Module and create it again, or keep to the form it has");
}

Diagnostics validate(const api::Objects& objects, const ValidateOptions& options) {
    Diagnostics diagnostics;
    for (const auto* list : {&objects.modules, &objects.doubles}) {
        for (const auto& module : *list) { validate_module(module, options, diagnostics); }
    }
    ValidateOptions hub = options;
    hub.kubernetes_version.clear();  // the spokes' is not known
    for (const auto& object : objects.managed_cluster_modules) {
        // The clusters' webhooks judge what they get.
        validate_as(module_of(object), fmt::format("ManagedClusterModule {}", object.meta.name), hub, diagnostics);
    }
    check_releases(objects.release_marks, options.release, diagnostics);
    check_pull_pods(objects, options.release, diagnostics);
    for (const auto& object : objects.preflight_validations) { check_preflight(object, diagnostics); }
    for (const auto& object : objects.namespaces) { check_namespace_deletion(object, diagnostics); }
    sort_and_merge(diagnostics);
    return diagnostics;
}

}  // namespace kmm::plan
