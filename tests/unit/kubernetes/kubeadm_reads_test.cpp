// SPDX-License-Identifier: Apache-2.0
// What kubeadm reads before it changes anything.
#include <doctest/doctest.h>

#include <string>

#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

std::string config_map(const std::string& name, const std::string& data) {
    return "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: " + name + ", namespace: kube-system}, data: {" +
           data + "}}\n";
}

/// `more` are members of the ClusterConfiguration.
std::string kubeadm_config(const std::string& more = "") {
    return config_map("kubeadm-config",
                      "ClusterConfiguration: \"apiVersion: kubeadm.k8s.io/v1beta4\\nkind: ClusterConfiguration\\n" +
                          more + "\"");
}

/// A Pod as a kubelet makes it of a manifest.
std::string static_pod(const std::string& component, const std::string& name, const std::string& node,
                       const std::string& annotations, const std::string& labels = "") {
    return "---\n{kind: Pod, apiVersion: v1, metadata: {name: " + name +
           ", namespace: kube-system, labels: {" + (labels.empty() ? "component: " + component + ", tier: control-plane"
                                                                   : labels) +
           "}, annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: x" +
           (annotations.empty() ? "" : ", " + annotations) + "}}, spec: {nodeName: " + node + ", containers: [{name: " +
           component + ", image: 'r/" + component + ":v1.34.4'}]}, status: {phase: Running}}\n";
}

const std::string k_address = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: '10.0.0.1:6443'";
const std::string k_urls = "kubeadm.kubernetes.io/etcd.advertise-client-urls: 'https://10.0.0.1:2379'";

std::string node_text(const std::string& name) {
    return "---\n{kind: Node, apiVersion: v1, metadata: {name: " + name +
           ", labels: {node-role.kubernetes.io/control-plane: ''}}, status: {nodeInfo: {kubeletVersion: v1.34.4}}}\n";
}

std::string other_pods(const std::string& node) {
    return static_pod("kube-controller-manager", "kube-controller-manager-" + node, node, "") +
           static_pod("kube-scheduler", "kube-scheduler-" + node, node, "");
}

/// A cluster of kubeadm with one control plane, whose API server is `server`.
std::string cluster(const std::string& server) { return node_text("a") + server + other_pods("a") + kubeadm_config(); }

const std::string k_server = static_pod("kube-apiserver", "kube-apiserver-a", "a", k_address);

CheckResult reads(const std::string& text, const NodeAnswers* nodes = nullptr, const char* target = "v1.35.4",
                  const std::string& skipped = "") {
    const auto inventory = inventory_of(text);
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse(target), nodes};
    input.intent.skipped_phases = skipped;
    const std::string_view only[] = {"kubeadm-config-parses"};
    return run_checks(input, {}, only).front();
}

std::string fault(const std::string& text) {
    const auto result = reads(text);
    return result.outcome == Outcome::fail ? result.detail : "";
}

/// The same of the files of a node: `file` is YAML.
std::string fault_of_files(const std::string& file, bool has_instance_config, const char* target = "v1.35.4",
                           const std::string& skipped = "", const std::string& gates = "") {
    Diagnostics faults;
    auto documents = value::read_yaml("kubelet: {kubeadmFlags: " + file + ", instanceConfig: " +
                                          (has_instance_config ? "true" : "false") + "}\n", "facts", faults);
    NodeAnswers nodes{{"a", {std::move(documents.front().root), "", 1, 2}}};
    const auto result = reads(node_text("a") + k_server + other_pods("a") + kubeadm_config(gates), &nodes, target,
                              skipped);
    return result.outcome == Outcome::fail ? result.detail : "";
}

}  // namespace

