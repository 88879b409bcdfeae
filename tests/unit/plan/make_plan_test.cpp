// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "plan/codes/reasons.hpp"
#include "plan/fleet/make_plan.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

TEST_SUITE("plan::unit") {
    TEST_CASE("a plan has one line per node and Module, sorted") {
        api::Objects objects;
        for (const auto* name : {"node-b", "node-a"}) {
            objects.nodes.push_back(build::node());
            objects.nodes.back().meta.name = name;
        }
        for (const auto* name : {"zz", "aa"}) {
            objects.modules.push_back(build::module());
            objects.modules.back().meta.name = name;
            objects.modules.back().module_loader->container.modprobe.module_name = name;
        }
        const plan::Plan plan = plan::make_plan(objects, {});
        REQUIRE(plan.entries.size() == 4);
        CHECK(plan.entries[0].node == "node-a");
        CHECK(plan.entries[0].module == "aa");
        CHECK(plan.entries[3].node == "node-b");
        CHECK(plan.entries[3].module == "zz");
        CHECK(plan.diagnostics.empty());
    }

    TEST_CASE("entries of unknown Modules are kept in spec and unloaded from status") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        auto config = build::loaded(build::module(), objects.nodes[0]);
        objects.node_modules_configs = {config};
        auto plan = plan::make_plan(objects, {});
        REQUIRE(plan.entries.size() == 1);
        CHECK(plan.entries[0].action == plan::Action::keep);
        CHECK(plan.entries[0].reason == "module-unknown");
        objects.node_modules_configs[0].spec.clear();
        plan = plan::make_plan(objects, {});
        REQUIRE(plan.entries.size() == 1);
        CHECK(plan.entries[0].action == plan::Action::unload);
    }

    TEST_CASE("a configuration without its node is a warning") {
        api::Objects objects;
        objects.node_modules_configs = {build::loaded(build::module(), build::node())};
        const auto plan = plan::make_plan(objects, {});
        CHECK(plan.entries.empty());
        REQUIRE(plan.diagnostics.size() == 1);
        CHECK(plan.diagnostics[0].code == "node-missing");
        CHECK(plan.diagnostics[0].severity == Severity::warning);
    }

    TEST_CASE("two Modules that load one kernel module on the same node are a warning") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        objects.modules = {build::module(), build::module()};
        objects.modules[1].meta.name = "other";
        objects.modules[1].module_loader->container.modprobe.module_name = "kmm-hello";
        auto plan = plan::make_plan(objects, {});
        REQUIRE(plan.diagnostics.size() == 1);
        CHECK(plan.diagnostics[0].code == "module-conflict");
        objects.modules[1].selector = {{"kmm", "no"}};
        CHECK(plan::make_plan(objects, {}).diagnostics.empty());
    }

    TEST_CASE("a fault is one diagnostic, however many nodes it blocks") {
        api::Objects objects;
        objects.nodes = {build::node(), build::node()};
        objects.nodes[1].meta.name = "node-b";
        objects.modules = {build::module()};
        objects.modules[0].module_loader->container.kernel_mappings = {build::regexp("(")};
        const auto plan = plan::make_plan(objects, {});
        CHECK(plan.diagnostics.size() == 1);
        CHECK(plan.entries.size() == 2);
    }

    TEST_CASE("reasons are sorted, unique and written as messages are") {
        const auto all = plan::reasons();
        CHECK(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.code < b.code; }));
        for (const auto& reason : all) {
            CAPTURE(reason.code);
            CHECK(plan::reason(reason.code).text == reason.text);
            CHECK_FALSE(reason.text.ends_with('.'));
        }
        CHECK_THROWS_AS(static_cast<void>(plan::reason("no-such-reason")), Error);
    }
}
