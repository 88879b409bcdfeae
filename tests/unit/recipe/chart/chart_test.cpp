// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/ci_text.hpp"
#include "base/error.hpp"
#include "recipe/chart/ignore.hpp"
#include "recipe/chart/render.hpp"
#include "recipe/chart/strvals.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace {

using namespace kmm;
using recipe::chart::File;
using recipe::tmpl::Value;

const File k_chart{"Chart.yaml", "apiVersion: v2\nname: top\nversion: 1.0.0\n"};

Value values_of(const std::string& yaml) {
    recipe::tmpl::YamlFault fault;
    return recipe::tmpl::read_yaml_text(yaml, fault);
}

std::string rendered(std::vector<File> files, const std::string& values = "{}") {
    files.push_back(k_chart);
    const auto made =
        recipe::chart::render_chart(recipe::chart::load_chart(std::move(files), "dir/top"), values_of(values), {});
    return recipe::chart::release_text(made, false);
}

template <typename Body>
Error error_of(Body&& body) {
    try {
        body();
    } catch (const Error& error) { return error; }
    FAIL("no error");
    throw bug("not reached");
}

using recipe::chart::SetForm;

std::string set(const std::string& text, SetForm form = SetForm::typed) {
    const Value values = Value::map({});
    recipe::chart::set_values(values, text, form, [](const std::string& path) { return "text of " + path; });
    return recipe::tmpl::write_json(values);
}

}  // namespace

TEST_CASE("objects come in Helm's order, hooks last") {
    const std::string text = rendered({{"templates/a.yaml",
                                        "kind: Zebra\n---\nkind: Deployment\n---\nkind: Namespace\n---\nkind: "
                                        "Job\nmetadata:\n  annotations: {helm.sh/hook: "
                                        "test}\n"}});
    CHECK(text ==
          "---\n# Source: top/templates/a.yaml\nkind: Namespace\n---\n# Source: top/templates/a.yaml\nkind: "
          "Deployment\n---\n"
          "# Source: top/templates/a.yaml\nkind: Zebra\n---\n# Source: top/templates/a.yaml\nkind: Job\nmetadata:\n  "
          "annotations: {helm.sh/hook: test}\n");
}

TEST_CASE("lists that Chart.yaml does not have are null") {
    const File file{"templates/a.yaml", "a: {{ toYaml .Chart.Maintainers }}\nb: {{ toJson .Chart.Dependencies }}\n"};
    CHECK(rendered({file}) == "---\n# Source: top/templates/a.yaml\na: null\nb: null\n");
}

TEST_CASE("null deletes a default, a sub-chart sees its own values and global") {
    const std::vector<File> files{{"values.yaml", "a: 1\nb: {c: 2}\nglobal: {g: x}\nsub: {v: 5}\n"},
                                  {"templates/t.yaml", "v: {{ toJson .Values }}"},
                                  {"charts/sub/Chart.yaml", "name: sub\nversion: 0.1.0\n"},
                                  {"charts/sub/values.yaml", "v: 1\nw: 2\n"},
                                  {"charts/sub/templates/s.yaml", "s: {{ toJson .Values }}"}};
    const std::string text = rendered(files, "a: null\nb: {c: null}\n");
    CHECK(text.find(R"(s: {"global":{"g":"x"},"v":5,"w":2})") != std::string::npos);
    CHECK(text.find(R"(v: {"b":{},"global":{"g":"x"},"sub":{"global":{"g":"x"},"v":5,"w":2}})") != std::string::npos);
}

