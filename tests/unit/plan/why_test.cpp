// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "plan/fleet/why.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

bool has(const plan::Why& why, const char* topic, plan::Mark mark, const std::string& part) {
    return std::any_of(why.lines.begin(), why.lines.end(), [&](const plan::WhyLine& line) {
        return line.topic == topic && line.mark == mark && line.text.find(part) != std::string::npos;
    });
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("the chain names every term that was looked at") {
        api::Node node = build::node("6.1.0-56-amd64+");
        node.meta.labels["zone"] = "a";
        node.taints = {{"gpu", "yes", "NoSchedule"}, {"soft", "", "PreferNoSchedule"}};
        build::set_labels(node, "v1", "", "");
        api::Module module = build::module("v2");
        module.selector = {{"kmm", "yes"}, {"zone", "b"}, {"rack", "1"}};
        module.module_loader->container.kernel_mappings = {build::literal("5.10"), build::regexp("^6"),
                                                           build::regexp("x")};
        const plan::Why why = plan::explain(plan::NodeView{&node, nullptr}, module, {});
        using plan::Mark;
        CHECK(has(why, "selector", Mark::passed, "kmm=yes"));
        CHECK(has(why, "selector", Mark::failed, "zone=b: the node has \"a\""));
        CHECK(has(why, "selector", Mark::failed, "rack=1: the node has no such label"));
        CHECK(has(why, "taint", Mark::failed, "gpu=yes:NoSchedule is not tolerated"));
        CHECK(has(why, "taint", Mark::passed, "soft:PreferNoSchedule"));
        CHECK(has(why, "mapping", Mark::fact, "kernel 6.1.0-56-amd64+, matched as 6.1.0-56-amd64"));
        CHECK(has(why, "mapping", Mark::failed, "[0] literal 5.10 is not equal"));
        CHECK(has(why, "mapping", Mark::passed, "[1] regexp ^6"));
        CHECK(has(why, "mapping", Mark::fact, "1 later mapping not tried"));
        CHECK(has(why, "template", Mark::fact, "KERNEL_FULL_VERSION = 6.1.0-56-amd64"));
        CHECK(has(why, "label", Mark::fact, "version-module is v1"));
        CHECK(has(why, "label", Mark::fact, "KMM will add version-worker-pod"));
        CHECK(has(why, "label", Mark::failed, "settled version-worker-pod is v1, wanted v2"));
        CHECK(why.settled.reason == "selector-mismatch");
        CHECK(why.changes ==
              std::vector<std::string>{
                  "label node node-a with rack=1", "label node node-a with zone=b",
                  "also: remove taint gpu:NoSchedule from node node-a",
                  "or add a toleration for gpu to spec.tolerations of the Module",
                  "also: label node node-a with kmm.node.kubernetes.io/version-module.drivers.kmm-hello=v2"});
    }

    TEST_CASE("all that stands in the way is told, not only what was met first") {
        api::Node node = build::node();
        node.taints = {{"gpu", "", "NoSchedule"},
                       {"node.kubernetes.io/unschedulable", "", "NoSchedule"},
                       {"soft", "", "PreferNoSchedule"}};
        api::Module module = build::module("");
        module.module_loader->container.kernel_mappings = {build::literal("5.10.0-1")};
        const auto changes = [&] { return plan::explain(plan::NodeView{&node, nullptr}, module, {}).changes; };
        CHECK(changes() ==
              std::vector<std::string>{
                  "remove taint gpu:NoSchedule from node node-a",
                  "or add a toleration for gpu to spec.tolerations of the Module",
                  "also: remove taint node.kubernetes.io/unschedulable:NoSchedule from node node-a (kubectl uncordon)",
                  "or add a toleration for node.kubernetes.io/unschedulable to spec.tolerations of the Module",
                  "also: add a kernel mapping that matches 6.1.0-56-amd64 to the Module"});
        node.taints.clear();
        CHECK(changes() == std::vector<std::string>{"add a kernel mapping that matches 6.1.0-56-amd64 to the Module"});
    }

    TEST_CASE("every answer says what would change it") {
        const api::Module module = build::module("v1");
        api::Node node = build::node();
        CHECK(plan::explain(plan::NodeView{&node, nullptr}, module, {}).changes ==
              std::vector<std::string>{
                  "label node node-a with kmm.node.kubernetes.io/version-module.drivers.kmm-hello=v1"});
        build::set_labels(node, "v1", "v1", "v1");
        CHECK_FALSE(plan::explain(plan::NodeView{&node, nullptr}, module, {}).changes.empty());
        const auto config = build::loaded(module, node);
        CHECK_FALSE(plan::explain(plan::NodeView{&node, &config}, module, {}).changes.empty());
        node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        CHECK(plan::explain(plan::NodeView{&node, &config}, module, {}).changes.at(0).find("uncordon") !=
              std::string::npos);
    }

    TEST_CASE("a fault is part of the chain") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::regexp("(")};
        const api::Node node = build::node();
        const plan::Why why = plan::explain(plan::NodeView{&node, nullptr}, module, {});
        CHECK(has(why, "mapping", plan::Mark::failed, "missing"));
        CHECK(why.settled.action == plan::Action::blocked);
    }
}
