// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/agent.hpp"

#include <doctest/doctest.h>

namespace kmm::drive {
namespace {

TEST_CASE("what a node says of its API server") {
    const auto problem = [](value::Node server) {
        auto document = value::Node::mapping({{"controlPlane", true}});
        document.set("apiServer", std::move(server));
        return read_sight(std::move(document)).server_problem;
    };
    CHECK(problem(value::Node::mapping({{"ready", true}})).empty());
    CHECK(problem(value::Node::mapping({{"ready", false}, {"problem", "/readyz answers 403"}})) ==
          "/readyz answers 403");
    CHECK(problem(value::Node::mapping({{"ready", false}})) == "it is not ready");
    // A worker, or what could not be read.
    CHECK(problem(value::Node()).empty());
    CHECK(read_sight(value::Node::mapping({})).server_problem.empty());
}

TEST_CASE("which versions a node says that it has") {
    const auto manifest = [](const char* component, const char* version) {
        return value::Node::mapping({{"component", component}, {"version", version}});
    };
    const auto seen = read_sight(value::Node::mapping(
        {{"controlPlane", true},
         {"kubelet", value::Node::mapping({{"version", "v1.35.4"}, {"running", "v1.34.4"}})},
         {"manifests", value::Node::sequence({manifest("etcd", "3.6.6-0"), manifest("kube-apiserver", "v1.35.4"),
                                              manifest("kube-controller-manager", "v1.34.4"),
                                              manifest("kube-scheduler", "v1.34.4")})}}));
    CHECK((seen.kubelet->text() == "v1.34.4" && seen.installed_kubelet->text() == "v1.35.4"));
    CHECK((seen.control_plane->text() == "v1.34.4" && seen.manifests.front().text() == "v1.35.4"));
    CHECK(seen.etcd == "3.6.6-0");
    const auto gap = read_sight(value::Node::mapping(
        {{"controlPlane", true}, {"manifests", value::Node::sequence({manifest("kube-apiserver", "v1.35.4")})}}));
    CHECK((!gap.control_plane && gap.manifests.size() == 1));
}

TEST_CASE("what is still at work on a node") {
    const auto running = [](const char* state, bool kubeadm) {
        return running_on(read_sight(
            value::Node::mapping({{"job", value::Node::mapping({{"state", state}, {"key", "kubelet v1.35.4"}})},
                                  {"kubeadm", value::Node::mapping({{"running", kubeadm}})}})));
    };
    CHECK(running("running", false) == "the job kubelet v1.35.4");
    CHECK(running("lost", true) == "kubeadm");
    CHECK(running("lost", false).empty());
    // As it pulls images, which changes nothing that goes back.
    CHECK(running("ended", true).empty());
    CHECK(running_on(read_sight(value::Node::mapping({}))).empty());
}

}  // namespace
}  // namespace kmm::drive
