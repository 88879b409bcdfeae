// SPDX-License-Identifier: Apache-2.0
// Each check of nodes has facts that trip it and facts that do not.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

/// What a node says where everything is fine; `member` 1 leads.
std::string facts_of(const std::string& name, int member) {
    std::string text = "node: " + name + R"(
kubelet: {healthy: true, problem: '', arguments: [kubelet, --v=2, --pod-infra-container-image=p], ownFlags: [], config: {kind: KubeletConfiguration, staticPodPath: /etc/kubernetes/manifests/, cgroupDriver: systemd}}
cgroup: v2
rebootRequired: false
packages: {installed: [kubectl, kubelet], held: [kubelet]}
updaters: [unattended-upgrades]
time: '2026-01-02T00:00:00Z'
certificates: [{file: a.crt, problem: '', notAfter: '2026-12-02T00:00:00Z'}]
disks: [{purpose: kubernetes, path: /etc/kubernetes, freeBytes: 2000000000, totalBytes: 3000000000}, {purpose: images, path: /var/lib/containers/storage, freeBytes: 2000000001, totalBytes: 3000000000}]
)";
    const std::string drift = member == 0 ? "null" : "[]";
    text +=
        "upgrade: {images: ['r/kube-apiserver:v1.35.4', 'r/etcd:3.6.6-0', 'x/pause:3.10.1'], sandboxImage: "
        "'x/pause:3.10.1', manifestDrift: " +
        drift +
        ", placing: [{program: kubelet, version: v1.35.4, available: true, digest: true, tried: true, code: '', "
        "problem: ''}], preflight: " +
        (member == 0 ? "null" : "{version: v1.35.4, errors: [], warnings: []}") + "}\n";
    if (member == 0) return text;
    return text + R"(
caKey: true
manifests: [{component: etcd, expected: true, image: 'r/etcd:3.6.5-0'}, {component: kube-apiserver, expected: true, image: 'r/kube-apiserver:v1.34.4'}]
apiServer: {ready: true, problem: '', started: '1.7e+09', requested: []}
etcd: {memberID: 'M', leaderID: '1', listenClientURLs: ['https://127.0.0.1:2379', 'https://10.0.0.1:2379'], sizeBytes: 100, usedBytes: 90, quotaBytes: 2147483648,
       members: [{id: '1', name: a, learner: false}, {id: '2', name: b, learner: false}, {id: '3', name: c, learner: false}], alarms: [], errors: []}
)";
}

using Changes = std::map<std::string, std::pair<std::string, std::string>>;  // node: text that is replaced, and by what

std::map<std::string, CheckResult> node_results(const Changes& changes = {}, const char* target = "v1.35.4",
                                                const char* way = "", const std::string& more = "",
                                                const std::string& kubelet_map = "", bool has_patches = false) {
    const auto inventory = inventory_of(control_plane("a", "v1.34.4") + control_plane("b", "v1.34.4") +
                                               control_plane("c", "v1.34.4") + worker("w", "v1.34.4") + R"(---
{kind: Pod, apiVersion: v1, metadata: {name: web, namespace: prod}, spec: {nodeName: w}}
---
{kind: ConfigMap, apiVersion: v1, metadata: {name: kubelet-config, namespace: kube-system}, data: {kubelet: "kind: KubeletConfiguration\ncgroupDriver: systemd\ncontainerRuntimeEndpoint: x\n)" +
                                        kubelet_map + "\"}}\n" + more);
    const auto seen = observe(inventory);
    NodeAnswers answers;
    int member = 0;
    for (const std::string name : {"a", "b", "c", "w"}) {
        auto text = facts_of(name, name == "w" ? 0 : ++member);
        if (name != "w") text.replace(text.find("memberID: 'M'"), 13, "memberID: '" + std::to_string(member) + "'");
        if (const auto change = changes.find(name); change != changes.end()) {
            const auto at = text.find(change->second.first);
            REQUIRE(at != std::string::npos);
            text.replace(at, change->second.first.size(), change->second.second);
        }
        answers[name] = {answer_of(text), "", 1767312000 - 1, 1767312000 + 1};
    }
    std::map<std::string, CheckResult> results;
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
    input.nodes = &answers;
    input.now = 1767312000;
    input.way = way;
    input.intent.has_patches = has_patches;
    for (auto& result : run_checks(input, {})) results.emplace(result.id, std::move(result));
    return results;
}

void trips(const std::string& id, const Changes& changes, const std::string& detail, Outcome outcome = Outcome::fail,
           const char* way = "") {
    CAPTURE(id);
    CAPTURE(detail);
    const auto fine = node_results({}, "v1.35.4", way).at(id);
    CAPTURE(fine.detail);
    CHECK(fine.outcome == Outcome::ok);
    const auto found = node_results(changes, "v1.35.4", way).at(id);
    CHECK(found.detail == detail);
    CHECK(found.outcome == outcome);
}

}  // namespace

TEST_CASE("an issue that meets Nodes of another name than their host") {
    const auto catalogue = [] {
        Diagnostics faults;
        auto made = read_catalogue("versions:\n- version: v1.34.1\n", "versions.yaml", faults);
        add_known(made, builtin_catalogue());
        return made;
    }();
    const auto inventory = inventory_of(control_plane("a", "v1.33.9") + worker("w", "v1.33.9"));
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, catalogue, Version::parse("v1.34.1")};
    const std::string_view only[] = {"known-issues"};
    const auto issue = "v1.34.1: kubeadm upgrade node looks for a Node of the host's name (kubeadm#3244)";
    const auto found = [&] { return run_checks(input, {}, only).front(); };
    CHECK(found().outcome == Outcome::skip);
    CHECK(found().detail == std::string(issue) + "; no node was asked for its host name");
    NodeAnswers answers;
    answers["a"] = {answer_of("{node: a, hostName: A}"), "", 0, 0};
    answers["w"] = {answer_of("{node: w, hostName: w.example}"), "", 0, 0};
    input.nodes = &answers;
    CHECK(found().outcome == Outcome::fail);
    CHECK(found().detail == std::string(issue) + ": w (host w.example)");
    answers["w"] = {answer_of("{node: w, hostName: w}"), "", 0, 0};
    CHECK(found().outcome == Outcome::ok);
}

