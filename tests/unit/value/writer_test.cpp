// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/ci_text.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

Node read_back(std::vector<Document> (*read)(std::string_view, std::string_view, Diagnostics&, const ReadLimits&),
               const std::string& text) {
    Diagnostics faults;
    const auto documents = read(text, "f", faults, {});
    CAPTURE(text);
    for (const auto& fault : faults) FAIL_CHECK(fault.message);
    REQUIRE(documents.size() == 1);
    return documents[0].root;
}

const std::vector<std::string> k_nasty = {
    "",
    " ",
    "a",
    "yes",
    "No",
    "ON",
    "y",
    "true",
    "null",
    "~",
    "NULL",
    "0x1",
    "010",
    "1e3",
    "1_000",
    "1.0",
    ".inf",
    "-",
    "- a",
    "? a",
    ": a",
    "a: b",
    "a #b",
    "# a",
    "#",
    "a:",
    "[",
    "{a",
    "*a",
    "&a",
    "!a",
    "|",
    ">",
    "'",
    "\"",
    "%",
    "@",
    "`",
    "a'b\"c",
    "\\",
    "\t",
    "a\tb",
    "\n",
    "a\n",
    "a\nb",
    "a\nb\n",
    "a\n\nb\n",
    "\na",
    " a\nb",
    "a \nb",
    "a\nb\n\n",
    "a\r\nb",
    "  ",
    "a  ",
    "---",
    "...",
    "--- a\nb",
    "<<",
    "=",
    "2020-01-01",
    "12:30:45",
    "190:20:30",
    "\x01",
    "\x7f",
    "\xC2\x85",
    "\xE2\x80\xA8",
    "\xEF\xBB\xBF"
    "a",
    "\xC3\xA9",
    "\xF0\x9F\x98\x80",
    "#!/bin/sh\necho hi\n  indented\n",
    "- x\n- y\n",
    "a\n b\n  c\n",
    "key: value\nother: x",
    "quay.io/x/y:v1@sha256:00",
    "kmm.node.kubernetes.io/a.b.ready",
    "a,b",
    "a]b",
};

Node random_tree(std::mt19937& random, int depth) {
    const auto roll = [&](unsigned n) { return static_cast<std::size_t>(random() % n); };
    const auto kind = roll(depth > 0 ? 9 : 6);
    if (kind == 0) return Node();
    if (kind == 1) return Node(roll(2) == 1);
    if (kind == 2) return Node(static_cast<std::int64_t>(random()) - 100000);
    if (kind == 3) return Node(static_cast<double>(random()) / 64.0);
    if (kind <= 5) return Node(k_nasty[roll(static_cast<unsigned>(k_nasty.size()))]);
    Node node = kind == 6 ? Node::sequence() : Node::mapping();
    for (auto n = roll(4); n > 0; --n) {
        if (kind == 6) {
            node.push_back(random_tree(random, depth - 1));
        } else {
            node.set(k_nasty[roll(static_cast<unsigned>(k_nasty.size()))], random_tree(random, depth - 1));
        }
    }
    return node;
}

}  // namespace

