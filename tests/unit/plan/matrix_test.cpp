// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plan/fleet/matrix.hpp"
#include "plan/fleet/survey.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;
using plan::MatrixCell;

TEST_SUITE("plan::unit") {
    TEST_CASE("kernels are in the order of their numbers") {
        const std::vector<std::string> ordered{"5.10",   "6.1.0-9", "6.1.0-56", "6.1.0-56-amd64",
                                               "6.1.0a", "6.01.1",  "6.1.1",    "7"};
        for (std::size_t i = 0; i < ordered.size(); ++i) {
            for (std::size_t k = 0; k < ordered.size(); ++k) {
                CAPTURE(ordered[i]);
                CAPTURE(ordered[k]);
                CHECK(plan::version_less(ordered[i], ordered[k]) == (i < k));
            }
        }
        CHECK(plan::version_less("6.1.18446744073709551616", "6.1.18446744073709551617"));
    }

    TEST_CASE("states of cells and counts") {
        std::vector<api::Module> modules{build::module(), build::module(), build::module(), build::module()};
        modules[1].meta.name = "literal";
        modules[1].module_loader->container.kernel_mappings = {build::literal("6.1.0", "i:t")};
        modules[2].meta.name = "faulty";
        modules[2].module_loader->container.kernel_mappings = {build::regexp("(", "i:t")};
        modules[3].module_loader.reset();
        modules.push_back(build::module());
        modules[4].meta.deleting = true;
        api::Node a = build::node("6.1.0+");
        api::Node b = build::node("6.2.0");
        b.meta.labels.clear();
        api::Node c = build::node("");
        const plan::Matrix matrix = plan::make_matrix({&a, &b, &c}, modules, {"6.10.0", "6.2.0"});
        REQUIRE(matrix.modules.size() == 3);
        REQUIRE(matrix.kernels.size() == 3);
        CHECK(matrix.kernels[0].version == "6.1.0+");
        CHECK_FALSE(matrix.kernels[0].asked);
        CHECK(matrix.kernels[1].version == "6.2.0");
        CHECK(matrix.kernels[1].asked);
        CHECK(matrix.kernels[2].version == "6.10.0");
        CHECK(matrix.nodes_without_kernel == 1);
        const auto state = [&](std::size_t kernel, std::size_t module) {
            return matrix.kernels[kernel].cells[module].state;
        };
        CHECK(state(0, 0) == MatrixCell::State::covered);
        CHECK(matrix.kernels[0].cells[0].nodes == std::vector<std::string>{"node-a"});
        CHECK(state(0, 1) == MatrixCell::State::covered);
        CHECK(matrix.kernels[0].cells[1].resolved->literal);
        CHECK(state(1, 0) == MatrixCell::State::covered);
        CHECK(matrix.kernels[1].cells[0].nodes.empty());
        CHECK(state(1, 1) == MatrixCell::State::gap);
        CHECK(state(2, 1) == MatrixCell::State::gap);
        CHECK(state(0, 2) == MatrixCell::State::fault);
        CHECK(matrix.gaps == 5);
        // A kernel that nobody asked for, on nodes that the Module does not select, is no gap.
        const plan::Matrix fleet = plan::make_matrix({&a, &b}, modules, {});
        CHECK(fleet.kernels[1].cells[1].state == MatrixCell::State::unwanted);
    }

    TEST_CASE("what a kernel is asked about: Modules that stay, and nodes that come back from a cordon") {
        api::Objects objects;
        objects.modules = {build::module(), build::module()};
        objects.modules[1].meta.name = "leaving";
        objects.modules[1].meta.deleting = true;
        objects.nodes = {build::node(), build::node(), build::node()};
        objects.nodes[1].meta.name = "cordoned";
        objects.nodes[1].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"},
                                   {"node.kubernetes.io/not-ready", "", "NoExecute"}};
        objects.nodes[2].meta.name = "elsewhere";
        objects.nodes[2].taints = {{"dedicated", "db", "NoSchedule"}};
        const auto rows = plan::survey(objects, {"6.1.0-57-amd64"});
        REQUIRE(rows.size() == 1);
        REQUIRE(rows[0].pools.size() == 1);
        CHECK(rows[0].pools[0].nodes == std::vector<std::string>{"cordoned", "node-a"});
    }
}
