// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/observe.hpp"

#include <set>
#include <string>
#include <utility>

#include "api/recipe_kind.hpp"
#include "recipe/resource/resource.hpp"

namespace kmm::recipe::files {

namespace {

const kube::Resource k_cluster_versions{"config.openshift.io", "v1", "clusterversions", "ClusterVersion",
                                        kube::Scope::cluster};
const kube::Resource k_proxies{"config.openshift.io", "v1", "proxies", "Proxy", kube::Scope::cluster};
const kube::Resource k_digest_mirrors{"config.openshift.io", "v1", "imagedigestmirrorsets", "ImageDigestMirrorSet",
                                      kube::Scope::cluster};
const kube::Resource k_tag_mirrors{"config.openshift.io", "v1", "imagetagmirrorsets", "ImageTagMirrorSet",
                                   kube::Scope::cluster};
const kube::Resource k_source_policies{"operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies",
                                       "ImageContentSourcePolicy", kube::Scope::cluster};
const kube::Resource k_image_streams{"image.openshift.io", "v1", "imagestreams", "ImageStream",
                                     kube::Scope::namespaced};

void add_object(std::vector<value::Document>& all, const kube::Resource& resource, value::Node object) {
    object.set("apiVersion", resource.api_version());
    object.set("kind", resource.kind);
    value::Document document;
    document.file = "cluster";
    document.root = std::move(object);
    all.push_back(std::move(document));
}

void add_found(std::vector<value::Document>& all, kube::Client& client, const kube::Resource& resource,
               const kube::Key& key) {
    if (auto found = client.find(resource, key)) { add_object(all, resource, std::move(*found)); }
}

/// By which mirrors the nodes pull. Where they may not be listed, registries are asked themselves.
void add_mirror_sets(std::vector<value::Document>& all, kube::Client& client) {
    for (const auto* resource : {&k_digest_mirrors, &k_tag_mirrors, &k_source_policies}) {
        if (!client.serves(*resource)) { continue; }
        try {
            for (auto& object : client.list_all(*resource, {})) { add_object(all, *resource, std::move(object)); }
        } catch (const Error& error) {
            if (error.code() != "forbidden") { throw; }
        }
    }
}

/// What a path of discovery says; null where it does not answer.
value::Node discovered(kube::Client& client, const std::string& path) {
    kube::Call call;
    call.path = path;
    call.action = {"get", "", path, "", "", ""};
    call.is_answer = [](const kube::Failure&) { return true; };
    const auto reply = client.exchange(call);
    return reply.failure ? value::Node() : kube::Client::parse(reply, call.action);
}

void add_kinds(kube::Client& client, const std::string& root, const std::string& version,
               std::vector<std::string>& known) {
    const auto list = discovered(client, root + version);
    const auto* resources = list.find("resources");
    if (resources == nullptr) { return; }
    known.push_back(version);
    for (const auto& each : resources->items()) {
        if (each.get_string({"name"}).find('/') == std::string::npos) {
            known.push_back(version + '/' + each.get_string({"kind"}));
        }
    }
}

}  // namespace

std::vector<value::Document> read_cluster_objects(kube::Client& client) {
    std::vector<value::Document> all;
    for (auto& node : client.list_all(kube::resources::k_nodes, {})) {
        add_object(all, kube::resources::k_nodes, std::move(node));
    }
    add_mirror_sets(all, client);
    if (!client.serves(k_cluster_versions)) { return all; }
    add_found(all, client, k_cluster_versions, {"", "version"});
    add_found(all, client, k_proxies, {"", "cluster"});
    add_found(all, client, k_image_streams, {"openshift", "driver-toolkit"});
    add_found(all, client, kube::resources::k_config_maps,
              {"openshift-machine-config-operator", "machine-config-osimageurl"});
    return all;
}

std::vector<value::Document> read_cluster_resources(kube::Client& client) {
    std::vector<value::Document> all;
    const std::string group(api::group_of(plan::k_group_version));
    const auto served =
        client.discover({group, "v1beta1", "specialresources", "SpecialResource", kube::Scope::cluster});
    if (!served) { return all; }
    std::set<std::string> places;
    const auto add_place = [&](const std::string& url) {
        if (url.starts_with("cm://")) { places.insert(url.substr(5)); }
    };
    for (auto& resource : client.list_all(*served, {})) {
        add_place(resource.get_string({"spec", "chart", "repository", "url"}));
        const auto* dependencies = resource.find_path({"spec", "dependencies"});
        if (dependencies != nullptr) {
            for (const auto& each : dependencies->items()) {
                add_place(each.get_string({"chart", "repository", "url"}));
            }
        }
        add_object(all, *served, std::move(resource));
    }
    for (const auto& place : places) {
        const auto slash = place.find('/');
        if (slash == std::string::npos) { continue; }
        add_found(all, client, kube::resources::k_config_maps, {place.substr(0, slash), place.substr(slash + 1)});
    }
    return all;
}

void add_server_facts(kube::Client& client, plan::Facts& facts) {
    if (!facts.kube_version) { facts.kube_version = client.server_version(); }
    if (!facts.api_versions.empty()) { return; }
    add_kinds(client, "/api/", "v1", facts.api_versions);
    const auto list = discovered(client, "/apis");
    const auto* groups = list.find("groups");
    if (groups == nullptr) { return; }
    for (const auto& group : groups->items()) {
        const auto* versions = group.find("versions");
        if (versions == nullptr) { continue; }
        for (const auto& version : versions->items()) {
            add_kinds(client, "/apis/", version.get_string({"groupVersion"}), facts.api_versions);
        }
    }
}

}  // namespace kmm::recipe::files
