// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "recipe/golib/glob.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/toml.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace {

using namespace kmm::recipe::tmpl;

Value parsed(const std::string& yaml) {
    YamlFault fault;
    Value value = read_yaml_text(yaml, fault);
    CHECK(fault.message == "");
    return value;
}

}  // namespace

TEST_CASE("floats are written as Go writes them") {
    CHECK(format_real(1e6, 'g', -1) == "1e+06");
    CHECK(format_real(123456.0, 'g', -1) == "123456");
    CHECK(format_real(0.0001, 'g', -1) == "0.0001");
    CHECK(format_real(0.00001, 'g', -1) == "1e-05");
    CHECK(format_real(1.0 / 3, 'f', 3) == "0.333");
    CHECK(format_real(5e-324, 'e', -1) == "5e-324");
    CHECK(format_real(-0.0, 'g', -1) == "-0");
    CHECK(format_real(1.5, 'x', -1) == "0x1.8p+00");
    CHECK(format_real(-0.1, 'X', 3) == "-0X1.99AP-04");
    CHECK(format_real(0, 'x', -1) == "0x0p+00");
    CHECK(format_real(1, 'b', -1) == "4503599627370496p-52");
    CHECK(json_number(1e21) == "1e+21");
    CHECK(json_number(1e-7) == "1e-7");
    CHECK(json_number(1e20) == "100000000000000000000");
}

TEST_CASE("a document that is nested too deep is refused with the limit") {
    YamlFault fault;
    static_cast<void>(read_yaml_text(std::string(600, '[') + std::string(600, ']'), fault));
    CHECK(fault.message.ends_with("values are nested more than 500 deep"));
}

TEST_CASE("YAML is written as sigs.k8s.io/yaml writes it") {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"{a: 1, b: [x, {c: d}], e: {}}", "a: 1\nb:\n- x\n- c: d\ne: {}\n"},
        {"{a10: 1, a9: 2, B: 3}", "B: 3\na9: 2\na10: 1\n"},
        {"['1', 'yes', 'null', '', ' x', 'a: b', '- x', '1:20', '2020-01-01', '~', 'x #y']",
         "- \"1\"\n- \"yes\"\n- \"null\"\n- \"\"\n- ' x'\n- 'a: b'\n- '- x'\n- \"1:20\"\n- \"2020-01-01\"\n- \"~\"\n- "
         "'x #y'\n"},
        {"a: \"x\\ny\\n\"", "a: |\n  x\n  y\n"},
        {"a: \" x\\ny\"", "a: |2-\n   x\n  y\n"},
        {"a: \"tab\\there\"", "a: \"tab\\there\"\n"},
        {"a: 123456789.5", "a: 1.234567895e+08\n"},
        {"a: 1e21", "a: 1e+21\n"},
        {"a: 1000000", "a: 1000000\n"},
        {"[[1, 2], []]", "- - 1\n  - 2\n- []\n"},
    };
    for (const auto& [yaml, expected] : cases) {
        CAPTURE(yaml);
        CHECK(write_yaml(parsed(yaml)) == expected);
    }
}

TEST_CASE("long texts are folded at the first space behind column 80") {
    const std::string words =
        "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq rrrr";
    const std::string folded =
        "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq\n  rrrr";
    CHECK(to_yaml_text(Value::string(words)) == folded);
    CHECK(to_yaml_text(Value::string("- " + words)) ==
          "'- aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp\n  qqqq rrrr'");
    CHECK(to_yaml_text(Value::string("\t" + words)) ==
          "\"\\taaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp\n  qqqq rrrr\"");
    CHECK(to_yaml_pretty(Value::string(words)) == words);
    CHECK(to_yaml_text(Value::map({{"k " + words, Value::integer(1)}})) == "k " + words + ": 1");
}

TEST_CASE("YAML is read with the rules of YAML 1.1, the last of equal keys wins") {
    CHECK(write_json(parsed("{a: yes, b: 010, c: 0x1F, d: 1_000, e: 2020-01-01, f: ~, a: off}")) ==
          R"({"a":false,"b":8,"c":31,"d":1000,"e":"2020-01-01","f":null})");
    CHECK(write_json(parsed("a: &x {b: 1}\nc: {<<: *x, d: 2}\n1: z\ntrue: q")) ==
          R"({"1":"z","a":{"b":1},"c":{"b":1,"d":2},"true":"q"})");
    YamlFault fault;
    CHECK(read_yaml_text("a: [1\nb: 2", fault).is_nil());
    CHECK(fault.line > 0);
    fault = {};
    CHECK(read_yaml_text("a: &a [*a]", fault).is_nil());
    CHECK(fault.message == "yaml: anchor 'a' value contains itself");
    fault = {};
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
        for (int k = 0; k < 10; ++k) { bomb += (k > 0 ? ", *a" : "*a") + std::to_string(i - 1); }
        bomb += "]\n";
    }
    CHECK(read_yaml_text(bomb, fault).is_nil());
    CHECK(fault.message == "yaml: document contains excessive aliasing");
}

