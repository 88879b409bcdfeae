// SPDX-License-Identifier: Apache-2.0
// Templates: what they print, and what their errors say. Helm's own answers to the same are compared by tests/recipe.
#include <doctest/doctest.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/functions/functions.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/template/engine.hpp"

namespace {

using namespace kmm;
using recipe::tmpl::Value;

Value values_of(const std::string& yaml) {
    recipe::tmpl::YamlFault fault;
    Value value = recipe::tmpl::read_yaml_text(yaml, fault);
    REQUIRE(fault.message.empty());
    return Value::map({{"Values", value.as(recipe::tmpl::Type::values)}});
}

std::string rendered(const std::string& text, const std::string& yaml = "{}", const recipe::tmpl::Limits& limits = {}) {
    recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
    recipe::tmpl::Engine engine(parsed, limits);
    engine.add("c/templates/t.yaml", text);
    return engine.render("c/templates/t.yaml", values_of(yaml)).text;
}

Error error_of(const std::string& text, const std::string& yaml = "{}", const recipe::tmpl::Limits& limits = {}) {
    try {
        const std::string out = rendered(text, yaml, limits);
        FAIL("no error, but: " << out);
    } catch (const Error& error) { return error; }
    throw bug("not reached");
}

std::string detail(const Error& error, const std::string& key) {
    for (const auto& [name, value] : error.details()) {
        if (name == key) { return value; }
    }
    return "";
}

}  // namespace

TEST_CASE("a number is too large by its value, not by its first digit") {
    CHECK(rendered("{{ range list \"01e400\" \".51e400\" \"0.001e312\" \"1e400\" }}{{ fromYaml (print \"a: \" .) "
                   "| toJson }}{{ end }}",
                   "{}") == R"({"a":"01e400"}{"a":".51e400"}{"a":"0.001e312"}{"a":"1e400"})");
    CHECK(rendered("{{ range list \"0.0001e312\" \"01e-400\" \"100.5e-400\" \".0e400\" }}{{ fromYaml (print \"a: \" "
                   ".) | toJson }}{{ end }}",
                   "{}") == R"({"a":1e+308}{"a":0}{"a":0}{"a":0})");
}

TEST_CASE("numbers of values are float64, those of templates are int") {
    CHECK(rendered("{{ .Values.a }} {{ .Values.b }} {{ .Values.c }}", "{a: 8080, b: 1000000, c: 0.1}") ==
          "8080 1e+06 0.1");
    CHECK(rendered("{{ int .Values.b }} {{ typeOf .Values.b }} {{ typeOf 1 }}", "b: 1000000") == "1000000 float64 int");
    CHECK(error_of("{{ eq .Values.a 1 }}", "a: 1").message() ==
          "error calling eq: incompatible types for comparison: float64 and int");
}