TEST_SUITE("value::writer") {
    TEST_CASE("no document holds a command for a CI system, and it says the same") {
        for (const std::string text : {"##[stop-commands]x", "##vso[task]x", "FROM a\n::add-mask::b\n",
                                       "FROM a\n  ::error::b\n", "x\n##[error]y\n"}) {
            Node node = Node::mapping();
            node.set("a", text);
            node.set(text, "b");
            for (const std::string& written : {to_json(node), to_json_pretty(node), to_yaml(node)}) {
                CHECK_FALSE(base::has_ci_command(written));
            }
            CHECK(to_json(read_back(read_json, to_json(node))) == to_json(node));
            CHECK(to_json(read_back(read_yaml, to_yaml(node))) == to_json(node));
        }
    }

    TEST_CASE("characters that nobody sees are written as escapes, and say the same") {
        const std::string hidden = "a\xE2\x80\xAE\xE2\x80\x8B\xC2\xA0\xEF\xBF\xBE\xF3\xA0\x80\xA1z";
        const Node node = Node::mapping({{hidden, hidden}, {"list", Node::sequence({hidden, "ä\xE2\x82\xAC"})}});
        const std::string json = to_json(node);
        CHECK(to_json(Node(hidden)) == R"("a\u202e\u200b\u00a0\ufffe\udb40\udc21z")");
        CHECK(to_yaml(Node(hidden)) == "\"a\\u202e\\u200b\\u00a0\\ufffe\\U000e0021z\"\n");
        CHECK(json.find("ä\xE2\x82\xAC") != std::string::npos);
        CHECK(read_back(read_json, json).same_value(node));
        CHECK(read_back(read_json, to_json_pretty(node)).same_value(node));
        CHECK(read_back(read_yaml, to_yaml(node)).same_value(node));
    }

    TEST_CASE("the text is fixed to the byte") {
        const auto tree = Node::mapping(
            {{"b", 1},
             {"a", Node::sequence({1, Node::mapping({{"x", true}, {"y", Node()}}), Node::sequence({"p", "q"})})},
             {"empty", Node::mapping()},
             {"none", Node::sequence()},
             {"yes", "no"},
             {"text", "one\n  two\n"},
             {"open", "one\ntwo"},
             {"image", "quay.io/x:v1"},
             {"n", 1.0}});
        CHECK(to_json(tree) ==
              R"({"b":1,"a":[1,{"x":true,"y":null},["p","q"]],"empty":{},"none":[],"yes":"no","text":"one\n  two\n",)"
              R"("open":"one\ntwo","image":"quay.io/x:v1","n":1.0})");
        CHECK(to_yaml(tree) ==
              "b: 1\na:\n- 1\n- x: true\n  \"y\": null\n- - p\n  - q\nempty: {}\nnone: []\n\"yes\": \"no\"\ntext: |\n  "
              "one\n    two\n"
              "open: |-\n  one\n  two\nimage: \"quay.io/x:v1\"\n\"n\": 1.0\n");
        CHECK(to_json_pretty(
                  Node::mapping({{"a", Node::sequence({1, Node::mapping()})}, {"b", Node::mapping({{"c", "d"}})}})) ==
              "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"d\"\n  }\n}\n");
        CHECK(to_yaml(Node("x")) == "x\n");
        CHECK(to_yaml(Node::sequence()) == "[]\n");
    }

    TEST_CASE("a string that some reader takes for something else is quoted") {
        const std::vector<std::string> quoted = {
            "y", "Y",   "yes", "YES",  "n",   "No",    "on",  "Off", "true", "False", "null", "Null",       "~",
            "1", "0x1", "010", "0o17", "1e3", "1_000", "1.0", "-1",  "+1",   ".5",    ".inf", "2020-01-01", "12:30:45",
            "=", "<<",  "...", "---",  "",    " a",    "a ",  "a b", "a:b",  "a#b",   "@a",   "*a"};
        for (const auto& text : quoted) {
            CAPTURE(text);
            CHECK(to_yaml(Node::mapping({{text, text}})) == "\"" + text + "\": \"" + text + "\"\n");
        }
        for (const std::string text :
             {"a", "yess", "_1", "v1.2", "kmm.node.kubernetes.io/x", "nvidia_peer-mem", "Truely"}) {
            CHECK(to_yaml(Node(text)) == text + "\n");
        }
    }

    TEST_CASE("a sequence that is made while it is written gives the same text") {
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{5000}}) {
            CAPTURE(count);
            std::vector<Node> items{Node::mapping({{"path", "a: b"}, {"list", Node::sequence({1, "x"})}}), Node("text"),
                                    Node::sequence()};
            items.resize(count, Node::mapping({{"path", "/a"}, {"size", 1}}));
            Node whole = Node::mapping({{"before", Node::sequence()}, {"files", Node::sequence(items)}, {"after", 1}});
            Node empty = whole;
            empty.find("files")->items().clear();
            const LongSequence sequence{empty.find("files"), [&](const auto& take) {
                for (const auto& item : items) take(item);
            }};
            const auto written = [&](Form form) {
                std::string text;
                std::size_t longest = 0;
                write(empty, form, sequence, [&](std::string_view piece) {
                    text += piece;
                    longest = std::max(longest, piece.size());
                });
                CHECK(longest < 70'000);
                return text;
            };
            CHECK(written(Form::json) == to_json(whole) + "\n");
            CHECK(written(Form::json_pretty) == to_json_pretty(whole));
            CHECK(written(Form::yaml) == to_yaml(whole));
        }
    }

    TEST_CASE("bytes that are no UTF-8 become a replacement character") {
        CHECK(to_json(Node(std::string_view("a\xFFz"))) == "\"a\\ufffdz\"");
    }

    TEST_CASE("every nasty string comes back as key, value and item") {
        for (const auto& text : k_nasty) {
            CAPTURE(text);
            const auto tree = Node::mapping({{text, text}, {"seq", Node::sequence({text, Node::sequence({text})})}});
            CHECK(read_back(read_yaml, to_yaml(tree)).same_value(tree));
            CHECK(read_back(read_json, to_json(tree)).same_value(tree));
            CHECK(read_back(read_yaml, to_json(tree)).same_value(tree));
        }
    }

    TEST_CASE("keys too long to stand before a colon come back") {
        const std::string key(2000, 'k');
        for (const Node& value :
             {Node("v"), Node::strings({"a", "b"}), Node::mapping({{"c", "d"}}), Node::sequence()}) {
            const Node tree =
                Node::mapping({{"x", Node::sequence({Node::mapping({{"first", 1}, {key, value}})})}, {key, value}});
            CHECK(read_back(read_yaml, to_yaml(tree)).same_value(tree));
        }
    }

    TEST_CASE("random trees come back") {
        std::mt19937 random(7);
        for (int round = 0; round < 600; ++round) {
            const auto tree = Node::mapping({{"root", random_tree(random, 4)}});
            const auto yaml = to_yaml(tree);
            CHECK(read_back(read_yaml, yaml).same_value(tree));
            CHECK(to_yaml(read_back(read_yaml, yaml)) == yaml);
            CHECK(read_back(read_json, to_json_pretty(tree)).same_value(tree));
        }
    }
}
