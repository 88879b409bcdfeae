// SPDX-License-Identifier: Apache-2.0
// Traps of images between hub and clusters, and of the Pods that look for images.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plan/lint/lint.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

using FoundCodes = std::vector<std::string>;

FoundCodes codes_found(const Diagnostics& diagnostics) {
    FoundCodes result;
    for (const auto& diagnostic : diagnostics) { result.push_back(diagnostic.code); }
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("the image of a ManagedClusterModule that hub and clusters name differently") {
        api::Objects objects;
        auto& hub = objects.managed_cluster_modules.emplace_back();
        hub.meta.name = "hello";
        hub.spoke_namespace = "drivers";
        hub.module = build::module();
        auto& container = hub.module.module_loader->container;
        container.container_image = "reg/${MOD_NAMESPACE}/x:1";
        container.kernel_mappings[0].container_image = "reg/$MOD_NAMESPACE/y:${KERNEL_XYZ}";
        const auto codes = [&] {
            Diagnostics found;
            plan::check_hub_images(objects, found);
            return codes_found(found);
        };
        CHECK(codes() == FoundCodes{"hub-image-differs"});
        container.kernel_mappings.push_back(container.kernel_mappings[0]);
        container.kernel_mappings[1].container_image.clear();
        container.kernel_mappings.push_back(container.kernel_mappings[1]);
        CHECK(codes() == FoundCodes{"hub-image-differs", "hub-image-differs"});
        container.container_image = container.kernel_mappings[0].container_image = "reg/${MOD_NAME}/$$MOD_NAMESPACE:1";
        CHECK(codes().empty());
    }

    TEST_CASE("Pods that look for images, where every node has a taint") {
        api::Objects objects;
        objects.nodes = {build::node(), build::node()};
        objects.modules = {build::module()};
        api::Toleration gpu;
        gpu.key = "gpu";
        gpu.operator_ = "Exists";
        objects.modules[0].tolerations = {gpu};
        objects.nodes[0].taints = {{"gpu", "", "NoSchedule"}};
        const auto codes = [&](const std::optional<plan::Release>& release = std::nullopt) {
            Diagnostics found;
            plan::check_pull_pods(objects, release, found);
            return codes_found(found);
        };
        CHECK(codes().empty());
        objects.nodes[1].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
        CHECK(codes().empty());
        objects.nodes[1].taints = {{"node-role.kubernetes.io/control-plane", "", "NoSchedule"}};
        CHECK(codes() == FoundCodes{"pull-pod-taints"});
        CHECK(codes(plan::parse_release("v2.6.0")) == FoundCodes{"pull-pod-taints"});
        CHECK(codes(plan::parse_release("v2.3.0")).empty());
        CHECK(codes(plan::k_main).empty());
        auto& images = objects.module_images_configs.emplace_back();
        images.meta = objects.modules[0].meta;
        images.states["reg/x:1"] = "";
        CHECK(codes() == FoundCodes{"pull-pod-taints"});
        images.states["reg/x:1"] = "Exists";
        CHECK(codes().empty());
        images.states.clear();
        CHECK(codes() == FoundCodes{"pull-pod-taints"});
        const auto& meta = objects.modules[0].meta;
        objects.nodes[1].meta.labels[api::label_ready(meta.namespace_, meta.name)] = "";
        CHECK(codes().empty());
        objects.nodes[1].meta.labels.clear();
        api::NodeModule entry;
        entry.name = meta.name;
        entry.namespace_ = meta.namespace_ + "-of-others";
        auto& config = objects.node_modules_configs.emplace_back();
        config.status = {entry};
        CHECK(codes() == FoundCodes{"pull-pod-taints"});
        config.status[0].namespace_ = meta.namespace_;
        CHECK(codes().empty());
        std::swap(config.spec, config.status);
        CHECK(codes().empty());
        config.spec.clear();
        objects.modules[0].tolerations.clear();  // no worker Pod would run anywhere either
        CHECK(codes().empty());
    }
}
