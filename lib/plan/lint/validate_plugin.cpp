// SPDX-License-Identifier: Apache-2.0
// What of a device plugin or a DRA driver breaks a rule of Kubernetes for Pods. KMM admits it, and an API server with
// these rules refuses the DaemonSet. Warnings: the module itself is loaded all the same. Source: Kubernetes
// pkg/apis/core/validation/validation.go (read; the rules were not tried on a server).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "api/names.hpp"
#include "api/workload.hpp"
#include "base/text.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/lint/findings.hpp"

namespace kmm::plan {

namespace {

constexpr const char* k_refused = "plugin-refused";
constexpr const char* k_plugins_path = "/var/lib/kubelet/device-plugins";

/// Names and mounts that KMM adds itself.
struct Presets {
    std::set<std::string> volumes, paths;
};

Presets presets_of(std::string_view plugin) {
    if (plugin == "devicePlugin") { return {{"kubelet-device-plugins"}, {k_plugins_path}}; }
    return {{"kubelet-plugins", "kubelet-plugins-registry", "cdi"},
            {"/var/lib/kubelet/plugins/", "/var/lib/kubelet/plugins_registry/", "/var/run/cdi"}};
}

const std::vector<value::Node>& items_of(const value::Node& node, std::string_view key) {
    static const std::vector<value::Node> none;
    const value::Node* found = node.find(key);
    return found != nullptr && found->is_sequence() ? found->items() : none;
}

/// A text member, nullptr if there is none: what is of another type was said by the decoder.
const value::Node* text_of(const value::Node& node, std::string_view key) {
    const value::Node* found = node.find(key);
    return found != nullptr && found->is_string() ? found : nullptr;
}

bool climbs(const std::string& path) {
    const auto parts = base::split(path, '/');
    return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

void check_word(Findings& findings, const value::Node& node, std::string_view key,
                const std::vector<std::string>& words) {
    const value::Node* word = text_of(node, key);
    if (word == nullptr || word->text().empty() || std::find(words.begin(), words.end(), word->text()) != words.end()) {
        return;
    }
    const auto near = base::nearest(word->text(), words);
    findings.warning_at(
        *word, k_refused,
        fmt::format("{}: expected one of {}, found \"{}\"", key, base::join(words, ", "), base::escape(word->text())),
        near ? fmt::format("did you mean {}?", *near) : "Kubernetes knows no other word");
}

std::set<std::string> check_plugin_volumes(Findings& findings, const value::Node& plugin, const Presets& presets) {
    std::set<std::string> names = presets.volumes;
    for (const auto& volume : items_of(plugin, "volumes")) {
        if (!volume.is_mapping()) { continue; }
        if (const value::Node* name = text_of(volume, "name")) {
            if (!api::is_dns1123_label(name->text())) {
                findings.warning_at(*name, k_refused,
                                    fmt::format("volume name \"{}\" is not a DNS label", base::escape(name->text())),
                                    "lower-case letters, digits and '-', a letter or digit at both ends, at most 63");
            } else if (!names.insert(name->text()).second) {
                findings.warning_at(*name, k_refused, fmt::format("two volumes have the name {}", name->text()),
                                    presets.volumes.contains(name->text())
                                        ? "KMM adds a volume of that name itself: remove this one, or rename it"
                                        : "rename one of them");
            }
        }
        std::vector<std::string> sources;
        for (const auto& member : volume.members()) {
            if (member.key != "name" && !member.value.is_null()) { sources.push_back(member.key); }
        }
        if (sources.size() > 1) {  // without any the API server makes it an empty directory
            findings.warning_at(
                volume, k_refused,
                fmt::format("the volume has {} sources: {}", sources.size(), base::escape(base::join(sources, ", "))),
                "keep one of them");
        }
        const value::Node* host = volume.find("hostPath");
        if (host == nullptr || !host->is_mapping()) { continue; }
        check_word(findings, *host, "type",
                   {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"});
    }
    return names;
}

void check_plugin_mounts(Findings& findings, const value::Node& container, const std::set<std::string>& volumes,
                         const std::set<std::string>& preset_paths) {
    std::set<std::string> paths = preset_paths;
    for (const auto& mount : items_of(container, "volumeMounts")) {
        if (!mount.is_mapping()) { continue; }
        if (const value::Node* name = text_of(mount, "name"); name != nullptr && !volumes.contains(name->text())) {
            const auto near = base::nearest(name->text(), std::vector<std::string>(volumes.begin(), volumes.end()));
            findings.warning_at(
                *name, k_refused,
                fmt::format("no volume has the name \"{}\" that is to be mounted", base::escape(name->text())),
                near ? fmt::format("did you mean {}?", *near) : "add it to volumes, or remove the mount");
        }
        if (const value::Node* path = text_of(mount, "mountPath")) {
            if (path->text().empty()) {
                findings.warning_at(*path, k_refused, "mountPath is empty", "name the directory inside the container");
            } else if (!paths.insert(path->text()).second) {
                findings.warning_at(*path, k_refused, fmt::format("{} is mounted twice", base::escape(path->text())),
                                    preset_paths.contains(path->text())
                                        ? "KMM mounts this directory itself: remove the mount"
                                        : "remove one of the mounts");
            }
        }
        if (const value::Node* sub = text_of(mount, "subPath");
            sub != nullptr && (sub->text().starts_with('/') || climbs(sub->text()))) {
            findings.warning_at(*sub, k_refused, fmt::format("subPath {} leaves the volume", base::escape(sub->text())),
                                "write it without leading '/' and without '..'");
        }
        check_word(findings, mount, "mountPropagation", {"None", "HostToContainer", "Bidirectional"});
    }
}

void check_plugin_env(Findings& findings, const value::Node& container) {
    for (const auto& variable : items_of(container, "env")) {
        if (!variable.is_mapping()) { continue; }
        if (const value::Node* name = text_of(variable, "name")) {
            const bool good =
                !name->text().empty() && std::all_of(name->text().begin(), name->text().end(),
                                                     [](char c) { return c >= ' ' && c <= '~' && c != '='; });
            if (!good) {
                findings.warning_at(
                    *name, k_refused,
                    fmt::format("\"{}\" is not the name of an environment variable", base::escape(name->text())),
                    "letters, digits and '_'");
            }
        }
        const value::Node* from = variable.find("valueFrom");
        if (from == nullptr || !from->is_mapping()) { continue; }
        const auto sources = std::count_if(from->members().begin(), from->members().end(),
                                           [](const auto& member) { return !member.value.is_null(); });
        const value::Node* text = text_of(variable, "value");
        if (text != nullptr && !text->text().empty()) {
            findings.warning_at(*from, k_refused, "the variable has both value and valueFrom", "keep one of them");
        } else if (sources != 1) {
            findings.warning_at(*from, k_refused, fmt::format("valueFrom: expected one source, found {}", sources),
                                "keep one of them");
        }
    }
}

/// As a number; nullopt for what is no quantity, which the decoder tells.
std::optional<double> quantity(const value::Node& node) {
    if (const auto number = node.as_int()) { return static_cast<double>(*number); }
    if (!node.is_string() || !api::is_quantity(node.text())) { return std::nullopt; }
    char* rest = nullptr;
    const double number = std::strtod(node.text().c_str(), &rest);
    const std::string_view suffix = rest;
    constexpr std::string_view k_decimal = "num kMGTPE";
    if (suffix.empty()) { return number; }
    if (suffix.size() == 2) {
        constexpr std::string_view k_binary = "KMGTPE";
        return number * std::pow(1024.0, static_cast<double>(k_binary.find(suffix.front()) + 1));
    }
    return number * std::pow(1000.0, static_cast<double>(k_decimal.find(suffix.front())) - 3);
}

bool is_container_resource(const std::string& name) {
    if (name.find('/') != std::string::npos) { return api::is_qualified_name(name); }
    return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
           (name.starts_with("hugepages-") && api::is_quantity(name.substr(10)));
}

bool is_huge_page(std::string_view name) { return name.starts_with("hugepages-"); }

/// A request against its limit, which those of devices and huge pages must be equal to.
void check_request(Findings& findings, const value::Member& request, double wanted, const value::Node* limits) {
    const bool is_fixed = api::is_extended_resource(request.key) || is_huge_page(request.key);
    const value::Node* limit = limits != nullptr && limits->is_mapping() ? limits->find(request.key) : nullptr;
    const std::string name = base::escape(request.key);
    if (limit == nullptr) {
        if (is_fixed) {
            findings.warning_at(request.value, k_refused, fmt::format("{} is requested without a limit", name),
                                "write the same under limits");
        }
        return;
    }
    const auto most = quantity(*limit);
    if (!most) { return; }
    constexpr double k_rounding = 1e-12;
    if (wanted > *most * (1 + k_rounding)) {
        findings.warning_at(request.value, k_refused, fmt::format("the request of {} is larger than its limit", name),
                            "raise the limit, or lower the request");
    } else if (is_fixed && wanted < *most * (1 - k_rounding)) {
        findings.warning_at(request.value, k_refused, fmt::format("the request of {} is smaller than its limit", name),
                            "write the same amount twice, or the limit alone");
    }
}

/// Huge pages alone make no container.
void check_huge_pages(Findings& findings, const value::Node& resources) {
    bool has_huge_pages = false, has_others = false;
    for (const char* part : {"limits", "requests"}) {
        const value::Node* quantities = resources.find(part);
        if (quantities == nullptr || !quantities->is_mapping()) { continue; }
        for (const auto& member : quantities->members()) {
            has_huge_pages = has_huge_pages || is_huge_page(member.key);
            has_others = has_others || member.key == "cpu" || member.key == "memory";
        }
    }
    if (has_huge_pages && !has_others) {
        findings.warning_at(resources, k_refused, "huge pages are asked for, and neither cpu nor memory",
                            "add a limit or request of memory");
    }
}

void check_plugin_resources(Findings& findings, const value::Node& container) {
    const value::Node* resources = container.find("resources");
    if (resources == nullptr || !resources->is_mapping()) { return; }
    check_huge_pages(findings, *resources);
    const value::Node* limits = resources->find("limits");
    for (const char* part : {"limits", "requests"}) {
        const value::Node* quantities = resources->find(part);
        if (quantities == nullptr || !quantities->is_mapping()) { continue; }
        for (const auto& member : quantities->members()) {
            if (!is_container_resource(member.key)) {
                const auto near =
                    base::nearest(member.key, std::vector<std::string>{"cpu", "memory", "ephemeral-storage"});
                findings.warning_at(
                    member.value, k_refused,
                    fmt::format("{}: \"{}\" is not a resource of a container", part, base::escape(member.key)),
                    near ? fmt::format("did you mean {}?", *near)
                         : "cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME");
                continue;
            }
            const auto wanted = quantity(member.value);
            if (!wanted) { continue; }
            if (*wanted < 0) {
                findings.warning_at(member.value, k_refused,
                                    fmt::format("{} of {} is below zero", part, base::escape(member.key)),
                                    "write 0 or more");
                continue;
            }
            if (api::is_extended_resource(member.key) && std::floor(*wanted) != *wanted) {
                findings.warning_at(member.value, k_refused,
                                    fmt::format("{} of {}: expected a whole number", part, base::escape(member.key)),
                                    "parts of a device are not given out");
            } else if (std::string_view(part) == "requests") {
                check_request(findings, member, *wanted, limits);
            }
        }
    }
}

void check_plugin_container(Findings& findings, const value::Node& container, const std::string& path,
                            const std::set<std::string>& volumes, const std::set<std::string>& preset_paths) {
    if (const value::Node* image = text_of(container, "image")) {
        if (image->text().empty()) {
            findings.warning_at(*image, k_refused, "image is empty", "name the image of the container");
        } else if (const auto fault = image_name_fault(image->text())) {
            findings.warning(path + ".image", "bad-reference", fault->message, fault->hint);
        }
    }
    check_plugin_env(findings, container);
    check_plugin_mounts(findings, container, volumes, preset_paths);
    check_plugin_resources(findings, container);
}

}  // namespace

void validate_plugin(Findings& findings, const value::Node& plugin, std::string_view key) {
    const Presets presets = presets_of(key);
    const auto volumes = check_plugin_volumes(findings, plugin, presets);
    const std::string path = fmt::format("spec.{}", key);
    if (const value::Node* container = plugin.find("container"); container != nullptr && container->is_mapping()) {
        check_plugin_container(findings, *container, path + ".container", volumes, presets.paths);
    }
    if (const value::Node* container = plugin.find("initContainer"); container != nullptr && container->is_mapping()) {
        check_plugin_container(findings, *container, path + ".initContainer", volumes, {});
    }
    const value::Node* account = text_of(plugin, "serviceAccountName");
    if (account != nullptr && !account->text().empty() && !api::is_dns1123_subdomain(account->text())) {
        findings.warning_at(
            *account, k_refused,
            fmt::format("serviceAccountName \"{}\" is not the name of a ServiceAccount", base::escape(account->text())),
            "lower-case letters, digits, '-' and '.', a letter or digit at both ends, at most 253");
    }
}

}  // namespace kmm::plan
