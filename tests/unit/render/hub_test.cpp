// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "api/codec.hpp"
#include "render/hub.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

/// A ManagedClusterModule with `container` (YAML, flow) as its container.
api::ManagedClusterModule hub_module(const std::string& container, const std::string& selector = "{pool: edge}") {
    Diagnostics faults;
    api::Objects objects;
    const std::string text =
        "{apiVersion: hub.kmm.sigs.x-k8s.io/v1beta1, kind: ManagedClusterModule, metadata: {name: hello}, "
        "spec: {spokeNamespace: drivers, selector: " +
        selector + ", moduleSpec: {selector: {}, moduleLoader: {container: " + container + "}}}}\n";
    for (const auto& document : value::read_any(text, "hub.yaml", faults)) { api::decode(document, objects, faults); }
    REQUIRE(faults.empty());
    REQUIRE(objects.managed_cluster_modules.size() == 1);
    return objects.managed_cluster_modules[0];
}

render::HubCluster cluster(std::vector<std::string> kernels,
                           std::optional<api::Labels> labels = api::Labels{{"pool", "edge"}}) {
    return {"east", std::move(labels), std::move(kernels)};
}

std::vector<std::string> codes(const Diagnostics& findings) {
    std::vector<std::string> result;
    for (const auto& finding : findings) { result.push_back(finding.code); }
    return result;
}

const std::string k_plain =
    "{modprobe: {moduleName: hello}, containerImage: 'r.example/h:${KERNEL_XYZ}', kernelMappings: [{regexp: '^6', "
    "containerImage: ''}]}";

}  // namespace

TEST_SUITE("render::unit") {
    TEST_CASE("a claim is one kernel a line, each once") {
        CHECK(render::claimed_kernels("").empty());
        CHECK(render::claimed_kernels("\n\n").empty());
        CHECK(render::claimed_kernels("6.1.0-9\n\n5.10.0-8\n6.1.0-9\n") ==
              std::vector<std::string>{"6.1.0-9", "5.10.0-8"});
    }

    TEST_CASE("a cluster gets a literal mapping for each kernel, '+' trimmed") {
        const auto made = render::hub_bundles({hub_module(k_plain)}, {cluster({"6.1.0-9", "6.1.0-9+", "6.2.0-1"})}, {});
        REQUIRE(made.bundles.size() == 1);
        CHECK(made.findings.empty());
        const auto& module = made.bundles[0].module;
        CHECK(
            value::to_json(*module.find_path({"spec", "moduleLoader", "container", "kernelMappings"})) ==
            R"([{"containerImage":"r.example/h:6.1.0","literal":"6.1.0-9"},{"containerImage":"r.example/h:6.2.0","literal":"6.2.0-1"}])");
        CHECK(module.get_string({"metadata", "namespace"}) == "drivers");
        CHECK(made.bundles[0].manifest_work.get_string({"metadata", "namespace"}) == "east");
        CHECK(value::to_json(made.bundles[0].manifest_work.find_path({"spec", "workload", "manifests"})->items()[0]) ==
              value::to_json(module));
    }

    TEST_CASE("who gets nothing, and why") {
        struct Row {
            const char* what;
            std::string container;
            render::HubCluster cluster;
            std::vector<std::string> missing;
            std::vector<std::string> codes;
            std::size_t bundles;
        };
        const std::string tls =
            "{modprobe: {moduleName: hello}, kernelMappings: [{regexp: '^6', containerImage: r.example/h, registryTLS: "
            "{insecure: true}}]}";
        const std::string in_tree =
            "{modprobe: {moduleName: hello}, inTreeModulesToRemove: [old], kernelMappings: [{regexp: '^6', "
            "containerImage: r.example/h, inTreeModulesToRemove: []}]}";
        const std::string unnamed =
            "{modprobe: {moduleName: hello}, kernelMappings: [{regexp: '^6', containerImage: 'r.example/H:x'}]}";
        const std::string single =
            "{modprobe: {moduleName: hello}, inTreeModuleToRemove: old, kernelMappings: [{regexp: '^6', "
            "containerImage: r.example/h, inTreeModuleToRemove: older}]}";
        render::HubCluster silent = cluster({});
        silent.kernels.reset();
        const std::vector<Row> rows{
            {"selected", k_plain, cluster({"6.1.0-9"}), {}, {}, 1},
            {"other labels", k_plain, cluster({"6.1.0-9"}, api::Labels{{"pool", "core"}}), {}, {"hub-not-selected"}, 0},
            {"labels unknown", k_plain, cluster({"6.1.0-9"}, std::nullopt), {}, {"hub-labels-unknown"}, 1},
            {"kernels unknown", k_plain, silent, {}, {"hub-skipped"}, 0},
            {"no kernel", k_plain, cluster({}), {}, {"hub-skipped"}, 0},
            {"one kernel without mapping", k_plain, cluster({"5.1.0-9", "6.1.0-9"}), {}, {"hub-no-mapping"}, 1},
            {"no kernel with mapping", k_plain, cluster({"5.1.0-9"}), {}, {"hub-no-mapping", "hub-skipped"}, 0},
            {"kernel that no template takes", k_plain, cluster({"6.1"}), {}, {"hub-skipped"}, 0},
            {"image missing", k_plain, cluster({"6.1.0-9", "6.2.0-1"}), {"*:6.2.0"}, {"hub-skipped"}, 0},
            {"an image that no registry can have", unnamed, cluster({"6.1.0-9"}), {}, {"hub-skipped"}, 0},
            {"registryTLS of the mapping", tls, cluster({"6.1.0-9"}), {}, {"hub-field-lost"}, 1},
            {"empty list over the container's", in_tree, cluster({"6.1.0-9"}), {}, {"hub-field-lost"}, 1},
            {"the old field in both", single, cluster({"6.1.0-9"}), {}, {"hub-field-lost"}, 1},
        };
        for (const auto& row : rows) {
            CAPTURE(row.what);
            const auto made = render::hub_bundles({hub_module(row.container)}, {row.cluster}, row.missing);
            CHECK(codes(made.findings) == row.codes);
            CHECK(made.bundles.size() == row.bundles);
        }
    }

    TEST_CASE("clusters keep no build and sign, and one that fails stops no other") {
        const std::string container =
            "{modprobe: {moduleName: hello}, sign: {certSecret: {name: c}, keySecret: {name: k}}, "
            "build: {dockerfileConfigMap: {name: d}}, kernelMappings: [{regexp: '^6', containerImage: r.example/h, "
            "build: {dockerfileConfigMap: {name: e}}}]}";
        auto first = cluster({"5.1.0-9"});
        auto second = cluster({"6.1.0-9"});
        second.name = "west";
        const auto made = render::hub_bundles({hub_module(container, "{}")}, {first, second}, {});
        REQUIRE(made.bundles.size() == 1);
        CHECK(made.bundles[0].cluster == "west");
        const std::string text = value::to_json(made.bundles[0].module);
        CHECK(text.find("build") == std::string::npos);
        CHECK(text.find("sign") == std::string::npos);
    }
}
