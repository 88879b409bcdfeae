// SPDX-License-Identifier: Apache-2.0
// Selectors that match no node, and which of them look misspelt.
#include <doctest/doctest.h>

#include <string>

#include "plan/lint/lint.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

TEST_SUITE("plan::unit") {
    TEST_CASE("a value of a selector that is nearly one of a node's") {
        const auto severity_of = [](const char* wanted, const char* there) {
            api::Module module = build::module();
            module.selector = {};
            module.selector["role"] = wanted;
            api::Node node = build::node("node-a");
            node.meta.labels["role"] = there;
            api::Objects objects;
            objects.modules = {module};
            objects.nodes = {node};
            Diagnostics found;
            plan::check_selectors(objects, found);
            return found.size() == 1 ? std::string(to_string(found.front().severity)) : std::string("nothing");
        };
        for (const auto& [wanted, there] :
             {std::pair("workr", "worker"), {"Worker", "worker"}, {"worekr", "worker"}, {"workers", "worker"},
              {"storage-vautl", "storage-vault"}}) {
            CAPTURE(std::string(wanted));
            CHECK(severity_of(wanted, there) == "warning");
        }
        for (const auto& [wanted, there] :
             {std::pair("large", "xlarge"), {"active", "inactive"}, {"internal", "external"}, {"ingress", "egress"},
              {"stable", "unstable"}, {"managed", "unmanaged"}, {"online", "offline"}, {"worker1", "worker2"},
              {"gpu", "cpu"}, {"blues", "blue"}, {"control", "worker"}}) {
            CAPTURE(std::string(wanted));
            CHECK(severity_of(wanted, there) == "note");
        }
    }
}
