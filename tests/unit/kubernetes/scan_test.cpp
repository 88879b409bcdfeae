// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/check/scan.hpp"

#include <doctest/doctest.h>

#include "unit/kubernetes/make_inventory.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

/// An answer whose directories and packages have these items.
NodeAnswer answer(const std::string& directories, const std::string& packages = "") {
    Diagnostics faults;
    auto documents = value::read_yaml("scan: {directories: {source: /d, versions: [" + directories +
                                          "], ignored: []}, packages: {source: apt, versions: [" + packages +
                                          "], ignored: [{name: \"x\\ny\", reason: r}]}}",
                                      "facts", faults);
    REQUIRE(faults.empty());
    NodeAnswer made;
    made.facts = std::move(documents.front().root);
    return made;
}

std::string whole(const std::string& version) { return "{version: " + version + ", whole: true, problem: ''}"; }

ScanResult scan(const NodeAnswers& answers) {
    static const auto inventory = inventory_of(control_plane("a", "v1.34.4") + worker("w", "v1.34.4"));
    return read_scan(answers, observe(inventory), builtin_catalogue());
}

std::string entries(const ScanResult& result) {
    auto list = value::Node::sequence();
    for (const auto& entry : result.entries) list.push_back(entry_node(entry));
    return value::to_json(list);
}

constexpr const char* k_running = R"([{"version":"v1.34.4","upgrade_from":[],"etcd":"3.6.5-0","coredns":"v1.12.1","pause":"3.10.1"}])";

}  // namespace

TEST_CASE("what every node has by one way is proposed, with what the minor rule lets it follow") {
    const auto all = whole("v1.34.9") + ", " + whole("1.35.0") + "," + whole("v1.36.0");
    const auto result = scan({{"a", answer(all)}, {"w", answer(all)}});
    CHECK(entries(result) ==
          R"([{"version":"v1.34.4","upgrade_from":[],"etcd":"3.6.5-0","coredns":"v1.12.1","pause":"3.10.1"},)"
          R"({"version":"v1.34.9","upgrade_from":["v1.34.4"]},)"
          R"({"version":"v1.35.0","upgrade_from":["v1.34.4","v1.34.9"]},{"version":"v1.36.0","upgrade_from":["v1.35.0"]}])");
    // As --versions reads it.
    Diagnostics faults;
    auto versions = value::Node::sequence();
    for (const auto& entry : result.entries) versions.push_back(entry_node(entry));
    const auto catalogue =
        read_catalogue(value::to_yaml(value::Node::mapping({{"versions", versions}})), "f", faults);
    CHECK(faults.empty());
    CHECK(catalogue.versions.size() == 4);
}

TEST_CASE("what a node lacks is named and not proposed") {
    const auto result =
        scan({{"a", answer(whole("v1.35.4"))}, {"w", answer("{version: v1.35.4, whole: false, problem: no kubelet}")}});
    CHECK(entries(result) == k_running);
    REQUIRE(result.versions.size() == 2);
    CHECK_FALSE(result.versions[1].is_proposed);
    REQUIRE(result.versions[1].ways.size() == 1);
    CHECK(result.versions[1].ways[0].nodes == std::vector<std::string>{"a"});
    CHECK(result.versions[1].ways[0].lacking == std::vector<std::pair<std::string, std::string>>{{"w", "no kubelet"}});
    // Two ways, neither of them on both nodes: start takes one way for all nodes.
    CHECK(entries(scan({{"a", answer(whole("v1.35.4"))}, {"w", answer("", whole("v1.35.4"))}})) == k_running);
}

TEST_CASE("a node that does not answer leaves every version open") {
    NodeAnswer silent;
    silent.problem = "no route";
    const auto result = scan({{"a", answer(whole("v1.35.4"))}, {"w", silent}});
    CHECK(entries(result) == k_running);
    REQUIRE(result.silent.size() == 1);
    CHECK(result.silent[0].node == "w");
}

TEST_CASE("answers are not trusted") {
    const auto result = scan({{"a", answer("{version: \"../x\", whole: true}, {version: 7}, x, " + whole("v1.35.4"))},
                              {"w", answer("{version: v1.35.4, whole: yes please}")}});
    CHECK(entries(result) == k_running);
    std::string ignored;
    for (const auto& note : result.ignored) ignored += note.node + "/" + note.subject + " ";
    CHECK(ignored == "a/../x a/ a/ a/x\ny w/x\ny ");
    NodeAnswer strange;
    strange.facts = value::Node::mapping({{"scan", "nothing"}});
    const auto other = scan({{"a", strange}, {"w", answer(whole("v1.35.4"))}});
    CHECK(entries(other) == k_running);
    CHECK(other.unread.size() == 2);
}
