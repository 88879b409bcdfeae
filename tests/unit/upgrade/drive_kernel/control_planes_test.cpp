// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/control_planes.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace kmm;
using namespace kmm::drive;

namespace {

/// Nodes a, b, ... of which the first `count` are control planes; those of `down` are not Ready.
std::vector<api::Node> cluster_of(int count, const std::string& down, const char* role = "control-plane") {
    std::vector<api::Node> nodes;
    for (char name = 'a'; name < 'a' + count + 2; ++name) {
        api::Node node;
        node.meta.name = std::string(1, name);
        node.ready = down.find(name) == std::string::npos ? "True" : "Unknown";
        if (name < 'a' + count) node.meta.labels[std::string("node-role.kubernetes.io/") + role] = "";
        nodes.push_back(std::move(node));
    }
    return nodes;
}

api::WorkloadPod static_pod(const std::string& name, bool is_ready) {
    api::WorkloadPod pod;
    pod.namespace_ = "kube-system";
    pod.name = name;
    pod.phase = "Running";
    pod.is_mirror = true;
    pod.is_ready = is_ready;
    return pod;
}

}  // namespace

TEST_SUITE("upgrade::control_planes") {

TEST_CASE("a majority is left by every reboot of a control plane, and workers wait for nobody") {
    CHECK(quorum_problem(cluster_of(1, ""), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(1, "b"), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(2, ""), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(2, "b"), "a", {}) ==
          "0 of 2 control planes would serve without it, 1 must: b is not Ready");
    CHECK(quorum_problem(cluster_of(3, ""), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(3, "a"), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(3, "c"), "a", {}) ==
          "1 of 3 control planes would serve without it, 2 must: c is not Ready");
    CHECK(quorum_problem(cluster_of(3, "d"), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(3, "abc"), "d", {}).empty());
    CHECK(quorum_problem(cluster_of(4, "b"), "a", {}) ==
          "2 of 4 control planes would serve without it, 3 must: b is not Ready");
    CHECK(quorum_problem(cluster_of(5, "b"), "a", {}).empty());
    CHECK(quorum_problem(cluster_of(5, "bc"), "a", {}) ==
          "2 of 5 control planes would serve without it, 3 must: b is not Ready, c is not Ready");
    CHECK_FALSE(quorum_problem(cluster_of(3, "c", "master"), "a", {}).empty());
}

TEST_CASE("a control plane whose static Pods are not Ready serves nobody, whatever its kubelet says") {
    std::map<std::string, std::vector<api::WorkloadPod>> pods{
        {"b", {static_pod("etcd-b", true), static_pod("kube-apiserver-b", true)}},
        {"c", {static_pod("etcd-c", false), static_pod("kube-apiserver-c", true)}}};
    const PodsOf pods_of = [&](const std::string& node) { return pods[node]; };
    CHECK(quorum_problem(cluster_of(3, ""), "a", pods_of) ==
          "1 of 3 control planes would serve without it, 2 must: static Pod kube-system/etcd-c is not Ready");
    pods["c"][0].is_ready = true;
    CHECK(quorum_problem(cluster_of(3, ""), "a", pods_of).empty());
    pods["b"].push_back(static_pod("coredns", false));
    pods["b"].back().is_mirror = false;  // not the kubelet's own
    CHECK(quorum_problem(cluster_of(3, ""), "a", pods_of).empty());
    pods["d"] = {static_pod("nginx-d", false)};  // of a worker
    CHECK(quorum_problem(cluster_of(3, ""), "a", pods_of).empty());
}

}  // TEST_SUITE
