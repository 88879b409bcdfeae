// SPDX-License-Identifier: Apache-2.0
// Source: Argo CD docs/operator-manual/application.yaml, Flux kustomize-controller api/v1 kustomization_types.go,
// Fleet docs/ref-fleet-yaml.md.
#include "cluster/folder/gitops.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_argo = "argoproj.io/";
constexpr std::string_view k_flux = "kustomize.toolkit.fluxcd.io/";
constexpr std::string_view k_outside = "..";  // what is in no directory below the top
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

bool is_below(const std::string& directory, const std::string& path) {
    return path.empty() || (directory.starts_with(path) && directory[path.size()] == '/');
}

/// Owner and name: the same for all protocols.
std::string repository_name(std::string url) {
    while (url.ends_with('/')) { url.pop_back(); }
    if (url.ends_with(".git")) { url.erase(url.size() - 4); }
    const auto slash = url.find_last_of("/:");
    if (slash == std::string::npos || slash == 0) { return url; }
    const auto before = url.find_last_of("/:", slash - 1);
    url.erase(0, before == std::string::npos ? 0 : before + 1);
    return url;
}

/// Objects that either tool has made have its name in a label, too.
bool may_apply(std::string_view front) {
    const auto has = [&](std::string_view text) { return front.find(text) != std::string_view::npos; };
    return (has(k_argo) && has("Application")) || (has(k_flux) && has("targetNamespace"));
}

}  // namespace

GitOpsPaths GitOpsPaths::among(const std::string& top, const std::vector<std::string>& files) {
    GitOpsPaths result;
    result.top_ = plain_path(top);
    for (const auto& file : files) {
        if (file.ends_with(".gz")) { continue; }
        try {
            TextSource source(file);
            const bool is_of_fleet = file.substr(file.rfind('/') + 1) == k_fleet_file;
            if (!is_of_fleet && !may_apply(source.front())) { continue; }
            const auto text = source.size().value_or(k_size_max) < k_size_max ? source.whole() : std::nullopt;
            if (!text) { continue; }
            Diagnostics faults;
            for (const auto& document : value::read_any(*text, file, faults)) {
                if (!document.root.is_mapping()) { continue; }
                if (is_of_fleet) {
                    result.add_bundle(document.root, file);
                } else {
                    result.add(document.root, file);
                }
            }
        } catch (const Error&) {
            // Files that are read as documents tell why they cannot be read.
        }
    }
    // Which of them the directory is nothing says.
    if (result.argo_repositories_.size() > 1 || result.flux_repositories_.size() > 1) {
        std::erase_if(result.all_, [](const Applied& each) { return !each.is_bundle; });
    }
    if (!result.all_.empty()) { result.resolve(files); }
    return result;
}

void GitOpsPaths::add(const value::Node& root, const std::string& file) {
    const std::string version = root.get_string({"apiVersion"});
    const std::string kind = root.get_string({"kind"});
    if (version.starts_with(k_flux) && kind == "Kustomization") {
        const auto path = root.get_string({"spec", "path"});
        const auto name = root.get_string({"spec", "sourceRef", "name"});
        auto ns = root.get_string({"spec", "sourceRef", "namespace"});
        if (ns.empty()) { ns = root.get_string({"metadata", "namespace"}); }
        if (!path.empty() && !name.empty()) {
            flux_repositories_.insert(root.get_string({"spec", "sourceRef", "kind"}) + "/" + ns + "/" + name);
        }
        return add_path(path, {root.get_string({"spec", "targetNamespace"}), true, file}, true);
    }
    const bool is_set = kind == "ApplicationSet";
    if (!version.starts_with(k_argo) || (!is_set && kind != "Application")) { return; }
    const value::Node* spec = is_set ? root.find_path({"spec", "template", "spec"}) : root.find("spec");
    if (spec == nullptr) { return; }
    const GitOpsNamespace given{spec->get_string({"destination", "namespace"}), false, file};
    const auto add_source = [&](const value::Node& source) {
        const value::Node* flag = source.find_path({"directory", "recurse"});
        const auto path = source.get_string({"path"});
        const auto url = source.get_string({"repoURL"});
        if (!path.empty() && !url.empty()) { argo_repositories_.insert(repository_name(url)); }
        add_path(path, given, flag != nullptr && flag->as_bool().value_or(false));
    };
    if (const auto* source = spec->find("source"); source != nullptr && source->is_mapping()) { add_source(*source); }
    if (const auto* sources = spec->find("sources"); sources != nullptr && sources->is_sequence()) {
        for (const auto& source : sources->items()) { add_source(source); }
    }
}

void GitOpsPaths::add_bundle(const value::Node& root, const std::string& file) {
    const auto forced = root.get_string({"namespace"});
    GitOpsNamespace given{forced.empty() ? root.get_string({"defaultNamespace"}) : forced, !forced.empty(), file};
    if (has_variable(given.name)) { given = {}; }
    all_.push_back({below_top(file.substr(0, file.size() - k_fleet_file.size())), given, true, true});
}

void GitOpsPaths::add_path(const std::string& path, const GitOpsNamespace& given, bool with_below) {
    if (path.empty() || given.name.empty() || has_variable(path) || has_variable(given.name)) { return; }
    all_.push_back({plain_path(path), given, with_below, false});
}

std::string GitOpsPaths::below_top(const std::string& directory) const {
    const auto place = plain_path(directory);
    if (top_.empty() || place == top_) { return top_.empty() ? place : ""; }
    return is_below(place, top_) ? place.substr(top_.size() + 1) : std::string(k_outside);
}

void GitOpsPaths::resolve(const std::vector<std::string>& files) {
    std::set<std::string> directories{""};
    for (const auto& file : files) {
        const auto name = below_top(file);
        for (auto slash = name.rfind('/'); slash != std::string::npos; slash = name.rfind('/', slash - 1)) {
            if (slash == 0 || !directories.insert(name.substr(0, slash)).second) { break; }
        }
    }
    std::erase_if(all_, [&](Applied& each) {
        if (each.is_bundle || directories.contains(each.path)) { return false; }
        // The longest part: what lies in deploy/deploy/ is not in deploy/.
        for (auto end = each.path.size(); end != std::string::npos && end > 0; end = each.path.rfind('/', end - 1)) {
            const auto part = each.path.substr(0, end);
            if (top_ != part && !top_.ends_with("/" + part)) { continue; }
            auto rest = end == each.path.size() ? "" : each.path.substr(end + 1);
            if (!directories.contains(rest)) { continue; }
            each.path = std::move(rest);
            return false;
        }
        return true;
    });
}

GitOpsNamespace GitOpsPaths::namespace_of(const std::vector<std::string>& directories) const {
    const Applied* found = nullptr;
    bool is_certain = true;
    for (const auto& each : all_) {
        for (const auto& directory : directories) {
            const auto place = below_top(directory);
            if (place == k_outside || (place != each.path && !(each.with_below && is_below(place, each.path)))) {
                continue;
            }
            if (found == nullptr || each.path.size() > found->path.size()) {
                found = &each;
                is_certain = true;
            } else if (each.path.size() == found->path.size() && each.given.name != found->given.name) {
                is_certain = false;
            }
        }
    }
    return found != nullptr && is_certain ? found->given : GitOpsNamespace{};
}

}  // namespace kmm::cluster
