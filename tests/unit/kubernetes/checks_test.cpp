// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "kubernetes/check/checks.hpp"
#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/check_list.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "unit/kubernetes/make_inventory.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

std::map<std::string, CheckResult> results_of(const Inventory& inventory, const char* target = "v1.35.4") {
    const auto seen = observe(inventory);
    std::map<std::string, CheckResult> results;
    for (auto& result : run_checks({inventory, seen, builtin_catalogue(), Version::parse(target)}, {})) {
        results.emplace(result.id, std::move(result));
    }
    return results;
}

std::set<std::string> ids_with(const std::map<std::string, CheckResult>& results, Outcome outcome) {
    std::set<std::string> ids;
    for (const auto& [id, result] : results) {
        if (result.outcome == outcome) { ids.insert(id); }
    }
    return ids;
}

/// Something is wrong, or to be warned of, wherever objects can tell.
std::string bad_cluster() {
    std::string text = control_plane("a", "v1.34.4") + worker("b", "v1.35.4");
    text.replace(text.find("DiskPressure, status: 'False'"), 29, "DiskPressure, status: 'True'");
    text.replace(text.find("--profiling=false"), 17, "--feature-gates=PodIndexLabel=true");
    return text + R"(---
{kind: Pod, apiVersion: v1, metadata: {name: web, namespace: prod, labels: {app: web}}, spec: {nodeName: b, containers: [{name: app, image: 'ghcr.io/fluxcd/kured:1'}], volumes: [{emptyDir: {}}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: old, namespace: prod, deletionTimestamp: '2026-01-02T03:04:05Z'}
spec: {nodeName: b}
---
{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: web, namespace: prod}, spec: {selector: {}}, status: {disruptionsAllowed: 0}}
---
{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system}, data: {ClusterConfiguration: "kind: ClusterConfiguration\nkubernetesVersion: v1.33.0\netcd: {external: {}}"}}
---
{kind: ConfigMap, apiVersion: v1, metadata: {name: kubelet-config, namespace: kube-system}, data: {kubelet: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\nfeatureGates: {PodIndexLabel: true}"}}
---
{kind: APIService, apiVersion: apiregistration.k8s.io/v1, metadata: {name: v1.x}}
---
{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: x}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: x, namespace: x}}}}}}
---
{kind: ValidatingWebhookConfiguration, apiVersion: admissionregistration.k8s.io/v1, metadata: {name: x}, webhooks: [{name: x, clientConfig: {service: {name: x, namespace: x}}, rules: [{apiGroups: ['*'], resources: ['*'], operations: ['*']}]}]}
---
{kind: MutatingWebhookConfiguration, apiVersion: admissionregistration.k8s.io/v1, metadata: {name: x}}
---
{kind: EndpointSlice, apiVersion: discovery.k8s.io/v1, metadata: {name: x, namespace: x, labels: {kubernetes.io/service-name: x}}, endpoints: [{conditions: {ready: false}}]}
)";
}

}  // namespace

