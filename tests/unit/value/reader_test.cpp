// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

using Reader = std::vector<Document> (*)(std::string_view, std::string_view, Diagnostics&, const ReadLimits&);

/// The documents as JSON lines, then "CODE LINE:COL" of each fault.
std::string outcome(Reader read, std::string_view text, const ReadLimits& limits = {}) {
    Diagnostics faults;
    const auto documents = read(text, "f", faults, limits);
    std::string out;
    for (const auto& document : documents) out += to_json(document.root) + "\n";
    for (const auto& fault : faults) {
        REQUIRE(fault.position);
        CHECK(fault.position->file == "f");
        CHECK_FALSE(fault.message.empty());
        out += "!" + fault.code + " " + std::to_string(fault.position->line) + ":" +
               std::to_string(fault.position->column) + "\n";
    }
    return out;
}

struct Case {
    std::string name, text, expected;
};

const std::string k_sample =
    "# a sample\n"
    "apiVersion: v1\nkind: Node\nmetadata:\n  name: \"a\\u00e9\\n\"\n  labels: {x: 'it''s', \"y\": [1, 2.5, null, ~]}\n"
    "spec:\n- &one\n  k: |\n    text\n     more\n  f: >-\n    a\n    b\n- *one\n- ? q\n  : r\n...\n---\nb: !!str 1\n";

}  // namespace

