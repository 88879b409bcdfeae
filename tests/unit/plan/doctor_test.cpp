// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/doctor.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

std::vector<std::string> codes_found(const api::Objects& objects, const plan::Recorded& recorded = {}) {
    std::vector<std::string> codes;
    for (const auto& finding : plan::examine(objects, recorded)) {
        CHECK(!finding.diagnostic.hint.empty());
        codes.push_back(finding.diagnostic.code);
    }
    return codes;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("doctor: a cluster where all is well has no findings") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        objects.modules.push_back(build::module("v1"));
        build::set_labels(objects.nodes[0], "v1", "v1", "v1");
        CHECK(codes_found(objects).empty());
    }

    TEST_CASE("doctor: a node that was left on the way to a version is found, unless the record has it") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        objects.modules.push_back(build::module("v2"));
        auto& node = objects.nodes[0];
        build::set_labels(node, "v2", "", "");
        CHECK(codes_found(objects) == Codes{"left-unloaded"});
        CHECK(codes_found(objects, {"", {}, objects.modules[0].full_name()}).empty());
        objects.node_modules_configs.push_back(build::loaded(build::module("v1"), node));
        build::set_labels(node, "v2", "v1", "v1");
        CHECK(codes_found(objects) == Codes{"left-unloaded"});
        build::set_labels(node, "v2", "v2", "v2");
        objects.node_modules_configs[0] = build::loaded(objects.modules[0], node);
        CHECK(codes_found(objects).empty());
        objects.node_modules_configs[0].status.clear();
        CHECK(codes_found(objects) == Codes{"left-unloaded"});
        // While a worker Pod of KMM's operator is under way, it is not left.
        auto& pod = objects.pods.emplace_back();
        pod.meta.name = "loader-x";
        pod.meta.namespace_ = "drivers";
        pod.meta.labels = {{std::string(api::k_label_worker_action), "Load"},
                           {std::string(api::k_label_module_name), "kmm-hello"}};
        pod.node_name = node.meta.name;
        for (const auto* phase : {"", "Pending", "Running"}) {
            CAPTURE(phase);
            pod.phase = phase;
            CHECK(codes_found(objects).empty());
        }
        for (const auto* phase : {"Failed", "Succeeded"}) {
            CAPTURE(phase);
            pod.phase = phase;
            CHECK(codes_found(objects) == Codes{"left-unloaded"});
        }
        pod.phase = "Pending";
        pod.problems.push_back({"worker", "ImagePullBackOff", "Back-off\npulling image"});
        CHECK(codes_found(objects) == Codes{"left-unloaded"});
        CHECK(plan::examine(objects, {}).at(0).diagnostic.message ==
              "node node-a is labelled for v2 of Module drivers/kmm-hello, which is not loaded there: worker Pod "
              "loader-x: worker: ImagePullBackOff: Back-off\\npulling image");
        pod.problems.clear();
        pod.meta.labels[std::string(api::k_label_module_name)] = "kmm-other";
        CHECK(codes_found(objects) == Codes{"left-unloaded"});
        node.taints.push_back({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
        CHECK(codes_found(objects).empty());
    }

    TEST_CASE("doctor: each thing that is left behind has its code") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        objects.modules.push_back(build::module("v1"));
        auto& node = objects.nodes[0];
        build::set_labels(node, "v1", "", "v1");
        CHECK(codes_found(objects) == Codes{"version-labels-stuck"});
        const auto stuck = plan::examine(objects, {}).at(0).mend;
        REQUIRE(stuck.kind == plan::Mend::Kind::remove_labels);
        CHECK(stuck.module == objects.modules[0].full_name());
        CHECK(stuck.labels.at(0).key ==
              api::label_version_schedule_pod(objects.modules[0].meta.namespace_, objects.modules[0].meta.name));
        CHECK(stuck.labels.at(0).value == "v1");
        build::set_labels(node, "v1", "v1", "v1");
        for (const auto& key : {api::label_version_module("a", "b.c"), api::label_version_worker_pod("a", "b.c"),
                                api::label_ready("a", "b.c"), api::label_version_schedule_pod("a", "b.c"),
                                api::label_version_ready("a", "b.c")}) {
            CAPTURE(key);
            node.meta.labels[key] = "v7";
            const auto found = plan::examine(objects, {});
            REQUIRE(found.size() == 1);
            CHECK(found[0].mend.labels.size() == 1);
            CHECK(found[0].mend.text() == "remove label " + key + " from node-a");
            CHECK(found[0].diagnostic.code == "label-left");
            CHECK(found[0].diagnostic.message.find("no Module a/b.c") != std::string::npos);
            node.meta.labels.erase(key);
        }
        node.meta.labels["kmm.node.kubernetes.io/version-module"] = "no module in it";
        CHECK(codes_found(objects).empty());
        objects.pods.emplace_back();
        objects.pods[0].node_name = "node-z";
        CHECK(codes_found(objects) == Codes{"worker-pod-left"});
        objects.pods[0].node_name = "node-a";
        CHECK(codes_found(objects).empty());
        objects.node_modules_configs.push_back(build::loaded(build::module("v1"), node));
        objects.node_modules_configs[0].meta.deleting = true;
        CHECK(codes_found(objects).empty());
        objects.node_modules_configs[0].meta.finalizers = {"kmm.node.kubernetes.io/x"};
        CHECK(codes_found(objects) == Codes{"deletion-stuck"});
    }

    TEST_CASE("doctor: a cordon is the business of who made it") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        auto& node = objects.nodes[0];
        node.unschedulable = true;
        CHECK(codes_found(objects) == Codes{"cordon-foreign"});
        node.meta.annotations["kmmtools.dev/cordoned-by"] = "kmm-upgrade 1";
        CHECK(codes_found(objects) == Codes{"cordon-left"});
        CHECK(codes_found(objects, {"kmm-upgrade 1", {"node-a"}}).empty());
        CHECK(codes_found(objects, {"kmm-upgrade 1", {}}) == Codes{"cordon-left"});
        CHECK(codes_found(objects, {"kmm-upgrade 2", {"node-a"}}) == Codes{"cordon-left"});
        node.unschedulable = false;
        CHECK(codes_found(objects) == Codes{"cordon-left"});
    }
}
