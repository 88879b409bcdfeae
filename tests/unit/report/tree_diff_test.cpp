// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "report/tree_diff.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::report;

namespace {

value::Node tree(const std::string& yaml) {
    Diagnostics faults;
    const auto documents = value::read_yaml(yaml, "t", faults);
    REQUIRE(faults.empty());
    REQUIRE(documents.size() == 1);
    return documents.front().root;
}

std::string difference(const std::string& observed, const std::string& wanted) {
    return unified("a", "b", tree_changes(tree(observed), tree(wanted)));
}

}  // namespace

TEST_SUITE("report::unit") {
    TEST_CASE("equal trees have no changes, whatever the order of members and named items") {
        CHECK(difference("{a: 1, b: [x, y], c: {d: e}}", "{c: {d: e}, b: [x, y], a: 1}").empty());
        CHECK(difference("l: [{name: a, v: 1}, {name: b}]", "l: [{name: b}, {v: 1, name: a}]").empty());
    }

    TEST_CASE("fields that change, come and go") {
        CHECK(difference("{a: {x: 1, p: old, gone: g}}", "{a: {x: 1, p: new, more: [m]}}") ==
              "--- a\n+++ b\n@@ a @@\n-gone: g\n+more:\n+- m\n-p: old\n+p: new\n");
        CHECK(difference("a: 1", "b: 1") == "--- a\n+++ b\n@@ . @@\n-a: 1\n+b: 1\n");
    }

    TEST_CASE("items of lists are compared with the item of the same identity") {
        const std::string text = difference("l: [{namespace: d, name: a, v: 1}, {namespace: d, name: b}]",
                                            "l: [{namespace: d, name: a, v: 2}, {namespace: o, name: b}]");
        CHECK(text ==
              "--- a\n+++ b\n@@ l[d/a] @@\n-v: 1\n+v: 2\n@@ l @@\n-- namespace: d\n-  name: b\n+- namespace: o\n+  "
              "name: b\n");
    }

    TEST_CASE("lists without identity, or with a doubled one, are compared as a whole") {
        CHECK(difference("l: [a, b]", "l: [b, a]") == "--- a\n+++ b\n@@ . @@\n-l:\n-- a\n-- b\n+l:\n+- b\n+- a\n");
        CHECK(tree_changes(tree("l: [{name: a}, {name: a}]"), tree("l: [{name: a}]")).size() == 1);
    }

    TEST_CASE("paths: keys with dots stand in brackets") {
        const auto changes =
            tree_changes(tree("{metadata: {labels: {a.b/c: v1}}}"), tree("{metadata: {labels: {a.b/c: v2}}}"));
        REQUIRE(changes.size() == 1);
        CHECK(changes[0].path() == "metadata.labels[a.b/c]");
        CHECK(unified("a", "b", changes) == "--- a\n+++ b\n@@ metadata.labels @@\n-a.b/c: v1\n+a.b/c: v2\n");
    }

    TEST_CASE("characters that nobody sees are seen in a diff") {
        const auto changes = tree_changes(tree(R"({"a\u202e": {"b": x}})"), tree(R"({"a\u202e": {"b": "x\u200b"}})"));
        CHECK(unified("a", "b\xE2\x80\xAE", changes) ==
              "--- a\n+++ b\\xe2\\x80\\xae\n@@ a\\xe2\\x80\\xae @@\n-b: x\n+b: \"x\\u200b\"\n");
    }

    TEST_CASE("a whole object that is missing, and kinds that change") {
        CHECK(unified("/dev/null", "b", tree_changes(value::Node(), tree("{a: 1, b: {c: d}}"))) ==
              "--- /dev/null\n+++ b\n@@ . @@\n+a: 1\n+b:\n+  c: d\n");
        CHECK(difference("a: [1]", "a: x") == "--- a\n+++ b\n@@ . @@\n-a:\n-- 1\n+a: x\n");
        CHECK(shown(std::nullopt) == "nothing");
        CHECK(shown(tree("[]")) == "a list");
        CHECK(shown(value::Node(std::string(100, 'x'))).size() == 63);
    }
}
