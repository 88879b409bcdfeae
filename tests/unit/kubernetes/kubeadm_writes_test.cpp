// SPDX-License-Identifier: Apache-2.0
// What kubeadm writes in another way than the control plane runs.
#include <doctest/doctest.h>

#include <string>

#include <fmt/format.h>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

std::string pod_with(const std::string& component, const std::string& flags) {
    return "---\n{kind: Pod, apiVersion: v1, metadata: {name: " + component +
           "-a, namespace: kube-system}, spec: {nodeName: a, containers: [{name: " + component + ", image: 'r/" +
           component + ":v1.34.4', command: [" + component + flags +
           "]}]}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}\n";
}

/// A cluster with one control plane; flags as ", '--name=value'".
struct Cluster {
    std::string server, manager, configuration;  ///< the last are members of the ClusterConfiguration, with \\n
    bool has_etcd = true;

    [[nodiscard]] std::string text() const {
        return "---\n{kind: Node, apiVersion: v1, metadata: {name: a, labels: {node-role.kubernetes.io/control-plane: "
               "''}}, status: {nodeInfo: {kubeletVersion: v1.34.4}}}\n" +
               pod_with("kube-apiserver", server) + pod_with("kube-controller-manager", manager) +
               pod_with("kube-scheduler", "") + (has_etcd ? pod_with("etcd", "") : "") +
               "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: kubeadm-config, namespace: kube-system}, data: "
               "{ClusterConfiguration: \"apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n" +
               configuration + "\"}}\n";
    }
};

CheckResult check_of(const Cluster& cluster, const char* id, bool has_patches = false, const char* target = "v1.35.4") {
    const auto inventory = inventory_of(cluster.text());
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target)};
    input.intent.has_patches = has_patches;
    const std::string_view only[] = {id};
    return run_checks(input, {}, only).front();
}

std::string fault(const Cluster& cluster, bool has_patches = false, const char* target = "v1.35.4") {
    const auto result = check_of(cluster, "manifest-drift", has_patches, target);
    if (result.outcome == Outcome::fail) { return result.detail; }
    CHECK(result.outcome == Outcome::skip);
    return "";
}

}  // namespace

