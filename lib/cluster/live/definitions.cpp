// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/definitions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

using kube::resources::k_custom_resource_definitions;
using value::Node;

constexpr std::chrono::milliseconds k_definition_pause{200};

Node definition_of(const kube::Resource& kind) {
    const bool is_module = kind.kind == kube::resources::k_modules.kind;
    Diagnostics faults;
    auto documents =
        value::read_yaml(is_module ? k_module_definition : k_node_modules_config_definition, kind.full_name(), faults);
    if (documents.size() != 1 || has_errors(faults)) {
        throw bug(fmt::format("the definition of {} cannot be read", kind.kind));
    }
    return std::move(documents.front().root);
}

/// The versions of a definition that are served.
std::vector<std::string> served_versions(const Node& definition) {
    std::vector<std::string> names;
    const Node* versions = definition.find_path({"spec", "versions"});
    for (const auto& version : versions == nullptr ? std::vector<Node>() : versions->items()) {
        const Node* served = version.find("served");
        if (served != nullptr && served->as_bool().value_or(false)) { names.push_back(version.get_string({"name"})); }
    }
    return names;
}

/// What the server says of why it does not serve the kind, "" if nothing.
std::string trouble_of(const Node& definition) {
    const Node* conditions = definition.find_path({"status", "conditions"});
    for (const auto& condition : conditions == nullptr ? std::vector<Node>() : conditions->items()) {
        const std::string type = condition.get_string({"type"});
        if ((type != "NamesAccepted" && type != "Established") || condition.get_string({"status"}) == "True") {
            continue;
        }
        return fmt::format("{}: {}: {}", type, condition.get_string({"reason"}), condition.get_string({"message"}));
    }
    return "";
}

bool is_definition_right(const kube::Rule& rule) { return rule.resource == k_custom_resource_definitions.plural; }

}  // namespace

std::vector<kube::Resource> lacking_kinds(kube::Client& client) {
    std::vector<kube::Resource> lacking;
    for (const kube::Resource* kind : {&kube::resources::k_modules, &kube::resources::k_node_modules_configs}) {
        if (!client.serves(*kind)) { lacking.push_back(*kind); }
    }
    return lacking;
}

Error lacking_error(const std::string& place, const kube::Resource& kind) {
    return Error(Exit::not_found, "kmm-not-installed",
                 fmt::format("{} has no kind {} ({})", place, kind.kind, kind.api_version()))
        .hint("kubectl apply -k manifests/crd");
}

std::vector<kube::Rule> definition_rules(const std::vector<kube::Resource>& kinds) {
    const auto& definitions = k_custom_resource_definitions;
    std::vector<kube::Rule> rules{{"create", definitions.group, definitions.plural, "", "", ""}};
    for (const auto& kind : kinds) {
        rules.push_back({"get", definitions.group, definitions.plural, "", "", kind.full_name()});
    }
    return rules;
}

void require_creatable(kube::Client& client, const std::string& place, const std::vector<kube::Resource>& kinds,
                       const std::vector<kube::Rule>& rights) {
    auto rules = definition_rules(kinds);
    rules.insert(rules.end(), rights.begin(), rights.end());
    const auto missing = kube::missing_rules(client, rules);
    if (!missing.empty()) {
        const Error forbidden = kube::missing_error(client, missing, "kmm-upgrade");
        if (std::none_of(missing.begin(), missing.end(), is_definition_right)) { throw forbidden; }
        Error error = lacking_error(place, kinds.front());
        for (const auto& [key, text] : forbidden.details()) { error.detail(key, text); }
        throw std::move(error).hint(
            "as an admin of the cluster: kubectl apply -k manifests/crd\nor, for this command to do it, " +
            forbidden.hint());
    }
    for (const auto& kind : kinds) {
        const auto there = client.find(k_custom_resource_definitions, {"", kind.full_name()});
        if (!there) { continue; }
        const auto versions = served_versions(*there);
        if (std::find(versions.begin(), versions.end(), kind.version) != versions.end()) { continue; }
        throw Error(
            Exit::not_found, "kmm-other-version",
            fmt::format("CustomResourceDefinition {} serves {}, expected {}; it is left as it is", kind.full_name(),
                        versions.empty() ? "no version" : base::join(versions, ", "), kind.version))
            .hint(fmt::format("install a KMM that has {}, or remove the old one with all that it manages",
                              kind.api_version()));
    }
    const auto is_lacking = [&](const kube::Resource& wanted) {
        return std::any_of(kinds.begin(), kinds.end(),
                           [&](const kube::Resource& kind) { return kind.kind == wanted.kind; });
    };
    const auto& configs = kube::resources::k_node_modules_configs;
    if (!is_lacking(kube::resources::k_modules) || is_lacking(configs)) { return; }
    for (const auto& config : client.list_all(configs, {})) {
        for (const char* part : {"spec", "status"}) {
            const Node* modules = config.find_path({part, "modules"});
            if (modules == nullptr || modules->items().empty()) { continue; }
            throw Error(Exit::not_found, "modules-lost",
                        fmt::format("{} has no kind Module, but NodeModulesConfig {} names {}/{}: were the kind "
                                    "created now, all that is loaded would be unloaded",
                                    place, config.get_string({"metadata", "name"}),
                                    modules->items().front().get_string({"namespace"}),
                                    modules->items().front().get_string({"name"})))
                .hint("kubectl apply -f manifests/crd/module.yaml, then the Modules that are to stay, then this again");
        }
    }
}

bool create_definition(kube::Client& client, const kube::Resource& kind, std::chrono::milliseconds patience) {
    const kube::Key key{"", kind.full_name()};
    bool is_ours = false;
    if (!client.find(k_custom_resource_definitions, key)) {
        try {
            client.create(k_custom_resource_definitions, definition_of(kind));
            is_ours = true;
        } catch (const Error& error) {
            if (error.code() != "already-exists") { throw; }
        }
    }
    const auto end = client.clock().monotonic() + patience;
    for (;;) {
        client.forget_served();
        if (client.serves(kind)) { return is_ours; }
        if (client.clock().monotonic() >= end) { break; }
        if (!client.clock().sleep_for(k_definition_pause)) {
            throw Error(Exit::interrupted, "interrupted",
                        fmt::format("interrupted while {} is made known", kind.full_name()))
                .hint("start again");
        }
    }
    const auto there = client.find(k_custom_resource_definitions, key);
    Error error(Exit::unavailable, "kind-not-served",
                fmt::format("CustomResourceDefinition {} is there, but the kind is not served after {}", key.name,
                            base::format_duration(patience)));
    if (const auto trouble = there ? trouble_of(*there) : "it is gone again"; !trouble.empty()) {
        error.detail("server", trouble);
    }
    throw std::move(error)
        .hint(fmt::format("kubectl get crd {} -o yaml; then the same command again", key.name))
        .retryable();
}

}  // namespace kmm::cluster