TEST_CASE("what a node could not read is not fine") {
    trips("node-name-matches", {{"w", {"node: w", "unread: [{field: node, reason: no certificate}]"}}},
          "not known: w (no certificate)", Outcome::skip);
    trips("stray-manifests", {{"a", {"node: a", "node: a\nunread: [{field: manifests, reason: EACCES}]"}}},
          "not known: a (EACCES)", Outcome::skip);
    trips("cert-expiry",
          {{"w", {"{file: a.crt, problem: '', notAfter: '2026-12-02T00:00:00Z'}", ""}}},
          "not known: w (no certificate was found)", Outcome::skip);
    trips("auto-updaters",
          {{"w", {"updaters: [unattended-upgrades]", "updaters: null\nunread: [{field: updaters, reason: EACCES}]"}}},
          "not known: w (EACCES)", Outcome::skip);
    // Without dpkg nothing is held.
    trips("auto-updaters",
          {{"w", {"packages: {installed: [kubectl, kubelet], held: [kubelet]}", "packages: null"}}},
          "w: unattended-upgrades, and packages are not held");
}

TEST_CASE("what services of nodes say trips their checks") {
    trips("apiserver-each-ready",
          {{"b", {"ready: true, problem: ''", "ready: false, problem: '/readyz answers 500; etcd failed'"}}},
          "b: /readyz answers 500; etcd failed");
    trips("apiserver-each-ready",
          {{"b",
            {"apiServer: {ready: true, problem: '', started: '1.7e+09', requested: []}",
             "unread: [{field: apiServer, reason: no address}]"}}},
          "not known: b (no address)", Outcome::skip);
    trips("removed-api-requested",
          {{"a",
            {"requested: []",
             "requested: [{group: storage.k8s.io, version: v1alpha1, resource: volumeattributesclasses, removedIn: "
             "'1.35'}, "
             "{group: x, version: v1, resource: y, removedIn: '1.36'}]"}}},
          "storage.k8s.io/v1alpha1 volumeattributesclasses (gone in v1.35), by clients of a");
    trips("removed-api-requested", {{"a", {"1.7e+09", "1.767311e+09"}}},
          "nothing was asked for, but these API servers have run for less than a day: a", Outcome::skip);
    trips("kubelet-healthz", {{"w", {"healthy: true, problem: ''", "healthy: false, problem: does not answer"}}},
          "w: does not answer");
    trips("kubelet-static-path", {{"a", {"/etc/kubernetes/manifests/", "/srv"}}}, "a: staticPodPath is '/srv'");
    // A flag wins over the file.
    trips("kubelet-static-path", {{"a", {"--v=2", "--v=2, --pod-manifest-path=/srv"}}},
          "a: --pod-manifest-path is '/srv'");
    trips("kubelet-static-path", {{"a", {"arguments: [kubelet, --v=2, --pod-infra-container-image=p]", "x: 1"}}},
          "not known: flags of a (unknown)", Outcome::skip);
    CHECK(node_results({{"a",
                         {"--pod-infra-container-image=p], ownFlags: [], config: {kind: KubeletConfiguration, "
                          "staticPodPath: /etc/kubernetes/manifests/",
                          "--pod-manifest-path, /etc/kubernetes/manifests], ownFlags: [], config: {kind: "
                          "KubeletConfiguration"}}})
              .at("kubelet-static-path")
              .outcome == Outcome::ok);
    trips("config-drift", {{"w", {"cgroupDriver: systemd", "cgroupDriver: cgroupfs"}}}, "w: differs in cgroupDriver");
    // What only the file of the node has is lost when kubeadm writes it again.
    trips("config-drift",
          {{"w", {"cgroupDriver: systemd", "cgroupDriver: systemd, maxPods: 250, systemReserved: {cpu: 1}"}}},
          "w: has maxPods, systemReserved, which kubelet-config has not and kubeadm takes away");
    trips("config-drift", {{"w", {"cgroupDriver: systemd", "serializeImagePulls: false"}}},
          "w: differs in cgroupDriver; has serializeImagePulls, which kubelet-config has not and kubeadm takes away");
    CHECK(node_results({{"w",
                         {"cgroupDriver: systemd",
                          "cgroupDriver: systemd, memorySwap: {}, logging: {options: {json: {infoBufferSize: '0'}}}, "
                          "imageMinimumGCAge: 0s, evictionHard: null, resolvConf: /run/resolv.conf, clusterDNS: "
                          "[10.96.0.10], authentication: {anonymous: {enabled: false}}"}}})
              .at("config-drift")
              .outcome == Outcome::ok);
    // Zero is a value of some members: without events' limit kubelet-config would bring the default back.
    trips("config-drift", {{"w", {"cgroupDriver: systemd", "cgroupDriver: systemd, eventRecordQPS: 0, maxPods: 0"}}},
          "w: has eventRecordQPS, which kubelet-config has not and kubeadm takes away");
    // A worker joined by an older kubeadm lacks empty members that a newer one writes; nobody writes 60s, or no port.
    const auto of_map = [](const std::string& own, const std::string& map) {
        std::string both = own.empty() ? "cgroupDriver: systemd" : "cgroupDriver: systemd, " + own;
        Changes changes;
        for (const char* name : {"a", "b", "c", "w"}) changes[name] = {"cgroupDriver: systemd", both};
        return node_results(changes, "v1.35.4", "", "", map).at("config-drift");
    };
    CHECK(of_map("logging: {flushFrequency: 0, options: {json: {infoBufferSize: '0'}}, verbosity: 0}",
                 "crashLoopBackOff: {}\\nimageMaximumGCAge: 0s\\nlogging: {flushFrequency: 0, options: {json: "
                 "{infoBufferSize: '0'}, text: {infoBufferSize: '0'}}, verbosity: 0}\\n")
              .outcome == Outcome::ok);
    CHECK(of_map("shutdownGracePeriod: 1m0s",
                 "shutdownGracePeriod: 60s\\nreadOnlyPort: 0\\nserverTLSBootstrap: false\\n")
              .outcome == Outcome::ok);
    CHECK(of_map("", "registryPullQPS: 0\\n").detail.find("differs in registryPullQPS") != std::string::npos);
    CHECK(of_map("", "seccompDefault: false\\n").detail.find("differs in seccompDefault") != std::string::npos);
    CHECK(of_map("logging: {verbosity: 4}", "logging: {verbosity: 0}\\n").detail.find("differs in logging") !=
          std::string::npos);
    const auto patched = node_results({{"w", {"cgroupDriver: systemd", "cgroupDriver: systemd, maxPods: 250"}}},
                                      "v1.35.4", "", "", "", true);
    CHECK(patched.at("config-drift").outcome == Outcome::warn);
    CHECK(patched.at("config-drift").detail == "kubelets have what kubelet-config has not: w (maxPods)");
    // kubespray's kubelets read a file of their own.
    trips("config-drift",
          {{"w", {"--v=2", "--config, /etc/kubernetes/kubelet-config.yaml"}}},
          "kubelets read another file than kubeadm writes: w (/etc/kubernetes/kubelet-config.yaml)", Outcome::warn);
    const auto certificate = [](const std::string& until, const std::string& time) {
        return Changes{{"a", {"time: '2026-01-02T00:00:00Z'\ncertificates: [{file: a.crt, problem: '', notAfter: "
                              "'2026-12-02T00:00:00Z'}]",
                              "time: '" + time + "'\ncertificates: [{file: a.crt, problem: '', notAfter: '" + until +
                                  "'}]"}}};
    };
    trips("cert-expiry", certificate("2026-01-08T00:00:00Z", "2026-01-02T00:00:00Z"),
          "a: a.crt expires on 2026-01-08T00:00:00Z");
    // kubeadm certs renew all is no cure for authorities and kubelets.
    for (const auto& [file, fix] : {std::pair("/etc/kubernetes/pki/apiserver.crt", "kubeadm certs renew all"),
                                    std::pair("/etc/kubernetes/pki/front-proxy-ca.crt", "kubeadm renews no authority"),
                                    std::pair("/etc/kubernetes/pki/etcd/ca.crt", "kubeadm renews no authority"),
                                    std::pair("/var/lib/kubelet/pki/kubelet-client-current.pem", "a kubelet renews"),
                                    std::pair("/etc/kubernetes/kubelet.conf", "a kubelet renews")}) {
        const auto ending = Changes{{"w", {"{file: a.crt, problem: '', notAfter: '2026-12-02T00:00:00Z'}",
                                           std::string("{file: ") + file + ", notAfter: '2026-01-03T00:00:00Z'}"}}};
        CHECK(node_results(ending).at("cert-expiry").fix.starts_with(fix));
    }
    const auto copy = Changes{{"w", {"{file: a.crt, problem: '', notAfter: '2026-12-02T00:00:00Z'}",
                                     "{file: a.crt, notAfter: '2026-12-02T00:00:00Z'}, {file: "
                                     "/etc/kubernetes/admin.conf, notAfter: '2025-12-02T00:00:00Z'}"}}};
    CHECK(node_results(copy).at("cert-expiry").outcome == Outcome::ok);
    auto own = copy;
    own["a"] = own.extract("w").mapped();
    CHECK(node_results(own).at("cert-expiry").detail ==
          "a: /etc/kubernetes/admin.conf has expired on 2025-12-02T00:00:00Z");
    // By the clock of the node, whatever that of this machine says.
    trips("cert-expiry", certificate("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
          "a: a.crt has expired on 2027-01-01T00:00:00Z");
    CHECK(node_results(certificate("2025-06-01T00:00:00Z", "2025-01-02T00:00:00Z")).at("cert-expiry").outcome ==
          Outcome::ok);
    trips("ca-available", {{"c", {"caKey: true", "caKey: false"}}}, "c: ca.key is not among its certificates");
    trips("package-held", {{"w", {"held: [kubelet]", "held: []"}}}, "w: not held: kubelet");
    trips("auto-updaters", {{"w", {"held: [kubelet]", "held: []"}}},
          "w: unattended-upgrades, and packages are not held");
    trips("clock-skew", {{"w", {"00:00:00Z", "00:00:09Z"}}}, "w is at least 6 s ahead of a");
    const auto all = [](const char* time) {
        Changes changes;
        for (const char* name : {"a", "b", "c", "w"}) changes[name] = {"2026-01-02T00:00:00Z", time};
        return changes;
    };
    trips("clock-skew", all("2027-01-02T00:00:00Z"),
          "the clock of this machine is at least 8759h59m59s behind that of every node", Outcome::warn);
    trips("clock-skew", all("2026-01-01T23:00:00Z"),
          "the clock of this machine is at least 59m59s ahead of that of every node", Outcome::warn);
    trips("reboot-daemons", {{"w", {"rebootRequired: false", "rebootRequired: true"}}},
          "w: /run/reboot-required is there: something may reboot it");
    // In one word of its command line, as KUBELET_EXTRA_ARGS gives it.
    trips("removed-kubelet-flags", {{"w", {"--v=2", "'--feature-gates=A=true, PodIndexLabel=true'"}}},
          "w: feature gate PodIndexLabel (gone in v1.35)");
    trips("removed-kubelet-flags", {{"w", {"--v=2", "--feature-gates=PodIndexLabel=true"}}},
          "w: feature gate PodIndexLabel (gone in v1.35)");
    // What the nodes say of the configuration is without what a kubelet reads over it.
    trips("removed-kubelet-flags", {{"w", {"--v=2", "--config-dir=/etc/kubelet.d"}}},
          "none was found, but not all is read: w has --config-dir /etc/kubelet.d", Outcome::warn);
    const auto drop_in = [](const std::string& text) {
        return Changes{{"w",
                        {"--v=2, --pod-infra-container-image=p], ownFlags: [],",
                         "--v=2, --config-dir, /etc/kubelet.d], ownFlags: [], dropIns: [{file: "
                         "/etc/kubelet.d/1.conf, config: {featureGates: {A: true, B: true}}}, {file: "
                         "/etc/kubelet.d/2.conf, config: " +
                             text + "}],"}}};
    };
    trips("removed-kubelet-flags", drop_in("{featureGates: {PodIndexLabel: true}}"),
          "w: feature gate PodIndexLabel (gone in v1.35; in /etc/kubelet.d/2.conf)");
    CHECK(node_results(drop_in("{kind: KubeletConfiguration}")).at("removed-kubelet-flags").outcome == Outcome::ok);
    CHECK(node_results(drop_in("{staticPodPath: /srv}")).at("config-drift").outcome == Outcome::ok);
    // What kubeadm 1.34 has given every kubelet, kubeadm 1.35 takes away; nobody takes away what an administrator gave.
    trips("removed-kubelet-flags",
          {{"w", {"ownFlags: []", "ownFlags: [--pod-infra-container-image=q]"}}},
          "w: flag --pod-infra-container-image (gone in v1.35)");
    // In a file that the kubelet reads when it is started for the next time.
    trips("removed-kubelet-flags", {{"w", {"ownFlags: []", "ownFlags: ['--feature-gates=PodIndexLabel=true']"}}},
          "no kubelet runs with it, but its files name what is gone: w: feature gate PodIndexLabel (gone in v1.35)",
          Outcome::warn);
}

TEST_CASE("cgroup v1 is taken by a kubelet that still says so when kubeadm has written its file again") {
    const auto with = [&](const std::string& arguments, const std::string& more, const std::string& config,
                          const std::string& map = "") {
        auto results = node_results(
            {{"w",
              {"kubelet: {healthy: true, problem: '', arguments: [kubelet, --v=2, "
               "--pod-infra-container-image=p], ownFlags: [], config: {kind: KubeletConfiguration, staticPodPath: "
               "/etc/kubernetes/manifests/, cgroupDriver: systemd}}\ncgroup: v2",
               "kubelet: {arguments: [" + arguments + "], " + more + " config: {" + config + "}}\ncgroup: v1"}}},
            "v1.35.4", "", "", map);
        return results.at("cgroup-version");
    };
    const auto fine = [](const CheckResult& result) { return result.outcome == Outcome::ok; };
    CHECK(with("", "", "kind: X").detail == "w: cgroup v1");
    CHECK(fine(with("", "", "kind: X", "failCgroupV1: false\\n")));
    const auto lost = with("", "", "failCgroupV1: false");
    CHECK(lost.outcome == Outcome::fail);
    CHECK(lost.detail == "w: cgroup v1, and kubeadm takes failCgroupV1: false away, which is in "
                         "/var/lib/kubelet/config.yaml and not in kubelet-config");
    // What kubeadm does not write stays.
    CHECK(fine(with("--config, /etc/kubernetes/kubelet-config.yaml", "", "failCgroupV1: false")));
    CHECK_FALSE(fine(with("--config, /etc/kubernetes/kubelet-config.yaml", "", "kind: X", "failCgroupV1: false\\n")));
    CHECK(fine(with("", "dropIns: [{file: a, config: {failCgroupV1: false}}],", "kind: X")));
    const auto* over = "dropIns: [{file: a, config: {failCgroupV1: true}}],";
    CHECK_FALSE(fine(with("", over, "kind: X", "failCgroupV1: false\\n")));
    // A flag wins over every file.
    CHECK(fine(with("--fail-cgroupv1=false", "", "kind: X")));
    CHECK(with("--fail-cgroupv1=true", "", "failCgroupV1: false", "failCgroupV1: false\\n").detail ==
          "w: cgroup v1, and --fail-cgroupv1 is true");
}

TEST_CASE("nodes that were asked and gave no answer are named") {
    const auto inventory = inventory_of(control_plane("a", "v1.34.4") + worker("w", "v1.34.4"));
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4")};
    const std::string_view only[] = {"cgroup-version", "node-reach"};
    const auto found = [&] { return run_checks(input, {}, only); };
    CHECK(found().back().detail == "v1.35 needs cgroup v2; which one a node has is asked with --via ssh");
    NodeAnswers answers;
    answers["a"].problem = answers["w"].problem = "no route";
    input.nodes = &answers;
    CHECK(found().back().detail == "no answer from a, w");
    CHECK(found().front().id == "node-reach");
    CHECK(found().front().fix.find("--leave-out") != std::string::npos);
    // Health has no such option.
    input.target.reset();
    CHECK(found().front().fix == "kmm-worker kubernetes facts must print on the node what it is");
}

TEST_CASE("space on nodes: for images wherever they are, for copies of etcd's data as large as it is") {
    trips("disk-space", {{"w", {"freeBytes: 2000000001", "freeBytes: 1000000000"}}},
          "w: /var/lib/containers/storage has 953.7 MiB free, expected 1.0 GiB");
    trips("disk-space", {{"w", {"freeBytes: 2000000000", "freeBytes: 100000000"}}},
          "w: /etc/kubernetes has 95.4 MiB free, expected 100.0 MiB");
    trips("disk-space", {{"b", {"sizeBytes: 100,", "sizeBytes: 1000000000,"}}},
          "b: /etc/kubernetes has 1.9 GiB free, expected 2.0 GiB, with 2 copies of the data of etcd");
    trips("disk-space", {{"w", {"disks: [{purpose: kubernetes, path: /etc/kubernetes, freeBytes: 2000000000",
                                "disks: [{purpose: kubernetes, path: /etc/kubernetes, freeBytes: null"}}},
          "not known: w (free space of /etc/kubernetes)", Outcome::skip);
    trips("disk-space", {{"w", {"disks: [", "volumes: ["}}}, "not known: w (no disk was reported)", Outcome::skip);
    trips("disk-space", {{"w", {"cgroup: v2", "cgroup: v2\nunread: [{field: disk images, reason: no access}]"}}},
          "not known: w (no access)", Outcome::skip);
    trips("disk-space", {{"w", {"disks: [",
                                "unread: [{field: disk images, reason: no access}, {field: disk kubernetes, reason: no "
                                "access}]\nvolumes: ["}}},
          "not known: w (no access)", Outcome::skip);
    trips("disk-space",
          {{"c", {"etcd: {memberID: '3'", "unread: [{field: etcd, reason: refused}]\nother: {memberID: '3'"}}},
          "not known: c (size of the data of etcd: refused)", Outcome::skip);
    trips("disk-space", {{"b", {"sizeBytes: 100,", ""}}}, "not known: b (size of the data of etcd)", Outcome::skip);
    CHECK(node_results().at("backup-valid").outcome == Outcome::skip);
}

TEST_CASE("what an upgrade would find on nodes trips its checks") {
    trips("images-present", {{"b", {"'r/kube-apiserver:v1.35.4', ", ""}}}, "b: lacks r/kube-apiserver:v1.35.4",
          Outcome::warn);
    trips("images-present", {{"b", {"'r/etcd:3.6.6-0', ", ""}}}, "b: lacks r/etcd:3.6.6-0", Outcome::warn);
    // A newer etcd than kubeadm brings is left alone.
    CHECK(node_results({{"b", {"image: 'r/etcd:3.6.5-0'", "image: 'r/etcd:3.6.7-0'"}}}).at("images-present").outcome ==
          Outcome::ok);
    // kubeadm-config may fix which one it brings.
    const auto fixed = [](const std::string& tag, const std::string& repository = "r", const std::string& own = "") {
        return "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system}, data: "
               "{ClusterConfiguration: 'kind: ClusterConfiguration\n\n  imageRepository: " + repository +
               "\n\n  etcd: {local: {" + (own.empty() ? "" : "imageRepository: " + own + ", ") + "imageTag: " + tag +
               "}}'}}\n";
    };
    CHECK(node_results({}, "v1.35.4", "", fixed("3.6.6-0")).at("images-present").outcome == Outcome::ok);
    CHECK(node_results({}, "v1.35.4", "", fixed("3.6.9-0")).at("images-present").detail ==
          "a: lacks r/etcd:3.6.9-0, b: lacks r/etcd:3.6.9-0, c: lacks r/etcd:3.6.9-0");
    CHECK(node_results({}, "v1.35.4", "", fixed("3.6.5-0")).at("images-present").outcome == Outcome::ok);
    const std::pair<std::string, std::string> own_build("image: 'r/etcd:3.6.5-0'", "image: 'r/etcd:3.6.9-0_our.1'");
    CHECK(node_results({{"a", own_build}, {"b", own_build}, {"c", own_build}}, "v1.35.4", "", fixed("3.6.9-0_our.1"))
              .at("images-present")
              .outcome == Outcome::ok);
    // It says from where they come, too, whatever runs.
    CHECK(node_results({}, "v1.35.4", "", fixed("3.6.5-0", "mirror:5000/k8s")).at("images-present").detail ==
          "a: lacks mirror:5000/k8s/kube-apiserver:v1.35.4, b: lacks mirror:5000/k8s/kube-apiserver:v1.35.4, c: lacks "
          "mirror:5000/k8s/kube-apiserver:v1.35.4");
    CHECK(node_results({{"a", {"'r/etcd:3.6.6-0'", "'mirror:5000/etcd:3.6.6-0'"}}}, "v1.35.4", "",
                       fixed("3.6.6-0", "r", "mirror:5000"))
              .at("images-present")
              .detail == "b: lacks mirror:5000/etcd:3.6.6-0, c: lacks mirror:5000/etcd:3.6.6-0");
    // A runtime calls it by its registry.
    CHECK(node_results({{"a", {"'r/kube-apiserver:v1.35.4'", "'docker.io/r/kube-apiserver:v1.35.4'"}}})
              .at("images-present")
              .outcome == Outcome::ok);
    trips("images-present", {{"b", {"image: 'r/kube-apiserver:v1.34.4'", "image: 'r/kube-apiserver'"}}},
          "not known: b (the image of kube-apiserver)", Outcome::skip);
    trips("images-present",
          {{"b", {"images: ['r/kube-apiserver:v1.35.4', 'r/etcd:3.6.6-0', 'x/pause:3.10.1']", "images: null"}}},
          "not known: b (unknown)", Outcome::skip);
    trips("sandbox-image", {{"w", {"sandboxImage: 'x/pause:3.10.1'", "sandboxImage: 'localhost:5000/pause@sha256:1'"}}},
          "w: uses localhost:5000/pause@sha256:1, expected pause 3.10.1", Outcome::warn);
    trips("sandbox-image", {{"w", {", 'x/pause:3.10.1'", ""}}}, "w: its image x/pause:3.10.1 is not on the node",
          Outcome::warn);
    trips("sandbox-image", {{"w", {"sandboxImage: 'x/pause:3.10.1'", "sandboxImage: null"}}}, "not known: w (unknown)",
          Outcome::skip);
    trips("manifest-drift",
          {{"c",
            {"manifestDrift: []",
             "manifestDrift: [{component: kube-apiserver, count: 6, lines: ['- a', '+ b', '- c', '+ d', '- e']}]"}}},
          "c: kube-apiserver (- a, + b, - c, + d and 2 more lines)");
    trips("manifest-drift", {{"c", {"manifestDrift: []", "manifestDrift: null"}}}, "not known: c (unknown)",
          Outcome::skip);
    trips("package-repo", {{"w", {"available: true", "available: false"}}}, "w: no package source has kubelet v1.35.4",
          Outcome::fail, "packages");
    trips("package-repo", {{"w", {"available: true", "available: null"}}},
          "not known: kubelet v1.35.4 on w (its package manager was not asked)", Outcome::skip, "packages");
    trips("package-repo",
          {{"w",
            {"available: true, digest: true, tried: true, code: '', problem: ''",
             "available: null, digest: null, tried: true, code: command-not-found, problem: no apt-get"}}},
          "w: no apt-get", Outcome::fail, "packages");
    trips("package-simulate",
          {{"w", {"code: '', problem: ''", "code: package-unexpected, problem: removes containerd"}}},
          "w: removes containerd", Outcome::fail, "packages");
    trips("package-simulate", {{"w", {"tried: true", "tried: false"}}},
          "not known: kubelet v1.35.4 on w (only apt-get can be simulated)", Outcome::skip, "packages");
    trips("package-simulate", {{"w", {"available: true", "available: false"}}},
          "not known: kubelet v1.35.4 on w (see package-repo)", Outcome::skip, "packages");
    trips("binaries-digest",
          {{"w", {"code: '', problem: ''", "code: digest-mismatch, problem: 'expected sha256 1, found 2'"}}},
          "w: expected sha256 1, found 2", Outcome::fail, "binaries");
    trips("binaries-digest", {{"w", {"digest: true", "digest: false"}}},
          "not known: kubelet v1.35.4 on w (no file of its digest is beside it)", Outcome::skip, "binaries");
    trips("kubeadm-preflight", {{"b", {"errors: []", "errors: ['A: no', 'B: no']"}}}, "b: A: no, B: no", Outcome::fail,
          "binaries");
    trips("kubeadm-preflight", {{"b", {"warnings: []", "warnings: ['A: old']"}}}, "b: A: old", Outcome::warn,
          "packages");
    trips("kubeadm-preflight", {{"c", {"{version: v1.35.4, errors: [], warnings: []}", "null"}}},
          "not known: c (unknown)", Outcome::skip, "binaries");
    CHECK(node_results().at("kubeadm-preflight").outcome == Outcome::skip);
    CHECK(node_results().at("package-repo").detail == "needs --switch packages: how programs get onto nodes");
    CHECK(node_results({}, "v1.35.4", "packages").at("binaries-digest").detail == "--switch packages uses none");
}

TEST_CASE("what members of etcd say trips their checks") {
    trips("etcd-members", {{"a", {"name: c, learner: false", "name: c, learner: true"}}}, "a: member c is a learner");
    trips("etcd-members", {{"a", {"name: c,", "name: '',"}}}, "a: member 3 has never started");
    trips("etcd-members", {{"c", {"memberID: '3'", "memberID: '4'"}}},
          "a: member c (3) is on no control plane, b: member c (3) is on no control plane, c: member c (3) is on no "
          "control plane");
    // Between the two renames of a kubeadm that was killed: not a member to remove.
    trips("etcd-members", {{"c", {"etcd: {memberID: '3'", "other: {memberID: '3'"}}},
          "a: member c (3) has no manifest on its control plane, b: member c (3) has no manifest on its control plane");
    CHECK(node_results({{"c", {"etcd: {memberID: '3'", "other: {memberID: '3'"}}}).at("etcd-members").fix ==
          "put the manifest of etcd back: kmm-worker kubernetes repair on the node");
    trips("etcd-members",
          {{"c", {"etcd: {memberID: '3'", "unread: [{field: etcd, reason: refused}]\nother: {memberID: '3'"}}},
          "not heard: c (refused)");
    trips("etcd-members", {{"c", {"memberID: '3'", "memberID: null"}}}, "not heard: c (its answer names no member)");
    trips("etcd-members",
          {{"c", {"memberID: '3', leaderID: '1', listenClientURLs: ['https://127.0.0.1:2379', 'https://10.0.0.1:2379']",
                  "memberID: null, listenClientURLs: []"}}},
          "the manifest of etcd names no address for clients on c", Outcome::skip);
    // One that is not heard hides neither what others say nor that another one does not answer.
    const std::pair<std::string, std::string> silent{"memberID: '3', leaderID: '1', listenClientURLs: ["
                                                     "'https://127.0.0.1:2379', 'https://10.0.0.1:2379']",
                                                     "memberID: null, listenClientURLs: []"};
    trips("etcd-alarms", {{"c", silent}, {"b", {"alarms: []", "alarms: [NOSPACE of 2]"}}}, "b: NOSPACE of 2");
    trips("etcd-members", {{"c", silent}, {"b", {"memberID: '2'", "memberID: null"}}},
          "not heard: b (its answer names no member)");
    trips("etcd-quorum", {{"b", {"leaderID: '1'", "leaderID: null"}}},
          "a: its leader is 1, others have another one, b: it has no leader, c: its leader is 1, others have another "
          "one");
    trips("etcd-alarms", {{"b", {"alarms: []", "alarms: [NOSPACE of 2]"}}}, "b: NOSPACE of 2");
    trips("etcd-advertise", {{"b", {", 'https://10.0.0.1:2379'", ""}}}, "b: listens on https://127.0.0.1:2379 only");
    trips("etcd-size", {{"b", {"sizeBytes: 100,", ""}}}, "not known: size and quota of member 2", Outcome::skip);
    trips("etcd-size", {{"b", {"sizeBytes: 100", "sizeBytes: 2000000000"}}}, "b: 1.9 GiB of 2.0 GiB, 90 B in use");
}
