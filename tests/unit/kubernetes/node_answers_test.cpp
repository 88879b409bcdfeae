// SPDX-License-Identifier: Apache-2.0
// What is said of nodes by their answers as a whole.
#include <doctest/doctest.h>

#include <string>

#include "kubernetes/check/checks.hpp"
#include "kubernetes/check/etcd_leader.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

TEST_CASE("what a worker says is said of its node, and what names its node is not said twice") {
    const auto inventory = inventory_of(control_plane("a", "v1.34.4") + worker("w", "v1.34.4"));
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, builtin_catalogue(), Version::parse("v1.35.4")};
    NodeAnswers answers;
    answers["a"].problem = "kmm-worker says: expected /etc/kubernetes";
    answers["w"].problem = "node w cannot be reached: timeout";
    input.nodes = &answers;
    for (const auto& result : run_checks(input, {}))
        if (result.id == "node-reach")
            CHECK(result.detail == "a: kmm-worker says: expected /etc/kubernetes, node w cannot be reached: timeout");
}

TEST_CASE("the node whose etcd leads is found by what each member says of itself") {
    NodeAnswers answers;
    answers["a"].problem = "no answer";
    answers["b"].facts = answer_of("etcd: {memberID: '2', leaderID: '3'}");
    CHECK(etcd_leader(answers).empty());
    answers["c"].facts = answer_of("etcd: {memberID: '3', leaderID: '3'}");
    CHECK(etcd_leader(answers) == "c");
}