TEST_SUITE("kubernetes::checks") {

TEST_CASE("etcd that kubeadm-config fixes, or names as external without a word") {
    const auto floor_with = [](const std::string& etcd, const char* target) {
        auto text = control_plane("a", "v1.32.13") + worker("b", "v1.32.13") + R"(---
{kind: Pod, apiVersion: v1, metadata: {name: etcd-a, namespace: kube-system},
 spec: {nodeName: a, containers: [{name: etcd, image: 'r/etcd:3.5.24-0'}]}}
---
{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system},
 data: {ClusterConfiguration: "kind: ClusterConfiguration\netcd: )" +
                    etcd + "\"}}\n";
        const auto inventory = inventory_of(text);
        const auto seen = observe(inventory);
        CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
        std::map<std::string, CheckResult> results;
        for (auto& result : run_checks(input, {})) results.emplace(result.id, std::move(result));
        CHECK(results.at("etcd-external").outcome == Outcome::ok);
        return results.at("etcd-36-floor").detail;
    };
    CHECK(floor_with("{external: null}", "v1.33.13") == "v1.33.13 brings etcd 3.5.24-0");
    // kubeadm deploys what kubeadm-config fixes, whatever its own is.
    CHECK(floor_with("{local: {imageTag: 3.6.5-0}}", "v1.33.13") ==
          "v1.33.13 brings etcd 3.6.5-0; below 3.5.26: a (3.5.24-0)");
}

TEST_CASE("which phases that are left out are those of an addon, as kubeadm reads them") {
    CHECK(skipped_phase("bootstrap-token,addon/coredns", "coredns") == "addon/coredns");
    CHECK(skipped_phase("addon", "kube-proxy") == "addon");
    for (const auto* other : {"", "addon/coredns", "addon/all", "kubelet-config, addon", "addons"}) {
        CAPTURE(other);
        CHECK(skipped_phase(other, "kube-proxy").empty());
    }
}

TEST_CASE("kube-proxy stays within the skew of the control planes until kubeadm writes it") {
    const auto skew_with = [](const std::string& proxy, const char* target, const char* skipped) {
        const auto text = control_plane("a", "v1.33.13") + worker("b", "v1.33.13") + R"(---
{kind: Pod, apiVersion: v1, metadata: {name: kube-proxy-x, namespace: kube-system, labels: {k8s-app: kube-proxy}},
 spec: {nodeName: b, containers: [{name: kube-proxy, image: 'r/kube-proxy:)" +
                          proxy + "'}]}}\n";
        const auto inventory = inventory_of(text);
        const auto seen = observe(inventory);
        CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
        input.intent.skipped_phases = skipped;
        const std::string_view only[] = {"skew-after-step"};
        const auto result = run_checks(input, {}, only).front();
        return std::pair(result.outcome, result.detail);
    };
    const std::string fine = "within the supported skew now and after each step (2)";
    CHECK(skew_with("v1.31.14", "v1.34.4", "") == std::pair(Outcome::ok, fine));
    CHECK(skew_with("v1.30.14", "v1.34.4", "") ==
          std::pair(Outcome::fail, std::string("after control planes v1.34.4: kube-proxy v1.30.14 is more than 3 "
                                               "minors older than API server v1.34.4")));
    // kubeadm writes it at each step, unless it is told not to.
    CHECK(skew_with("v1.31.14", "v1.35.4", "").first == Outcome::ok);
    CHECK(skew_with("v1.31.14", "v1.35.4", "addon/kube-proxy") ==
          std::pair(Outcome::fail, std::string("after control planes v1.35.4: kube-proxy v1.31.14 is more than 3 "
                                               "minors older than API server v1.35.4")));
}

TEST_CASE("gates that went before v1.32 are known, and those that were locked") {
    const auto flags_with = [](const std::string& gates, const char* from, const char* target) {
        auto text = control_plane("a", from) + worker("b", from);
        text.replace(text.find("--profiling=false"), 17, "'--feature-gates=" + gates + "'");
        const auto results = results_of(inventory_of(text), target);
        const auto& found = results.at("removed-flags");
        return found.outcome == Outcome::fail ? found.detail : std::string();
    };
    CHECK(flags_with("SeccompDefault=true", "v1.28.15", "v1.29.15") ==
          "kube-apiserver on a: feature gate SeccompDefault (gone in v1.29)");
    CHECK(flags_with("ProxyTerminatingEndpoints=true", "v1.29.15", "v1.30.14") ==
          "kube-apiserver on a: feature gate ProxyTerminatingEndpoints (gone in v1.30)");
    CHECK(flags_with("JobReadyPods=true", "v1.30.14", "v1.31.14") ==
          "kube-apiserver on a: feature gate JobReadyPods (gone in v1.31)");
    CHECK(flags_with("PodHostIPs=false", "v1.29.15", "v1.30.14") ==
          "kube-apiserver on a: feature gate PodHostIPs=false (locked to true from v1.30 on)");
    CHECK(flags_with("PodHostIPs=true", "v1.29.15", "v1.30.14").empty());
}

TEST_CASE("an etcd whose version is not known may have a known issue") {
    const auto issues_with = [](const std::string& image) {
        const auto text = control_plane("a", "v1.32.13") + worker("b", "v1.32.13") + R"(---
{kind: Pod, apiVersion: v1, metadata: {name: etcd-a, namespace: kube-system},
 spec: {nodeName: a, containers: [{name: etcd, image: ')" +
                          image + "'}]}}\n";
        const auto inventory = inventory_of(text);
        const auto seen = observe(inventory);
        const CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.33.13")};
        const std::string_view only[] = {"known-issues"};
        const auto result = run_checks(input, {}, only).front();
        return std::pair(result.outcome, result.detail);
    };
    CHECK(issues_with("r/etcd:3.5.24-0").first == Outcome::ok);
    CHECK(issues_with("r/etcd:3.5.1-0").first == Outcome::fail);
    CHECK(issues_with("r/etcd@sha256:12") ==
          std::pair(Outcome::skip, std::string("Pod kube-system/etcd-a: expected an image with a tag "
                                               "MAJOR.MINOR.PATCH as v1.34.4, found 'r/etcd@sha256:12'")));
}

TEST_CASE("ids are unique, and every check that objects can tell has a function") {
    std::set<std::string_view> ids;
    for (const auto& info : check_list()) {
        CAPTURE(std::string(info.id));
        CHECK(ids.insert(info.id).second);
        CHECK(find_check(info.id) == &info);
        CHECK_FALSE(info.fix.empty());
    }
    std::size_t functions = 0;
    for (const auto rows : {version_checks(), config_checks(), flag_checks(), object_checks(), order_checks(),
                            drain_checks(), prerequisite_checks(), api_checks(), addon_checks()}) {
        for (const auto& row : rows) {
            REQUIRE(find_check(row.id) != nullptr);
            CHECK(find_check(row.id)->needs.empty());
            ++functions;
        }
    }
    for (const auto rows : {node_checks(), etcd_checks(), service_checks()}) {
        for (const auto& row : rows) {
            REQUIRE(find_check(row.id) != nullptr);
            CHECK((!find_check(row.id)->needs.empty() || row.id == "node-reach"));
        }
    }
    std::size_t computed = 0;
    for (const auto& info : check_list()) { computed += info.needs.empty() ? 1U : 0U; }
    CHECK(functions == computed);
}

TEST_CASE("a gate that is locked may be set to what it is locked to, true or false") {
    const auto found = [](const std::string& gate, const char* target) {
        const auto inventory = inventory_of(
            control_plane("cp1", "v1.31.9") +
            "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system}, data: "
            "{ClusterConfiguration: \"apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\napiServer: "
            "{extraArgs: [{name: feature-gates, value: '" + gate + "'}]}\\n\"}}\n");
        const auto seen = observe(inventory);
        const CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target), nullptr};
        const std::string_view only[] = {"removed-flags"};
        const auto result = run_checks(input, {}, only).front();
        return result.outcome == Outcome::fail ? result.detail : "";
    };
    const std::string place = "apiServer.extraArgs of kubeadm-config: feature gate ";
    struct Row { const char* gate; bool locked; const char* minor; const char* target; };
    for (const auto& row : {Row{"AllowServiceLBStatusOnNonLB", false, "v1.32", "v1.34.4"},
                            Row{"WatchFromStorageWithoutResourceVersion", false, "v1.33", "v1.35.4"},
                            Row{"AllowOverwriteTerminationGracePeriodSeconds", false, "v1.35", "v1.35.4"},
                            Row{"MemoryManager", true, "v1.32", "v1.35.4"}}) {
        CAPTURE(row.gate);
        const std::string gate = row.gate, fine = row.locked ? "true" : "false", bad = row.locked ? "false" : "true";
        CHECK(found(gate + "=" + fine, row.target).empty());
        CHECK(found(gate + "=" + bad, row.target) ==
              place + gate + "=" + bad + " (locked to " + fine + " from " + row.minor + " on)");
    }
}

TEST_CASE("who is no administrator needs the rights of an upgrade") {
    Inventory inventory;
    inventory.is_live = true;
    const auto found = [&] { return results_of(inventory).at("admin-rights"); };
    CHECK(found().outcome == Outcome::skip);
    inventory.is_admin = false;
    CHECK(found().outcome == Outcome::ok);
    CHECK(found().detail == "this user may do what an upgrade does");
    inventory.lacking_rights = {"create pods/eviction", "list nodes"};
    CHECK(found().outcome == Outcome::fail);
    CHECK(found().detail == "this user may not create pods/eviction, list nodes");
}

TEST_CASE("what a cordoned node needs is no repair") {
    auto inventory = inventory_of(control_plane("a", "v1.34.4") + worker("w", "v1.34.4"));
    for (auto& node : inventory.nodes) {
        node.conditions = {{"Ready", "True", "", ""}};
        node.unschedulable = node.meta.name == "w";
    }
    const auto found = results_of(inventory).at("nodes-ready");
    CHECK(found.outcome == Outcome::warn);
    CHECK(found.detail == "Ready, but cordoned: w");
    CHECK(found.fix.starts_with("kubectl uncordon"));
}

TEST_CASE("nothing is OK where nothing was observed") {
    for (const bool is_live : {false, true}) {
        Inventory inventory;
        inventory.is_live = is_live;
        if (is_live) {
            for (const auto* plural : {"configmaps", "poddisruptionbudgets", "apiservices", "customresourcedefinitions",
                                       "endpointslices", "validatingwebhookconfigurations",
                                       "mutatingwebhookconfigurations", "pods", "secrets", "deployments", "services"}) {
                inventory.unlisted[plural] = "forbidden";
            }
        }
        // The target is in the metadata, whatever the cluster is.
        CHECK(ids_with(results_of(inventory), Outcome::ok) == std::set<std::string>{"version-known"});
    }
}

TEST_CASE("what is wrong does not become OK when a kind is missing from the dump") {
    const auto whole = inventory_of(bad_cluster());
    const auto before = results_of(whole);
    CHECK(ids_with(before, Outcome::ok) == std::set<std::string>{"cp-pods-ready", "image-repository-equal",
                                                                 "kubelet-config-cm", "other-orchestrators",
                                                                 "version-known"});
    for (const auto& [kind, count] : whole.counts) {
        CAPTURE(kind);
        auto less = whole;
        less.counts.erase(kind);
        if (kind == "Node") { less.nodes.clear(); }
        if (kind == "Pod") { less.pods.clear(); }
        if (kind == "ConfigMap") { less.config_maps.clear(); }
        if (kind == "PodDisruptionBudget") { less.budgets.clear(); }
        if (kind == "EndpointSlice") { less.endpoints.clear(); }
        if (kind == "APIService") { less.api_services.clear(); }
        if (kind == "CustomResourceDefinition") { less.definitions.clear(); }
        if (kind.ends_with("WebhookConfiguration")) { less.webhooks.clear(); }
        for (const auto& id : ids_with(results_of(less), Outcome::ok)) {
            CAPTURE(id);
            CHECK(before.at(id).outcome == Outcome::ok);
        }
    }
}

TEST_CASE("a failure that is ignored is a warning, a fatal one cannot be") {
    const auto inventory = inventory_of(bad_cluster());
    const auto seen = observe(inventory);
    const auto ignored = parse_ignored({"versions-uniform, node-pressure", "drain-local-data"});
    CHECK(ignored.size() == 3);
    for (const auto& result : run_checks({inventory, seen, builtin_catalogue(), std::nullopt}, ignored)) {
        CAPTURE(result.id);
        if (result.id == "versions-uniform" || result.id == "node-pressure") {
            CHECK((result.ignored && result.outcome == Outcome::warn));
        } else {
            CHECK_FALSE(result.ignored);
        }
        CHECK(find_check(result.id)->in_health);
    }
    CHECK_THROWS_AS((void)parse_ignored({"nodes-ready"}), Error);
    CHECK_THROWS_AS((void)parse_ignored({"versions-uniform,"}), Error);
}

}