TEST_SUITE("kubernetes") {

TEST_CASE("kubeadm writes another range of services than the API server has") {
    const Cluster running{", '--service-cluster-ip-range=10.43.0.0/16'", "", ""};
    CHECK(fault(running) ==
          "kube-apiserver on a runs with --service-cluster-ip-range=10.43.0.0/16, kubeadm writes 10.96.0.0/12");
    CHECK(fault(running, true).empty());
    CHECK(fault({running.server, "", "networking: {serviceSubnet: 10.43.0.0/16}\\n"}).empty());
    CHECK(fault({running.server, "", "networking: {serviceSubnet: '10.43.0.0/16, fd00::/108'}\\n"}) ==
          "kube-apiserver on a runs with --service-cluster-ip-range=10.43.0.0/16, kubeadm writes 10.43.0.0/16, "
          "fd00::/108");
    CHECK(fault({running.server, "",
                 "apiServer: {extraArgs: [{name: service-cluster-ip-range, value: 10.43.0.0/16}]}\\n"})
              .empty());
    CHECK(fault({", --service-cluster-ip-range, 10.96.0.0/12", "", ""}).empty());
}

TEST_CASE("kubeadm writes an API server that asks another etcd") {
    const std::string external =
        "etcd: {external: {endpoints: ['https://10.0.0.7:2379/', 'https://10.0.0.8:2379']}}\\n";
    CHECK(fault({", '--etcd-servers=https://127.0.0.1:2379'", "", external}) ==
          "kube-apiserver on a runs with --etcd-servers=https://127.0.0.1:2379, kubeadm writes "
          "https://10.0.0.7:2379/,https://10.0.0.8:2379");
    CHECK(fault({", '--etcd-servers=https://10.0.0.9:2379,https://10.0.0.7:2379'", "", external}).empty());
    CHECK(fault({", '--etcd-servers=https://10.0.0.9:2379'", "", "etcd: {external: {endpoints: []}}\\n"}) ==
          "kube-apiserver on a runs with --etcd-servers=https://10.0.0.9:2379, kubeadm writes none");

    const Cluster outside{", '--etcd-servers=https://10.0.0.7:2379'", "", "etcd: {local: {dataDir: /d}}\\n", false};
    CHECK(fault(outside) ==
          "kube-apiserver on a runs with --etcd-servers=https://10.0.0.7:2379, kubeadm writes https://127.0.0.1:2379");
    const auto pods = check_of(outside, "cp-pods-ready");
    CHECK(pods.outcome == Outcome::fail);
    CHECK(pods.fix.find("etcd.external with endpoints") != std::string::npos);
    // The list of all members, one of which is the Pod there.
    CHECK(fault({outside.server, "", outside.configuration, true}).empty());
    // A service of the machine.
    CHECK(fault({", '--etcd-servers=https://127.0.0.1:2379'", "", outside.configuration, false}).empty());
    CHECK(fault({", '--etcd-servers=https://[::1]:2379'", "", outside.configuration, false}).empty());
    CHECK(fault({outside.server, "",
                 "etcd: {local: {extraArgs: [{name: advertise-client-urls, value: 'https://10.0.0.7:2379'}]}}\\n",
                 false})
              .empty());
}

TEST_CASE("kubeadm leaves out what only a manifest has, and Secrets are read by") {
    CHECK(fault({", --encryption-provider-config=/etc/kubernetes/enc.yaml", "", ""}) ==
          "kube-apiserver on a runs with --encryption-provider-config=/etc/kubernetes/enc.yaml, kubeadm writes none");
    CHECK(fault({", '--service-account-issuer=https://oidc.example.com', "
                 "'--service-account-issuer=https://kubernetes.default.svc.cluster.local'",
                 "", ""}) ==
          "kube-apiserver on a runs with --service-account-issuer=https://oidc.example.com,"
          "https://kubernetes.default.svc.cluster.local, kubeadm writes "
          "https://kubernetes.default.svc.cluster.local");
    CHECK(fault({", '--service-account-issuer=https://kubernetes.default.svc.my.zone'", "",
                 "networking: {dnsDomain: my.zone}\\n"})
              .empty());
}

TEST_CASE("kubeadm leaves out where the data are in etcd, and keys that tokens were signed with") {
    CHECK(fault({", --etcd-prefix=/k8s", "", ""}) ==
          "kube-apiserver on a runs with --etcd-prefix=/k8s, kubeadm writes /registry");
    CHECK(fault({", --etcd-prefix=/registry", "", ""}).empty());
    CHECK(fault({", --service-account-key-file=/etc/kubernetes/./pki/sa.pub", "",
                 "certificatesDir: /etc/kubernetes//pki\\n"})
              .empty());
    const std::string keys = ", --service-account-key-file=/etc/kubernetes/pki/sa.pub, "
                             "--service-account-key-file=/etc/kubernetes/pki/old.pub";
    CHECK(fault({keys, "", ""}) ==
          "kube-apiserver on a runs with --service-account-key-file=/etc/kubernetes/pki/sa.pub,"
          "/etc/kubernetes/pki/old.pub, kubeadm writes /etc/kubernetes/pki/sa.pub");
    CHECK(fault({keys, "",
                 "apiServer: {extraArgs: [{name: service-account-key-file, value: /etc/kubernetes/pki/old.pub}, {name: "
                 "service-account-key-file, value: /etc/kubernetes/pki/sa.pub}]}\\n"})
              .empty());
    const std::string signing = ", --service-account-signing-key-file=/srv/pki/sa.key";
    CHECK(!fault({signing, "", ""}).empty());
    CHECK(fault({signing, ", --service-account-private-key-file=/srv/pki/sa.key", "certificatesDir: /srv/pki/\\n"})
              .empty());
    CHECK(fault({"", ", --service-account-private-key-file=/srv/sa.key", ""}) ==
          "kube-controller-manager on a runs with --service-account-private-key-file=/srv/sa.key, kubeadm writes "
          "/etc/kubernetes/pki/sa.key");
}

TEST_CASE("kubeadm sorts the issuers of extraArgs, or keeps their order") {
    const std::string first = ", '--service-account-issuer=https://b', '--service-account-issuer=https://a'";
    const std::string sorted = ", '--service-account-issuer=https://a', '--service-account-issuer=https://b'";
    const std::string configured = "apiServer: {extraArgs: [{name: service-account-issuer, value: 'https://b'}, {name: "
                                   "service-account-issuer, value: 'https://a'}]}\\n";
    const auto with = [&](const std::string& running, const char* target) {
        return fault({running, "", configured}, false, target);
    };
    for (const auto* keeps : {"v1.34.5", "v1.35.1", "v1.35.4"}) {
        CAPTURE(keeps);
        CHECK(with(first, keeps).empty());
        CHECK(with(sorted, keeps) ==
              fmt::format("kube-apiserver on a runs with --service-account-issuer=https://a,https://b, kubeadm {} "
                          "writes https://b,https://a, as kubeadm-config",
                          keeps));
    }
    CHECK(with(sorted, "v1.35.0").empty());
    CHECK(with(first, "v1.35.0") ==
          "kube-apiserver on a runs with --service-account-issuer=https://b,https://a, kubeadm v1.35.0 writes "
          "https://a,https://b, sorted");
    const auto result = check_of({first, "", configured}, "manifest-drift", false, "v1.35.0");
    CHECK(result.fix.starts_with("upgrade to a version whose kubeadm keeps the order of extraArgs (v1.32.12, "));
    // Of an issuer every byte counts.
    CHECK(fault({", --service-account-issuer=https://a/", "",
                 "apiServer: {extraArgs: [{name: service-account-issuer, value: 'https://a'}]}\\n"}) ==
          "kube-apiserver on a runs with --service-account-issuer=https://a/, kubeadm writes https://a");
}

TEST_CASE("what kubeadm of the running version writes is known of its own comparison") {
    // It has said that nothing differs; the way to another order of issuers it cannot know.
    const auto drift = [](const std::string& server, const std::string& configuration, const char* drift_found) {
        const auto inventory = inventory_of(Cluster{server, "", configuration}.text());
        const auto seen = observe(inventory);
        NodeAnswers answers;
        Diagnostics faults;
        const auto facts = fmt::format("upgrade: {{manifestDrift: {}}}\n", drift_found);
        answers["a"].facts = value::read_yaml(facts, "f", faults).front().root;
        CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4"), &answers};
        const std::string_view only[] = {"manifest-drift"};
        return run_checks(input, {}, only).front();
    };
    const std::string encrypts = ", --encryption-provider-config=/etc/kubernetes/enc.yaml";
    CHECK(drift(encrypts, "", "[]").outcome == Outcome::ok);
    CHECK(drift(encrypts, "", "null").outcome == Outcome::fail);
    const std::string issuers = "apiServer: {extraArgs: [{name: service-account-issuer, value: 'https://b'}, {name: "
                                "service-account-issuer, value: 'https://a'}]}\\n";
    const std::string reordered = ", '--service-account-issuer=https://a', '--service-account-issuer=https://b'";
    CHECK(drift(reordered, issuers, "[]").outcome == Outcome::fail);
    CHECK(drift(", '--service-account-issuer=https://c'", issuers, "[]").outcome == Outcome::ok);
}

TEST_CASE("ranges and URLs that say the same in another form are the same") {
    CHECK(fault({", '--service-cluster-ip-range=FD00:0::/108'", "",
                 "networking: {serviceSubnet: 'fd00::/108'}\\n"})
              .empty());
    CHECK(fault({", '--service-cluster-ip-range=10.43.0.0/16'", "", "networking: {serviceSubnet: 10.43.1.7/16}\\n"})
              .empty());
    CHECK(fault({", '--etcd-servers=HTTPS://ETCD1.example.com:2379'", "",
                 "etcd: {external: {endpoints: ['https://etcd1.example.com:2379/']}}\\n"})
              .empty());
    CHECK(fault({", '--etcd-servers=https://[FD00:0:0::7]:2379'", "",
                 "etcd: {external: {endpoints: ['https://[fd00::7]:2379']}}\\n"})
              .empty());
    const std::string local = "etcd: {local: {dataDir: /d}}\\n";
    CHECK(fault({", '--etcd-servers=https://LOCALHOST:2379'", "", local, false}).empty());
    CHECK(fault({", '--etcd-servers=https://[0:0:0:0:0:0:0:1]:2379'", "", local, false}).empty());
    CHECK(!fault({", '--etcd-servers=https://127.example.com:2379'", "", local, false}).empty());
}

TEST_CASE("the API server refuses another address of kube-dns") {
    std::string fix;
    const auto refused = [&](const std::string& address, const std::string& networking, const char* skipped = "") {
        const auto inventory =
            inventory_of(Cluster{"", "", networking}.text() +
                         "---\n{kind: Service, apiVersion: v1, metadata: {name: kube-dns, namespace: kube-system}, "
                         "spec: {clusterIP: '" + address + "'}}\n"
                         "---\n{kind: Service, apiVersion: v1, metadata: {name: kube-dns, namespace: other}, spec: "
                         "{clusterIP: 1.2.3.4}}\n");
        const auto seen = observe(inventory);
        CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4")};
        input.intent.skipped_phases = skipped;
        const std::string_view only[] = {"coredns-migratable"};
        const auto result = run_checks(input, {}, only).front();
        fix = result.fix;
        return result.outcome == Outcome::fail ? result.detail : std::string();
    };
    CHECK(refused("10.96.0.10", "").empty());
    CHECK(refused("10.96.0.53", "").find("kubeadm writes 10.96.0.10") != std::string::npos);
    CHECK(fix.starts_with("make Service kube-system/kube-dns again at 10.96.0.10: kubectl get -o yaml, delete it"));
    CHECK(refused("10.43.0.10", "") ==
          "Service kube-system/kube-dns has clusterIP 10.43.0.10; kubeadm writes 10.96.0.10, of serviceSubnet "
          "10.96.0.0/12, which the API server refuses once all control planes are upgraded");
    CHECK(fix.starts_with("set networking.serviceSubnet of kubeadm-config to what the API servers run with; or "));
    CHECK(!refused("None", "").empty());
    CHECK(fix.starts_with("make Service kube-system/kube-dns again at 10.96.0.10"));
    CHECK(refused("10.43.0.10", "", "addon/coredns").empty());
    CHECK(refused("10.43.0.10", "networking: {serviceSubnet: '10.43.0.77/16,fd00::/108'}\\n").empty());
    CHECK(refused("fd00:0::000a", "networking: {serviceSubnet: 'FD00::/108,10.43.0.0/16'}\\n").empty());
    CHECK(refused("10.96.0.10", "networking: {serviceSubnet: '2001:db8:0:1::/112'}\\n").find("2001:db8:0:1::a, of") !=
          std::string::npos);
    CHECK(refused("10.0.0.10", "networking: {serviceSubnet: 10.0.0.0/29}\\n") ==
          "networking.serviceSubnet of kubeadm-config: 10.0.0.0/29 has no address 10 for kube-dns");
    for (const std::string wrong : {"10.43.0.0", "10.43.0.0/33", "10.43.0/16", "10.43.0.0/16, fd00::/108", "fd00:::/64",
                                    "fd00::/129", "g::/64", "1:2:3:4:5:6:7:8:9/64"}) {
        CHECK(refused("10.43.0.10", "networking: {serviceSubnet: '" + wrong + "'}\\n") ==
              "networking.serviceSubnet of kubeadm-config: expected ranges as 10.96.0.0/12, found '" + wrong + "'");
    }
}

TEST_CASE("kubeadm writes another range of Pods than the controller manager has") {
    CHECK(fault({"", ", --cluster-cidr=10.244.0.0/16", ""}) ==
          "kube-controller-manager on a runs with --cluster-cidr=10.244.0.0/16, kubeadm writes none");
    CHECK(fault({"", ", --cluster-cidr=10.244.0.0/16, --service-cluster-ip-range=10.96.0.0/12",
                 "networking: {podSubnet: 10.244.0.0/16}\\n"})
              .empty());
}

}
