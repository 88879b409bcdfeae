// SPDX-License-Identifier: Apache-2.0
#include "kube/fleet.hpp"

#include <optional>
#include <set>
#include <utility>

#include "api/codec.hpp"
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

struct Listing {
    Resource resource;
    std::string label_selector;
};

std::vector<Listing> listings_of(const FleetQuery& query) {
    using namespace resources;
    std::vector<Listing> result{{k_nodes, ""}, {k_modules, ""}, {k_node_modules_configs, ""},
                                {k_pods, std::string(api::k_label_worker_action)}};
    if (query.plugins == FleetQuery::Plugins::yes) {
        for (const auto& resource : {k_daemon_sets, k_device_classes}) {
            result.push_back({resource, std::string(api::k_label_module_name)});
        }
    }
    if (query.hub != FleetQuery::Hub::no) { result.push_back({k_managed_cluster_modules, ""}); }
    if (query.hub == FleetQuery::Hub::all) { result.push_back({k_managed_clusters, ""}); }
    return result;
}

void list_into(Client& client, const Listing& listing, Fleet& fleet) {
    ListQuery query;
    query.label_selector = listing.label_selector;
    std::optional<FleetSink> sink;
    client.list(listing.resource, query, [&]() -> value::ObjectSink& { return sink.emplace(listing.resource); });
    std::move(*sink).commit(fleet.objects, fleet.diagnostics);
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

}  // namespace

void decode_object(const Resource& resource, const value::Node& object, api::Objects& objects,
                   Diagnostics& diagnostics) {
    value::Document document;
    document.root = object;
    place_on_server(resource, document);
    api::decode(document, objects, diagnostics);
}

std::vector<Rule> fleet_rules(const FleetQuery& query) {
    std::vector<Rule> rules;
    for (const auto& listing : listings_of(query)) {
        rules.push_back({"list", listing.resource.group, listing.resource.plural, "", "", ""});
    }
    return rules;
}

Fleet read_fleet(Client& client, const FleetQuery& query) {
    Fleet fleet;
    try {
        fleet.has_kmm = client.serves(resources::k_modules);
        for (const auto& listing : listings_of(query)) {
            if (listing.resource.group.empty() || client.serves(listing.resource)) {
                list_into(client, listing, fleet);
            }
        }
    } catch (const Error& error) {
        if (error.code() != "forbidden") { throw; }
        const auto missing = missing_rules(client, fleet_rules(query));
        if (missing.empty()) { throw; }
        throw missing_error(client, missing, query.program);
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
