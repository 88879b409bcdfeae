// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "kubernetes/check/checks.hpp"
#include "kubernetes/check/require.hpp"
#include "kubernetes/versions/states.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/object_stream.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

Catalogue catalogue_in(std::string_view text) {
    Diagnostics faults;
    auto catalogue = read_catalogue(text, "versions.yaml", faults);
    CHECK(faults.empty());
    return catalogue;
}

std::string states_of(std::string_view versions, std::string_view dump, std::string_view upgraded_to = {}) {
    const auto catalogue = catalogue_in(versions);
    const auto inventory = inventory_of(dump);
    const auto seen = observe(inventory);
    CHECK(seen.faults.empty());
    std::string text;
    for (const auto& row : version_rows(catalogue, seen, Version::parse(upgraded_to))) {
        text += row.version.text() + (row.is_target ? "* " : " ") + std::string(to_string(row.state)) + "\n";
    }
    return text;
}

}  // namespace

TEST_SUITE("kubernetes::observe") {

TEST_CASE("the image that runs counts, unless the runtime tells another image's name for the same content") {
    const auto running = [](const std::string& image) {
        auto text = control_plane("a", "v1.43.1");
        const std::string ready = "status: {phase: Running,";
        text.replace(text.find(ready, text.find("kube-apiserver-a")), ready.size(),
                     "status: {containerStatuses: [{name: kube-apiserver, image: '" + image + "'}], phase: Running,");
        const auto inventory = inventory_of(text);
        return observe(inventory).control_plane.front().version->text();
    };
    CHECK(running("mirror:5000/x/kube-apiserver:v1.43.0") == "v1.43.0");
    CHECK(running("mirror:5000/kube-apiserver@sha256:12") == "v1.43.1");
    CHECK(running("sha256:12") == "v1.43.1");
    CHECK(running("mirror:5000/etcd:3.6.5-0") == "v1.43.1");
}

TEST_CASE("a cluster that is not kubeadm's is named as the cause, and each check that needs versions says what to do") {
    auto text = control_plane("a", "v1.34.4+k3s1");
    text.resize(text.find("---\n{kind: Pod"));
    const auto inventory = inventory_of(text);
    const auto seen = observe(inventory);
    const std::string hint =
        "this is a cluster of k3s, which has no control plane of kubeadm: upgrade it as k3s says";
    REQUIRE(seen.faults.size() == 3);
    CHECK(seen.faults.front().hint == hint);
    const auto catalogue = catalogue_in("versions: [{version: v1.34.4}, {version: v1.34.5}]");
    CheckInput input{inventory, seen, catalogue, Version::parse("v1.34.5")};
    int told = 0;
    for (const auto& result : run_checks(input, {})) {
        if (result.detail.find("Pod kube-system/kube-apiserver-a was not found") == std::string::npos &&
            result.detail.find("see versions-uniform") == std::string::npos) {
            continue;
        }
        CAPTURE(result.id);
        CHECK((result.fix == hint || result.outcome == Outcome::skip || result.id == "cp-pods-ready"));
        ++told;
    }
    CHECK(told > 5);
}

TEST_CASE("makers of clusters are known by marks of their Nodes") {
    const auto hint_of = [](const std::string& metadata) {
        return distribution_hint(inventory_of("{kind: Node, apiVersion: v1, metadata: {name: a, " + metadata +
                                              "}, status: {nodeInfo: {kubeletVersion: v1.34.1}}}"));
    };
    CHECK(hint_of("labels: {k8sd.io/role: control-plane, node-role.kubernetes.io/control-plane: ''}")
              .starts_with("this is a cluster of Canonical Kubernetes, "));
    CHECK(hint_of("labels: {juju-charm: kubernetes-control-plane}")
              .starts_with("this is a cluster of Charmed Kubernetes, "));
    CHECK(hint_of("annotations: {rke.cattle.io/internal-ip: 10.0.0.1}").starts_with("this is a cluster of RKE, "));
    CHECK(hint_of("labels: {x: z}").empty());
}

TEST_CASE("states of versions") {
    const auto* versions = "versions: [{version: v1.43.1}, {version: v1.43.2}, {version: v1.42.2}]";
    CHECK(states_of(versions, control_plane("a", "v1.43.1") + worker("b", "v1.43.1")) ==
          "v1.42.2 unavailable\nv1.43.1* active\nv1.43.2 available\n");
    CHECK(states_of(versions, control_plane("a", "v1.43.1") + worker("b", "v1.42.2")) ==
          "v1.42.2 partial\nv1.43.1 partial\nv1.43.2 unavailable\n");
    CHECK(states_of(versions, control_plane("a", "v1.43.1") + control_plane("b", "v1.43.2")) ==
          "v1.42.2 unavailable\nv1.43.1 partial\nv1.43.2 partial\n");
    // A version that the metadata lacks counts: the cluster is not all of v1.43.1.
    CHECK(states_of(versions, control_plane("a", "v1.43.1") + worker("b", "v1.42.9")) ==
          "v1.42.2 unavailable\nv1.42.9 partial\nv1.43.1 partial\nv1.43.2 unavailable\n");
    CHECK(states_of("versions: []", control_plane("a", "v1.43.1")) == "v1.43.1* active\n");
    // Above the active version, but no path leads there: it skips a minor, or nothing may be upgraded to it.
    CHECK(states_of("versions: [{version: v1.43.1}, {version: v1.43.3, upgrade_from: []}, {version: v1.45.0}]",
                    control_plane("a", "v1.43.1")) ==
          "v1.43.1* active\nv1.43.3 unavailable\nv1.45.0 unavailable\n");
    // While an upgrade is under way its target is, whatever runs.
    CHECK(states_of(versions, control_plane("a", "v1.43.1") + control_plane("b", "v1.43.2"), "v1.43.2") ==
          "v1.42.2 unavailable\nv1.43.1 partial\nv1.43.2* partial\n");
    CHECK(states_of(versions, control_plane("a", "v1.43.1"), "v1.43.2") ==
          "v1.42.2 unavailable\nv1.43.1 active\nv1.43.2* available\n");
}

TEST_CASE("a list is taken object by object as it is taken whole") {
    const std::string text =
        R"({"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"b","managedFields":[{"a":1}]},"status":{"nodeInfo":{"kubeletVersion":"v1.2.3"},"images":[{}]}},
{"metadata":{"name":"a"},"status":{"nodeInfo":{"kubeletVersion":"v1.2.4"}}}]})";
    std::size_t at = 0;
    InventorySink sink;
    const auto doubt = value::stream_json([&](char* into, std::size_t size) {
        const auto piece = std::min<std::size_t>(size, text.size() - at);
        text.copy(into, piece, at);
        at += piece;
        return piece;
    }, "dump.yaml", sink);
    CHECK_FALSE(doubt.has_value());
    Inventory streamed;
    Diagnostics faults;
    std::move(sink).commit(streamed, faults);
    finish(streamed, faults);
    CHECK(faults.empty());
    const auto whole = inventory_of(text);
    REQUIRE(streamed.nodes.size() == 2);
    REQUIRE(whole.nodes.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(streamed.nodes[i].meta.name == whole.nodes[i].meta.name);
        CHECK(streamed.nodes[i].kubelet == whole.nodes[i].kubelet);
        CHECK(streamed.nodes[i].meta.position == whole.nodes[i].meta.position);
    }
    CHECK(streamed.counts == whole.counts);
}

