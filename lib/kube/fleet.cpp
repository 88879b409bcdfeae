// SPDX-License-Identifier: Apache-2.0
#include "kube/fleet.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/image_labels.hpp"
#include "api/labels.hpp"
#include "api/object_decoder.hpp"

namespace kmm::kube {

namespace {

/// A server's answer has no lines that mean anything to anybody.
void clear_marks(value::Node& node) {
    node.set_mark({});
    for (auto& member : node.members()) {
        member.key_mark = {};
        clear_marks(member.value);
    }
    for (auto& item : node.items()) { clear_marks(item); }
}

/// Gives the object the place that messages name.
void place_on_server(const Resource& resource, value::Document& document) {
    clear_marks(document.root);
    const Key key{document.root.get_string({"metadata", "namespace"}), document.root.get_string({"metadata", "name"})};
    document.file = resource.plural + "/" + key.to_string();
}

/// Decodes the items of a list while they are read.
class FleetSink final : public value::ObjectSink {
public:
    explicit FleetSink(const Resource& resource) : resource_(resource) {}

    const value::Shape* shape(const value::Node& object, const value::Node* list) override {
        return decoder_.shape(object, list);
    }
    bool take_item(value::Document& item, const value::Node& list) override {
        place_on_server(resource_, item);
        return decoder_.take_item(item, list);
    }
    void take_document(const value::Document& document) override { decoder_.take_document(document); }
    void commit(api::Objects& objects, Diagnostics& diagnostics) && {
        std::move(decoder_).commit(objects, diagnostics);
    }

private:
    const Resource& resource_;
    api::ObjectDecoder decoder_;
};

const Resource k_build_sign_configs{"kmm.sigs.x-k8s.io", "v1beta1", "modulebuildsignconfigs", "ModuleBuildSignConfig",
                                    Scope::namespaced};

struct Listing {
    Resource resource;
    std::string label_selector;
    std::string field_selector;
};

std::vector<Listing> listings_of(const FleetQuery& query) {
    using namespace resources;
    std::vector<Listing> result{{k_nodes, "", ""}, {k_modules, "", ""}, {k_node_modules_configs, "", ""},
                                {k_pods, std::string(api::k_label_worker_action), ""}};
    if (query.plugins == FleetQuery::Plugins::yes) {
        for (const auto& resource : {k_daemon_sets, k_device_classes}) {
            result.push_back({resource, std::string(api::k_label_module_name), ""});
        }
    }
    if (query.hub != FleetQuery::Hub::no) { result.push_back({k_managed_cluster_modules, "", ""}); }
    if (query.hub == FleetQuery::Hub::all) { result.push_back({k_managed_clusters, "", ""}); }
    return result;
}

std::vector<Listing> image_listings() {
    return {{resources::k_module_images_configs, "", ""}, {k_build_sign_configs, "", ""}};
}

/// What adds causes and findings, and is done without where it may not be read.
std::vector<Listing> optional_listings(const FleetQuery& query) {
    auto result = image_listings();
    if (query.image_pods == FleetQuery::ImagePods::yes) {
        result.push_back({resources::k_pods, std::string(api::k_label_image_owner), ""});
        result.push_back({resources::k_pods, std::string(api::k_label_resource_type), ""});
    }
    if (query.surroundings == FleetQuery::Surroundings::yes) {
        // In which namespace the operator runs is nobody's rule.
        for (const char* name : {"kmm-operator-manager-config", "kmm-operator-hub-manager-config"}) {
            result.push_back({resources::k_config_maps, "", fmt::format("metadata.name={}", name)});
        }
    }
    if (query.preflights == FleetQuery::Preflights::yes) {
        result.push_back({resources::k_preflight_validations, "", ""});
    }
    return result;
}

void list_into(Client& client, const Listing& listing, api::Objects& objects, Diagnostics& diagnostics) {
    if (!listing.resource.group.empty() && !client.serves(listing.resource)) { return; }
    ListQuery query;
    query.label_selector = listing.label_selector;
    query.field_selector = listing.field_selector;
    std::optional<FleetSink> sink;
    client.list(listing.resource, query, [&]() -> value::ObjectSink& { return sink.emplace(listing.resource); });
    std::move(*sink).commit(objects, diagnostics);
}

/// That a plan is made without what KMM says of images is seen in no line of it.
Diagnostic without_image_states(const Listing& listing) {
    const std::string name = listing.resource.plural + "." + listing.resource.group;
    Diagnostic warning;
    warning.severity = Severity::warning;
    warning.code = "forbidden";
    warning.message = fmt::format("list {} is not allowed: images are taken to exist", name);
    warning.hint = fmt::format("let an admin of the cluster add it: kubectl create clusterrole kmm-plan-images "
                               "--verb=list --resource={}, and bind it",
                               name);
    return warning;
}

/// What is wrong with such an object is a warning: nothing needs it.
void list_where_allowed(Client& client, const std::vector<Listing>& listings, api::Objects& objects,
                        Diagnostics& diagnostics) {
    for (const auto& listing : listings) {
        Diagnostics faults;
        try {
            list_into(client, listing, objects, faults);
        } catch (const Error& error) {
            if (error.code() != "forbidden") { throw; }
            if (listing.resource.plural == resources::k_module_images_configs.plural) {
                faults.push_back(without_image_states(listing));
            }
        }
        for (auto& fault : faults) {
            if (fault.severity == Severity::error) { fault.severity = Severity::warning; }
            diagnostics.push_back(std::move(fault));
        }
    }
}

/// Adds an object that is nice to have: that it is absent, or none of our business, is no fault. False if it is absent.
bool add_object(Client& client, const Resource& resource, const Key& key, Fleet& fleet) {
    try {
        const auto object = client.find(resource, key);
        if (object) { decode_object(resource, *object, fleet.objects, fleet.diagnostics); }
        return object.has_value();
    } catch (const Error& error) {
        if (error.code() != "forbidden") { throw; }
    }
    return true;
}

void add_referenced(Client& client, FleetQuery::Referenced referenced, Fleet& fleet) {
    std::set<std::pair<std::string, std::string>> secrets, maps;
    const auto add = [](auto& names, const std::string& ns, const std::string& name) {
        if (!name.empty()) { names.emplace(ns, name); }
    };
    for (const auto& module : fleet.objects.modules) {
        const std::string& ns = module.meta.namespace_;
        add(secrets, ns, module.image_repo_secret);
        if (!module.module_loader) { continue; }
        const auto add_build = [&](const std::optional<api::Build>& build) {
            if (!build) { return; }
            add(maps, ns, build->dockerfile_config_map);
        };
        add_build(module.module_loader->container.build);
        for (const auto& mapping : module.module_loader->container.kernel_mappings) { add_build(mapping.build); }
    }
    for (const auto& secret : secrets) {
        if (!add_object(client, resources::k_secrets, {secret.first, secret.second}, fleet)) {
            fleet.absent_secrets.insert(secret);
        }
    }
    if (referenced != FleetQuery::Referenced::all) { return; }
    for (const auto& [ns, name] : maps) { add_object(client, resources::k_config_maps, {ns, name}, fleet); }
}

/// The Namespaces of Modules, for what they enforce.
void add_namespaces(Client& client, Fleet& fleet) {
    std::set<std::string> spaces;
    for (const auto& module : fleet.objects.modules) { spaces.insert(module.meta.namespace_); }
    for (const auto& space : spaces) { add_object(client, resources::k_namespaces, {"", space}, fleet); }
}

}  // namespace

void decode_object(const Resource& resource, const value::Node& object, api::Objects& objects,
                   Diagnostics& diagnostics) {
    value::Document document;
    document.root = object;
    place_on_server(resource, document);
    api::decode(document, objects, diagnostics);
}

void add_image_states(Client& client, api::Objects& objects, Diagnostics& diagnostics) {
    list_where_allowed(client, image_listings(), objects, diagnostics);
}

std::vector<Rule> fleet_rules(const FleetQuery& query) {
    std::vector<Rule> rules;
    for (const auto& listing : listings_of(query)) {
        rules.push_back({"list", listing.resource.group, listing.resource.plural, "", "", ""});
    }
    for (const auto& listing : optional_listings(query)) {
        Rule rule{"list", listing.resource.group, listing.resource.plural, "", "", ""};
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) { rules.push_back(std::move(rule)); }
    }
    return rules;
}

