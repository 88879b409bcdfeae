// SPDX-License-Identifier: Apache-2.0
// Checks of other programs that change a cluster, upgrade its nodes or reboot them.
#include <doctest/doctest.h>

#include <string>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

CheckResult check_inventory(const Inventory& inventory, const char* id) {
    const auto seen = observe(inventory);
    const CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4")};
    const std::string_view only[] = {id};
    return run_checks(input, {}, only).front();
}

/// Beside a node, and Pods of two namespaces.
std::string with_others(const std::string& text) {
    return control_plane("cp1", "v1.34.4") + worker("w1", "v1.34.4") +
           "---\n{kind: Pod, apiVersion: v1, metadata: {name: web, namespace: prod}, spec: {nodeName: w1}}\n" + text;
}

CheckResult order_check(const std::string& text, const char* id) {
    return check_inventory(inventory_of(with_others(text)), id);
}

std::string pod_of_image(const std::string& image) {
    return "---\n{kind: Pod, apiVersion: v1, metadata: {name: agent, namespace: system}, spec: {nodeName: w1, "
           "containers: [{name: c, image: '" +
           image + "'}]}}\n";
}

std::string object(const std::string& version, const std::string& kind, const std::string& spec) {
    return "---\n{kind: " + kind + ", apiVersion: " + version + ", metadata: {name: a, namespace: x}, spec: " + spec +
           "}\n";
}

std::string kured_set(const std::string& annotations, const std::string& more = "") {
    return "---\n{kind: DaemonSet, apiVersion: apps/v1, metadata: {name: kured, namespace: system, annotations: {" +
           annotations + "}}, spec: {template: {spec: {containers: [{name: k, image: 'ghcr.io/kubereboot/kured:1.16'" +
           more + "}]}}}}\n";
}

}  // namespace

TEST_SUITE("kubernetes") {

TEST_CASE("gitops-controllers looks at what the controllers follow") {
    const auto outcome = [](const std::string& text) { return order_check(text, "gitops-controllers").outcome; };
    const auto helm = pod_of_image("ghcr.io/fluxcd/helm-controller:v1.1.0");
    const auto suspended = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{suspend: true}");
    CHECK(outcome("") == Outcome::ok);
    CHECK(outcome(helm) == Outcome::warn);
    CHECK(outcome(helm + suspended) == Outcome::ok);
    CHECK(outcome(pod_of_image("ghcr.io/fluxcd/source-controller:v1") + suspended) == Outcome::ok);
    CHECK(outcome(pod_of_image("ghcr.io/fluxcd/kustomize-controller:v1") + suspended) == Outcome::warn);
    const auto result = order_check(object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{}"), "gitops-controllers");
    CHECK(result.outcome == Outcome::warn);
    CHECK(result.detail == "HelmRelease x/a is not suspended");
    CHECK(outcome(object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "{suspend: false}")) == Outcome::warn);
    CHECK(outcome(object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "{kubeConfig: {}}")) == Outcome::ok);
    CHECK(outcome(object("kustomize.config.k8s.io/v1beta1", "Kustomization", "{}")) == Outcome::ok);
    const auto argo = [&](const std::string& spec) {
        return outcome(object("argoproj.io/v1alpha1", "Application", spec));
    };
    CHECK(argo("{syncPolicy: {automated: {}}}") == Outcome::warn);
    CHECK(argo("{syncPolicy: {automated: {enabled: false}}}") == Outcome::ok);
    CHECK(argo("{syncPolicy: {}}") == Outcome::ok);
    CHECK(argo("{syncPolicy: {automated: {}}, destination: {server: 'https://other'}}") == Outcome::ok);
    CHECK(argo("{syncPolicy: {automated: {}}, destination: {name: in-cluster}}") == Outcome::warn);
    CHECK(outcome(pod_of_image("rancher/fleet-agent:v0.10")) == Outcome::warn);
}