TEST_SUITE("value::reader") {
    TEST_CASE("plain scalars mean what they mean to Kubernetes") {
        const std::vector<Case> cases = {
            {"yes", "yes", "true"},        {"On", "On", "true"},           {"y", "y", "true"},
            {"N", "N", "false"},           {"OFF", "OFF", "false"},        {"true", "true", "true"},
            {"tRUE", "tRUE", "\"tRUE\""},  {"yEs", "yEs", "\"yEs\""},      {"zero", "0", "0"},
            {"hex", "0x1F", "31"},         {"octal", "010", "8"},          {"octal o", "0o17", "15"},
            {"binary", "-0b11", "-3"},     {"under", "1_000", "1000"},     {"lead under", "_1", "\"_1\""},
            {"plus", "+5", "5"},           {"eight", "08", "8.0"},         {"exp", "1e3", "1000.0"},
            {"float", "1.50", "1.5"},      {"dot", ".5", "0.5"},           {"trail", "1.", "1.0"},
            {"minus", "-1.5e-2", "-0.015"}, {"date", "2020-01-01", "\"2020-01-01\""},
            {"time", "12:30:45", "\"12:30:45\""},                          {"version", "1.2.3", "\"1.2.3\""},
            {"max", "18446744073709551615", "18446744073709551615"},
            {"min", "-9223372036854775808", "-9223372036854775808"},
            {"big", "18446744073709551616", "1.8446744073709552e+19"},
            {"tiny", "1e-400", "0.0"},
            {"huge", "1e400", "\"1e400\""}, {"quoted", "'yes'", "\"yes\""}, {"double", "\"1\"", "\"1\""},
            {"tag str", "!!str 1", "\"1\""}, {"tag int", "!!int 0x10", "16"}, {"bang", "! 12", "\"12\""},
            {"0x", "0x", "\"0x\""},        {"sign", "-", "\"-\""},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            if (c.name == "sign") continue;
            CHECK(outcome(read_yaml, "k: " + c.text) == "{\"k\":" + c.expected + "}\n");
        }
    }

    TEST_CASE("documents of YAML") {
        const std::vector<Case> cases = {
            {"two", "a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
            {"empty dropped", "---\n---\na: 1\n---\n# c\n", "{\"a\":1}\n"},
            {"nothing", "# only\n", ""},
            {"bom crlf", "\xEF\xBB\xBF" "a: 1\r\nb:\r\n- x\r\n", "{\"a\":1,\"b\":[\"x\"]}\n"},
            {"alias", "a: &x {k: 1}\nb: *x\n", "{\"a\":{\"k\":1},\"b\":{\"k\":1}}\n"},
            {"bool key", "on: 1\n1: 2\n", "{\"true\":1,\"1\":2}\n"},
            {"after end", "a: 1\n...\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
            {"comment behind", "--- # c\na: 1\n---\t# c\r\nb: 2\n---", "{\"a\":1}\n{\"b\":2}\n"},
            {"null members", "a:\nb: ~\nc: null\nd: ''\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\"}\n"},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            CHECK(outcome(read_yaml, c.text) == c.expected);
        }
    }

    TEST_CASE("objects are read as split at the lines where kubectl does") {
        const auto as_objects = [](std::string_view text, std::string_view file, Diagnostics& faults,
                                   const ReadLimits&) { return read_objects(text, file, faults); };
        for (const std::string text : {"--- {a: 1}\n", "--- a\n", "a: 1\n...\nb: 2\n", "---a: 1\n", "a: \"x\n---y\"\n",
                                       "a: 1\n--- 'b'\n", "---# c\n- b\n", "a\n---\n---#c\nb\n", "a\n---b\n"}) {
            CAPTURE(text);
            CHECK(outcome(as_objects, text).find("!yaml-syntax") != std::string::npos);
        }
        for (const std::string text : {"%YAML 1.1\n---\na: 1\n", "# x\n%TAG ! x,2000:\n---\na: 1\n", "...\na: 1\n",
                                       "# x\n\n... \n---\na: 1\n", "a: 1\n---\n...\n---\nb: 1\n",
                                       "a: 1\n---\n%YAML 1.1\n---\nb: 1\n"}) {
            CAPTURE(text);
            CHECK(outcome(as_objects, text).find("!yaml-syntax") != std::string::npos);
        }
        CHECK(outcome(as_objects, "---\n...\n---\na: 1\n") == "{\"a\":1}\n");
        CHECK(outcome(as_objects, "a: 1\n...\n---\nb: 1\n") == "{\"a\":1}\n{\"b\":1}\n");
        for (const std::string text : {"- a\n---# c\n- b\n", "- a\r\n---# c: {\r\n- b\r\n",
                                       "---\n---#c\n- a\n---\n- b\n", "\n---#\n- a\n---#\n- b"}) {
            CAPTURE(text);
            CHECK(outcome(as_objects, text) == "[\"a\"]\n[\"b\"]\n");
        }
        // What stands in documents before is said.
        Diagnostics faults;
        static_cast<void>(read_objects("a: b: c\n---\nb: \"x\n---y\"\n", "f", faults));
        REQUIRE(faults.size() == 2);
        CHECK(faults[0].position->line == 1);
        CHECK(faults[1].position->line == 4);
        CHECK(outcome(as_objects, "a: |\n  ---x\n") == "{\"a\":\"---x\\n\"}\n");
        CHECK(outcome(as_objects, "a: ---x\nb: -----\n").find("!") == std::string::npos);
    }

    TEST_CASE("what is read whole may have directives and ends of documents in front") {
        for (const std::string text : {"%YAML 1.1\n---\na: 1\n", "# x\n%TAG ! x,2000:\n---\na: 1\n", "...\na: 1\n",
                                       "# x\n\n... \n---\na: 1\n", "--- {a: 1}\n",
                                       "\xEF\xBB\xBF%YAML 1.2\r\n---\r\na: 1\r\n"}) {
            CAPTURE(text);
            CHECK(outcome(read_any, text) == "{\"a\":1}\n");
            CHECK(outcome(read_yaml, text) == "{\"a\":1}\n");
        }
        CHECK(outcome(read_any, "a: \"x\n---y\"\n") == "{\"a\":\"x ---y\"}\n");
        CHECK(outcome(read_any, "...\na: b: c\n").starts_with("!yaml-syntax"));
        CHECK(outcome(read_any, "a: 1\n...\nb: 2\n").find("!yaml-syntax") != std::string::npos);
    }

    TEST_CASE("a character that looks like a blank is named") {
        const auto hint = [](std::string_view text) {
            Diagnostics faults;
            static_cast<void>(read_any(text, "f", faults));
            return faults.empty() ? "" : faults[0].hint;
        };
        CHECK(hint("a:\xc2\xa0\n  b: 1\n") == "replace U+00A0 (no-break space) in line 1 with a blank");
        CHECK(hint("a:\n\xe3\x80\x80 b: 1\n c: 2\n") == "replace U+3000 (ideographic space) in line 2 with a blank");
        CHECK(hint("a:\n\tb: 1\n").starts_with("indent with blanks"));
        CHECK(hint("\t# c\na: 1\n").starts_with("indent with blanks"));  // kubectl refuses the comment
        CHECK(hint("a: 1 # c\n\t# c\nb: 1\n").starts_with("indent with blanks"));
        CHECK(hint("a:\n  -\xc2\xa0k: 1\n    l: 2\n") == "replace U+00A0 (no-break space) in line 2 with a blank");
        CHECK(hint("a:\n\xe2\x80\x8b  b: 1\n  c: 2\n") == "remove U+200B (zero width space) from line 2");
        CHECK(hint("a: x\xc2\xa0y\n") == "");
        // Not in texts, which are right.
        CHECK(hint("a: \"x:\xc2\xa0y\"\nb: c: d\n") == "check the indentation, and quote a value that contains ': '");
        CHECK(hint("a: x\xc2\xa0y\nb: c: d\n") == "check the indentation, and quote a value that contains ': '");
    }

    TEST_CASE("the encoding of a text that is not UTF-8 is named") {
        const auto hint = [](std::string_view bytes) {
            Diagnostics faults;
            static_cast<void>(read_any(bytes, "f", faults));
            REQUIRE(faults.size() == 1);
            return faults[0].hint.substr(0, 12);
        };
        CHECK(hint(std::string_view("\xFF\xFE" "a\0:\0 \0b\0", 10)) == "it is UTF-16");
        CHECK(hint(std::string_view("a\0:\0 \0b\0", 8)) == "it is UTF-16");
        CHECK(hint(std::string_view("\xFF\xFE\0\0a\0\0\0:\0\0\0", 12)) == "it is UTF-32");
        CHECK(hint(std::string_view("\0\0\xFE\xFF\0\0\0a\0\0\0:", 12)) == "it is UTF-32");
        CHECK(hint(std::string_view("a\0\0\0:\0\0\0", 8)) == "it is UTF-32");
        CHECK(hint(std::string_view("\0\0\0a\0\0\0:", 8)) == "it is UTF-32");
        CHECK(hint(std::string_view("PK\3\4\24\0\0\0\x8\0", 10)) == "it is a zip ");
        CHECK(hint("\xfd" "7zXZ") == "it is compre");
        CHECK(hint("\x28\xb5\x2f\xfd") == "it is compre");
        CHECK(hint("BZh91AY&SY\xfa") == "it is compre");
        CHECK(hint("a" + std::string(256, '\0') + "ustar") == "it is a tar ");
        CHECK(hint("BZ\xfa") == "save the fil");
    }

    TEST_CASE("a byte order mark inside is said to be one") {
        CHECK(outcome(read_yaml, "a: 1\n---\n\xEF\xBB\xBF" "b: 2\n").find("yaml-syntax") != std::string::npos);
        CHECK(outcome(read_yaml, "a: \"x\xEF\xBB\xBF\"\n") == "{\"a\":\"x\\ufeff\"}\n");
    }

    TEST_CASE("JSON objects one behind the other, as several kubectl get -o json write them") {
        Diagnostics faults;
        const auto documents = read_any("{\"a\": \"}{\"} {\n \"b\": [1]}\n\n{\"c\": {\"d\": 2}}\n", "f", faults);
        CHECK(faults.empty());
        REQUIRE(documents.size() == 3);
        CHECK(documents[2].index == 2);
        const auto place = [](const Node* node) { return std::pair(node->mark().line, node->mark().column); };
        CHECK(place(documents[0].root.find("a")) == std::pair(1U, 7U));
        CHECK(place(&documents[1].root) == std::pair(1U, 13U));
        CHECK(place(documents[1].root.find("b")) == std::pair(2U, 7U));
        CHECK(place(documents[2].root.find_path({"c", "d"})) == std::pair(4U, 13U));
        CHECK(documents[2].root.members()[0].key_mark.column == 2);

        CHECK(read_any("{\"a\": 1}\n{\"b\": 1, \"b\": 2}", "f", faults).size() == 2);
        REQUIRE(faults.size() == 1);
        CHECK(faults[0].position->to_string() == "f:2:10");
        // Anything else behind an object is a fault.
        for (const char* text : {"{\"a\": 1} x", "{\"a\": 1} [1]", "{\"a\": 1} {\"b\": ", "{\"a\": 1} {\"b\": }"}) {
            CAPTURE(text);
            faults.clear();
            (void)read_any(text, "f", faults);
            CHECK(faults.size() == 1);
        }
    }

    TEST_CASE("a JSON document that is one long string") {
        // simdjson's buffer has room for each string of a document once.
        for (const std::size_t length : {10U, 200U, 1000U, 100000U}) {
            const std::string text(length, 'x');
            Diagnostics faults;
            const auto documents = read_json("\"" + text + "\"", "f", faults);
            REQUIRE(faults.empty());
            CHECK(documents[0].root.text() == text);
        }
    }

    TEST_CASE("the escapes of YAML stand for whole characters") {
        Diagnostics faults;
        const auto documents = read_yaml("a: \"x\\_y\\N\\Lé\\_\"\n\"\\_\": 1\n", "f", faults);
        REQUIRE(faults.empty());
        CHECK(documents[0].root.get_string({"a"}) == "x\u00a0y\u0085\u2028é\u00a0");
        CHECK(documents[0].root.members()[1].key == "\u00a0");
    }

    TEST_CASE("where the last of equal keys is taken it stands in the place of the first, and all are named") {
        ReadLimits limits;
        limits.is_last_taken = true;
        const std::vector<Case> cases = {
            {"twice", "a: 1\nb: 2\na: 3\n", "{\"a\":3,\"b\":2}\n!duplicate-key 3:1\n"},
            {"four times", "a: 1\na: {b: 1}\na: []\na: x\n",
             "{\"a\":\"x\"}\n!duplicate-key 2:1\n!duplicate-key 3:1\n!duplicate-key 4:1\n"},
            {"nested", "m:\n  a: 1\n  a: 2\n\"m\": {c: 1, c: 2}\n",
             "{\"m\":{\"c\":2}}\n!duplicate-key 3:3\n!duplicate-key 4:1\n!duplicate-key 4:13\n"},
            {"by value", "1: a\n0x1: b\n", "{\"1\":\"b\"}\n!duplicate-key 2:1\n"},
            {"no value", "a: 1\na:\n", "{\"a\":null}\n!duplicate-key 2:1\n"},
            {"an object runs on", "apiVersion: v1\nkind: A\napiVersion: v2\nkind: B\n",
             "{\"apiVersion\":\"v2\",\"kind\":\"B\"}\n!duplicate-key 3:1\n!duplicate-key 4:1\n"},
            {"merged", "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3\n  k: 4\n",
             "{\"a\":{\"k\":1,\"l\":2},\"b\":{\"k\":4,\"l\":2}}\n!duplicate-key 5:3\n"},
            {"syntax", "a: 1\na: [\n", "!duplicate-key 2:1\n!yaml-syntax 3:1\n"},
        };
        for (const auto& each : cases) {
            CAPTURE(each.name);
            CHECK(outcome(read_yaml, each.text, limits) == each.expected);
        }
    }

    TEST_CASE("faults of YAML carry their place, and do not hide each other") {
        const std::vector<Case> cases = {
            {"duplicate", "a: 1\nb: 2\na: 3\n", "{\"a\":1,\"b\":2}\n!duplicate-key 3:1\n"},
            {"two duplicates", "m:\n  a: 1\n  a: 2\n\"m\": 3\n",
             "{\"m\":{\"a\":1}}\n!duplicate-key 3:3\n!duplicate-key 4:1\n"},
            {"duplicate by value", "1: a\n0x1: b\n", "{\"1\":\"a\"}\n!duplicate-key 2:1\n"},
            {"merge", "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3\n",
             "{\"a\":{\"k\":1,\"l\":2},\"b\":{\"k\":3,\"l\":2}}\n"},
            {"merges", "a: &x {k: 1}\nb: {<<: [*x, {k: 2, l: 3}]}\n", "{\"a\":{\"k\":1},\"b\":{\"k\":1,\"l\":3}}\n"},
            {"merge after a key", "a: &x {k: 1}\nb: {k: 2, <<: *x}\n",
             "{\"a\":{\"k\":1},\"b\":{\"k\":2}}\n!bad-merge 2:11\n"},
            {"two merges", "a: &x {k: 1}\nc: &y {k: 2, l: 3}\nb: {<<: *x, <<: *y}\n",
             "{\"a\":{\"k\":1},\"c\":{\"k\":2,\"l\":3},\"b\":{\"k\":1,\"l\":3}}\n"},
            {"merge of lists", "a: &x [{k: 1}]\nb: {<<: [*x]}\n", "{\"a\":[{\"k\":1}],\"b\":{}}\n!bad-merge 2:5\n"},
            {"merge of nothing", "b: {<<: 5}\n", "{\"b\":{}}\n!bad-merge 1:5\n"},
            {"quoted merge key", "'<<': 1\n", "{\"<<\":1}\n"},
            {"template", "a: {{ .Values.x }}\n", "{\"a\":{}}\n!bad-key 1:5\n"},
            {"null key", "~: 1\n", "{}\n!bad-key 1:1\n"},
            {"float keys", "1e3: a\n1.0: a\n1.50: a\n-0.0: a\n.5: a\n1e21: a\n0.1: a\n1e-7: a\n",
             R"({"1000":"a","1":"a","1.5":"a","-0":"a","0.5":"a","1e+21":"a","0.1":"a","1e-07":"a"})" "\n"},
            {"float keys are single",
             "123456789.0: a\n16777217.0: a\n1.5e10: a\n123456789012345678901234: a\n1e39: a\n",
             R"({"1.2345679e+08":"a","1.6777216e+07":"a","1.5e+10":"a","1.2345679e+23":"a",".inf":"a"})" "\n"},
            {"duplicate number", "1e3: a\n1000: b\n", "{\"1000\":\"a\"}\n!duplicate-key 2:1\n"},
            {"number key over int64", "9223372036854775808: a\n", "{}\n!bad-key 1:1\n"},
            {"tagged key", "!foo x: 1\n", "{\"x\":1}\n!bad-tag 1:1\n"},
            {"cycle", "a: &x [*x]\n", "{\"a\":[null]}\n!bad-alias 1:8\n"},
            {"unknown alias", "a: *x\n", "!yaml-syntax 1:4\n"},
            {"tag", "a: !foo 1\n", "{\"a\":\"1\"}\n!bad-tag 1:4\n"},
            {"tag of mapping", "a: !foo {b: 1}\n", "{\"a\":{\"b\":1}}\n!bad-tag 1:4\n"},
            {"binary", "a: !!binary aGVsbG8=\nb: !!binary |\n  aGVs\n  bG8=\nc: !!binary 1234\n",
             "{\"a\":\"hello\",\"b\":\"hello\",\"c\":\"1234\"}\n!bad-tag 5:4\n"},
            {"no base64", "a: !!binary '***'\n", "{\"a\":\"***\"}\n!bad-tag 1:4\n"},
            {"base64 without padding", "a: !!binary aGVsbG8\n", "{\"a\":\"aGVsbG8\"}\n!bad-tag 1:4\n"},
            {"base64 with blanks", "a: !!binary aGVs bG8=\n", "{\"a\":\"aGVs bG8=\"}\n!bad-tag 1:4\n"},
            {"misfit", "a: !!int x\n", "{\"a\":\"x\"}\n!bad-tag 1:4\n"},
            {"nan", "a: .nan\n", "{\"a\":\".nan\"}\n!bad-number 1:4\n"},
            {"utf8", "a: 1\nb: x\xFFy\n", "!not-utf8 2:5\n"},
            {"nul", std::string("a: 1\0", 5), "!not-utf8 1:5\n"},
            {"first document stays", "a: 1\n---\nb: [1\n", "{\"a\":1}\n!yaml-syntax 4:1\n"},
            {"leftover", "{a: 1} x\n", "{\"a\":1}\n!yaml-syntax 1:8\n"},
            {"open quote", "a:\n  b: \"x # y\n  c: 1\n", "{\"a\":{\"b\":\"x # y c: 1 \"}}\n!yaml-syntax 2:6\n"},
            {"open quote, tagged", "a: !!str 'it''s\n", "{\"a\":\"it's \"}\n!yaml-syntax 1:4\n"},
            {"escaped quote", "a: \"x\\\"\n", "{\"a\":\"x\\\" \"}\n!yaml-syntax 1:4\n"},
            {"key without colon", "a:\n  b: 1\n  d\n", "{\"a\":{\"b\":1,\"d\":null}}\n!yaml-syntax 3:3\n"},
            {"last key without colon", "a: 1\n\"b\"", "{\"a\":1,\"b\":null}\n!yaml-syntax 2:1\n"},
            {"explicit key", "? a\n", "{\"a\":null}\n"},
            {"no value", "a: &x\nb : !!null\n'c':", "{\"a\":null,\"b\":null,\"c\":null}\n"},
            {"flow without colon", "{a, b: }", "{\"a\":null,\"b\":null}\n"},
            {"only an end", "a: 1\n...\n# c\nb: 2\n", "{\"a\":1}\n!yaml-syntax 4:1\n"},
            {"key behind", "a: 1\n---b: 2\nc: 3\n", "{\"a\":1}\n!yaml-syntax 2:4\n"},
            {"key behind at once", "---b: 2\n", "!yaml-syntax 1:4\n"},
            {"value behind", "a: 1\n--- {b: 2}\n", "{\"a\":1}\n!yaml-syntax 2:5\n"},
            {"tag behind", "--- !!map\nb: 2\n", "!yaml-syntax 1:5\n"},
            {"list behind", "--- [b]\n", "!yaml-syntax 1:5\n"},
            {"null behind", "a: 1\n--- null\n", "{\"a\":1}\n!yaml-syntax 2:5\n"},
            {"four dashes", "a: 1\n----\nb: 2\n", "{\"a\":1}\n!yaml-syntax 2:4\n"},
            {"comment without a blank", "---# c\nb: 2\n", "!yaml-syntax 1:4\n"},
            {"in a quoted text", "a: \"x\n---y\"\n", "{\"a\":\"x \"}\n!yaml-syntax 2:4\n"},
            {"in a plain text", "a\n---y\n", "\"a\"\n!yaml-syntax 2:4\n"},
            {"no progress", "a: 1\n...\n, b\n", "{\"a\":1}\n!yaml-syntax 3:1\n"},
            {"no progress at once", "] b\n", "!yaml-syntax 1:1\n"},
            {"illegal", "a: b: c\n", "!yaml-syntax 1:5\n"},
            {"tab", "a:\n\tb: 1\n", "!yaml-syntax 2:3\n"},
            {"conflict", "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> other\n", "!yaml-syntax 2:1\n"},
            {"conflict at once", "<<<<<<< HEAD\na: 1\n", "!yaml-syntax 1:1\n"},
            {"conflict, half resolved", "a: 1\r\n=======\r\nb: 3\r\n", "!yaml-syntax 2:1\n"},
            {"conflict in a list", "- a\n||||||| 1a2b3c4\n- b\n", "!yaml-syntax 2:1\n"},
            {"no conflict", "a: |\n  <<<<<<< HEAD\n  =======\n", "{\"a\":\"<<<<<<< HEAD\\n=======\\n\"}\n"},
            {"another fault", "a: |\n  <<<<<<< HEAD\nb: c: d\n", "!yaml-syntax 3:5\n"},
        };
        ReadLimits as_objects;
        as_objects.is_split_first = true;
        for (const auto& c : cases) {
            CAPTURE(c.name);
            CHECK(outcome(read_yaml, c.text, as_objects) == c.expected);
        }
    }

    TEST_CASE("base64 of other bytes than UTF-8 is told from what is no base64") {
        Diagnostics faults;
        static_cast<void>(read_yaml("a: !!binary /w==\nb: !!binary x\n", "f", faults));
        REQUIRE(faults.size() == 2);
        CHECK(faults[0].message.starts_with("expected a text in base64 that stands for UTF-8 behind the tag"));
        CHECK(faults[1].message.starts_with("expected a text in base64 behind the tag"));
    }

    TEST_CASE("faults that libyaml alone finds have their place in bytes") {
        CHECK(outcome(read_yaml, "k1: a\nk2: \"a\x07z\"\n").ends_with("!yaml-syntax 2:7\n"));
        CHECK(outcome(read_yaml, "k: \"\xC3\xA4\x7F\"\n").ends_with("!yaml-syntax 1:7\n"));
        CHECK(outcome(read_yaml, "a: 1\n\"\xC3\xA4\xC3\xA4\": &a.b x\n").ends_with("!yaml-syntax 2:11\n"));
        for (const std::string end : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {  // no line ends there
            CAPTURE(end);
            CHECK(outcome(read_yaml, "a: \"x" + end + " y\"\nb: &a.b x\n").ends_with("!yaml-syntax 2:6\n"));
        }
    }

    TEST_CASE("marks of keys and values count from one, in bytes") {
        Diagnostics faults;
        const auto documents = read_yaml("\xC3\xA9: x\nm:\n  'k' : &a [1,\n    two]\n", "f", faults);
        REQUIRE(documents.size() == 1);
        const auto& root = documents[0].root;
        CHECK(root.mark() == Mark{1, 1});
        CHECK(root.members()[0].value.mark() == Mark{1, 5});
        const auto& k = root.find("m")->members()[0];
        CHECK(k.key_mark == Mark{3, 3});
        CHECK(k.value.mark() == Mark{3, 9});
        CHECK(k.value.items()[1].mark() == Mark{4, 5});
        const auto json = read_json("{\n \"a\": [1,\n  {\"b\" :true}]}", "f", faults);
        REQUIRE(json.size() == 1);
        const auto& a = json[0].root.members()[0];
        CHECK(a.key_mark == Mark{2, 2});
        CHECK(a.value.mark() == Mark{2, 7});
        CHECK(a.value.items()[0].mark() == Mark{2, 8});
        const auto& b = a.value.items()[1].members()[0];
        CHECK(b.key_mark == Mark{3, 4});
        CHECK(b.value.mark() == Mark{3, 9});
        CHECK(faults.empty());
    }

    TEST_CASE("JSON is strict") {
        const std::vector<Case> cases = {
            {"object", " {\"a\" : [1, -2, 3.0, true, false, null, \"x\"]} \n",
             "{\"a\":[1,-2,3.0,true,false,null,\"x\"]}\n"},
            {"scalar", " \"a\" ", "\"a\"\n"},
            {"number", "12", "12\n"},
            {"null", "null", "null\n"},
            {"surrogates", "[\"\\ud83d\\ude00\"]", "[\"\xF0\x9F\x98\x80\"]\n"},
            {"big", "[18446744073709551615,18446744073709551616]", "[18446744073709551615,1.8446744073709552e+19]\n"},
            {"empty", "  \n", "!json-syntax 1:1\n"},
            {"trailing comma", "{\"a\":1,}", "!json-syntax 1:8\n"},
            {"trailing comma in list", "[1,\n]", "!json-syntax 2:1\n"},
            {"missing comma", "[1\n 2]", "!json-syntax 2:2\n"},
            {"missing colon", "{\"a\" 1}", "!json-syntax 1:6\n"},
            {"single quotes", "{'a':1}", "!json-syntax 1:2\n"},
            {"bare word", "[yes]", "!json-syntax 1:2\n"},
            {"leading zero", "[01]", "!json-syntax 1:2\n"},
            {"bare point", "[1.]", "!json-syntax 1:2\n"},
            {"plus", "[+1]", "!json-syntax 1:2\n"},
            {"huge", "[1e400]", "!json-syntax 1:2\n"},
            {"trailing", "{\"a\":1} x", "!json-syntax 1:9\n"},
            {"two", "{}\n{}", "!json-syntax 2:1\n"},
            {"trailing after scalar", "1 2", "!json-syntax 1:3\n"},
            {"open string", "{\"a\":\n \"bc}", "!json-syntax 2:2\n"},
            {"raw newline", "[\"a\nb\"]", "!json-syntax 1:4\n"},
            {"bad escape", "[\"a\",\n \"\\x\"]", "!json-syntax 2:2\n"},
            {"lone surrogate", "[\"\\ud800\"]", "!json-syntax 1:2\n"},
            {"cut", "{\"a\":[1,2", "!json-syntax 1:10\n"},
            {"wrong bracket", "[1}", "!json-syntax 1:4\n"},
            {"duplicate", "{\"a\":1,\n\"b\":{\"x\":1,\"x\":2},\n\"a\":2}",
             "{\"a\":1,\"b\":{\"x\":1}}\n!duplicate-key 2:12\n!duplicate-key 3:1\n"},
            {"utf8", "[\"\xC3\x28\"]", "!not-utf8 1:3\n"},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            CHECK(outcome(read_json, c.text) == c.expected);
        }
    }

    TEST_CASE("read_any chooses by the first byte and falls back to YAML") {
        const std::vector<Case> cases = {
            {"json", "{\"a\":1}", "{\"a\":1}\n"},
            {"flow yaml", "{a: 1}", "{\"a\":1}\n"},
            {"flow then document", "{a: 1}\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
            {"yaml", "a: 1\n", "{\"a\":1}\n"},
            {"json with a fault", "{\"a\":1,,}", "!json-syntax 1:8\n"},
            {"json long key", "{\"" + std::string(2000, 'k') + "\":1}", "{\"" + std::string(2000, 'k') + "\":1}\n"},
            {"empty", "", ""},
        };
        for (const auto& c : cases) {
            CAPTURE(c.name);
            CHECK(outcome(read_any, c.text) == c.expected);
        }
    }

    TEST_CASE("hostile documents end at a limit") {
        std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
        for (int i = 1; i < 12; ++i) {
            const auto n = std::to_string(i);
            const auto p = "*a" + std::to_string(i - 1);
            laughs += "a" + n + ": &a" + n + " [" + p;
            for (int k = 1; k < 10; ++k) laughs += ", " + p;
            laughs += "]\n";
        }
        CHECK(outcome(read_yaml, laughs) == "!document-limit 6:45\n");
        ReadLimits small;
        small.bytes_max = 1000;
        CHECK(outcome(read_yaml, "a: &a " + std::string(400, 'x') + "\nb: [*a, *a, *a]\n", small) ==
              "!document-limit 2:9\n");
        CHECK(outcome(read_yaml, std::string(1001, ' '), small) == "!document-limit 0:0\n");
        for (const std::size_t depth : {101U, 400U, 600U, 100000U}) {
            CAPTURE(depth);
            const std::string open(depth, '[');
            CHECK(outcome(read_json, open + std::string(depth, ']')) == "!document-limit 1:101\n");
            CHECK(outcome(read_yaml, open).find("!") == 0);
        }
        CHECK(outcome(read_json, std::string(100, '[') + std::string(100, ']')) ==
              std::string(100, '[') + std::string(100, ']') + "\n");
        small.bytes_max = 1U << 20U;
        small.nodes_max = 5;
        small.json_nodes_max = 5;
        CHECK(outcome(read_yaml, "[1,2,3,4]", small) == "[1,2,3,4]\n");
        CHECK(outcome(read_yaml, "[1,2,3,4,5]", small) == "!document-limit 1:10\n");
        CHECK(outcome(read_json, "[1,2,3,4]", small) == "[1,2,3,4]\n");
        CHECK(outcome(read_json, "[1,2,3,4,5]", small) == "!document-limit 1:10\n");
    }

    TEST_CASE("a text cut at any length is read or refused, never worse") {
        const std::string json = R"({"a":[1,2.5e3,true,null,"xé\n\ud83d\ude00"],"b":{"c":{}}})";
        std::size_t refused = 0;
        for (std::size_t length = 0; length <= json.size(); ++length) {
            Diagnostics faults;
            const auto documents = read_json(json.substr(0, length), "f", faults);
            CHECK(documents.empty() == has_errors(faults));
            refused += documents.empty() ? 1U : 0U;
        }
        CHECK(refused == json.size());
        std::size_t read = 0;
        for (std::size_t length = 0; length <= k_sample.size(); ++length) {
            Diagnostics faults;
            const auto documents = read_yaml(k_sample.substr(0, length), "f", faults);
            for (const auto& document : documents) CHECK_FALSE(to_json(document.root).empty());
            read += documents.size();
            for (const auto& fault : faults) CHECK(fault.position->line > 0);
        }
        CHECK(read > 0);
    }
}
