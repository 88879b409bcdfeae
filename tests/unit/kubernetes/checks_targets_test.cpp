// SPDX-License-Identifier: Apache-2.0
// Checks of what the way to a target makes of a cluster.
#include <doctest/doctest.h>

#include <string>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

CheckResult result_of(const std::string& text, const char* id, const char* target) {
    const auto inventory = inventory_of(text);
    const auto seen = observe(inventory);
    const CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
    const std::string_view only[] = {id};
    return run_checks(input, {}, only).front();
}

/// CoreDNS v1.12.1 that kubeadm migrates, with `dns` of the ClusterConfiguration.
std::string coredns(const std::string& dns) {
    return control_plane("a", "v1.34.4") +
           "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system}, data: "
           "{ClusterConfiguration: \"apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n" +
           dns +
           "\"}}\n---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: coredns, namespace: kube-system}, data: "
           "{Corefile: \".:53 {\\n    errors\\n}\\n\"}}\n"
           "---\n{kind: Deployment, apiVersion: apps/v1, metadata: {name: coredns, namespace: kube-system, labels: "
           "{k8s-app: kube-dns}}, spec: {template: {spec: {containers: [{name: coredns, image: "
           "'r/coredns:v1.12.1'}]}}}}\n"
           "---\n{kind: Service, apiVersion: v1, metadata: {name: kube-dns, namespace: kube-system}, spec: {clusterIP: "
           "10.96.0.10}}\n";
}

std::string definition(const std::string& versions) {
    return "---\n{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: "
           "things.example.com}, spec: {versions: [" +
           versions +
           "{name: v1, served: true, storage: true}]}, status: {storedVersions: [v1alpha1, v1]}}\n";
}

}  // namespace

TEST_SUITE("kubernetes") {

TEST_CASE("a CoreDNS that kubeadm-config fixes is deployed beside a Corefile for another one") {
    const auto found = [](const std::string& dns) { return result_of(coredns(dns), "coredns-migratable", "v1.35.4"); };
    CHECK(found("").outcome == Outcome::ok);
    CHECK(found("dns: {imageRepository: r}\\n").outcome == Outcome::ok);
    CHECK(found("dns: {imageTag: v1.13.1}\\n").outcome == Outcome::ok);
    CHECK(found("dns: {imageTag: v1.13.1-ours.2}\\n").outcome == Outcome::ok);
    for (const std::string tag : {"v1.11.3", "v1.12.1", "mine"}) {
        CAPTURE(tag);
        const auto fixed = found("dns: {imageTag: " + tag + "}\\n");
        CHECK(fixed.outcome == Outcome::warn);
        CHECK(fixed.detail == "dns.imageTag of kubeadm-config is " + tag +
                                  ": kubeadm deploys that, and migrates the Corefile to CoreDNS v1.13.1");
    }
}

TEST_CASE("a stored version may be one that is not served") {
    const auto cluster = control_plane("a", "v1.34.4");
    CHECK(result_of(cluster + definition("{name: v1alpha1, served: false, storage: false}, "), "crd-conversion",
                    "v1.35.4")
              .outcome == Outcome::ok);
    const auto unknown = result_of(cluster + definition(""), "crd-conversion", "v1.35.4");
    CHECK(unknown.outcome == Outcome::fail);
    CHECK(unknown.detail == "things.example.com: version v1alpha1 is stored and not in spec.versions");
}

TEST_CASE("nothing is said of the way to a lower minor, as there is none") {
    for (const char* id : {"removed-flags", "removed-api-stored", "etcd-36-floor"}) {
        CAPTURE(id);
        const auto found = result_of(coredns(""), id, "v1.33.13");
        CHECK(found.outcome == Outcome::skip);
        CHECK(found.detail == "there is no way to the target, see version-path");
        CHECK(result_of(coredns(""), id, "v1.34.1").detail != found.detail);
    }
}

}