TEST_CASE("other-orchestrators knows Plans and the marks of Rancher") {
    const auto outcome = [](const std::string& text) { return order_check(text, "other-orchestrators").outcome; };
    CHECK(outcome("") == Outcome::ok);
    const auto plan = order_check(object("upgrade.cattle.io/v1", "Plan", "{}"), "other-orchestrators");
    CHECK(plan.outcome == Outcome::fail);
    CHECK(plan.detail == "managed by another tool: Plan x/a");
    CHECK(outcome(object("example.com/v1", "Plan", "{}")) == Outcome::ok);
    for (const std::string mark : {"management.cattle.io/nodename", "cattle.io/timestamp"}) {
        CAPTURE(mark);
        CHECK(outcome("---\n{kind: Node, apiVersion: v1, metadata: {name: w2, annotations: {" + mark + ": x}}}\n") ==
              Outcome::fail);
    }
}

TEST_CASE("reboot-daemons knows kured by its DaemonSet, its image and its lock") {
    const auto result = [](const std::string& text) { return order_check(text, "reboot-daemons"); };
    const auto is_found = [&](const std::string& text) { return result(text).outcome == Outcome::fail; };
    CHECK(result(kured_set("")).detail == "kured runs: DaemonSet system/kured");
    const auto lock = [](const std::string& text) { return "weave.works/kured-node-lock: '" + text + "'"; };
    CHECK(!is_found(kured_set(lock("{\"nodeID\":\"manual\"}"))));
    CHECK(result(kured_set(lock("{\"nodeID\":\"manual\"}"))).detail.starts_with("the lock of kured is held; "));
    CHECK(!is_found(kured_set(lock("{\"nodeID\":\"manual\",\"TTL\":0}"), ", args: [--concurrency=1]")));
    // It is of a reboot, ends by itself, or is one of several.
    CHECK(is_found(kured_set(lock("{\"nodeID\":\"w1\"}"))));
    CHECK(is_found(kured_set(lock("{\"nodeID\":\"manual\",\"TTL\":600000000000}"))));
    CHECK(is_found(kured_set(lock("{\"nodeID\":\"manual\"}"), ", args: [--concurrency=2]")));
    CHECK(is_found(kured_set(lock("{\"nodeID\":\"manual\"}"), ", env: [{name: KURED_CONCURRENCY, value: '2'}]")));
    CHECK(is_found(kured_set(lock("manual"))));
    CHECK(is_found(pod_of_image("mirror.example/weaveworks/kured@sha256:aa")));
    CHECK(!is_found(pod_of_image("mirror.example/my-kured-doc:1")));
    CHECK(!is_found(pod_of_image("mirror.example/kured/docs:1")));
    const auto reboot = result("---\n{kind: Node, apiVersion: v1, metadata: {name: w2, annotations: "
                               "{weave.works/kured-reboot-in-progress: x}}}\n");
    CHECK(reboot.outcome == Outcome::fail);
    CHECK(reboot.detail == "kured reboots w2");
}

TEST_CASE("a server that lists the orders of its controllers, or refuses to") {
    auto inventory = inventory_of(with_others(pod_of_image("ghcr.io/fluxcd/helm-controller:v1.1.0")));
    inventory.is_live = true;
    CHECK(check_inventory(inventory, "gitops-controllers").outcome == Outcome::warn);
    inventory.definitions.emplace_back().meta.name = "helmreleases.helm.toolkit.fluxcd.io";
    CHECK(check_inventory(inventory, "gitops-controllers").outcome == Outcome::ok);
    inventory.unlisted["helmreleases"] = "this user may not list helmreleases";
    CHECK(check_inventory(inventory, "gitops-controllers").outcome == Outcome::warn);
    inventory.unlisted["plans"] = "this user may not list plans";
    CHECK(check_inventory(inventory, "other-orchestrators").outcome == Outcome::skip);
}

}