TEST_SUITE("kubernetes") {

TEST_CASE("kubeadm reads the endpoint of the control plane as HOST or HOST:PORT") {
    const auto with = [](const std::string& endpoint) {
        return fault(node_text("a") + k_server + other_pods("a") +
                     kubeadm_config("controlPlaneEndpoint: '" + endpoint + "'\\n"));
    };
    for (const auto* fine :
         {"", "lb.example.com", "lb.example.com:6443", "10.0.0.1:6443", "fd00::1", "[fd00::1]:6443",
          "::ffff:10.0.0.1", "[::ffff:10.0.0.1]:6443", "64:ff9b:0:0:0:0:10.0.0.1", "lb.example.com:"}) {
        CAPTURE(fine);
        CHECK(with(fine).empty());
    }
    for (const auto* wrong : {"https://lb.example.com:6443", "lb.example.com:64443x", "lb:0", "lb:70000",
                              "LB.example.com", "lb.example.com/", "lb_1:6443", ":6443", "lb..example.com",
                              "lb-.example.com", "lb.example.com.", "[10.0.0.1]", "[fd00::1]", "fe80::1%eth0",
                              "::ffff:10.0.0.256",
                              "::10.0.0.1:ffff", ":10.0.0.1", "1:2:3:4:5:6:7:10.0.0.1"}) {
        CAPTURE(wrong);
        CHECK(with(wrong) ==
              std::string("controlPlaneEndpoint of kubeadm-config: expected HOST or HOST:PORT, found '") + wrong + "'");
    }
}

TEST_CASE("kubeadm takes comments before --- of ConfigMap kubelet-config for a document") {
    const auto with = [](const std::string& before, const std::string& after = "") {
        return fault(cluster(k_server) +
                     config_map("kubelet-config", "kubelet: \"" + before +
                                                      "apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: "
                                                      "KubeletConfiguration\\n" +
                                                      after + "\""));
    };
    const std::string refused = "ConfigMap kube-system/kubelet-config: kubelet: expected apiVersion GROUP/VERSION and "
                                "kind, found an empty document";
    CHECK(with("").empty());
    CHECK(with("# by hand\\n").empty());
    CHECK(with("---\\n").empty());
    CHECK(with("", "---\\n").empty());
    CHECK(with("# by hand\\n---\\n") == refused);
    CHECK(with("\\n---\\n") == refused);
    CHECK(with("", "---\\n# the end\\n") == refused);
}

TEST_CASE("kubeadm reads ConfigMap kube-proxy wherever there is one") {
    CHECK(fault(cluster(k_server)).empty());
    const auto with = [](const std::string& data) { return fault(cluster(k_server) + config_map("kube-proxy", data)); };
    CHECK(with("config.conf: \"apiVersion: kubeproxy.config.k8s.io/v1alpha1\\nkind: KubeProxyConfiguration\\n\"")
              .empty());
    CHECK(with("config.conf: ''").empty());
    CHECK(with("") == "ConfigMap kube-system/kube-proxy: it has no key config.conf");
    CHECK(with("config.conf: 'mode: ipvs'") ==
          "ConfigMap kube-system/kube-proxy: config.conf: expected apiVersion GROUP/VERSION and kind");
    CHECK(with("config.conf: \"apiVersion: kubeproxy.config.k8s.io/v1alpha2\\nkind: KubeProxyConfiguration\\n\"") ==
          "ConfigMap kube-system/kube-proxy: config.conf: expected apiVersion kubeproxy.config.k8s.io/v1alpha1, found "
          "'kubeproxy.config.k8s.io/v1alpha2'");
    const std::string proxy = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\\nkind: KubeProxyConfiguration\\n";
    const auto documents = [&](const std::string& text) { return with("config.conf: \"" + text + "\""); };
    const std::string empty = "ConfigMap kube-system/kube-proxy: config.conf: expected apiVersion GROUP/VERSION and "
                              "kind, found an empty document";
    CHECK(documents("---\\n" + proxy + "--- # end\\n").empty());
    CHECK(documents("---\\n# c\\n" + proxy).empty());
    CHECK(documents("# c\\n" + proxy).empty());
    CHECK(documents(proxy + "---\\n---\\napiVersion: a/v1\\nkind: B\\n").empty());
    for (const auto& bad : {"# c\\n---\\n" + proxy, proxy + "---\\n# c\\n", "---\\n---\\n" + proxy,
                            std::string("# c\\n"), std::string("---")}) {
        CHECK_MESSAGE(documents(bad) == empty, bad);
    }
    CHECK(documents(proxy + "---\\n" + proxy) ==
          "ConfigMap kube-system/kube-proxy: config.conf: kind KubeProxyConfiguration is given twice");
    CHECK(with("config.conf: 'a: ['").find("kube-proxy/config.conf:1:") != std::string::npos);
    CHECK(reads(cluster(k_server) + config_map("kube-proxy", "")).fix ==
          "kubectl delete configmap -n kube-system kube-proxy: nothing uses it");
}

TEST_CASE("kubeadm reads flags in the form of the configuration's version, and strings only") {
    const auto with = [](const std::string& more, bool is_old = false) {
        auto text = cluster(k_server);
        text.replace(text.find(kubeadm_config()), kubeadm_config().size(), kubeadm_config(more));
        if (is_old) { text.replace(text.find("v1beta4"), 7, "v1beta3"); }
        return fault(text);
    };
    CHECK(with("apiServer: {extraArgs: [{name: v, value: '2'}]}\\n").empty());
    CHECK(with("apiServer: {extraArgs: {v: '2'}}\\nscheduler: {}\\netcd: {local: {extraArgs: }}\\n", true).empty());
    CHECK(with("apiServer: {extraArgs: {v: '2'}}\\n") ==
          "apiServer.extraArgs of kubeadm-config: expected a list of name and value, as v1beta4 has it, found a "
          "mapping");
    CHECK(with("etcd: {local: {extraArgs: [{name: v, value: '2'}]}}\\n", true) ==
          "etcd.local.extraArgs of kubeadm-config: expected a mapping, as before v1beta4, found a list");
    CHECK(with("apiServer: {extraArgs: {audit-log-maxage: 30}}\\n", true) ==
          "apiServer.extraArgs.audit-log-maxage of kubeadm-config: expected a string, found the integer '30'");
    CHECK(with("scheduler: {extraArgs: [{name: profiling, value: false}]}\\n") ==
          "scheduler.extraArgs (profiling) of kubeadm-config: expected a string, found the boolean 'false'");
}

TEST_CASE("kubeadm takes the address of an API server from its Pod") {
    CHECK(fault(cluster(static_pod("kube-apiserver", "kube-apiserver-a", "a", ""))) ==
          "Pod kube-system/kube-apiserver-a has no annotation "
          "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint");
    CHECK(fault(cluster(static_pod("kube-apiserver", "kube-apiserver-a", "a", k_address, "component: kube-apiserver")))
          == "Pod kube-system/kube-apiserver-a lacks the labels component=kube-apiserver and tier=control-plane");
    CHECK(fault(cluster(k_server + static_pod("kube-apiserver", "kube-apiserver-old-a", "a", k_address))) ==
          "2 Pods on a are labelled as its API server: kube-system/kube-apiserver-a, kube-system/kube-apiserver-old-a");
    const auto at = [](const std::string& address) {
        return fault(cluster(static_pod("kube-apiserver", "kube-apiserver-a", "a",
                                        "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: '" + address +
                                            "'")));
    };
    CHECK(at("[fd00::1]:6443").empty());
    for (const auto* bad : {"api.example:6443", "10.0.0.1", "fd00::1:6443", ""}) { CHECK_FALSE(at(bad).empty()); }
    // A dump that somebody wrote has no marks at all.
    CHECK(fault(control_plane("a", "v1.34.4") + kubeadm_config()).empty());
}

TEST_CASE("kubeadm takes the address of each member of etcd from its Pod") {
    const auto etcd = static_pod("etcd", "etcd-a", "a", k_urls);
    CHECK(fault(cluster(k_server + etcd)).empty());
    CHECK(fault(cluster(k_server + static_pod("etcd", "etcd-a", "a", ""))) ==
          "Pod kube-system/etcd-a is labelled as etcd and has no annotation "
          "kubeadm.kubernetes.io/etcd.advertise-client-urls");
    CHECK_FALSE(fault(cluster(k_server + etcd + static_pod("etcd", "etcd-defrag-x", "a", ""))).empty());
    CHECK(fault(cluster(k_server + static_pod("etcd", "etcd-a", "a", k_urls, "app: etcd"))) ==
          "Pod kube-system/etcd-a lacks the labels component=etcd and tier=control-plane");
    CHECK(fault(node_text("a") + k_server + other_pods("a") +
                static_pod("etcd", "etcd-a", "a", k_urls, "app: etcd") +
                kubeadm_config("etcd:\\n  external: {endpoints: [x]}\\n"))
              .empty());
    CHECK(fault(node_text("a") + k_server + other_pods("a") + static_pod("etcd", "etcd-a", "a", "") +
                kubeadm_config("etcd:\\n  external: {endpoints: [x]}\\n"))
              .empty());
}

TEST_CASE("kubeadm reads and writes the files with the kubelet's flags") {
    const std::string fine = "'KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=unix:///run/c.sock --v=2\"'";
    CHECK(fault_of_files(fine, false).empty());
    CHECK(fault_of_files("null", true, "v1.34.5").empty());
    CHECK(fault_of_files("null", true) ==
          "a: there is no /var/lib/kubelet/kubeadm-flags.env, which kubeadm v1.35.4 reads");
    CHECK(fault_of_files("null", false, "v1.34.5") ==
          "a: there is no /var/lib/kubelet/kubeadm-flags.env, nor instance-config.yaml, which kubeadm v1.34.5 reads");
    CHECK(fault_of_files("null", true, "v1.35.4", "post-upgrade").empty());
    CHECK(fault_of_files("null", false, "v1.34.5", "kubelet-config").empty());
    CHECK(fault_of_files("null", false, "v1.34.5", "", "featureGates: {NodeLocalCRISocket: false}\\n").empty());
    CHECK(fault_of_files("'KUBELET_EXTRA_ARGS=--v=2'", true) ==
          "a: kubeadm-flags.env: expected KUBELET_KUBEADM_ARGS=\"...\"");
    const std::string empty = "'KUBELET_KUBEADM_ARGS=\"\"'";
    CHECK(fault_of_files(empty, true).empty());
    CHECK(fault_of_files(empty, true, "v1.35.0") ==
          "a: kubeadm-flags.env has no flag, which kubeadm v1.35.0 refuses (kubeadm#3279)");
    const std::string bare =
        "'KUBELET_KUBEADM_ARGS=\"--fail-swap-on --v=2 --container-runtime-endpoint=unix:///run/c.sock\"'";
    CHECK(fault_of_files(bare, true).empty());
    CHECK(fault_of_files(bare, false) == "a: kubeadm-flags.env: --fail-swap-on has no value, and kubeadm v1.35.4 "
                                         "writes it again joined with what follows");
    // kubeadm takes the endpoint for the value of the flag before it, and leaves the file alone.
    CHECK(fault_of_files("'KUBELET_KUBEADM_ARGS=\"--fail-swap-on --container-runtime-endpoint=unix:///run/c.sock\"'",
                         false)
              .empty());
    // A flag and its value may be two words.
    CHECK(fault_of_files("'KUBELET_KUBEADM_ARGS=\"--v 2 --container-runtime-endpoint=unix:///run/c.sock\"'", false)
              .empty());
}

TEST_CASE("an endpoint that only the kubelet's configuration names is lost with instance-config.yaml") {
    const auto with = [](const std::string& flags, const std::string& more, const std::string& arguments = "[--v=2]") {
        return fault_of_files("'KUBELET_KUBEADM_ARGS=\"" + flags + "\"', arguments: " + arguments + ", " + more, false,
                              "v1.34.5");
    };
    const std::string crio = "config: {containerRuntimeEndpoint: 'unix:///var/run/crio/crio.sock'}";
    const std::string lost = "a: kubeadm-flags.env has no --container-runtime-endpoint: kubeadm v1.34.5 removes "
                             "unix:///var/run/crio/crio.sock from the kubelet's configuration, and the kubelet then "
                             "takes containerd's socket";
    CHECK(with("--v=2", crio) == lost);
    CHECK(with("--fail-swap-on --v=2", crio) == lost);
    CHECK(with("--v=2", "config: {containerRuntimeEndpoint: 'unix:///var/run/containerd/containerd.sock'}").empty());
    CHECK(with("--v=2", "config: {maxPods: 5}").empty());
    CHECK(with("--container-runtime-endpoint=unix:///run/crio/crio.sock", crio).empty());
    CHECK(with("--container-runtime-endpoint unix:///run/crio/crio.sock", crio).empty());
    // The kubelet keeps the flag, though kubeadm takes it for the value of the one before it.
    CHECK(with("--fail-swap-on --container-runtime-endpoint=unix:///run/crio/crio.sock", crio).empty());
    CHECK(with("--v=2", crio, "[--container-runtime-endpoint=unix:///run/crio/crio.sock]").empty());
    // Files of --config-dir stand over what kubeadm writes, and kubeadm writes no other file.
    CHECK(with("--v=2", crio + ", dropIns: [{file: a.conf, config: {containerRuntimeEndpoint: 'unix:///x'}}]").empty());
    CHECK(with("--v=2", crio, "[--config=/etc/kubelet.yaml]").empty());
    CHECK(fault_of_files("'KUBELET_KUBEADM_ARGS=\"--v=2\"', arguments: [], " + crio, true, "v1.34.5").empty());
    CHECK(fault_of_files("'KUBELET_KUBEADM_ARGS=\"--v=2\"', arguments: [], " + crio, false, "v1.34.5",
                         "kubelet-config")
              .empty());
}

TEST_CASE("kubeadm takes the socket of the runtime from the Node or from a file there") {
    const auto found = [](const std::string& annotations, bool a_has_file, bool b_has_file,
                          const char* target = "v1.34.5", const std::string& gates = "") {
        const auto facts = [](bool has_file) {
            Diagnostics faults;
            auto documents = value::read_yaml(std::string("kubelet: {kubeadmFlags: 'KUBELET_KUBEADM_ARGS=\"--v=2\"', "
                                                          "instanceConfig: ") + (has_file ? "true}" : "false}"),
                                              "facts", faults);
            return NodeAnswer{std::move(documents.front().root), "", 1, 2};
        };
        NodeAnswers nodes{{"a", facts(a_has_file)}, {"b", facts(b_has_file)}};
        const auto worker_b = "---\n{kind: Node, apiVersion: v1, metadata: {name: b, annotations: {" + annotations +
                              "}}, status: {nodeInfo: {kubeletVersion: v1.34.4}}}\n";
        const auto result =
            reads(node_text("a") + k_server + other_pods("a") + kubeadm_config(gates) + worker_b, &nodes, target);
        return result.outcome == Outcome::fail ? result.detail : "";
    };
    const std::string mark = "kubeadm.alpha.kubernetes.io/cri-socket: 'unix:///run/crio/crio.sock'";
    CHECK(found("", true, true).empty());
    CHECK(found(mark, true, false).empty());
    CHECK(found("", false, false).empty());  // as where nothing was made by kubeadm
    const auto silent = [](const std::string& node) {
        return "node " + node + ": kubeadm v1.34.5 finds no CRI socket: neither annotation "
               "kubeadm.alpha.kubernetes.io/cri-socket of the Node nor /var/lib/kubelet/instance-config.yaml";
    };
    CHECK(found("", true, false) == silent("b"));
    CHECK(found(mark, false, false) == silent("a"));
    // From v1.35 on kubeadm detects it.
    CHECK(found("", true, false, "v1.35.4").empty());
    // Before v1.34 the file counts with the gate on, from then on always.
    CHECK(found(mark, true, true, "v1.33.5") ==
          "node a: kubeadm v1.33.5 finds no CRI socket: no annotation kubeadm.alpha.kubernetes.io/cri-socket of the "
          "Node");
    CHECK(found(mark, true, true, "v1.33.5", "featureGates: {NodeLocalCRISocket: true}\\n").empty());
    CHECK(found("", true, true, "v1.34.5", "featureGates: {NodeLocalCRISocket: false}\\n").empty());
}

TEST_CASE("a phase that is left out takes nothing from a kubelet's configuration") {
    const auto inventory = inventory_of(
        cluster(k_server) +
        config_map("kubelet-config",
                   "kubelet: \"apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n\""));
    const auto seen = observe(inventory);
    Diagnostics faults;
    auto documents = value::read_yaml("kubelet: {arguments: [], config: {maxPods: 5}}\n", "facts", faults);
    const NodeAnswers nodes{{"a", {std::move(documents.front().root), "", 1, 2}}};
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4"), &nodes};
    const std::string_view only[] = {"config-drift"};
    CHECK(run_checks(input, {}, only).front().outcome == Outcome::fail);
    input.intent.skipped_phases = "addon/coredns,kubelet-config";
    CHECK(run_checks(input, {}, only).front().outcome == Outcome::ok);
}

TEST_CASE("a dump of other namespaces says nothing of kubeadm's ConfigMaps") {
    const std::string other =
        "---\n{kind: ConfigMap, apiVersion: v1, metadata: {name: kube-root-ca.crt, namespace: default}, data: {}}\n";
    const auto result = reads(control_plane("a", "v1.34.4") + other);
    CHECK(result.outcome == Outcome::skip);
    CHECK(result.detail == "the documents contain no ConfigMap of kube-system");
}

}