Fleet read_fleet(Client& client, const FleetQuery& query) {
    Fleet fleet;
    try {
        fleet.has_kmm = client.serves(resources::k_modules);
        for (const auto& listing : listings_of(query)) {
            list_into(client, listing, fleet.objects, fleet.diagnostics);
        }
    } catch (const Error& error) {
        if (error.code() != "forbidden") { throw; }
        const auto missing = missing_rules(client, fleet_rules(query));
        if (missing.empty()) { throw; }
        throw missing_error(client, missing, query.program);
    }
    list_where_allowed(client, optional_listings(query), fleet.objects, fleet.diagnostics);
    if (query.surroundings == FleetQuery::Surroundings::yes) {
        for (auto& diagnostic : fleet.diagnostics) {  // what is wrong is asked, not what will be
            if (diagnostic.code == "forbidden") { diagnostic.severity = Severity::note; }
        }
        add_namespaces(client, fleet);
    }
    if (fleet.has_kmm) {
        add_object(client, resources::k_custom_resource_definitions, {"", "modules.kmm.sigs.x-k8s.io"}, fleet);
    }
    if (query.referenced != FleetQuery::Referenced::none) { add_referenced(client, query.referenced, fleet); }
    api::finish(fleet.objects, fleet.diagnostics);
    for (auto& diagnostic : fleet.diagnostics) {
        if (diagnostic.code == "unknown-field") { diagnostic.severity = Severity::note; }
    }
    return fleet;
}

}  // namespace kmm::kube
