// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "edit/edit.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::edit;
using namespace kmm::value;

namespace {

using Path = std::vector<std::string>;

struct EditCase {
    std::string name, text;
    std::vector<Edit> edits;
    std::string expected;
};

Edit put(Path path, Node value) { return Edit{std::move(path), std::move(value)}; }
Edit drop(Path path) { return Edit{std::move(path), std::nullopt}; }

void check(const std::vector<EditCase>& cases) {
    for (const auto& c : cases) {
        CAPTURE(c.name);
        std::string found;
        try {
            found = edit_text(c.text, "f.yaml", c.edits);
        } catch (const Error& error) {
            found = error.code() + ": " + error.message();
        }
        CHECK(found == c.expected);
    }
}

std::string with_crlf(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\n' ? std::string("\r\n") : std::string(1, c);
    return out;
}

Node read_tree(const std::string& text) {
    Diagnostics faults;
    const auto documents = read_any(text, "f", faults);
    REQUIRE_FALSE(has_errors(faults));
    return documents.empty() ? Node() : documents.at(0).root;
}

const std::string k_node =
    "# owner: storage team\n"
    "apiVersion: v1\n"
    "kind: Node   # a worker\n"
    "metadata:\n"
    "  name: node-a\n"
    "  labels:   # do not sort\n"
    "    'zone':   \"eu-1\"   # rack 7\n"
    "    # about role\n"
    "    role: worker\n"
    "\n"
    "    weird: yes\n"
    "  # end of metadata\n"
    "spec:\n"
    "  taints:\n"
    "  - key: a\n"
    "    effect: NoSchedule  # keep\n"
    "  podCIDR: 10.0.0.0/24\n"
    "# the end\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

const Path k_role = {"metadata", "labels", "role"};

std::vector<EditCase> block_cases() {
    return {
        {"replace a plain scalar", k_node, {put(k_role, "x")}, replaced(k_node, "role: worker", "role: x")},
        {"replace a quoted one, comment and gap stay",
         k_node,
         {put({"metadata", "labels", "zone"}, "us 1")},
         replaced(k_node, "\"eu-1\"", "\"us 1\"")},
        {"same value writes nothing",
         k_node,
         {put({"metadata", "labels", "zone"}, "eu-1"), put({"metadata", "labels", "weird"}, true)},
         k_node},
        {"a string that looks like a boolean is quoted",
         k_node,
         {put(k_role, "true")},
         replaced(k_node, "role: worker", "role: \"true\"")},
        {"add behind the last label",
         k_node,
         {put({"metadata", "labels", "a/b.c"}, "1")},
         replaced(k_node, "    weird: yes\n", "    weird: yes\n    a/b.c: \"1\"\n")},
        {"add a section",
         k_node,
         {put({"status", "nodeInfo", "kernelVersion"}, "6.1.0-56-amd64")},
         replaced(k_node, "10.0.0.0/24\n",
                  "10.0.0.0/24\nstatus:\n  nodeInfo:\n    kernelVersion: \"6.1.0-56-amd64\"\n")},
        {"remove one", k_node, {drop(k_role)}, replaced(k_node, "    role: worker\n", "")},
        {"remove the last one",
         k_node,
         {drop({"metadata", "labels", "weird"})},
         replaced(k_node, "    weird: yes\n", "")},
        {"remove what is not there",
         k_node,
         {drop({"metadata", "labels", "x"}), drop({"a", "b"}), drop({"kind", "b"})},
         k_node},
        {"remove a mapping",
         k_node,
         {drop({"metadata", "labels"})},
         replaced(k_node,
                  "  labels:   # do not sort\n    'zone':   \"eu-1\"   # rack 7\n    # about role\n    role: "
                  "worker\n\n    weird: yes\n",
                  "")},
        {"remove a list in the middle",
         k_node,
         {drop({"spec", "taints"})},
         replaced(k_node, "  taints:\n  - key: a\n    effect: NoSchedule  # keep\n", "")},
        {"remove all labels",
         "m:\n  labels: # c\n    # first\n    a: 1\n    # last\nz: 1\n",
         {drop({"m", "labels", "a"})},
         "m:\n  labels: {} # c\n    # first\n    # last\nz: 1\n"},
        {"put into the emptied",
         "m:\n  labels: {} # c\n    # first\nz: 1\n",
         {put({"m", "labels", "b"}, 2)},
         "m:\n  labels: # c\n    b: 2\n    # first\nz: 1\n"},
        {"remove all at the root", "# x\na: 1\n", {drop({"a"})}, "# x\n{}\n"},
        {"null parent",
         "m:\n  labels:   # none yet\nz: 1\n",
         {put({"m", "labels", "b"}, "c")},
         "m:\n  labels:   # none yet\n    b: c\nz: 1\n"},
        {"null word", "m: ~ # c\nz: null\n", {put({"m"}, 1), put({"z", "y"}, 2)}, "m: 1 # c\nz:\n  \"y\": 2\n"},
        {"scalar by list",
         "a: 1 # c\nb: 2\n",
         {put({"a"}, Node::sequence({"x", Node::mapping({{"k", 1}})}))},
         "a: # c\n- x\n- k: 1\nb: 2\n"},
        {"list by scalar", "a: # c\n- x\n- k: 1 # d\nb: 2\n", {put({"a"}, "z")}, "a: z # c\nb: 2\n"},
        {"list at the parent's indent",
         "s:\n  m:\n  - a: 1\n  - b: 2\n  # tail\n  n: 3\n",
         {put({"s", "m"}, Node::sequence({4}))},
         "s:\n  m:\n  - 4\n  # tail\n  n: 3\n"},
        {"literal in front", "a: |\n  x\n   # y\n\n# tail\nb: 1\n", {put({"a"}, "q")}, "a: q\n\n# tail\nb: 1\n"},
        {"literal at the end",
         "b: 1\na: |\n  x\n  # y\n# tail\n",
         {put({"c"}, 1)},
         "b: 1\na: |\n  x\n  # y\nc: 1\n# tail\n"},
        {"keep literal at the end", "b: 1\na: |+\n  x\n\n", {put({"c"}, 1)}, "b: 1\na: |+\n  x\n\nc: 1\n"},
        {"folded by literal", "a: >- # why\n  x\n  y\nb: 1\n", {put({"a"}, "p\nq\n")}, "a: | # why\n  p\n  q\nb: 1\n"},
        {"plain over lines", "a: x\n  y\n  z # c\nb: 1\n", {put({"a"}, "k")}, "a: k\nb: 1\n"},
        {"quoted over lines", "a: \"x\n  # no comment\n  z\" # c\nb: 1\n", {put({"b"}, 2), drop({"a"})}, "b: 2\n"},
        {"hash in quoted key and value", "'a # b': 'c # d' # e\n", {put({"a # b"}, "x")}, "'a # b': x # e\n"},
        {"colon in plain", "url: http://x/#y\nz: a:b\n", {put({"url"}, "w"), put({"z"}, "v")}, "url: w\nz: v\n"},
        {"no final newline, replace", "a: 1\nb: 2", {put({"b"}, 3)}, "a: 1\nb: 3"},
        {"no final newline, add", "a: 1\nb: 2", {put({"c"}, 3)}, "a: 1\nb: 2\nc: 3"},
        {"no final newline, a text that needs one",
         "a: 1",
         {put({"b"}, "x\ny\n"), put({"a"}, "z")},
         "a: z\nb: \"x\\ny\\n\""},
        {"a text in front of a comment",
         "a:\n  b: 1\n    # deep\n",
         {put({"c"}, Node::mapping({{"d", "x\ny\n"}}))},
         "a:\n  b: 1\nc: {\"d\":\"x\\ny\\n\"}\n    # deep\n"},
        {"no final newline, remove", "a: 1\nb: 2", {drop({"b"})}, "a: 1"},
        {"no final newline, comment at the end", "a: 1\nb: 2 # c", {put({"c"}, 3)}, "a: 1\nb: 2 # c\nc: 3"},
        {"document marks", "# c\n---\na: 1\n...\n", {put({"b"}, 2)}, "# c\n---\na: 1\nb: 2\n...\n"},
        {"trailing separator", "a: 1\n---\n# nothing\n", {put({"b"}, 2)}, "a: 1\nb: 2\n---\n# nothing\n"},
        {"byte order mark",
         "\xEF\xBB\xBF"
         "a: 1\n",
         {put({"a"}, 2)},
         "\xEF\xBB\xBF"
         "a: 2\n"},
        {"empty text", "", {put({"a", "b"}, 1)}, "a:\n  b: 1\n"},
        {"comments only", "# c", {put({"a"}, 1)}, "# c\na: 1\n"},
        {"mapping by mapping keeps what stays",
         "a:\n  x: 1 # one\n  y: 2 # two\n",
         {put({"a"}, Node::mapping({{"x", 1}, {"z", 3}}))},
         "a:\n  x: 1 # one\n  z: 3\n"},
        {"odd indent",
         "a:\n    b:\n          c: 1\n",
         {put({"a", "b", "d"}, 1), put({"a", "e"}, 1)},
         "a:\n    b:\n          c: 1\n          d: 1\n    e: 1\n"},
        {"tagged and anchored scalar",
         "a: &x !!str 1 # c\nb: 2\n",
         {put({"a"}, "y"), put({"b"}, 3)},
         "a: \"y\" # c\nb: 3\n"},
        {"value on the next line", "a:\n  foo # c\nb: 1\n", {put({"a"}, "bar")}, "a: bar\nb: 1\n"},
    };
}

std::vector<EditCase> flow_cases() {
    return {
        {"yaml flow, replace",
         "m: {a: 1, b: \"x, y\"} # c\n",
         {put({"m", "b"}, "z"), put({"m", "a"}, 2)},
         "m: {a: 2, b: \"z\"} # c\n"},
        {"yaml flow, add",
         "m: {a: 1}\n",
         {put({"m", "b"}, Node::mapping({{"c", "d"}}))},
         "m: {a: 1, \"b\": {\"c\":\"d\"}}\n"},
        {"yaml flow, remove", "m: {a: 1, b: 2, c: 3}\n", {drop({"m", "b"})}, "m: {a: 1, c: 3}\n"},
        {"yaml flow, remove first", "m: {a: 1, b: 2}\n", {drop({"m", "a"})}, "m: {b: 2}\n"},
        {"yaml flow, remove last", "m: { a: 1, b: [2, '}'] }\n", {drop({"m", "b"})}, "m: { a: 1 }\n"},
        {"yaml flow, remove only", "m: { a: 1 } # c\n", {drop({"m", "a"})}, "m: {} # c\n"},
        {"yaml flow, no value",
         "m: {a, b: , c: 1}\n",
         {put({"m", "a"}, 1), put({"m", "b"}, 2)},
         "m: {a: 1, b: 2, c: 1}\n"},
        {"yaml flow, many lines",
         "m: {\n  a: 1, # one\n  b: 2 # two\n}\n",
         {put({"m", "c"}, 3), put({"m", "a"}, 4)},
         "m: {\n  a: 4, # one\n  b: 2, # two\n  \"c\": 3\n}\n"},
        {"yaml flow, drop a line",
         "m: {\n  a: 1, # one\n  b: 2 # two\n}\n",
         {drop({"m", "b"})},
         "m: {\n  a: 1 # one\n}\n"},
        {"nested flow",
         "m: {a: {b: {c: 1}}, d: it's}\n",
         {put({"m", "a", "b", "c"}, 2), put({"m", "d"}, 1)},
         "m: {a: {b: {c: 2}}, d: 1}\n"},
        {"flow by block", "m: {a: [1]} # c\nz: 1\n", {put({"m"}, Node::sequence({1}))}, "m: # c\n- 1\nz: 1\n"},
        {"root flow", "---\n{a: 1}\n", {put({"a"}, 2)}, "---\n{a: 2}\n"},
        {"json, one line",
         "{\"a\":1,\"b\":{\"c\":[1,2]}}",
         {put({"b", "d"}, "x"), put({"a"}, 2)},
         "{\"a\":2,\"b\":{\"c\":[1,2],\"d\":\"x\"}}"},
        {"json, spaced", "{\"a\": 1, \"b\": {}}\n", {put({"b", "c"}, 1)}, "{\"a\": 1, \"b\": {\"c\":1}}\n"},
        {"json, many lines",
         "{\n  \"a\": 1,\n  \"m\": {\n    \"l\": {\n      \"x\": \"1\"\n    }\n  }\n}\n",
         {put({"m", "l", "y"}, "2"), put({"m", "n"}, Node::mapping({{"k", Node::sequence({1})}}))},
         "{\n  \"a\": 1,\n  \"m\": {\n    \"l\": {\n      \"x\": \"1\",\n      \"y\": \"2\"\n    },\n    \"n\": {\n    "
         "  \"k\": [\n"
         "        1\n      ]\n    }\n  }\n}\n"},
        {"json, remove last line", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", {drop({"b"})}, "{\n  \"a\": 1\n}\n"},
        {"json, remove first line", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", {drop({"a"})}, "{\n  \"b\": 2\n}\n"},
        {"json, remove only", "{\n  \"a\": 1\n}\n", {drop({"a"})}, "{}\n"},
        {"json, tabs", "{\n\t\"a\": 1\n}\n", {put({"a"}, 2)}, "{\n\t\"a\": 2\n}\n"},
    };
}

}  // namespace

TEST_SUITE("value::edit") {
    TEST_CASE("block style: only the member changes") { check(block_cases()); }
    TEST_CASE("flow style and JSON: only the member changes") { check(flow_cases()); }

    TEST_CASE("line ends stay CRLF") {
        for (auto group : {block_cases(), flow_cases()}) {
            for (const auto& c : group) {
                if (c.text.find('\n') == std::string::npos) continue;
                CAPTURE(c.name);
                CHECK(edit_text(with_crlf(c.text), "f", c.edits) == with_crlf(c.expected));
            }
        }
    }

    TEST_CASE("what cannot be changed safely is refused with its place") {
        struct Refusal {
            std::string name, text;
            Edit edit;
            std::string code;
        };
        const std::vector<Refusal> cases = {
            {"through an alias", "a: &x {k: 1}\nb: *x\n", put({"b", "k"}, 2), "cannot-edit"},
            {"anchored for others", "a: &x {k: 1}\nb: *x\n", put({"a", "k"}, 2), "cannot-edit"},
            {"anchor goes away", "a: &x 1\nb: *x\n", put({"a"}, 2), "cannot-edit"},
            {"explicit key", "? a\n: 1\nb: 1\n", put({"a"}, 2), "cannot-edit"},
            {"scalar parent", "a: 1\n", put({"a", "b"}, 2), "cannot-edit"},
            {"list parent", "a: [1]\n", put({"a", "b"}, 2), "cannot-edit"},
            {"list root", "- a\n", put({"a"}, 2), "cannot-edit"},
            {"two documents", "a: 1\n---\nb: 1\n", put({"a"}, 2), "cannot-edit"},
            {"unreadable", "a: [\n", put({"a"}, 2), "yaml-syntax"},
            {"duplicate", "a: 1\na: 2\n", put({"a"}, 2), "duplicate-key"},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            try {
                FAIL_CHECK(edit_text(c.text, "f.yaml", {c.edit}));
            } catch (const Error& error) {
                CHECK(error.code() == c.code);
                CHECK(error.exit() == Exit::data);
                REQUIRE(error.position());
                CHECK(error.position()->file == "f.yaml");
                CHECK(error.position()->line > 0);
            }
        }
    }

    TEST_CASE("a whole alias can be replaced") {
        CHECK(edit_text("a: &x {k: 1}\nb: *x # c\n", "f", {put({"b"}, 2)}) == "a: &x {k: 1}\nb: 2 # c\n");
    }

    TEST_CASE("random edits agree with the same edits of the tree, and comments stay") {
        std::mt19937 random(11);
        const auto roll = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
        const std::vector<std::string> keys = {"a", "b", "c/d.e", "yes", "1", "x y", "labels"};
        const std::vector<Node> values = {
            "t",
            "on",
            1,
            true,
            Node(),
            Node::mapping(),
            Node::sequence(),
            "l1\nl2\n",
            "a # b",
            "it's",
            Node::mapping({{"a", 1}, {"b", Node::sequence({"x", Node::mapping({{"p", "q"}})})}}),
            Node::sequence({1, Node::sequence({2})})};
        const std::vector<std::string> starts = {
            k_node, "{}\n", "a: {b: {a: 1, b: 2}, labels: []} # c1\n# c2\nlabels:\n  # c3\n  a: 1\n", "",
            "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"labels\": {}\n}\n", "{\"a\":{\"b\":1},\"b\":[]}",
            "a:\n- b\n- c: |\n    lit # no\n# c1\nb:\n  labels:\n    a: 1\n    # c2\n# c3"};
        std::size_t refused = 0;
        std::size_t done = 0;
        for (int round = 0; round < 200; ++round) {
            auto text = starts[roll(starts.size())];
            const bool top_comment = text.find("# owner") == 0;
            for (int step = 0; step < 6; ++step) {
                Path path;
                for (auto n = 1 + roll(3); n > 0; --n) path.push_back(keys[roll(keys.size())]);
                Edit edit{path, std::nullopt};
                if (roll(3) > 0) edit.value = values[roll(values.size())];
                CAPTURE(text);
                try {
                    const auto changed = edit_text(text, "f", {edit});
                    CAPTURE(changed);
                    const auto tree = read_tree(changed);
                    const Node* found = &tree;
                    for (const auto& key : path) found = found != nullptr ? found->find(key) : nullptr;
                    if (edit.value) {
                        REQUIRE(found != nullptr);
                        CHECK(found->same_value(*edit.value));
                    } else {
                        CHECK(found == nullptr);
                    }
                    CHECK(edit_text(changed, "f", {edit}) == changed);
                    if (top_comment) CHECK(changed.find("# owner: storage team\n") == 0);
                    text = changed;
                    ++done;
                } catch (const Error& error) {
                    CHECK(error.code() == "cannot-edit");
                    const bool expected = error.message().find("expected a mapping") != std::string::npos;
                    if (!expected) MESSAGE(error.message());
                    refused += expected ? 0U : 1U;
                }
            }
        }
        CHECK(done > 600);
        CHECK(refused == 0);
    }
}
