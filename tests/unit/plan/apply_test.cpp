// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/fleet/apply.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;
using namespace kmm::plan;

namespace {

using Names = std::vector<std::string>;

/// Nodes node-a to node-d, selected, with nothing on them.
api::Objects fleet(const api::Module& module) {
    api::Objects objects;
    for (const char* name : {"node-a", "node-b", "node-c", "node-d"}) {
        objects.nodes.push_back(build::node());
        objects.nodes.back().meta.name = name;
    }
    objects.modules = {module};
    return objects;
}

void load(api::Objects& objects, std::size_t node, const api::Module& module) {
    const auto entry = build::loaded(module, objects.nodes[node]);
    for (auto& config : objects.node_modules_configs) {
        if (config.meta.name != entry.meta.name) { continue; }
        config.spec.push_back(entry.spec.front());
        config.status.push_back(entry.status.front());
        return;
    }
    objects.node_modules_configs.push_back(entry);
}

ApplyWork only_work(const api::Objects& objects) {
    const auto all = apply_work(objects, complete({}, objects));
    REQUIRE(all.size() == 1);
    return all.front();
}

}  // namespace

TEST_SUITE("plan::unit") {

TEST_CASE("a node that is right is no work, one that lacks the module or has another build of it is") {
    auto module = build::module();
    auto objects = fleet(module);
    load(objects, 0, module);
    auto other = module;
    other.module_loader->container.container_image = "registry.example/kmm-hello:earlier";
    load(objects, 1, other);
    objects.nodes[3].meta.labels.clear();
    const auto work = only_work(objects);
    CHECK(work.full_name() == "drivers/kmm-hello");
    CHECK(work.load == Names{"node-b", "node-c"});
    CHECK(work.unload.empty());
    CHECK(work.ordered.empty());
    CHECK_FALSE(work.deleted);
}

TEST_CASE("a node that is not selected any more loses the module, with versions as without") {
    for (const char* version : {"", "v1"}) {
        auto module = build::module(version);
        auto objects = fleet(module);
        load(objects, 0, module);
        objects.nodes[0].meta.labels.erase("kmm");
        CHECK(only_work(objects).unload == Names{"node-a"});
        objects.nodes[0].boot_id = "b2";  // it is gone, its entries are not
        CHECK(only_work(objects).unload == Names{"node-a"});
        objects.node_modules_configs.clear();
        CHECK(only_work(objects).unload.empty());
    }
}

TEST_CASE("nodes of a Module with versions are a matter of an ordered upgrade") {
    auto module = build::module("v2");
    auto objects = fleet(module);
    build::set_labels(objects.nodes[0], "v2", "v2", "v2");  // nothing loaded yet
    build::set_labels(objects.nodes[1], "v1", "v1", "v1");  // held at v1
    load(objects, 1, build::module("v1"));
    build::set_labels(objects.nodes[2], "v2", "v2", "v2");  // right
    load(objects, 2, module);
    const auto work = only_work(objects);
    CHECK(work.ordered == Names{"node-a", "node-b", "node-d"});
    CHECK_FALSE(work.has_work());
}

TEST_CASE("what a deleted Module has left is taken out, in spec as in status") {
    auto module = build::module();
    auto objects = fleet(module);
    load(objects, 0, module);
    load(objects, 1, module);
    objects.node_modules_configs[1].spec.clear();
    load(objects, 2, module);
    objects.node_modules_configs[2].status.clear();
    objects.modules.clear();
    const auto work = only_work(objects);
    CHECK(work.deleted);
    CHECK(work.unload == Names{"node-a", "node-b", "node-c"});
    CHECK(work.load.empty());
}

TEST_CASE("blocked nodes are told of and left") {
    auto module = build::module();
    module.module_loader->container.kernel_mappings = {build::regexp("(")};
    const auto objects = fleet(module);
    const auto work = only_work(objects);
    CHECK_FALSE(work.has_work());
    REQUIRE(work.blocked.size() == 4);
    CHECK(work.blocked.front().node == "node-a");
    CHECK(work.blocked.front().reason == "bad-regexp");
}

TEST_CASE("a node whose kernel no mapping matches is told of") {
    auto module = build::module();
    module.module_loader->container.kernel_mappings = {build::regexp("^9")};
    auto objects = fleet(module);
    objects.nodes[3].meta.labels.clear();
    const auto work = only_work(objects);
    CHECK_FALSE(work.has_work());
    REQUIRE(work.blocked.size() == 3);
    CHECK(work.blocked.front().reason == "no-kernel-mapping");
    CHECK(work.kept_out.empty());
}

TEST_CASE("nodes that a Module with versions cannot go to are told of and are not for an ordered upgrade") {
    auto module = build::module("v1");
    auto objects = fleet(module);
    objects.nodes[0].taints = {{std::string(api::k_taint_unschedulable), "", "NoSchedule"}};
    objects.nodes[1].kernel_version = "5.0.0";
    module.module_loader->container.kernel_mappings = {build::regexp("^[6-9]")};
    objects.modules = {module};
    const auto work = only_work(objects);
    CHECK(work.ordered == Names{"node-c", "node-d"});
    CHECK(work.blocked.empty());
    REQUIRE(work.kept_out.size() == 2);
    CHECK(work.kept_out[0].reason == "taint-not-tolerated");
    CHECK(work.kept_out[1].reason == "no-kernel-mapping");
}

TEST_CASE("removals come first and against the order of loading") {
    const auto named = [](const char* name, const char* needs, const char* selected) {
        auto module = build::module();
        module.meta.name = name;
        module.selector = {{selected, "yes"}};
        module.module_loader->container.modprobe.module_name = name;
        if (*needs != '\0') { module.meta.annotations[std::string(k_annotation_needs)] = needs; }
        return module;
    };
    auto objects = fleet(named("upper", "drivers/base", "kmm"));
    objects.modules.push_back(named("base", "", "kmm"));
    const auto goes = named("goes", "", "none"), goes_first = named("goes-first", "drivers/goes", "none");
    objects.modules.push_back(goes);
    objects.modules.push_back(goes_first);
    const auto deleted = named("deleted", "", "none");
    for (const auto& module : {goes, goes_first, deleted}) { load(objects, 0, module); }
    Names order;
    for (const auto& work : apply_work(objects, complete({}, objects))) { order.push_back(work.module); }
    CHECK(order == Names{"goes-first", "goes", "deleted", "base", "upper"});
}

TEST_CASE("a node is left in the order of needs although others are loaded at the same time") {
    auto base = build::module(), upper = build::module();
    base.meta.name = "base";
    upper.meta.name = "upper";
    upper.meta.annotations[std::string(k_annotation_needs)] = "drivers/base";
    auto objects = fleet(base);
    objects.modules.push_back(upper);
    for (const auto& module : {base, upper}) { load(objects, 0, module); }
    objects.nodes[0].meta.labels.clear();
    std::vector<std::string> order;
    const auto line = [](const ApplyWork& work) {
        return work.module + " -" + kmm::base::join(work.unload, ",") + " +" + kmm::base::join(work.load, ",");
    };
    for (const auto& work : apply_work(objects, complete({}, objects))) { order.push_back(line(work)); }
    CHECK(order == Names{"upper -node-a +", "base -node-a +node-b,node-c,node-d", "upper - +node-b,node-c,node-d"});

    // Nothing in the way: one piece.
    objects.modules[1].meta.annotations.clear();
    order.clear();
    for (const auto& work : apply_work(objects, complete({}, objects))) { order.push_back(line(work)); }
    CHECK(order == Names{"base -node-a +node-b,node-c,node-d", "upper -node-a +node-b,node-c,node-d"});
}

}