TEST_CASE("a raw quoted text has any character that a raw literal may have") {
    CHECK(rendered(R"({{ printf "%#q" "é\t" }})") == "`é\t`");
    CHECK(rendered("{{ printf \"%#q\" \"\\xff\" }}") == "\"\\xff\"");
    CHECK(rendered("{{ printf \"%#q\" \"\\ufeff\" }}") == "\"\\ufeff\"");
}

TEST_CASE("what is missing prints nothing, and what is below it is an error") {
    CHECK(rendered("[{{ .Values.x }}]") == "[]");
    CHECK(rendered("[{{ (.Values.x).y }}]") == "[]");
    const Error error = error_of("a: 1\nb: {{ .Values.x.y }}");
    CHECK(error.code() == "template-error");
    CHECK(error.message() == "nil pointer evaluating interface {}.y");
    REQUIRE(error.position());
    CHECK(error.position()->to_string() == "c/templates/t.yaml:2:14");
    CHECK(detail(error, "expression") == ".Values.x.y");
}

TEST_CASE("html, js and urlquery take nil for the text that an action prints, and a pointer for its struct") {
    CHECK(rendered("{{ html nil }}|{{ js .Values.x 5 }}|{{ urlquery 1 nil 2 }}|{{ print nil 5 }}") ==
          "&lt;no value&gt;|\\u003Cno value\\u003E5|1%3Cno+value%3E2|<nil> 5");
    const auto record = std::make_shared<recipe::tmpl::Record>();
    record->type = "*c.Pointer";
    record->pointer = true;
    record->fields = {{"A", "a", false, Value::integer(5)}};
    recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
    recipe::tmpl::Engine engine(parsed, {});
    engine.add("t", "{{ .p }} {{ html .p }} {{ print .p }}");
    CHECK(engine.render("t", Value::map({{"p", Value::record(record)}})).text == "{5} {5} &{5}");
}

TEST_CASE("groups of regular expressions with either form of a name") {
    CHECK(rendered(R"go({{ regexReplaceAll "(?<a>x)(?P<b>y)" "xy" "${b}${a}" }})go") == "yx");
    CHECK(rendered(R"go({{ regexFind "[(?<n>]+" "a(?<n>" }} {{ regexFind "[](?<]+" "](?<" }})go") == "(?<n> ](?<");
    CHECK(rendered(R"go({{ regexFind `\Q(?<n>\E.` "(?<n>z" }} {{ regexFind `\(\?<` "(?<" }})go") == "(?<n>z (?<");
    CHECK(rendered(R"go({{ regexFind "[[:alpha:]](?<n>b)" "ab" }})go") == "ab");
    CHECK(error_of(R"go({{ regexFind "(?<=a)b" "ab" }})go").code() == "template-error");
}

TEST_CASE("control: scope, break, continue, else") {
    CHECK(rendered("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $y := 3 }}{{ $y }}{{ end }}{{ $x }}") == "32");
    CHECK(rendered("{{ range until 9 }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ if eq . 4 }}{{ break }}{{ end }}{{ . "
                   "}}{{ end }}") == "013");
    CHECK(rendered("{{ range $k, $v := .Values.m }}{{ $k }}={{ $v }};{{ else }}none{{ end }}", "m: {b: 1, a: 2}") ==
          "a=2;b=1;");
    CHECK(rendered("{{ with .Values.none }}x{{ else with .Values.m }}{{ .a }}{{ else }}z{{ end }}", "m: {a: 2}") ==
          "2");
    CHECK(rendered("a {{- /* c */ -}} b{{ define \"d\" }}<{{ . }}>{{ end }}{{ template \"d\" 5 }}{{ block \"e\" 6 "
                   "}}({{ . }}){{ end }}") == "ab<5>(6)");
}

TEST_CASE("a wrong type is named with the value that was found") {
    const Error error = error_of("{{ .Values.port | trunc 3 }}", "port: 8080");
    CHECK(error.message() == "wrong type for value; expected string; got float64 (argument 2 of trunc)");
    CHECK(detail(error, "value") == "float64 8080");
}

TEST_CASE("functions that are not there, or give something else each time") {
    const Error unknown = error_of("x\n {{ toYml .Values }}");
    CHECK(unknown.code() == "unknown-function");
    CHECK(unknown.hint() == "did you mean toYaml?");
    CHECK(unknown.position()->to_string() == "c/templates/t.yaml:2:5");
    for (const std::string name : {"now", "randAlphaNum 5", "genCA \"a\" 1", "uuidv4", "shuffle \"abc\"",
                                   "bcrypt \"a\"", "date \"2006\" .Values"}) {
        CAPTURE(name);
        CHECK(error_of("{{ " + name + " }}").code() == "not-deterministic");
    }
    CHECK(error_of("{{ randAlphaNum }}").message() == "wrong number of args for randAlphaNum: want 1 got 0");
}

TEST_CASE("decoding and blanks as Go has them, faults in place of the value") {
    const auto print = [](const std::string& text) {
        recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
        recipe::tmpl::Engine engine(parsed, {}, {});
        engine.add("c/templates/t.yaml", "{{ " + text + " }}");
        return engine.render("c/templates/t.yaml", values_of("{}")).text;
    };
    const std::string fault32 = "illegal base32 data at input byte ", fault64 = "illegal base64 data at input byte ";
    CHECK(print("b32dec \"EBBUG===\"") == " CC");
    CHECK(print("b32dec \"IE======\"") == "A");
    CHECK(print("b32dec \"IFBA======\"") == "AB");  // more of it than it takes
    CHECK(print("b32dec \"B\"") == fault32 + "0");
    CHECK(print("b32dec \"IE=====\"") == fault32 + "7");
    CHECK(print("b32dec \"DC=3====\"") == fault32 + "2");
    CHECK(print("b64dec \"QUI=\"") == "AB");
    CHECK(print("b64dec \"2\\nD\"") == fault64 + "1");
    CHECK(print("b64dec \"QQ=\"") == fault64 + "3");
    CHECK(print("b64dec \"QQ==A\"") == fault64 + "4");
    CHECK(print("nospace \"é\"") == "é");
    CHECK(print("nospace \"é x\"") == "Ã©x");
}

TEST_CASE("placeholders stand for what is random") {
    std::vector<Diagnostic> notices;
    const auto print = [&](const std::string& text) {
        recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
        recipe::tmpl::Engine engine(parsed, {}, [&](Diagnostic notice) { notices.push_back(std::move(notice)); });
        engine.use_placeholders();
        engine.add("c/templates/t.yaml", text);
        return engine.render("c/templates/t.yaml", values_of("{}")).text;
    };
    CHECK(print("{{ randAlphaNum 13 }} {{ randNumeric 3 }} {{ len (randBytes 32 | b64dec) }} {{ randInt 5 9 }}") ==
          "PLACEHOLDERPL 012 32 5");
    REQUIRE(notices.size() == 4);
    CHECK(notices[0].code == "placeholder");
    CHECK(notices[0].position->to_string() == "c/templates/t.yaml:1:4");
    CHECK(print("{{ $ca := genCA \"a\" 1 }}{{ (genSignedCert \"b\" nil (list \"b\") 9 $ca).Cert }}") ==
          "-----BEGIN CERTIFICATE-----\nUExBQ0VIT0xERVI=\n-----END CERTIFICATE-----\n");
    CHECK(print("{{ genPrivateKey \"ecdsa\" | trunc 26 }} {{ uuidv4 }} {{ now | date \"2006\" }} "
                "{{ len (bcrypt \"\") }}") ==
          "-----BEGIN EC PRIVATE KEY- 00000000-0000-4000-8000-000000000000 1970 60");
    CHECK(print("{{ (buildCustomCert (b64enc \"c\") (b64enc \"k\")).Key }} {{ htpasswd \"u\" \"p\" | trunc 9 }}") ==
          "k u:$2a$10$");
}

TEST_CASE("a dict whose key is a whole object does no harm until the key is printed") {
    const auto print = [&](const std::string& text) {
        auto made = std::make_shared<recipe::tmpl::Record>();
        made->pointer = true;
        recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
        recipe::tmpl::Engine engine(parsed);
        engine.add("c/templates/t.yaml", text);
        return engine.render("c/templates/t.yaml", Value::map({{"Capabilities", Value::record(std::move(made))}})).text;
    };
    CHECK(print("{{ $d := dict \"a\" 1 . \"context\" }}{{ $d.a }}") == "1");
    CHECK_THROWS_WITH_AS(print("\n{{ dict \"a\" 1 . \"context\" | toYaml }}"),
                         "the address of a pointer is printed, another one each time", Error);
    CHECK_THROWS_AS(print("{{ print . }}"), Error);
}

TEST_CASE("classes of characters have Go's names, and Go knows no \\\\C") {
    const auto found = [](const std::string& pattern) {
        return rendered("{{ mustRegexFindAll .Values.p \"aB-\\u00e91\" -1 | join \" \" }}", "p: '" + pattern + "'");
    };
    CHECK(found("\\p{lu}") == "B");
    CHECK(found("\\p{Lowercase_Letter}") == "a é");
    CHECK(found("[\\p{Letter}\\p{dash punctuation}]") == "a B - é");
    CHECK(found("\\P{ascii}|[\\p{^Letter}]") == "- é 1");
    CHECK(found("[^\\p{ASCII}]") == "é");
    CHECK(found("\\p{LC}") == "a B é");
    CHECK(found("\\p{latin}") == "a B é");
    CHECK(found("\\Q\\C\\E|a") == "a");
    CHECK(error_of("{{ regexFindAll \"\\\\C\" \"a\" -1 }}").code() == "template-error");
    CHECK(rendered("{{ regexMatch \"\\\\C\" \"a\" }}") == "false");
    CHECK(rendered("{{ regexMatch \"(?P<é>a)\" \"a\" }}{{ regexMatch \"(?<e_1>a)\" \"a\" }}") == "falsetrue");
    CHECK(rendered("{{ regexFind \"a{9}|{12345678901x\" \"{12345678901x\" }}") == "{12345678901x");
    CHECK(error_of("{{ regexFind \"a{12345678901}\" \"a\" }}").code() == "template-error");
    CHECK(error_of("{{ regexFind \"a{1,12345678901}\" \"a\" }}").code() == "template-error");
    CHECK(error_of("{{ regexFind \"a{12345678901,}\" \"a\" }}").code() == "template-error");
    for (const std::string text : {"a{0000000012}", "a{1,0000000012}", "a{12345678901,2,3}", "a{,12345678901}"}) {
        CHECK(rendered("{{ regexFind .Values.p .Values.p }}", "p: '" + text + "'") == text);
    }
}

TEST_CASE("classes of characters without a meaning are classes, too, and scripts are found by one word alone") {
    const auto found = [](const std::string& pattern) {
        return rendered("{{ mustRegexFindAll .Values.p .Values.t -1 | join \" \" }}",
                        "t: \"a\\u0378\\ue000\"\np: '" + pattern + "'");
    };
    for (const std::string assigned : {"\\p{Assigned}", "\\P{Cn}", "\\p{^Unassigned}", "[\\P{Cn}]", "[^\\p{Cn}]"}) {
        CHECK(found(assigned) == "a \xEE\x80\x80");
    }
    for (const std::string none : {"\\P{assigned}", "\\p{Cn}", "\\p{un_assigned}", "[\\p{Cn}b]", "[^\\p{Assigned}]"}) {
        CHECK(found(none) == "\xCD\xB8");
    }
    for (const std::string other : {"\\p{C}", "\\pC", "\\p{Other}", "[\\pC]", "\\P{LC}", "[\\P{LC}]"}) {
        CHECK(found(other) == "\xCD\xB8 \xEE\x80\x80");
    }
    CHECK(found("\\PC") == "a");
    CHECK(found("\\pl") == "a");
    CHECK(found("\\p{_La-tin}") == "a");
    for (const std::string wrong : {"\\p{Old_Italic}", "\\p{Olditalic}", "\\p{SignWriting}", "\\p{}", "\\p{Zz_zz}"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(found(wrong), Error);
    }
    CHECK(rendered("{{ regexMatch `[\\p{Cn}]` \"a\" }}{{ regexMatch `\\p{Old_Italic}` \"a\" }}") == "falsefalse");
    // Go compiles this: false would be wrong.
    CHECK(error_of("{{ regexMatch `(\\p{L}{1000})|a` \"a\" }}").code() == "recipe-too-large");
}

TEST_CASE("required and fail speak with their own words, and say who called") {
    const Error error =
        error_of("{{ define \"h\" }}\n{{ required \"set it\" .Values.x }}{{ end }}\n{{ include \"h\" . }}");
    CHECK(error.code() == "template-fail");
    CHECK(error.message() == "set it");
    CHECK(error.position()->line == 2);
    CHECK(detail(error, "called from") == "c/templates/t.yaml:3:4 (include \"h\")");
}

TEST_CASE("limits") {
    recipe::tmpl::Limits limits;
    limits.steps_max = 10'000;
    CHECK(error_of("{{ range 1000000000 }}{{ end }}", "{}", limits).code() == "recipe-too-large");
    CHECK(error_of("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}").code() == "recipe-too-large");
    CHECK(error_of("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}").hint() ==
          "does it include itself without an end?");
    CHECK(error_of("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}").code() ==
          "recipe-too-large");
    std::string deep = "{{ define \"a\" }}", ends;
    for (int i = 0; i < 400; ++i) {
        deep += "{{ if true }}";
        ends += "{{ end }}";
    }
    CHECK(error_of(deep + "{{ include \"a\" . }}" + ends + "{{ end }}{{ include \"a\" . }}").code() ==
          "recipe-too-large");
    CHECK(error_of("{{ repeat 100000000 \"abc\" }}").code() == "recipe-too-large");
    CHECK(error_of("{{ until 100000000 }}").code() == "recipe-too-large");
    CHECK(error_of("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toYaml $d }}").code() == "recipe-too-large");
    CHECK(error_of("{{ " + std::string(400, '(')).code() == "template-syntax");
    CHECK(error_of("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}").code() == "recipe-too-large");
    // Texts and lists that grow in a loop, whatever makes them.
    for (const std::string grown : {"printf `%s%s` $s $s", "print $s $s", "println $s $s", "cat $s $s"}) {
        CAPTURE(grown);
        const std::string text = "{{ $s := `aaaaaaaaaaaaaaaa` }}{{ range until 27 }}{{ $s = " + grown + " }}{{ end }}";
        CHECK(error_of(text).code() == "recipe-too-large");
    }
    recipe::tmpl::Limits small;
    small.made_max = 1U << 20U;
    for (const std::string grown : {"concat $l $l", "append $l (repeat 10000 `a`)", "append $l (until 1000)",
                                    "append $l (deepCopy $.Values.d)", "append $l (fromJson `{\"a\": [1, 2, 3]}`)"}) {
        CAPTURE(grown);
        const std::string text = "{{ $l := list 1 }}{{ range until 9999 }}{{ $l = " + grown + " }}{{ end }}";
        CHECK(error_of(text, "d: {a: {b: [1, 2, 3]}}", small).code() == "recipe-too-large");
    }
    // What makes more than it is given asks before it does: of 1 MiB that may be made there is hardly more.
    const std::string texts = "{{ $t := repeat 60000 `,a` }}", shared = "{{ $l := list }}{{ range until 40 }}"
                              "{{ $l = list $l $l }}{{ end }}{{ $t := `,` }}";
    const std::string large = "{{ $t := repeat 60000 `,a` }}{{ $l := list }}{{ range until 100 }}"
                              "{{ $l = append $l $t }}{{ end }}";
    const std::pair<std::string, std::string> made_at_once[] = {
        {texts, "split `,` $t"}, {texts, "splitList `,` $t"}, {texts, "splitList `` $t"},
        {texts, "splitn `,` 50000 $t"},
        {texts, "regexFindAll `a` $t -1"}, {texts, "mustRegexFindAll `a|` $t 40000"}, {texts, "regexSplit `,` $t -1"},
        {texts, "fromJsonArray (printf `[0%s]` (repeat 60000 `,0`))"},
        {texts, "mustFromJson (printf `[0%s]` (repeat 60000 `,0`))"},
        {texts, "fromToml (printf `a = [0%s]` (repeat 60000 `,0`))"}, {texts, "tpl (repeat 20000 `{{.}}`) 1"},
        {texts, "chunk 1 (until 25000)"}, {texts, "dict $t 1 (print $t $t) 1 (print $t $t $t) 1"},
        {texts, "set (set (set (dict) $t 1) (print $t $t) 1) (print $t $t $t) 1"},
        {shared, "deepCopy $l"}, {shared, "mustDeepCopy $l"}, {shared, "deepCopy (dict `a` $l)"},
        {large, "toStrings $l"}, {large, "join $t $l"}, {large, "sortAlpha $l"},
    };
    for (const auto& [begin, call] : made_at_once) {
        CAPTURE(call);
        CHECK(error_of(begin + "{{ $x := " + call + " }}", "{}", small).code() == "recipe-too-large");
    }
    const std::string wide = "{{ $l := list }}{{ $t := repeat 10000000 `a` }}{{ range until 12 }}"
                             "{{ $l = append $l $t }}{{ end }}{{ $x := ";
    for (const std::string call : {"printf `%v` $l", "print $l", "toString $l", "toJson $l", "toYaml $l",
                                   "toToml (dict `a` $l)", "regexReplaceAll `.+` $t `$0$0$0$0$0$0$0`",
                                   "cat $t $t $t $t $t $t $t $t", "quote $t $t $t $t $t $t $t $t",
                                   "js (repeat 20000000 `<`)"}) {
        CAPTURE(call);
        CHECK(error_of(wide + call + " }}").code() == "recipe-too-large");
    }
    // What is printed counts while a template that includes it has not ended.
    CHECK(error_of("{{ define `a` }}{{ repeat 10000 `a` }}{{ if . }}{{ include `a` (sub . 1) }}{{ end }}{{ end }}"
                   "{{ include `a` 60 }}", "{}", small).code() == "recipe-too-large");
    CHECK(error_of("{{ range 20000 }}x{{ end }}{{ range 20000 }}x{{ end }}", "{}", small).code() ==
          "recipe-too-large");
    // What is passed on is made once, and a list that grows by one shares what it had.
    const std::string passed = "{{ $l := until 1000 }}{{ $t := repeat 10000 `a` }}{{ $k := list }}"
                               "{{ range $l }}{{ $k = append $k . }}{{ $_ := default $l $l }}{{ $_ := default `` $t }}"
                               "{{ end }}{{ len $k }}";
    CHECK(rendered(passed, "{}", small) == "1000");
    CHECK(error_of("{{ range until 2000 }}{{ derivePassword 1 `long` `a` `b` `c` }}{{ end }}", "{}", limits).code() ==
          "recipe-too-large");
    limits.output_max = 100;
    CHECK(error_of("{{ range 1000 }}xxxxxxxxxx{{ end }}", "{}", limits).code() == "recipe-too-large");
}

TEST_CASE("the line of a template that made a line of the output") {
    recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
    recipe::tmpl::Engine engine(parsed);
    engine.add("t", "a: 1\n{{- range .Values.l }}\n- {{ . }}\n{{- end }}\nz: 1\n");
    const auto output = engine.render("t", values_of("l: [p, q, r]"));
    CHECK(output.text == "a: 1\n- p\n- q\n- r\nz: 1\n");
    CHECK(output.origin.position(1).line == 1);
    CHECK(output.origin.position(3).line == 3);
    CHECK(output.origin.position(5).line == 5);
}

TEST_CASE("a file is parsed once as long as its text is the same") {
    recipe::tmpl::ParsedFiles parsed(recipe::tmpl::chart_library());
    const auto first = parsed.trees("t", "{{ 1 }}", "t.yaml");
    CHECK(parsed.trees("t", "{{ 1 }}", "t.yaml")[0] == first[0]);
    CHECK(parsed.trees("t", "{{ 2 }}", "t.yaml")[0] != first[0]);
    recipe::tmpl::Engine engine(parsed);
    engine.add("t", "{{ 1 }}");
    CHECK(engine.render("t", values_of("{}")).text == "1");
}

TEST_CASE("append leaves the list as it was, whoever else appends to it") {
    CHECK(rendered("{{ $l := list 1 }}{{ $a := append $l 2 }}{{ $b := append $l 3 }}{{ $c := append $a 4 }}{{ $l }}{{ "
                   "$a }}{{ $b }}{{ $c }}") == "[1][1 2][1 3][1 2 4]");
    CHECK(
        rendered("{{ $l := list 1 }}{{ $l = append $l $l }}{{ $l }}{{ $l = append $l (dict \"l\" $l) }}{{ len $l }}") ==
        "[1 [1]]3");
    CHECK(rendered("{{ $l := list 1 2 }}{{ range $l }}{{ $l = append $l . }}{{ end }}{{ $l }}{{ concat $l $l (list 9) "
                   "}}{{ $l }}") == "[1 2 1 2][1 2 1 2 1 2 1 2 9][1 2 1 2]");
    CHECK(rendered("{{ $l := splitList \",\" \"b,a\" }}{{ $m := append $l \"c\" }}{{ sortAlpha $l }}{{ $m }}") ==
          "[a b][b a c]");
}

TEST_CASE("a list that grows item by item costs time in proportion to its length") {
    const auto seconds = [](int count) {
        const std::clock_t begin = std::clock();
        CHECK(rendered("{{ $l := list }}{{ $d := dict \"l\" $l }}{{ range " + std::to_string(count) +
                       " }}{{ $l = append $l . }}{{ $_ := set $d \"l\" (append $d.l \"x\") }}{{ $f := first $l }}{{ "
                       "end }}{{ len $l }}{{ len $d.l }}") == std::to_string(count) + std::to_string(count));
        return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    };
    const double small = seconds(5'000);
    CHECK(seconds(50'000) < 40 * small + 0.1);  // 100 times if each append copied the list
}

TEST_CASE("a time zone without a name is printed with hours and minutes") {
    CHECK(rendered(R"({{ toDate "2006-01-02 15:04 -07:00" "2017-12-31 23:59 -05:30" }})") ==
          "2017-12-31 23:59:00 -0530 -0530");
}