TEST_CASE("a fault of the output has the template's line and the key") {
    const Error wrong = error_of([] {
        (void)rendered({{"templates/t.yaml", "kind: A\nmetadata:\n  annotations:\n    a/b: {{ toYaml .Values.l }}\n"}},
                       "l: []");
    });
    CHECK(wrong.code() == "bad-manifest");
    CHECK(wrong.message() == "metadata.annotations[a/b]: expected a string, found []interface {} 0 items");
    CHECK(wrong.position()->to_string() == "dir/top/templates/t.yaml:4:13");
    const Error syntax =
        error_of([] { (void)rendered({{"templates/t.yaml", "a: 1\n{{ if true }}\nb: c: d\n{{ end }}"}}); });
    CHECK(syntax.position()->line == 3);
    CHECK(syntax.exit() == Exit::data);
    // Text that an action stands behind, in its line, alone.
    const Error before_end = error_of([] {
        (void)rendered(
            {{"templates/t.yaml", "{{ if true }}\na: {{ 1 }}\nb: 2\n  c: d: e\n{{- end }}\n{{- if 1 }}{{ end }}\n"}});
    });
    CHECK(before_end.position()->to_string() == "dir/top/templates/t.yaml:4:3");
    // An action that stands in the line below, and takes the end of this line away.
    const Error before_action = error_of([] {
        (void)rendered({{"templates/t.yaml", "m:\n   a: {{ 1 }}\n  b:\n    {{- toYaml .Values | nindent 4 }}\n"}},
                       "c: 1");
    });
    CHECK(before_action.position()->to_string() == "dir/top/templates/t.yaml:3:3");
    // A comment whose second line has lost its '#'.
    const Error prose = error_of([] { (void)rendered({{"templates/t.yaml", "# Copyright\n\nof Acme\n# end\n"}}); });
    CHECK(prose.position()->line == 3);
    const Error open =
        error_of([] { (void)rendered({{"templates/t.yaml", "{{ if true }}\na: [b, c\n{{ end }}\nd: e\nf: g\n"}}); });
    CHECK(open.message() ==
          "the output is not YAML: did not find expected ',' or ']' while parsing a flow sequence; what is not closed "
          "may begin at dir/top/templates/t.yaml:2:1");
}

TEST_CASE("text that a CI system would take for a command is printed as JSON, and means the same") {
    recipe::chart::Release release;
    const std::vector<File> files{{"Chart.yaml", "apiVersion: v2\nname: top\nversion: 1.0.0\n"},
                                  {"templates/a.yaml", "kind: A\nv:\n  ::/0\nw: '##vso[x]'\n---\nkind: B\n"}};
    const auto made = recipe::chart::render_chart(recipe::chart::load_chart(files, "d"), Value::map({}), release);
    CHECK(recipe::chart::release_text(made, false).find("v:\n  ::/0\n") != std::string::npos);
    const std::string text = recipe::chart::release_text(made, false, recipe::chart::Inert::yes);
    CHECK(text == "---\n# Source: top/templates/a.yaml\n{\"kind\":\"A\",\"v\":\"::/0\",\"w\":\"##vso\\u005bx]\"}\n---\n"
                  "# Source: top/templates/a.yaml\nkind: B\n");
    CHECK_FALSE(base::has_ci_command(text));
}

TEST_CASE("a file of crds/ with text that a CI system would take for a command is printed as JSON") {
    const auto text_of = [](const std::string& crd, const std::string& name = "crds/a.yaml") {
        const std::vector<File> files{k_chart,
                                      {name, crd},
                                      {"templates/a.yaml", "kind: A\n---\n# ##[error]comment alone\n"}};
        const auto made = recipe::chart::render_chart(recipe::chart::load_chart(files, "d"), Value::map({}), {});
        return recipe::chart::release_text(made, true, recipe::chart::Inert::yes);
    };
    const std::string a = "---\n# Source: top/templates/a.yaml\nkind: A\n";
    CHECK(text_of("kind: C\n---\nkind: D\n") == "---\n# Source: top/crds/a.yaml\nkind: C\n---\nkind: D\n\n" + a);
    const std::string source = "---\n# Source: top/crds/_a.yaml\n";
    CHECK(text_of("metadata: {annotations: {helm.sh/hook: x}}\nd: |\n  ::x\n---\nkind: C\n", "crds/_a.yaml") ==
          source + "{\"d\":\"::x\\n\",\"metadata\":{\"annotations\":{\"helm.sh/hook\":\"x\"}}}\n" + source +
              "kind: C\n" + a);
    CHECK(error_of([&] { (void)text_of("a: b\n::x: [\n"); }).code() == "bad-manifest");
    CHECK(text_of("kind: C\n", "crds/a\n::x.yaml").find("# Source: top/crds/a\\n::x.yaml\n") != std::string::npos);
}

TEST_CASE("--set") {
    CHECK(set("a.b=1,c={x,y},d[1].e=z,t=true,n=null,z=0123,e=") ==
          R"({"a":{"b":1},"c":["x","y"],"d":[null,{"e":"z"}],"e":"","n":null,"t":true,"z":"0123"})");
    CHECK(set("a\\.b=x\\,y") == R"({"a.b":"x,y"})");
    for (const std::string wrong : {"a", "a,b=1", "l={a", "a[x]=1", "a[-1]=1", "a[99999999]=1", "a[0]b=1"}) {
        CAPTURE(wrong);
        CHECK(error_of([&] { (void)set(wrong); }).code() == "bad-set");
    }
}

