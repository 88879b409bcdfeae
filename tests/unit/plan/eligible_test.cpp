// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "plan/kmm/eligible.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

api::Toleration toleration(std::string key, std::string op, std::string value, std::string effect) {
    api::Toleration result;
    result.key = std::move(key);
    result.operator_ = std::move(op);
    result.value = std::move(value);
    result.effect = std::move(effect);
    return result;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("a toleration matches a taint by effect, key, operator and value") {
        const api::Taint taint{"dedicated", "gpu", "NoSchedule"};
        struct Row {
            api::Toleration toleration;
            bool tolerated;
        };
        for (const Row& row : {
                 Row{toleration("dedicated", "", "gpu", "NoSchedule"), true},
                 Row{toleration("dedicated", "Equal", "gpu", ""), true},
                 Row{toleration("dedicated", "Exists", "", ""), true},
                 Row{toleration("", "Exists", "", ""), true},
                 Row{toleration("dedicated", "Equal", "cpu", ""), false},
                 Row{toleration("dedicated", "Exists", "", "NoExecute"), false},
                 Row{toleration("other", "Exists", "", ""), false},
                 Row{toleration("dedicated", "Lt", "gpu", ""), false},
             }) {
            CAPTURE(row.toleration.key);
            CAPTURE(row.toleration.operator_);
            CHECK(plan::tolerates({row.toleration}, {taint}) == row.tolerated);
        }
    }

    TEST_CASE("only NoSchedule and NoExecute block, and the first that does is named") {
        CHECK(plan::tolerates({}, {api::Taint{"a", "", "PreferNoSchedule"}}));
        api::Taint blocking;
        CHECK_FALSE(plan::tolerates(
            {}, {{"a", "", "PreferNoSchedule"}, {"b", "x", "NoExecute"}, {"c", "", "NoSchedule"}}, &blocking));
        CHECK(blocking == api::Taint{"b", "x", "NoExecute"});
    }

    TEST_CASE("loading tolerates pressure, but not a cordon") {
        const auto tolerations = plan::loader_tolerations(build::module());
        CHECK(tolerations.size() == 3);
        CHECK(plan::tolerates(tolerations, {{"node.kubernetes.io/disk-pressure", "", "NoSchedule"},
                                            {"node.kubernetes.io/memory-pressure", "", "NoSchedule"},
                                            {"node.kubernetes.io/pid-pressure", "", "NoSchedule"}}));
        CHECK_FALSE(plan::tolerates(tolerations, {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}}));
    }

    TEST_CASE("a selector is equality on every pair") {
        CHECK(plan::selects({}, {{"a", "b"}}));
        CHECK(plan::selects({{"a", "b"}, {"c", ""}}, {{"a", "b"}, {"c", ""}, {"d", "e"}}));
        CHECK_FALSE(plan::selects({{"c", ""}}, {{"a", "b"}}));
        CHECK_FALSE(plan::selects({{"a", "b"}}, {{"a", "x"}}));
    }
}
