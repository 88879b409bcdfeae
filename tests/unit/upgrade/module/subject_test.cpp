// SPDX-License-Identifier: Apache-2.0
// What the module procedures keep in the record: typed views that lose nothing.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"

using namespace kmm;
using namespace kmm::upgrade;
using namespace kmm::upgrade::module;

TEST_SUITE("upgrade::unit") {

TEST_CASE("identities agree by srcversion, else by build id") {
    const Identity full{"AAAA", "bbbb", "c", ""};
    CHECK(compare(full, {"AAAA", "zzzz", "", ""}) == Sameness::different);
    CHECK(compare(full, {"AAAA", "", "", ""}) == Sameness::same);
    CHECK(compare(full, {"XXXX", "bbbb", "", ""}) == Sameness::different);
    CHECK(compare(full, {"", "bbbb", "", ""}) == Sameness::same);
    CHECK(compare(full, {"", "zzzz", "", ""}) == Sameness::different);
    CHECK(compare(full, {"", "", "c", ""}) == Sameness::unknown);
    CHECK(compare({}, {}) == Sameness::unknown);
}

TEST_CASE("a node and a subject are the same again, and empty members are not there") {
    Node node;
    node.name = "node-a";
    node.goal = k_goal_absent;
    node.next = "unload";
    node.from_entry = value::Node::mapping({{"name", "hello"}});
    node.target_identity = {"AAAA", "", "", "1.0"};
    node.live = {"", "bbbb", "", ""};
    node.kernel_line = "no device";
    const auto record = record_of(node);
    CHECK(record.name == "node-a");
    CHECK(record.facts.members().size() == 6);
    CHECK(goes_away(record));
    const auto again = read(record);
    CHECK(again.next == node.next);
    CHECK(again.from_entry.same_value(node.from_entry));
    CHECK(again.target_identity == node.target_identity);
    CHECK(again.live == node.live);
    CHECK(again.from_identity.empty());
    CHECK(record_of(read(NodeRecord())).facts.is_null());
    Header header;
    const Subject subject{"drivers", "hello", "hello", "a.example,b.example", {"x/y", "n", "l", "2"}};
    set_subject(header, subject);
    const auto found = subject_of(header);
    CHECK(found.full_name() == "drivers/hello");
    CHECK(found.created_definitions == subject.created_definitions);
    CHECK(found.rest.share == "2");
    CHECK(full_name(header) == "drivers/hello");
}

TEST_CASE("a run in words: what follows, what goes, and how it is begun again") {
    Run run;
    run.procedure = k_procedure_apply;
    run.rules = &procedure_apply();
    run.state = "upgrade-complete";
    set_subject(run, {"drivers", "hello", "hello", "a.example", {"drivers/next net/other", "", "", ""}});
    Node node;
    node.name = "node-a";
    node.goal = k_goal_absent;
    run.nodes = {record_of(node)};
    const auto words = describe(run);
    CHECK(words.versions() == "none -> removed");
    CHECK(words.slug() == "hello-removed");
    CHECK(words.is_one_of_many);
    CHECK(words.follows == std::vector<std::string>{"drivers/next", "net/other"});
    CHECK(is_followed(run));
    CHECK(words.again == "kmm-upgrade apply drivers/hello");
    CHECK(words.notes.front().second == "CustomResourceDefinition a.example");
    CHECK(procedure_apply().target_text(run, run.nodes.front()) == "-");
}

TEST_CASE("a header without a Module is damaged") {
    Run run;
    run.rules = &procedure_module();
    run.to_version = "v2";
    CHECK_THROWS_WITH_AS(procedure_module().check(run), "the record has no moduleName", Error);
}

}  // TEST_SUITE
