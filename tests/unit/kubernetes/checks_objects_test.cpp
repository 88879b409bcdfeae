// SPDX-License-Identifier: Apache-2.0
// Checks of objects, one by one.
#include <doctest/doctest.h>

#include <string>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

CheckResult check_of(const std::string& text, const char* id, const Intent& intent = {},
                     const char* target = "v1.35.4") {
    const auto inventory = inventory_of(text);
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
    input.intent = intent;
    const std::string_view only[] = {id};
    return run_checks(input, {}, only).front();
}

/// A ConfigMap of kube-system with one document, whose lines end with \\n.
std::string map_of(const std::string& name, const std::string& key, const std::string& document) {
    return "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: " + name + ", namespace: kube-system}, data: {" +
           key + ": \"" + document + "\"}}\n";
}

std::string daemon_pod(const std::string& name, const std::string& ns, const std::string& set,
                       const std::string& more = "") {
    return "---\n{kind: Pod, apiVersion: v1, metadata: {name: " + name + ", namespace: " + ns +
           ", ownerReferences: [{apiVersion: " + set + ", controller: true}]}, spec: {nodeName: w" + more + "}}\n";
}

std::string daemon_set(const std::string& name, const std::string& ns) {
    return "---\n{kind: DaemonSet, apiVersion: apps/v1, metadata: {name: " + name + ", namespace: " + ns + "}}\n";
}

}  // namespace

