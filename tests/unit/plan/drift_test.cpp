// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/drift.hpp"

#include <doctest/doctest.h>

#include "plan/fleet/make_plan.hpp"
#include "unit/plan/build.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

std::string plan_text(const std::string& entry, const std::string& more = "") {
    return "apiVersion: kmmtools/v1\nkind: Plan\nstate: settled\n" + more + "entries:\n" + entry;
}

plan::SavedPlan read_plan(const std::string& text) {
    Diagnostics faults;
    const auto documents = value::read_yaml(text, "plan.yaml", faults);
    REQUIRE(faults.empty());
    return plan::read_saved_plan(documents.at(0), "drivers", "kmm-hello");
}

const std::string k_load =
    "- {node: node-a, kernel: 6.1.0-56-amd64, namespace: drivers, module: kmm-hello, action: load, reason: "
    "not-loaded,\n"
    "   image: 'registry.example/kmm-hello:x-6.1.0-56-amd64'}\n";

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("a plan file drifts by what it says of the nodes of the Module") {
        api::Objects objects;
        objects.nodes.push_back(build::node());
        objects.modules.push_back(build::module());
        auto now = plan::make_plan(objects, {});
        REQUIRE(now.entries.size() == 1);
        plan::SavedPlan saved;
        const auto& entry = now.entries[0];
        auto& was = saved.nodes["node-a"];
        was.kernel = entry.kernel;
        was.version = entry.version;
        was.image = entry.image;
        was.action = plan::to_string(entry.action);
        was.reason = entry.reason;
        was.config = value::Node();
        auto found = plan::drift(saved, now, "drivers", "kmm-hello");
        REQUIRE(found.size() == 1);
        CHECK(found[0].second.find("config.") == 0);
        now.entries[0].config.reset();
        CHECK(plan::drift(saved, now, "drivers", "kmm-hello").empty());
        CHECK(plan::drift(saved, now, "drivers", "other") ==
              std::vector<std::pair<std::string, std::string>>{
                  {"node-a", "is in the plan, but no longer in the cluster"}});
        now.entries[0].kernel = "6.1.0-60-amd64";
        now.entries[0].version = "v9";
        CHECK(plan::drift(saved, now, "drivers", "kmm-hello").at(0).second ==
              "kernel 6.1.0-56-amd64 is now 6.1.0-60-amd64; version none is now v9");
        now.entries[0].node = "node-b";
        found = plan::drift(saved, now, "drivers", "kmm-hello");
        REQUIRE(found.size() == 2);
        CHECK(found[1].first == "node-b");
        CHECK(found[1].second.find("is not in the plan") == 0);
    }

    TEST_CASE("what is not a plan of this Module is refused with its place") {
        CHECK(read_plan(plan_text(k_load)).nodes.at("node-a").action == "load");
        CHECK(!read_plan(plan_text(k_load)).next);
        const std::pair<std::string, const char*> rows[] = {
            {"kind: Node\napiVersion: v1\n", "expected apiVersion kmmtools/v1 and kind Plan"},
            {"apiVersion: kmmtools/v1\nkind: Plan\n", "no list of entries"},
            {plan_text("- {node: node-a}\n"), "has no text \"namespace\""},
            {plan_text("- {node: [1]}\n"), "has no text \"node\""},
            {plan_text(k_load + k_load), "two entries of drivers/kmm-hello on node node-a"},
            {plan_text(k_load, "source: {whatIf: [kernel x]}\n"), "only imagined"},
            {plan_text("- {cluster: prod, node: node-a}\n"), "several clusters"},
            {plan_text("- {node: node-a, namespace: other, module: kmm-hello}\n"), "no entry of drivers/kmm-hello"},
        };
        for (const auto& [text, expected] : rows) {
            CAPTURE(text);
            try {
                (void)read_plan(text);
                FAIL("accepted");
            } catch (const Error& error) {
                CHECK(error.code() == "bad-plan");
                CHECK(error.exit() == Exit::data);
                CHECK(error.message().find(expected) != std::string::npos);
                REQUIRE(error.position());
                CHECK(error.position()->line > 0);
            }
        }
    }
}