TEST_CASE("selectors") {
    const Labels labels{{"a", "1"}, {"b", ""}};
    CHECK(matches({}, labels));
    CHECK(matches({{"a", "In", {"0", "1"}}, {"b", "Exists", {}}}, labels));
    CHECK_FALSE(matches({{"a", "In", {"0"}}}, labels));
    CHECK_FALSE(matches({{"c", "In", {"0"}}}, labels));
    CHECK(matches({{"c", "NotIn", {"0"}}, {"c", "DoesNotExist", {}}}, labels));
    CHECK_FALSE(matches({{"b", "DoesNotExist", {}}}, labels));
    CHECK_FALSE(matches({{"a", "Gt", {"0"}}}, labels));
}

TEST_CASE("requirements are satisfied by every instance or not at all") {
    const auto inventory =
        inventory_of(control_plane("a", "v1.34.4") + control_plane("b", "v1.35.4") + worker("c", "v1.34.4-eks-1"));
    const auto seen = observe(inventory);
    const auto offenders = [&](const char* text) {
        std::string names;
        for (const auto& each : evaluate(parse_requirements(text), inventory, seen).offenders) {
            names += each.component + "/" + each.node + "=" + each.found + " ";
        }
        return names;
    };
    CHECK(offenders("apiserver >= 1.34.4") == "");
    CHECK(offenders("kube-scheduler > 1.34.4") == "kube-scheduler/a=v1.34.4 ");
    CHECK(offenders("kubelet <= v1.34.4") == "kubelet/b=v1.35.4 kubelet/c=v1.34.4-eks-1 ");
    CHECK(offenders("kubelet < v1.35.4,kubelet != v1.34.4") == "kubelet/b=v1.35.4 kubelet/a=v1.34.4 ");
    CHECK(offenders("etcd == v3.6.5-0") == "etcd/=none was found ");
    CHECK(evaluate({}, inventory, seen).offenders.empty());
    // The number of a build at the end of an image's tag is no part of etcd's version.
    const auto with_etcd = inventory_of(
        control_plane("a", "v1.34.4") +
        "---\n{kind: Pod, apiVersion: v1, metadata: {name: etcd-a, namespace: kube-system, labels: {component: etcd}, "
        "annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: a, containers: [{name: etcd, image: "
        "'r/etcd:3.6.5-0'}]}}\n");
    const auto observed = observe(with_etcd);
    const auto holds = [&](const char* text) {
        return evaluate(parse_requirements(text), with_etcd, observed).offenders.empty();
    };
    for (const char* text : {"etcd == 3.6.5", "etcd <= 3.6.5", "etcd >= 3.6.5", "etcd == 3.6.5-0", "etcd < 3.6.5-1"})
        CHECK_MESSAGE(holds(text), text);
    for (const char* text : {"etcd > 3.6.5", "etcd < 3.6.5", "etcd != 3.6.5", "etcd == 3.6.5-1"})
        CHECK_MESSAGE(!holds(text), text);
}

}

TEST_CASE("a Pod requests what its containers and sidecars do together, or an init container beside the sidecars") {
    const auto requested = [](const std::string& init, const std::string& more = "") {
        const auto inventory = inventory_of(
            worker("w", "v1.34.4") +
            "---\n{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: d}, spec: {nodeName: w, containers: "
            "[{name: a, resources: {requests: {cpu: 1, memory: 2Gi}}}], initContainers: [" +
            init + "]" + more + "}}\n");
        return inventory.pods.front().requests.cpu;
    };
    const std::string sidecar = "{name: s, restartPolicy: Always, resources: {requests: {cpu: 500m}}}";
    CHECK(requested("") == 1);
    CHECK(requested(sidecar) == 1.5);
    CHECK(requested("{name: i, resources: {requests: {cpu: 3}}}, " + sidecar) == 3);
    CHECK(requested(sidecar + ", {name: i, resources: {requests: {cpu: 3}}}") == 3.5);
    CHECK(requested(sidecar, ", overhead: {cpu: 250m}") == 1.75);
}