TEST_SUITE("kubernetes") {

TEST_CASE("fields of ConfigMap kubelet-config have the types that kubeadm reads") {
    const auto with = [](const std::string& fields) {
        const std::string start = "apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n";
        return check_of(worker("w", "v1.34.4") + map_of("kubelet-config", "kubelet", start + fields),
                        "kubelet-config-cm");
    };
    for (const auto* fine :
         {"maxPods: 110\\n", "maxPods: 110.0\\n", "maxPods: null\\n", "evictionHard: {memory.available: 5%}\\n",
          "kubeReserved: {cpu: '1', memory: null}\\n", "syncFrequency: 1m30.5s\\n", "syncFrequency: 0s\\n",
          "failSwapOn: no\\n", "clusterDNS: [10.96.0.10]\\n", "featureGates: {A: true}\\n", "unknown: [1]\\n",
          "podPidsLimit: 4294967296\\n", "registerWithTaints: [{key: a}]\\n", "logging: {flushFrequency: 0}\\n",
          "authentication: {webhook: {enabled: true, cacheTTL: 0s}, x509: {clientCAFile: /ca}}\\n"}) {
        CAPTURE(fine);
        CHECK(with(fine).outcome == Outcome::ok);
    }
    const auto refused = [&](const char* fields, const std::string& expected) {
        CAPTURE(fields);
        const auto result = with(fields);
        CHECK(result.outcome == Outcome::fail);
        CHECK(result.detail == "kubelet of ConfigMap kube-system/kubelet-config: " + expected);
    };
    refused("syncFrequency: null\\n", "syncFrequency: expected a duration as 1m30s, found null");
    refused("maxPods: '110'\\n", "maxPods: expected an integer of 32 bits, found the string '110'");
    refused("maxPods: 4294967296\\n", "maxPods: expected an integer of 32 bits, found the integer '4294967296'");
    refused("maxPods: 1.5\\n", "maxPods: expected an integer of 32 bits, found the number '1.5'");
    refused("evictionHard: []\\n", "evictionHard: expected a mapping, found a list");
    refused("kubeReserved: {cpu: 1}\\n", "kubeReserved.cpu: expected a string, found the integer '1'");
    refused("syncFrequency: 60\\n", "syncFrequency: expected a duration as 1m30s, found the integer '60'");
    refused("syncFrequency: 1 min\\n", "syncFrequency: expected a duration as 1m30s, found the string '1 min'");
    refused("clusterDNS: 10.96.0.10\\n", "clusterDNS: expected a list, found the string '10.96.0.10'");
    refused("featureGates: {A: 'true'}\\n", "featureGates.A: expected true or false, found the string 'true'");
    refused("authentication: {anonymous: {enabled: 0}}\\nmaxPods: [1]\\n",
            "maxPods: expected an integer of 32 bits, found a list, authentication.anonymous.enabled: expected true or "
            "false, found the integer '0'");
}

TEST_CASE("a ConfigMap of kubeadm that is not read is corrected in its text") {
    for (const auto* text : {"a: [\\n", "[]\\n", "kind: Other\\n"}) {
        CAPTURE(text);
        const auto result = check_of(map_of("kubelet-config", "kubelet", text), "kubelet-config-cm");
        CHECK(result.outcome == Outcome::fail);
        CHECK(result.fix == "kubectl edit configmap -n kube-system kubelet-config");
    }
}

TEST_CASE("of a key that stands twice kubeadm takes the last one, with a warning") {
    const std::string begin = "apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n";
    const auto cluster = [&](const std::string& fields) {
        return check_of(map_of("kubeadm-config", "ClusterConfiguration", begin + fields), "kubeadm-config-parses");
    };
    const auto twice = cluster("imageRepository: 1\\ndns: {}\\n'imageRepository': r\\n");
    CHECK(twice.outcome == Outcome::warn);
    CHECK(twice.detail == "kubeadm takes the last one: kubeadm-config/ClusterConfiguration:5:1: expected each key "
                          "once, found 'imageRepository' again (first in line 3)");
    CHECK(twice.fix == "kubectl edit configmap -n kube-system kubeadm-config: remove the one that is not meant");
    CHECK(cluster("imageRepository: r\\nimageRepository: 1\\n").detail ==
          "kubeadm-config: imageRepository: expected a string, found the integer '1'");
    // What comes later takes the place of the whole mapping.
    CHECK(cluster("etcd: {local: {imageTag: 3}}\\netcd: {local: {}}\\netcd: {local: {dataDir: 1, dataDir: a}}\\n")
              .outcome == Outcome::warn);
    CHECK(cluster("kind: Other\\n").detail.ends_with("expected kind ClusterConfiguration, found 'Other'"));
    // Another fault is none that kubeadm takes.
    CHECK(cluster("a: 1\\na: [\\n").outcome == Outcome::fail);
    const auto kubelet = check_of(map_of("kubelet-config", "kubelet",
                                         "apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n"
                                         "maxPods: a\\nmaxPods: 9\\n"),
                                  "kubelet-config-cm");
    CHECK(kubelet.outcome == Outcome::warn);
    const auto proxy = check_of(map_of("kubeadm-config", "ClusterConfiguration", begin) +
                                    map_of("kube-proxy", "config.conf",
                                           "apiVersion: kubeproxy.config.k8s.io/v1alpha1\\nkind: KubeProxyConfiguration"
                                           "\\nmode: ipvs\\nmode: nftables\\n"),
                                "kubeadm-config-parses");
    CHECK(proxy.outcome == Outcome::warn);
    CHECK(proxy.fix == "kubectl edit configmap -n kube-system kube-proxy: remove the one that is not meant");
}

TEST_CASE("kubeadm-config must have an apiVersion that kubeadm of the target reads") {
    const auto finding = [](const std::string& version, const char* target) {
        return check_of(map_of("kubeadm-config", "ClusterConfiguration",
                               "apiVersion: kubeadm.k8s.io/" + version + "\\nkind: ClusterConfiguration\\n"),
                        "kubeadm-config-parses", {}, target);
    };
    for (const auto* version : {"v1beta5", "v1beta9", "v1beta10", "v1beta", "v1", "V1beta4", "v1alpha1"}) {
        CAPTURE(version);
        const auto result = finding(version, "v1.35.4");
        CHECK(result.outcome == Outcome::fail);
        CHECK(result.detail ==
              "apiVersion kubeadm.k8s.io/" + std::string(version) + ": kubeadm v1.35 and earlier do not know it");
    }
    CHECK(finding("v1alpha3", "v1.35.4").outcome == Outcome::fail);
    CHECK(finding("v1beta1", "v1.35.4").detail ==
          "apiVersion kubeadm.k8s.io/v1beta1 is read by kubeadm v1.13 to v1.21, not by v1.35.4");
    CHECK(finding("v1beta2", "v1.35.4").outcome == Outcome::fail);
    CHECK(finding("v1beta2", "v1.26.4").outcome == Outcome::skip);
    const auto newer = finding("v1beta4", "v1.30.4");
    CHECK(newer.outcome == Outcome::fail);
    CHECK(newer.detail == "apiVersion kubeadm.k8s.io/v1beta4 is read by kubeadm v1.31 and later, not by v1.30.4");
    CHECK(newer.fix ==
          "write it as kubeadm.k8s.io/v1beta3: kubectl edit configmap -n kube-system kubeadm-config");
    CHECK(finding("v1beta3", "v1.21.4").outcome == Outcome::fail);
    CHECK(finding("v1beta3", "v1.22.4").outcome == Outcome::skip);
    CHECK(finding("v1beta3", "v1.35.4").outcome == Outcome::skip);
    CHECK(finding("v1beta4", "v1.31.4").outcome == Outcome::skip);
    CHECK(finding("v1beta5", "v1.36.0").outcome == Outcome::skip);  // a kubeadm that is not known here
}

TEST_CASE("fields of ConfigMaps kubeadm-config and kube-proxy have the types that kubeadm reads") {
    const auto cluster = [](const std::string& fields) {
        return check_of(map_of("kubeadm-config", "ClusterConfiguration",
                               "apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n" + fields),
                        "kubeadm-config-parses");
    };
    CHECK(cluster("kubernetesVersion: 1.35\\n").detail ==
          "kubeadm-config: kubernetesVersion: expected a string, found the number '1.35'");
    CHECK(cluster("apiServer: {certSANs: lb.example.com}\\n").detail ==
          "kubeadm-config: apiServer.certSANs: expected a list, found the string 'lb.example.com'");
    CHECK(cluster("etcd: {local: {imageTag: 3.6}}\\n").outcome == Outcome::fail);
    CHECK(cluster("networking: {serviceSubnet: [10.96.0.0/12]}\\n").outcome == Outcome::fail);
    CHECK(cluster("apiServer: {}\\nscheduler: {}\\ndns: null\\nfeatureGates: {}\\n").outcome == Outcome::skip);
    const auto proxy = [](const std::string& fields) {
        return check_of(map_of("kubeadm-config", "ClusterConfiguration",
                               "apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n") +
                            map_of("kube-proxy", "config.conf",
                                   "apiVersion: kubeproxy.config.k8s.io/v1alpha1\\nkind: KubeProxyConfiguration\\n" +
                                       fields),
                        "kubeadm-config-parses");
    };
    CHECK(proxy("conntrack: {maxPerCore: null, tcpCloseWaitTimeout: 1h0m0s}\\nnodePortAddresses: null\\n").outcome ==
          Outcome::skip);
    CHECK(proxy("conntrack: {maxPerCore: '32768'}\\n").detail ==
          "ConfigMap kube-system/kube-proxy: config.conf: conntrack.maxPerCore: expected an integer of 32 bits, found "
          "the string '32768'");
}

TEST_CASE("a drain refuses Pods whose DaemonSet is gone") {
    const auto node = worker("w", "v1.34.4");
    const auto other = "---\n{kind: Pod, apiVersion: v1, metadata: {name: x, namespace: other}}\n";
    const auto gone = daemon_pod("agent-1", "mon", "apps/v1, kind: DaemonSet, name: agent");
    const auto unmanaged = [&](const std::string& text, const Intent& intent = {}) {
        return check_of(node + other + text, "drain-unmanaged", intent);
    };
    CHECK(unmanaged(gone + daemon_set("agent", "mon")).outcome == Outcome::ok);
    const auto refused = unmanaged(gone + daemon_set("other", "mon"));
    CHECK(refused.outcome == Outcome::fail);
    CHECK(refused.detail == "mon/agent-1 on w (DaemonSet agent does not exist)");
    Intent forced;
    forced.evicts_unmanaged = true;
    CHECK(unmanaged(gone + daemon_set("other", "mon"), forced).outcome == Outcome::warn);
    // Nothing is known of that namespace.
    for (const auto& elsewhere : {std::string(), daemon_set("agent", "kube-system")}) {
        const auto unknown = unmanaged(gone + elsewhere);
        CHECK(unknown.outcome == Outcome::skip);
        CHECK(unknown.detail == "whether DaemonSets exist that Pods name is not known: mon/agent; dump them with "
                                "kubectl get daemonsets -A");
    }
    CHECK(unmanaged("---\n{kind: Pod, apiVersion: v1, metadata: {name: alone, namespace: web}, spec: {nodeName: w}}\n" +
                    gone)
              .outcome == Outcome::fail);
    auto inventory = inventory_of(node + other + gone);
    inventory.is_live = true;
    inventory.unlisted["daemonsets"] = "this user may not get daemonsets.apps";
    const auto seen = observe(inventory);
    const std::string_view only[] = {"drain-unmanaged"};
    CHECK(run_checks({inventory, seen, builtin_catalogue(), Version::parse("v1.35.4")}, {}, only).front().outcome ==
          Outcome::skip);
    // A DaemonSet of OpenKruise is none of apps.
    CHECK(unmanaged(daemon_pod("agent-1", "mon", "apps.kruise.io/v1alpha1, kind: DaemonSet, name: agent") +
                    daemon_set("other", "mon"))
              .outcome == Outcome::ok);
    // Nor does one there say that those of apps were listed.
    CHECK(unmanaged(gone + "---\n{kind: DaemonSet, apiVersion: apps.kruise.io/v1alpha1, metadata: {name: b, "
                           "namespace: mon}}\n")
              .outcome == Outcome::skip);
    // What has ended goes.
    const std::string agent = "apps/v1, kind: DaemonSet, name: agent";
    CHECK(unmanaged(daemon_pod("agent-1", "mon", agent, "}, status: {phase: Failed") + daemon_set("other", "mon"))
              .outcome == Outcome::ok);
    const auto with_data = daemon_pod("agent-1", "mon", agent, ", volumes: [{emptyDir: {}}]");
    CHECK(check_of(node + other + with_data + daemon_set("other", "mon"), "drain-local-data").outcome == Outcome::fail);
    CHECK(check_of(node + other + with_data + daemon_set("agent", "mon"), "drain-local-data").outcome == Outcome::ok);
}

TEST_CASE("a version of etcd that kubeadm-config may fix is not called fine without it") {
    const auto etcd = control_plane("a", "v1.34.4") +
                      "---\n{kind: Pod, apiVersion: v1, metadata: {name: etcd-a, namespace: kube-system}, spec: "
                      "{nodeName: a, containers: [{name: etcd, image: 'r/etcd:3.6.5-0'}]}}\n";
    const auto unread = check_of(etcd, "etcd-36-floor");
    CHECK(unread.outcome == Outcome::skip);
    CHECK(unread.detail == "members of etcd at 3.5.26 or later: 1, but kubeadm-config was not read: the documents "
                           "contain no ConfigMap");
    CHECK(check_of(etcd + map_of("kubeadm-config", "ClusterConfiguration",
                                 "apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n"),
                   "etcd-36-floor")
              .outcome == Outcome::ok);
}

TEST_CASE("that kubeadm can write Service kube-dns is not said of Services that were not read") {
    const auto dns =
        control_plane("a", "v1.34.4") +
        map_of("kubeadm-config", "ClusterConfiguration",
               "apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n") +
        map_of("coredns", "Corefile", ".:53 {\\n    errors\\n}\\n") +
        "---\n{kind: Deployment, apiVersion: apps/v1, metadata: {name: coredns, namespace: kube-system, labels: "
        "{k8s-app: kube-dns}}, spec: {template: {spec: {containers: [{name: coredns, image: "
        "'r/coredns:v1.12.1'}]}}}}\n";
    const auto unread = check_of(dns, "coredns-migratable");
    CHECK(unread.outcome == Outcome::skip);
    CHECK(unread.detail == "the documents contain no Service");
    const std::string service = "---\n{kind: Service, apiVersion: v1, metadata: {name: kube-dns, namespace: "
                                "kube-system}, spec: {clusterIP: 10.96.0.10}}\n";
    const std::string other = "---\n{kind: Service, apiVersion: v1, metadata: {name: web, namespace: prod}}\n";
    CHECK(check_of(dns + other, "coredns-migratable").detail ==
          "the documents contain no Service kube-system/kube-dns");
    CHECK(check_of(dns + service, "coredns-migratable").outcome == Outcome::ok);
}

}