TEST_CASE("YAML is read by the rules of go-yaml where libyaml has newer ones") {
    const auto read = [](const std::string& text) {
        YamlFault fault;
        const Value value = read_yaml_text(text, fault);
        return fault.message.empty() ? write_json(value) : fault.message;
    };
    // A question mark ends an unquoted text of a flow collection.
    CHECK(read("args: [--url=http://a/?b=c]\n") == "yaml: did not find expected ',' or ']'");
    CHECK(read("a: 1\nb: {c: d?}\n") == "yaml: line 1: did not find expected ',' or '}'");
    CHECK(read("a: [\"b?\", c]\nd: e?f\ng:\n- h?\n") == R"({"a":["b?","c"],"d":"e?f","g":["h?"]})");
    CHECK(read("a: \"b\\/c\"\n") == "yaml: found unknown escape character");
    CHECK(read("a: \"b\\\\/c\"\nd: '\\/'\ne: \"\u00e9\\\\\\/\"\n") == "yaml: line 3: found unknown escape character");
    CHECK(read("a: \"it\\'s\\'\"\nb: [\"\\'\"]\n") == R"({"a":"it's'","b":["'"]})");
    CHECK(read("a: {b:}\nc: [d:, e::]\n") == R"({"a":{"b:":null},"c":["d:","e::"]})");
    YamlFault fault;
    CHECK(read_yaml_text("a: [b,\n  c, d?]\n", fault).is_nil());
    CHECK(fault.line == 2);
    CHECK(fault.column == 7);
}

TEST_CASE("a key that is a number with a fraction has the digits of a float32") {
    YamlFault fault;
    const auto read = [&](std::string_view text) { return write_json(read_yaml_text(text, fault)); };
    CHECK(read("3.14159265358979: a\n123456789.5: b\n1.27: c\n") ==
          R"({"1.2345679e+08":"b","1.27":"c","3.1415927":"a"})");
    CHECK(read("1e300: a\n-1e39: b\n") == R"({"-.inf":"b",".inf":"a"})");
}

TEST_CASE("a fault of YAML names where what is not closed begins") {
    const auto message = [](std::string_view text) {
        YamlFault fault;
        (void)read_yaml_text(text, fault);
        const Error error = yaml_error("bad-chart", fault, "values.yaml", text);
        return error.position()->to_string() + ": " + error.message();
    };
    CHECK(message("a: 1\nb: \"x\nc: 2\n") ==
          "values.yaml:4:1: found unexpected end of stream while scanning a quoted scalar; what is not closed may "
          "begin at values.yaml:2:4");
    CHECK(message("a: 1\nb: [x, y\nc: 2\nd: 3\n") ==
          "values.yaml:3:2: did not find expected ',' or ']' while parsing a flow sequence; what is not closed may "
          "begin at values.yaml:2:4");
    CHECK(message("a: 1\nb: 'x\nc: it's\n") ==
          "values.yaml:3:7: did not find expected key while parsing a block mapping; what is not closed may begin at "
          "values.yaml:2:4");
    CHECK(message("a: {b: c: d}\n").find("closed") == std::string::npos);
    CHECK(message("a: 1\n b: 2\n").find("closed") == std::string::npos);
}

TEST_CASE("versions and constraints") {
    const auto meets = [](const char* constraint, const char* version) { return is_compatible(constraint, version); };
    CHECK(meets(">=1.20-0", "v1.27.10"));
    CHECK(meets("^1.2", "1.9.0"));
    CHECK_FALSE(meets("^1.2", "2.0.0"));
    CHECK_FALSE(meets(">=1.0.0", "1.2.3-rc.1"));
    CHECK(meets(">=1.0.0-0", "1.2.3-rc.1"));
    CHECK(meets("1.2 - 1.4", "1.4.9"));
    CHECK(meets("~1.2.3 || 2.x", "2.5.0"));
    CHECK_FALSE(meets("bad", "1.0.0"));
    CHECK(meets("*", "01.0.0"));
}

TEST_CASE("patterns of files") {
    CHECK(glob_match("files/*", "files/a.txt"));
    CHECK_FALSE(glob_match("files/*", "files/b/a.txt"));
    CHECK(glob_match("**.conf", "x/y.conf"));
    CHECK(glob_match("{a,b}/[!c].t", "b/d.t"));
    CHECK_FALSE(glob_match("{a,b}/[!c].t", "b/c.t"));
    CHECK(glob_match("[", "whatever"));
}

TEST_CASE("TOML is read as its decoder does") {
    const auto read = [](const std::string& text) {
        try {
            return write_json(read_toml(text));
        } catch (const Fault& fault) { return fault.message; }
    };
    CHECK(read("# c\n[a.'b c']\r\nx = 0x1F\ny = 1_000\nz = [1, 'q', {m = 1.5,\n},]\n[[l]]\nk = true\n[[l]]\n") ==
          R"({"a":{"b c":{"x":31,"y":1000,"z":[1,"q",{"m":1.5}]}},"l":[{"k":true},{}]})");
    CHECK(read("a = \"x\\t\\u00e9\"\nb = \"\"\"\nx \\\n  y\"\"\"\"\nc = '''\n'a'''\n") ==
          "{\"a\":\"x\\t\xC3\xA9\",\"b\":\"x y\\\"\",\"c\":\"'a\"}");
    CHECK(read("t = 2020-01-02 03:04:05.5+01:00") == R"({"t":"2020-01-02T03:04:05.5+01:00"})");
    CHECK(read("a = 1\na = 2") == "toml: line 2: Key 'a' has already been defined.");
    CHECK(read("[a.b]\nc = 1\n[a]\nb.d = 2\n[x]\ny.z = 1\ny = 2") ==
          R"({"a":{"b":{"c":1,"d":2}},"x":{"y":{"z":1}}})");
    for (const std::string wrong : {"a = ", "a", "[a", "a = 01", "a = 1_", "a = .5", "a = [1 2]", "a = \"\\q\"",
                                    "a = 'x", "a = 2020-13-01T00:00:00Z", "a = 1 b = 2", "a = True"}) {
        CAPTURE(wrong);
        CHECK(read(wrong).starts_with("toml: line 1: "));
    }
    CHECK(read("a = 2020-01-02").find("without a zone") != std::string::npos);
}
