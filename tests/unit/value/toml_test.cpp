// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "value/toml_reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

std::string toml_as_json(const std::string& text) {
    Diagnostics faults;
    const auto document = value::read_toml(text, "r.conf", faults);
    if (!document) {
        REQUIRE(faults.size() == 1);
        return faults[0].position->to_string() + " " + faults[0].code + ": " + faults[0].message;
    }
    return value::to_json(document->root);
}

}  // namespace

TEST_SUITE("value::unit") {

TEST_CASE("TOML of the subset becomes a tree") {
    CHECK(toml_as_json("") == "{}");
    CHECK(toml_as_json("# only a comment\r\n\n") == "{}");
    CHECK(toml_as_json("a = \"x\\\"\\n\"\nb = 'c:\\d' # why\n\"odd key\" = true\nn = -7\n") ==
          R"({"a":"x\"\n","b":"c:\\d","odd key":true,"n":-7})");
    CHECK(toml_as_json("l = [ 'a',\n  \"b\", # two\n]\nm = [[1],[]]\n") == R"({"l":["a","b"],"m":[[1],[]]})");
    CHECK(
        toml_as_json("[[registry]]\nprefix = 'a'\n[[registry.mirror]]\nlocation = 'm1'\n[[registry.mirror]]\n"
                     "location = 'm2'\n[[registry]]\nprefix = 'b'\n[aliases]\nx = 'y'\n") ==
        R"({"registry":[{"prefix":"a","mirror":[{"location":"m1"},{"location":"m2"}]},{"prefix":"b"}],"aliases":{"x":"y"}})");
}

TEST_CASE("TOML outside the subset is one fault with its place") {
    const struct {
        const char* text;
        const char* fault;
    } table[] = {
        {"a", "r.conf:1:2 toml-syntax: expected \"=\", found the end of the file"},
        {"a = \n",
         "r.conf:1:5 toml-syntax: expected a string, true, false, an integer or a list, found the end of the line"},
        {"a = maybe", "r.conf:1:5 toml-syntax: expected a string, true, false, an integer or a list, found \"m\""},
        {"a = 1979-05-27", "r.conf:1:5 toml-syntax: expected a string, true, false, an integer or a list, found \"1\""},
        {"a = 1.5", "r.conf:1:5 toml-syntax: expected a string, true, false, an integer or a list, found \"1\""},
        {"a = {b = 1}", "r.conf:1:5 toml-syntax: expected a string, true, false, an integer or a list, found \"{\""},
        {"a = \"x", "r.conf:1:5 toml-syntax: expected a closing quote on the same line, found none"},
        {"a = \"\"\"x\"\"\"", "r.conf:1:5 toml-syntax: expected a string on one line"},
        {"a = \"\\u0041\"",
         "r.conf:1:7 toml-syntax: expected one of the escapes b, t, n, f, r, \" and \\, found \"u\""},
        {"a.b = 1", "r.conf:1:2 toml-syntax: expected \"=\", found a dotted key"},
        {"a = 1 2", "r.conf:1:7 toml-syntax: expected the end of the line, found \"2\""},
        {"a = ['x' 'y']", "r.conf:1:10 toml-syntax: expected \",\" or \"]\", found \"'\""},
        {"a = ['x',", "r.conf:1:10 toml-syntax: expected \"]\", found the end of the file"},
        {"\n[[registry]\n", "r.conf:2:11 toml-syntax: expected \"]]\", found \"]\""},
        {"a = 1\n[a]\n", "r.conf:2:2 duplicate-key: "},
        {"a = 1\n[a.b]\n", "r.conf:2:2 toml-syntax: \"a\" has a value already and cannot be a table"},
        {"a = 1\n[[a]]\n", "r.conf:2:3 toml-syntax: \"a\" has a value already and cannot be a list of tables"},
        {"a = 1\na = 2\n", "r.conf:2:1 duplicate-key: "},
    };
    for (const auto& row : table) {
        CAPTURE(row.text);
        const std::string got = toml_as_json(row.text);
        CHECK(got.starts_with(row.fault));
    }
}

}
