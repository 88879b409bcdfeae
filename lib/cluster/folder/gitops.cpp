// SPDX-License-Identifier: Apache-2.0
// Source: Argo CD docs/operator-manual/application.yaml, Flux kustomize-controller api/v1 kustomization_types.go,
// Fleet docs/ref-fleet-yaml.md.
#include "cluster/folder/gitops.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_argo = "argoproj.io/";
constexpr std::string_view k_flux = "kustomize.toolkit.fluxcd.io/";
constexpr std::string_view k_fleet_file = "fleet.yaml";
constexpr std::size_t k_size_max = std::size_t{1} << 20U;  // a longer file is a dump

/// Without "." and slashes at the ends.
std::string plain_path(const std::string& path) {
    auto text = std::filesystem::path(path).lexically_normal().native();
    while (text.ends_with('/')) { text.pop_back(); }
    while (text.starts_with('/')) { text.erase(0, 1); }
    return text == "." ? "" : text;
}

bool has_variable(std::string_view text) {
    return text.find("{{") != std::string_view::npos || text.find("${") != std::string_view::npos;
}

}  // namespace

GitOpsPaths GitOpsPaths::among(const std::string& top, const std::vector<std::string>& files) {
    GitOpsPaths result;
    result.top_ = plain_path(top);
    for (const auto& file : files) {
        try {
            TextSource source(file);
            const auto front = source.front();
            const bool is_of_fleet = file.substr(file.rfind('/') + 1) == k_fleet_file;
            if (!is_of_fleet && front.find(k_argo) == std::string_view::npos &&
                front.find(k_flux) == std::string_view::npos) {
                continue;
            }
            const auto text = source.size().value_or(k_size_max) < k_size_max ? source.whole() : std::nullopt;
            if (!text) { continue; }
            Diagnostics faults;
            for (const auto& document : value::read_any(*text, file, faults)) {
                if (!is_of_fleet) {
                    result.add(document.root);
                } else if (document.root.is_mapping()) {
                    const auto given = document.root.get_string({"namespace"});
                    result.add_path(file.substr(0, file.size() - k_fleet_file.size()),
                                    given.empty() ? document.root.get_string({"defaultNamespace"}) : given, true);
                }
            }
        } catch (const Error&) {
            // Files that are read as documents tell why they cannot be read.
        }
    }
    return result;
}

void GitOpsPaths::add(const value::Node& root) {
    if (!root.is_mapping()) { return; }
    const std::string version = root.get_string({"apiVersion"});
    const std::string kind = root.get_string({"kind"});
    if (version.starts_with(k_flux) && kind == "Kustomization") {
        return add_path(root.get_string({"spec", "path"}), root.get_string({"spec", "targetNamespace"}), true);
    }
    const bool is_set = kind == "ApplicationSet";
    if (!version.starts_with(k_argo) || (!is_set && kind != "Application")) { return; }
    const value::Node* spec = is_set ? root.find_path({"spec", "template", "spec"}) : root.find("spec");
    if (spec == nullptr) { return; }
    const std::string given = spec->get_string({"destination", "namespace"});
    const auto add_source = [&](const value::Node& source) {
        const value::Node* flag = source.find_path({"directory", "recurse"});
        add_path(source.get_string({"path"}), given, flag != nullptr && flag->as_bool().value_or(false));
    };
    if (const auto* source = spec->find("source"); source != nullptr && source->is_mapping()) { add_source(*source); }
    if (const auto* sources = spec->find("sources"); sources != nullptr && sources->is_sequence()) {
        for (const auto& source : sources->items()) { add_source(source); }
    }
}

void GitOpsPaths::add_path(const std::string& path, const std::string& given_namespace, bool with_below) {
    if (path.empty() || given_namespace.empty() || has_variable(path) || has_variable(given_namespace)) { return; }
    all_.push_back({plain_path(path), given_namespace, with_below});
}

bool GitOpsPaths::leads_to(const Applied& applied, const std::string& directory) const {
    const auto place = plain_path(directory);
    if (applied.path.empty()) { return applied.with_below || place == top_; }
    const auto whole = "/" + place + "/";
    const auto end = "/" + applied.path + "/";
    return applied.with_below ? whole.find(end) != std::string::npos : whole.ends_with(end);
}

std::string GitOpsPaths::namespace_of(const std::vector<std::string>& directories) const {
    const Applied* found = nullptr;
    bool is_certain = true;
    for (const auto& each : all_) {
        for (const auto& directory : directories) {
            if (!leads_to(each, directory)) { continue; }
            if (found == nullptr || each.path.size() > found->path.size()) {
                found = &each;
                is_certain = true;
            } else if (each.path.size() == found->path.size() && each.given_namespace != found->given_namespace) {
                is_certain = false;
            }
        }
    }
    return found != nullptr && is_certain ? found->given_namespace : "";
}

}  // namespace kmm::cluster