TEST_CASE("--set-string, --set-json, --set-file and --set-literal") {
    CHECK(set("a=1,b=true,c=null,d={1,x},e[1]=0", SetForm::text) ==
          R"({"a":"1","b":"true","c":"null","d":["1","x"],"e":[null,"0"]})");
    CHECK(set("a={\"x\": [1, null]}, b=\"p,q\",c=,d[0]=2 e=true", SetForm::json) ==
          R"({" b":"p,q","a":{"x":[1,null]},"c":null,"d":[2],"e":true})");
    CHECK(set(R"( {"a": {"b": 1.50}} )", SetForm::json) == R"({"a":{"b":1.5}})");
    CHECK(set("a.b=x.conf,c={p,q},d=", SetForm::file) ==
          R"({"a":{"b":"text of x.conf"},"c":["text of p","text of q"],"d":""})");
    CHECK(set("a.b[1]=x,y=\\{1}", SetForm::literal) == R"({"a":{"b":[null,"x,y=\\{1}"]}})");
    const auto fault = [](const std::string& text, SetForm form) {
        return error_of([&] { (void)set(text, form); });
    };
    const Error word = fault("a=1,b=yes", SetForm::json);
    CHECK(word.message() == "expected JSON at byte 7: invalid character 'y' looking for beginning of value");
    CHECK(word.details()[0].first == "--set-json");
    CHECK(fault(R"({"a": 1,})", SetForm::json).message() ==
          "expected a JSON object, found at byte 9: invalid character '}' looking for beginning of object key string");
    CHECK(fault("a", SetForm::literal).message() == "key \"a\" has no value");
}

TEST_CASE("--set forgets a new item of a list whose empty value ends the text") {
    CHECK(set("l[0].a=") == R"({"l":[]})");
    CHECK(set("l[0][1].a=") == R"({"l":[]})");
    CHECK(set("l[0].a=,l[1].b=2") == R"({"l":[{"a":""},{"b":2}]})");
    CHECK(set("l[0].a=1,l[0].b=") == R"({"l":[{"a":1,"b":""}]})");
    CHECK(set("l[0]=") == R"({"l":[""]})");
    CHECK(set("l[0][0]=") == R"({"l":[[""]]})");
}

TEST_CASE("numbers in Chart.yaml become texts as sigs.k8s.io/yaml writes them") {
    const auto version = [](const std::string& number) {
        const File chart{"Chart.yaml", k_chart.data + "appVersion: " + number + "\n"};
        return recipe::chart::load_chart({chart}, "dir/top").metadata.app_version;
    };
    CHECK(version("1234567890123456789") == "1234567890123456789");
    CHECK(version("12345678901234567890") == "12345678901234567890");
    CHECK(version("20230101.1") == "2.0230102e+07");
    CHECK(version("1.123456789") == "1.1234568");
    CHECK(version("0x10") == "16");
}

TEST_CASE("fields of objects are found in any case, as encoding/json finds them") {
    const std::string hook = "Kind: Job\nMetadata: {ANNOTATIONS: {helm.sh/hook: test}}\n";
    const std::string text = rendered({{"templates/a.yaml", hook + "---\nkind: A\n"}});
    CHECK(text.ends_with("# Source: top/templates/a.yaml\n" + hook));
}

TEST_CASE(".helmignore") {
    recipe::chart::Ignore ignore;
    ignore.add("# c\n*.bak\n/top.txt\ndir/\na/*.md\n", ".helmignore");
    CHECK(ignore.ignores("x/y.bak", false));
    CHECK(ignore.ignores("top.txt", false));
    CHECK_FALSE(ignore.ignores("x/top.txt", false));
    CHECK(ignore.ignores("x/dir", true));
    CHECK_FALSE(ignore.ignores("dir", false));
    CHECK(ignore.ignores("a/b.md", false));
    CHECK_FALSE(ignore.ignores("a/b/c.md", false));
    CHECK(ignore.ignores("templates/.x", false));
    CHECK(error_of([&] { ignore.add("a\n**\n", "f"); }).position()->to_string() == "f:2:1");
    CHECK(error_of([&] { ignore.add("[a", "f"); }).code() == "bad-ignore");
}

