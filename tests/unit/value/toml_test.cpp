// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "toml/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

std::string toml_as_json(const std::string& text) {
    Diagnostics faults;
    const auto document = toml::read(text, "r.conf", faults);
    if (!document) {
        REQUIRE(faults.size() == 1);
        return faults[0].position->to_string() + " " + faults[0].code + ": " + faults[0].message;
    }
    return value::to_json(document->root);
}

}  // namespace

TEST_SUITE("value::unit") {

TEST_CASE("files of container tools become trees") {
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

TEST_CASE("values of TOML by their forms") {
    CHECK(toml_as_json("a = {b = 1, c = {d = 'x', 'e f'.g = []}, h = {}}\n") ==
          R"({"a":{"b":1,"c":{"d":"x","e f":{"g":[]}},"h":{}}})");
    CHECK(toml_as_json("a.b.c = 1\na . \"b\" . d = 2\n[t]\nx.y = 3\n[t.z]\n") ==
          R"({"a":{"b":{"c":1,"d":2}},"t":{"x":{"y":3},"z":{}}})");
    CHECK(toml_as_json("[x.y.z]\nk = 1\n[x]\nm = 2\n") == R"({"x":{"y":{"z":{"k":1}},"m":2}})");
    CHECK(toml_as_json("n = [+7, -0, 1_000, 0xdead_BEEF, 0o755, 0b101, 9223372036854775807]\n") ==
          R"({"n":[7,0,1000,3735928559,493,5,9223372036854775807]})");
    CHECK(toml_as_json("f = [1.5, -0.25, 1e3, 5E-1, 1_0.0_5, 6.5e+2]\n") ==
          R"({"f":[1.5,-0.25,1000.0,0.5,10.05,650.0]})");
    CHECK(toml_as_json("d = [1979-05-27, 07:32:00, 1979-05-27T07:32:00.5Z, 1979-05-27 07:32:00-07:00, 2024-02-29]\n") ==
          R"({"d":["1979-05-27","07:32:00","1979-05-27T07:32:00.5Z","1979-05-27 07:32:00-07:00","2024-02-29"]})");
    CHECK(toml_as_json("s = \"\"\"\r\none\n  \"two\" \\\n\n   three\"\"\"\"\nl = '''\n'\\n''''\n") ==
          R"({"s":"one\n  \"two\" three\"","l":"'\\n'"})");
    CHECK(toml_as_json("x = [inf, +nan]\n") == R"({"x":["inf","+nan"]})");
    CHECK(toml_as_json("u = \"\\u00e9\\U0001F600\\u0041\"\n") == "{\"u\":\"\xC3\xA9\xF0\x9F\x98\x80\x41\"}");
}

TEST_CASE("what is not TOML is one fault with its place") {
    const std::string value = "expected a string, true, false, a number, a date, a list or a table, ";
    const struct {
        const char* text;
        std::string fault;
    } table[] = {
        {"a", "r.conf:1:2 toml-syntax: expected \"=\", found the end of the file"},
        {"a = \n", "r.conf:1:5 toml-syntax: " + value + "found the end of the line"},
        {"a = maybe", "r.conf:1:5 toml-syntax: " + value + "found \"m\""},
        {"a = 01", "r.conf:1:5 toml-syntax: " + value + "found \"0\""},
        {"a = 1__0", "r.conf:1:5 toml-syntax: " + value + "found \"1\""},
        {"a = 0x", "r.conf:1:5 toml-syntax: " + value + "found \"0\""},
        {"a = +0x1", "r.conf:1:5 toml-syntax: " + value + "found \"+\""},
        {"a = 1.", "r.conf:1:5 toml-syntax: " + value + "found \"1\""},
        {"a = 1e", "r.conf:1:5 toml-syntax: " + value + "found \"1\""},
        {"a = 9223372036854775808", "r.conf:1:5 toml-syntax: " + value + "found \"9\""},
        {"a = 2023-02-29", "r.conf:1:5 toml-syntax: " + value + "found \"2\""},
        {"a = 1979-05-27T25:00:00", "r.conf:1:5 toml-syntax: " + value + "found \"1\""},
        {"a = {b = 1", "r.conf:1:11 toml-syntax: expected \",\" or \"}\", found the end of the file"},
        {"a = {b = 1,}", "r.conf:1:12 toml-syntax: expected a key, found \"}\""},
        {"a = {b = 1\n}", "r.conf:1:11 toml-syntax: expected \",\" or \"}\", found the end of the line"},
        {"a = {b = 1, b = 2}", "r.conf:1:13 duplicate-key: "},
        {"a = {b = 1}\na.c = 2", "r.conf:2:1 toml-syntax: \"a\" has a value already and cannot be a table"},
        {"a = {b = 1}\n[a.c]", "r.conf:2:2 toml-syntax: \"a\" has a value already and cannot be a table"},
        {"a = {b = 1}\n[a]", "r.conf:2:2 duplicate-key: "},
        {"a = [{b = 1}]\n[[a]]", "r.conf:2:3 toml-syntax: \"a\" has a value already and cannot be a list of tables"},
        {"a = [{b = 1}]\n[a.c]", "r.conf:2:2 toml-syntax: \"a\" has a value already and cannot be a table"},
        {"[a.b]\n[a]\nb.c = 1", "r.conf:3:1 toml-syntax: \"b\" has a value already and cannot be a table"},
        {"a.b = 1\n[a]", "r.conf:2:2 duplicate-key: "},
        {"[a]\n[a]", "r.conf:2:2 duplicate-key: "},
        {"[[a]]\n[a]", "r.conf:2:2 duplicate-key: "},
        {"a = \"x", "r.conf:1:5 toml-syntax: expected a closing quote on the same line, found none"},
        {"a = 1e_5", "r.conf:1:5 toml-syntax: " + value + "found \"1\""},
        {"a = 'x\x01'", "r.conf:1:7 toml-syntax: expected a string without control characters, found"},
        {"a = '''x\r'''", "r.conf:1:9 toml-syntax: expected a string without control characters, found"},
        {"# x\x7f", "r.conf:1:4 toml-syntax: expected a comment without control characters, found"},
        {"a = \"x\ry\"", "r.conf:1:7 toml-syntax: expected a string without control characters, found"},
        {"a = 1\rb = 2", "r.conf:1:6 toml-syntax: expected the end of the line, found"},
        {"a = \"\"\"x\"\"", "r.conf:1:5 toml-syntax: expected three closing quotes, found none"},
        {"a = \"\\x41\"",
         "r.conf:1:7 toml-syntax: expected one of the escapes b, t, n, f, r, u, U, \" and \\, found \"x\""},
        {"a = \"\\u12\"", "r.conf:1:7 toml-syntax: expected 4 hexadecimal digits of a character"},
        {"a = \"\\uD800\"", "r.conf:1:7 toml-syntax: expected 4 hexadecimal digits of a character"},
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
        CHECK(got.substr(0, row.fault.size()) == row.fault);
    }
}

}