TEST_CASE("charts that cannot be loaded") {
    const auto load = [](std::vector<File> files) {
        return error_of([&] { (void)recipe::chart::load_chart(std::move(files), "d"); });
    };
    CHECK(load({}).message() == "Chart.yaml is missing");
    CHECK(load({{"Chart.yaml", "name: a\nversion: [1]\n"}}).message() ==
          "version: expected a string, found []interface {} 1 items");
    CHECK(load({{"Chart.yaml", "name: a\nversion: x.y\n"}}).position()->to_string() == "d/Chart.yaml:2:10");
    CHECK(load({{"Chart.yaml", "# c\nversion: 1.0.0\n"}}).position()->to_string() == "d/Chart.yaml:2:1");
    const Error condition = load({{"Chart.yaml", k_chart.data + "dependencies:\n- name: s\n  condition: [x]\n"}});
    CHECK(condition.position()->to_string() == "d/Chart.yaml:6:14");
    CHECK(condition.message() == "dependencies[0].condition: expected a string, found []interface {} 1 items");
    const Error values = load({k_chart, {"values.yaml", "a: 1\nb: {c: d\ne: f\n"}});
    CHECK(values.position()->to_string() == "d/values.yaml:3:2");
    CHECK(values.message() ==
          "did not find expected ',' or '}' while parsing a flow mapping; what is not closed may begin at "
          "d/values.yaml:2:4");
    CHECK(values.details() == std::vector<std::pair<std::string, std::string>>{{"found", "e: f"}});
    CHECK(load({k_chart, {"values.yaml", "a: 1\nbc: \x01\n"}}).position()->to_string() == "d/values.yaml:2:5");
    CHECK(load({k_chart, {"charts/s.tgz", "no archive"}}).code() == "bad-archive");
    const Error schema = error_of([] {
        (void)rendered({{"values.schema.json", R"({"required": ["x"], "properties": {"port": {"type": "string"}}})"}},
                       "port: 1");
    });
    REQUIRE(schema.diagnostics().size() == 2);
    CHECK(schema.diagnostics()[0].message == "(root): the property x is missing");
    CHECK(schema.diagnostics()[1].message == "port: expected string, found number 1");
}

TEST_CASE("a schema that is none is refused, whatever the values are") {
    const auto fault = [](const std::string& schema) {
        return error_of([&] { (void)rendered({{"values.schema.json", schema}}); });
    };
    for (const std::string wrong :
         {R"({"type": "strin"})", R"({"type": []})", R"({"properties": []})", R"({"required": "x"})",
          R"({"required": ["x", "x"]})", R"({"multipleOf": 0})", R"({"minLength": -1})", R"({"maxItems": 1.5})",
          R"({"pattern": "("})", R"({"patternProperties": {"(": {}}})", R"({"allOf": []})", R"({"items": [{}]})",
          R"({"$schema": "x"})", R"({"not": 5})", R"({"exclusiveMinimum": true})", R"({"$ref": "#/definitions/x"})",
          R"({"properties": {"a": {"enum": 5}}})", "[]", "5"}) {
        CAPTURE(wrong);
        CHECK(fault(wrong).code() == "bad-schema");
    }
    CHECK(fault("{\n \"properties\": {\"a\": {\"type\": 5}}}").position()->to_string() ==
          "dir/top/values.schema.json:2:31");
    CHECK(fault("{\n \"type\": }").position()->to_string() == "dir/top/values.schema.json:2:10");
    const std::string draft4 = "\"$schema\": \"http://json-schema.org/draft-04/schema#\"";
    CHECK(rendered({{"values.schema.json", "{" + draft4 + ", \"minimum\": 1, \"exclusiveMinimum\": true}"}}) == "\n");
    CHECK(fault("{" + draft4 + ", \"not\": true}").code() == "bad-schema");
}

TEST_CASE("what Chart.yaml asks for and is not there is shown where it asks") {
    const auto place = [](const std::string& more) {
        std::vector<File> files{{"Chart.yaml", k_chart.data + more}};
        return error_of([&] {
                   (void)recipe::chart::render_chart(recipe::chart::load_chart(files, "d"), values_of("{}"), {});
               }).position()->to_string();
    };
    CHECK(place("kubeVersion: '>= 99'\n") == "d/Chart.yaml:4:14");
    CHECK(place("dependencies:\n- {version: 1, name: x}\n") == "d/Chart.yaml:5:22");
    CHECK(place("type: library\n") == "d/Chart.yaml:4:7");
}

TEST_CASE("a line that is taken for a key is shown where it begins") {
    const Error error = error_of([] { (void)rendered({{"templates/t.yaml", "a: 1\nword\nb: 2\n"}}); });
    CHECK(error.position()->to_string() == "dir/top/templates/t.yaml:2:1");
}

TEST_CASE("a value that does not meet the schema is shown where values.yaml has it") {
    const std::vector<File> files{{"values.yaml", "a: 1\nport:\n  number: x\n"},
                                  {"values.schema.json",
                                   R"({"properties": {"port": {"properties": {"number": {"type": "integer"}}}}})"}};
    const auto place = [&](const std::string& values) {
        return error_of([&] { (void)rendered(files, values); }).diagnostics().at(0).position->to_string();
    };
    CHECK(place("{}") == "dir/top/values.yaml:3:11");
    CHECK(place("port: {number: y}") == "dir/top/values.schema.json");
    const auto closed = [](const std::string& schema) {
        return error_of([&] {
                   (void)rendered({{"values.yaml", "# c\na: 1\nb: {c: 1}\n"}, {"values.schema.json", schema}});
               })
            .diagnostics()
            .at(0)
            .position->to_string();
    };
    CHECK(closed(R"({"properties": {"a": {}, "global": {}}, "additionalProperties": false})") ==
          "dir/top/values.yaml:3:4");
    CHECK(closed(R"({"required": ["x"]})") == "dir/top/values.yaml:2:1");
}

TEST_CASE("a fault of syntax shows its action, and what is not closed") {
    const auto fault = [](const std::string& text) {
        return error_of([&] { (void)rendered({{"templates/t.yaml", text}}); });
    };
    const Error unclosed = fault("a: 1\n  {{- if .Values.x }}\nb: {{ range .Values.y }}\n{{ end }}\n");
    CHECK(unclosed.position()->to_string() == "dir/top/templates/t.yaml:5:1");
    using Details = std::vector<std::pair<std::string, std::string>>;
    CHECK(unclosed.details() ==
          Details{{"expression", "{{- if .Values.x }}"}, {"opened at", "dir/top/templates/t.yaml:2:3"}});
    const Error called = fault("{{ define \"top.f\" }}{{ fail \"no\" }}{{ end }}\na: {{ include \"top.f\" . }}\n");
    CHECK(called.details().back() ==
          std::pair<std::string, std::string>{"called from", "dir/top/templates/t.yaml:2:7 (include \"top.f\")"});
    const Error nil = fault("a: {{ .Valuse.x }}\n");
    CHECK(nil.hint() == "there is no .Valuse; did you mean .Values?");
    CHECK(nil.details() == std::vector<std::pair<std::string, std::string>>{{"expression", ".Valuse.x"},
                                                                            {"value", "nil in front of .x"}});
    const Error field = fault("a: {{ .Chart.Bar }}\n");
    CHECK(field.message() == "can't evaluate field Bar in type struct { chart.Metadata; IsRoot bool }");
    CHECK(field.details().at(1).second.starts_with("struct { chart.Metadata; IsRoot bool } fields: Name Home"));
    const Error helper = fault("{{ define \"top.name\" }}x{{ end }}a: {{ include \"top.nam\" . }}\n");
    CHECK(helper.hint() == "did you mean \"top.name\"?");
    CHECK(helper.details() ==
          std::vector<std::pair<std::string, std::string>>{{"expression", "include \"top.nam\" ."}});
    const Error stray = fault("a: {{ .Values.x @ }}\n");
    CHECK(stray.details() ==
          std::vector<std::pair<std::string, std::string>>{{"expression", "{{ .Values.x @ }}"}});
}

TEST_CASE("a block scalar at the end of an object keeps its line feed") {
    const auto made = recipe::chart::render_chart(
        recipe::chart::load_chart({k_chart, {"templates/t.yaml", "kind: A\ndata: |\n  x\n"},
                                   {"templates/h.yaml", "kind: B\nmetadata:\n  annotations: {helm.sh/hook: test}\n"
                                                        "data: |\n  x\n"}},
                                  "dir/top"),
        values_of("{}"), {});
    CHECK(made.objects.at(0).object.members().at("data").text() == "x\n");
    CHECK(made.hooks.at(0).object.members().at("data").text() == "x\n");
}

TEST_CASE("imported values win over the chart's own in Helm 3.7, and lose since") {
    const std::vector<File> files{{"Chart.yaml",
                                   "apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n- {name: sub, version: "
                                   "0.1.0, import-values: [data]}\n"},
                                  {"values.yaml", "a: own\n"},
                                  {"templates/t.yaml", "a: {{ .Values.a }}\nb: {{ .Values.b }}"},
                                  {"charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"},
                                  {"charts/sub/values.yaml", "exports: {data: {a: imported, b: imported}}\n"}};
    recipe::chart::Release release;
    const auto text = [&] {
        return recipe::chart::render_bare(recipe::chart::load_chart(files, "dir/top"), values_of("{}"), release,
                                          "templates/t.yaml");
    };
    CHECK(text() == "a: own\nb: imported");
    release.is_helm_3_7 = true;
    CHECK(text() == "a: imported\nb: imported");
}

TEST_CASE("what is imported beside an empty table does not become the table's") {
    const std::vector<File> files{{"Chart.yaml",
                                   "apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n- {name: one, version: "
                                   "0.1.0, import-values: [{child: a, parent: a}]}\n- {name: two, version: 0.1.0, "
                                   "import-values: [{child: b, parent: a.b}]}\n"},
                                  {"templates/t.yaml", "{{ toJson .Values.one.a }} {{ toJson .Values.a }}"},
                                  {"charts/one/Chart.yaml", "apiVersion: v2\nname: one\nversion: 0.1.0\n"},
                                  {"charts/one/values.yaml", "a: {}\n"},
                                  {"charts/two/Chart.yaml", "apiVersion: v2\nname: two\nversion: 0.1.0\n"},
                                  {"charts/two/values.yaml", "b: {k: 1}\n"}};
    CHECK(recipe::chart::render_bare(recipe::chart::load_chart(files, "dir/top"), values_of("{}"), {},
                                     "templates/t.yaml") == R"({} {"b":{"k":1}})");
}

TEST_CASE("a byte order mark begins a text, or is a character like others") {
    const std::string mark = "\xEF\xBB\xBF";
    CHECK(values_of(mark + "a: 1\nb: 2\n").members().size() == 2);
    CHECK(recipe::tmpl::write_json(values_of("a: 1\n" + mark + "b: x" + mark + "y\n")) ==
          "{\"a\":1,\"" + mark + "b\":\"x" + mark + "y\"}");
    CHECK(rendered({{"templates/t.yaml", "kind: B\n---\n" + mark + "kind: A\n"}}).find(mark + "kind: A\n---") !=
          std::string::npos);
}

TEST_CASE("a lock file has the form of one") {
    const auto fault = [](const std::string& lock) {
        return error_of([&] { (void)rendered({{"Chart.lock", lock}}); }).message();
    };
    CHECK(fault("dependencies: 5\n") == "dependencies: expected a list, found float64 5");
    CHECK(fault("generated: yesterday\n") ==
          "generated: expected a time as 2006-01-02T15:04:05Z, found string \"yesterday\"");
    CHECK(rendered({{"Chart.lock", "dependencies: [null]\ngenerated: \"2020-01-01T00:00:00.5+01:00\"\n"}}) == "\n");
}

TEST_CASE("patterns of .helmignore take time in proportion to their length") {
    const auto match = [](const std::string& pattern, const std::string& name) {
        bool bad = false;
        const bool matched = recipe::chart::match_name(pattern, name, bad);
        return bad ? "bad" : matched ? "yes" : "no";
    };
    CHECK(match(std::string(100'000, 'a'), "abc") == std::string("no"));
    CHECK(match(std::string(100'000, '['), "abc") == std::string("bad"));
    std::string stars;
    for (int i = 0; i < 50; ++i) { stars += "*a"; }
    CHECK(match(stars + "b", std::string(200, 'a')) == std::string("no"));
    CHECK(match("*x*[a-c]?", "axxbz") == std::string("yes"));
    CHECK(match("a*b*c", "ab/c") == std::string("no"));
    CHECK(match("a*[", "b") == std::string("bad"));
    CHECK(match("[^a]\\*", "b*") == std::string("yes"));
    CHECK(match("[a*]b*", "*bc") == std::string("yes"));
    recipe::chart::Ignore ignore;
    CHECK(error_of([&] { ignore.add("x\n" + std::string(70'000, 'a'), "f"); }).position()->to_string() == "f:2:1");
}

TEST_CASE("YAML in UTF-16 is read") {
    std::string wide = "\xFF\xFE";
    for (const char c : std::string("a: 1\n")) { wide += {c, '\0'}; }
    CHECK(recipe::tmpl::write_json(values_of(wide)) == "{\"a\":1}");
}

TEST_CASE("versions of Kubernetes are read as apimachinery does") {
    CHECK(recipe::chart::parse_kube_version("1.09.0").value().version == "v1.9.0");
    CHECK(recipe::chart::parse_kube_version("1.00").value().minor == "0");
    CHECK_FALSE(recipe::chart::parse_kube_version("01.9"));
}
